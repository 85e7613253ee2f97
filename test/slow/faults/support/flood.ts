/** Floods: the same requests on many connections at once, and the longest turn of the gateway's event loop meanwhile. */
import { once } from 'node:events';
import { connect } from 'node:net';
import type { Rig } from '../../../support/memory-law.ts';
import { KEY } from '../../../support/test-gateway.ts';

const TRIES = 4;

/** The least of a few tries, each after it was done once. */
export async function leastTurn(rig: Pick<Rig, 'longestTurn'>, most: number, attack: () => Promise<void>): Promise<number> {
  await attack();
  let least = Number.POSITIVE_INFINITY;
  for (let tried = 0; tried < TRIES && least > most; tried++) least = Math.min(least, await rig.longestTurn(attack));
  return least;
}

/** Sends to many connections at once, a packet each, and waits for so many answers on each; returns their statuses. */
export async function flood(
  rig: Pick<Rig, 'url'>,
  packets: readonly (string | Buffer)[],
  answers: number,
): Promise<ReadonlySet<string>> {
  const { hostname, port } = new URL(rig.url);
  const sockets = await Promise.all(
    packets.map(async () => {
      const socket = connect(Number(port), hostname);
      await once(socket, 'connect');
      return socket;
    }),
  );
  const statuses = new Set<string>();
  const answered = sockets.map(
    (socket) =>
      new Promise<void>((resolve, reject) => {
        let seen = 0;
        socket.on('close', () => reject(new Error(`the connection was closed after ${seen} answers`)));
        socket.on('data', (data) => {
          for (const [, status] of data.toString('latin1').matchAll(/HTTP\/1\.1 (\d+)/g)) {
            statuses.add(status ?? '');
            seen += 1;
          }
          if (seen >= answers) resolve();
        });
      }),
  );
  for (const [at, socket] of sockets.entries()) socket.write(packets[at] ?? '');
  await Promise.all(answered);
  for (const socket of sockets) socket.destroy();
  return statuses;
}

/** The bytes of a request with JSON, or without a body. */
export const request = (line: string, body = '', key = KEY): string =>
  `${line} HTTP/1.1\r\nhost: h\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
