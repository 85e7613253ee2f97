/** A way to a server's socket that can be cut: bytes then go nowhere and nothing is closed, as when a cable is pulled. */
import { mkdtempSync, rmSync } from 'node:fs';
import { createConnection, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface CuttableSocket {
  /** The folder to connect to instead of the server's. */
  readonly folder: string;
  cut(): void;
  /** The next reply of the server is lost, and with it its connection: what was asked has been done. */
  loseReply(): void;
  /** New connections get through again; the old ones are dead and now say so. */
  heal(): void;
  close(): Promise<void>;
}

const NAME = '.s.PGSQL.5432';

export async function cuttableSocket(serverFolder: string): Promise<CuttableSocket> {
  const folder = mkdtempSync(join(tmpdir(), 'mizu-cut-'));
  const sockets = new Set<Socket>();
  let isCut = false;
  let isReplyLost = false;
  const pass = (from: Socket, to: Socket): void => {
    sockets.add(from);
    from.on('data', (bytes: Buffer) => {
      if (!isCut && !to.destroyed) to.write(bytes);
    });
    from.on('error', () => to.destroy());
    from.on('close', () => {
      sockets.delete(from);
      if (!isCut) to.destroy();
    });
  };
  const proxy = createServer((client) => {
    if (isCut) {
      sockets.add(client);
      client.on('error', () => client.destroy());
      client.resume();
      return;
    }
    const server = createConnection(join(serverFolder, NAME));
    server.prependListener('data', () => {
      if (!isReplyLost) return;
      isReplyLost = false;
      client.destroy();
    });
    pass(client, server);
    pass(server, client);
  });
  await new Promise<void>((resolve) => proxy.listen(join(folder, NAME), resolve));
  const dropAll = (): void => {
    for (const socket of sockets) socket.destroy();
    sockets.clear();
  };
  return {
    folder,
    cut: () => {
      isCut = true;
    },
    loseReply: () => {
      isReplyLost = true;
    },
    heal: () => {
      dropAll();
      isCut = false;
    },
    async close() {
      dropAll();
      await new Promise((resolve) => proxy.close(resolve));
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
