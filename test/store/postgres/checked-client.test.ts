/** What a database, or what stands before it, says that is no message of its protocol; and one that closes no connection. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import fc from 'fast-check';
import { Pool } from 'pg';
import { CheckedClient } from '../../../src/store/postgres/checked-client.ts';
import { failureKind } from '../../../src/store/postgres/failure.ts';
import { MessageCheck, ProtocolViolation } from '../../../src/store/postgres/message-check.ts';

const message = (type: string, body: Uint8Array | string): Buffer => {
  const bytes = Buffer.from(body);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(bytes.length + 4);
  return Buffer.concat([Buffer.from(type), length, bytes]);
};
const [READY, WELCOME] = [message('Z', 'I'), message('R', Buffer.alloc(4))];
const COLUMN = message('T', Buffer.concat([Buffer.from([0, 1, 0x61, 0]), Buffer.alloc(18)]));
const ROW = Buffer.concat([COLUMN, message('D', Buffer.from([0, 1, 0, 0, 0, 1, 0x31])), message('C', 'SELECT 1\0'), READY]);

/** A server that lets everybody in and answers each query with these bytes; it closes nothing. */
async function answering(t: TestContext, answer: Uint8Array, welcome: Uint8Array = Buffer.concat([WELCOME, READY])) {
  const sockets = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    // Half of it, from the client's end: the server never closes the other.
    for (const left of ['end', 'close']) socket.on(left, () => sockets.delete(socket));
    socket.once('data', () => {
      socket.write(welcome);
      socket.on('data', (asked) => void (asked[0] === 0x51 && socket.write(answer)));
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const client = new CheckedClient({ host: '127.0.0.1', port, user: 'u', database: 'd', password: 'p' });
  client.on('error', () => undefined);
  return { client, sockets };
}

async function left(sockets: ReadonlySet<Socket>): Promise<void> {
  for (let tries = 0; sockets.size > 0; tries++) {
    assert.ok(tries < 1_000, 'it is still open');
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

const INT32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
};

/** Each of them stopped a gateway: as an exception that nobody caught, or as a loop without an end. */
const NO_MESSAGES: Readonly<Record<string, Buffer>> = {
  'an error whose list does not end': message('E', 'SERROR\0C42'),
  'an error whose list ends within a field': message('E', 'SERROR\0CX0000'),
  'an error of nothing': message('E', ''),
  'a notice whose list does not end': message('N', 'SNOTICE'),
  'a row of less than no columns': message('D', Buffer.from([0xff, 0xfe])),
  'a row of more columns than it holds': message('D', Buffer.from([0x7f, 0xff, 0, 0, 0, 0])),
  'a description of more columns than it holds': message('T', Buffer.from([0, 9, 0x61, 0])),
  'a type that nobody knows': message('x', ''),
  'a length that is less than itself': Buffer.from([0x5a, 0, 0, 0, 0]),
  'a length beyond all bounds': Buffer.concat([Buffer.from('D'), INT32(0xffff_ffff)]),
  'an answer to no question': Buffer.concat([ROW, ROW]),
};

for (const [name, bytes] of Object.entries(NO_MESSAGES))
  test(`${name}: the query fails as on a connection that is lost, and the connection is closed`, async (t) => {
    const { client, sockets } = await answering(t, bytes);
    await client.connect();
    const ask = () => client.query('SELECT 1');
    // The answer to no question breaks the one after it.
    if (name === 'an answer to no question') await ask();
    await assert.rejects(ask(), (error) => failureKind(error) === 'lost');
    await client.end();
    await left(sockets);
  });

test('an answer is read, and a server that does not close its end is not waited for', async (t) => {
  const { client } = await answering(t, ROW);
  await client.connect();
  assert.equal((await client.query('SELECT 1')).rowCount, 1);
  const began = performance.now();
  await client.end();
  assert.ok(performance.now() - began < 10_000);
});

test('a server that refuses to let anybody in and keeps the connection open is left', async (t) => {
  const { client, sockets } = await answering(t, ROW, message('E', 'SFATAL\0C28P01\0Mno\0\0'));
  await assert.rejects(client.connect(), { code: '28P01' });
  await left(sockets);
});

test('a connection that is ended in the same breath in which it began: who was lent it is told, and nothing is uncaught', async (t) => {
  const ended = message('E', 'SFATAL\0C57P01\0Mterminating connection due to administrator command\0\0');
  const { client } = await answering(t, ROW, Buffer.concat([WELCOME, READY, ended]));
  const pool = new Pool({ Client: CheckedClient, host: '127.0.0.1', port: client.port, user: 'u', database: 'd', password: 'p' });
  pool.on('error', () => undefined);
  const ask = async (): Promise<void> => {
    const lent = await pool.connect();
    try {
      await lent.query('SELECT 1');
    } finally {
      lent.release(true);
    }
  };
  await assert.rejects(ask(), (error) => failureKind(error) === 'lost');
  await pool.end();
});

test('what is checked does not depend on how it was cut', () => {
  const whole = Buffer.concat([WELCOME, message('E', 'SERROR\0\0'), ROW, message('N', '\0'), message('2', '')]);
  const cut = (bytes: Buffer, places: readonly number[]): void => {
    const check = new MessageCheck();
    let from = 0;
    for (const to of [...places.map((place) => place % bytes.length).sort((a, b) => a - b), bytes.length]) {
      check.push(bytes.subarray(from, to));
      from = to;
    }
  };
  fc.assert(
    fc.property(fc.array(fc.nat(), { maxLength: 20 }), (places) => {
      cut(whole, places);
      for (const [name, bytes] of Object.entries(NO_MESSAGES).slice(0, 4))
        assert.throws(() => cut(Buffer.concat([whole, bytes]), places), ProtocolViolation, name);
    }),
  );
});
