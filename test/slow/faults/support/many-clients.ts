/**
 * A process that opens many connections to one port from one address of its own, asks on each, and keeps them:
 * `node many-clients.ts PORT COUNT ADDRESS`. Prints `open N`; for each line on its input asks on all of them again and prints
 * `served N`; ends with its input.
 */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { createInterface } from 'node:readline';

const [port = '', count = '', localAddress = ''] = process.argv.slice(2);
const AT_ONCE = 200;
const sockets: Socket[] = [];
let broken = 0;

async function ask(socket: Socket): Promise<boolean> {
  socket.write('GET /readyz HTTP/1.1\r\nhost: x\r\n\r\n');
  const [data] = await once(socket, 'data');
  return String(data).startsWith('HTTP/1.1 200');
}

async function inTurns<Item>(items: readonly Item[], run: (item: Item) => Promise<boolean>): Promise<number> {
  let good = 0;
  for (let at = 0; at < items.length; at += AT_ONCE) {
    const done = await Promise.all(items.slice(at, at + AT_ONCE).map((item) => run(item).catch(() => false)));
    good += done.filter((isGood) => isGood).length;
  }
  return good;
}

const opened = await inTurns(Array.from({ length: Number(count) }), async () => {
  const socket = connect({ port: Number(port), host: '127.0.0.1', localAddress });
  socket.on('error', () => {
    broken++;
  });
  sockets.push(socket);
  await once(socket, 'connect');
  return await ask(socket);
});
console.log(`open ${opened} broken ${broken}`);
for await (const _line of createInterface({ input: process.stdin })) {
  console.log(`served ${await inTurns(sockets, ask)} broken ${broken}`);
}
for (const socket of sockets) socket.destroy();
