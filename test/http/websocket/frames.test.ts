/**
 * Frames as bytes, in the manner of the Autobahn suite: fragmentation, control frames, what is no UTF-8, what is too large, close
 * codes. The client writes raw frames; what the endpoint does is read from the frames that come back.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect as connectTcp, type Socket } from 'node:net';
import { test } from 'node:test';
import { createFakeClock } from '../../support/fake-clock.ts';
import { KEY, type TestGateway, testGateway } from '../../support/test-gateway.ts';

const CONFIG = {
  channels: [{ id: 'one', type: 'messages', base_url: 'http://127.0.0.1:9', api_key: 'k', models: ['m'] }],
  models: { m: { price: { input: '1', output: '2' } } },
  limits: { json_bytes: 4096 },
};

const OP = { more: 0x0, text: 0x1, binary: 0x2, close: 0x8, ping: 0x9, pong: 0xa } as const;

interface FrameOptions {
  readonly fin?: boolean;
  readonly masked?: boolean;
  readonly reserved?: number;
}

function frame(
  opcode: number,
  payload: Buffer | string = '',
  { fin = true, masked = true, reserved = 0 }: FrameOptions = {},
): Buffer {
  const data = Buffer.from(payload);
  const mask = Buffer.from([1, 2, 3, 4]);
  const head = [(fin ? 0x80 : 0) | reserved | opcode];
  const bit = masked ? 0x80 : 0;
  if (data.length < 126) head.push(bit | data.length);
  else if (data.length < 65_536) head.push(bit | 126, data.length >> 8, data.length & 0xff);
  else
    head.push(
      bit | 127,
      0,
      0,
      0,
      0,
      (data.length >>> 24) & 0xff,
      (data.length >> 16) & 0xff,
      (data.length >> 8) & 0xff,
      data.length & 0xff,
    );
  if (!masked) return Buffer.concat([Buffer.from(head), data]);
  return Buffer.concat([Buffer.from(head), mask, data.map((byte, index) => byte ^ (mask[index % 4] ?? 0))]);
}

function closeFrame(code?: number, reason = ''): Buffer {
  if (code === undefined) return frame(OP.close);
  return frame(OP.close, Buffer.concat([Buffer.from([code >> 8, code & 0xff]), Buffer.from(reason)]));
}

/** What came back: `text:…` (types only), `pong:…`, `close:CODE`, and `end` where the connection was just cut. */
function readFrames(bytes: Buffer): string[] {
  const seen: string[] = [];
  for (let at = 0; at + 2 <= bytes.length; ) {
    const opcode = (bytes[at] ?? 0) & 0x0f;
    let length = (bytes[at + 1] ?? 0) & 0x7f;
    let start = at + 2;
    if (length === 126) {
      length = bytes.readUInt16BE(start);
      start += 2;
    }
    const payload = bytes.subarray(start, start + length);
    at = start + length;
    if (opcode === OP.text) seen.push(`text:${typesIn(payload.toString())}`);
    else if (opcode === OP.pong) seen.push(`pong:${payload.toString()}`);
    else if (opcode === OP.close) seen.push(`close:${payload.length >= 2 ? payload.readUInt16BE(0) : 'none'}`);
    else seen.push(`opcode ${opcode}`);
  }
  return seen;
}

function typesIn(text: string): string {
  const event: { type: string; error?: { code: string } } = JSON.parse(text);
  return event.error?.code ?? event.type;
}

async function open(gateway: TestGateway): Promise<Socket> {
  const socket = connectTcp(gateway.running.port, '127.0.0.1');
  await once(socket, 'connect');
  socket.write(
    `GET /v1/responses HTTP/1.1\r\nhost: x\r\nconnection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nauthorization: Bearer ${KEY}\r\nsec-websocket-extensions: permessage-deflate\r\n\r\n`,
  );
  const [head] = await once(socket, 'data');
  assert.match(String(head), /^HTTP\/1\.1 101 /);
  assert.doesNotMatch(String(head), /permessage-deflate/i, 'deflate is not negotiated');
  return socket;
}

/** Sends the pieces, each in a packet of its own; after `awaited` answers a close; and says everything that was answered. */
async function converse(gateway: TestGateway, pieces: readonly Buffer[], awaited: number): Promise<string[]> {
  const socket = await open(gateway);
  socket.setNoDelay(true);
  const chunks: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  socket.on('error', () => undefined);
  const ended = once(socket, 'close');
  for (const piece of pieces) {
    socket.write(piece);
    await new Promise((resolve) => setImmediate(resolve));
  }
  while (!socket.destroyed && readFrames(Buffer.concat(chunks)).length < awaited)
    await new Promise((resolve) => setImmediate(resolve));
  if (!socket.destroyed) socket.write(closeFrame(1000));
  await ended;
  return readFrames(Buffer.concat(chunks));
}

const WARM = Buffer.from('{"type":"response.create","model":"m","input":"grüße 👋","generate":false}');
const WARM_EVENTS = ['text:response.created', 'text:response.in_progress', 'text:response.completed'];
const cut = (bytes: Buffer, ...at: number[]): Buffer[] =>
  [0, ...at].map((start, index) => bytes.subarray(start, at[index] ?? bytes.length));

const CASES: readonly { readonly name: string; readonly send: readonly Buffer[]; readonly answer: readonly string[] }[] = [
  { name: 'one frame', send: [frame(OP.text, WARM)], answer: [...WARM_EVENTS, 'close:1000'] },
  {
    name: 'a frame in single bytes',
    send: [...frame(OP.text, WARM)].map((byte) => Buffer.from([byte])),
    answer: [...WARM_EVENTS, 'close:1000'],
  },
  {
    name: 'two messages in one packet',
    send: [Buffer.concat([frame(OP.text, '{}'), frame(OP.text, WARM)])],
    answer: ['text:invalid_websocket_event', ...WARM_EVENTS, 'close:1000'],
  },
  {
    name: 'fragments, cut inside a UTF-8 sequence, an empty one among them',
    send: cut(WARM, 54, WARM.length - 22).map((piece, index, all) =>
      frame(index === 0 ? OP.text : OP.more, piece, { fin: index === all.length - 1 }),
    ),
    answer: [...WARM_EVENTS, 'close:1000'],
  },
  {
    name: 'empty fragments',
    send: [frame(OP.text, '', { fin: false }), frame(OP.more, '', { fin: false }), frame(OP.more, WARM)],
    answer: [...WARM_EVENTS, 'close:1000'],
  },
  {
    name: 'a ping between fragments is answered before the message',
    send: [frame(OP.text, WARM.subarray(0, 20), { fin: false }), frame(OP.ping, 'now'), frame(OP.more, WARM.subarray(20))],
    answer: ['pong:now', ...WARM_EVENTS, 'close:1000'],
  },
  {
    name: 'pings: empty, 125 bytes',
    send: [frame(OP.ping), frame(OP.ping, 'p'.repeat(125))],
    answer: ['pong:', `pong:${'p'.repeat(125)}`, 'close:1000'],
  },
  { name: 'a pong nobody asked for', send: [frame(OP.pong, 'x')], answer: ['close:1000'] },
  { name: 'a ping over 125 bytes', send: [frame(OP.ping, 'p'.repeat(126))], answer: ['close:1002'] },
  { name: 'a fragmented ping', send: [frame(OP.ping, 'x', { fin: false })], answer: ['close:1002'] },
  {
    name: 'a fragmented close',
    send: [frame(OP.close, Buffer.from([3, 232]), { fin: false })],
    answer: ['close:1002'],
  },
  {
    name: 'pings and pongs between all fragments, one of them in single bytes',
    send: [
      frame(OP.text, WARM.subarray(0, 10), { fin: false }),
      frame(OP.ping, 'one'),
      frame(OP.more, WARM.subarray(10, 40), { fin: false }),
      frame(OP.pong, 'unasked'),
      ...[...frame(OP.ping, 'two')].map((byte) => Buffer.from([byte])),
      frame(OP.more, WARM.subarray(40)),
    ],
    answer: ['pong:one', 'pong:two', ...WARM_EVENTS, 'close:1000'],
  },
  ...[0x40, 0x20, 0x10].map((reserved) => ({
    name: `a reserved bit, ${reserved.toString(16)}`,
    send: [frame(OP.text, WARM, { reserved })],
    answer: ['close:1002'],
  })),
  {
    name: 'a reserved bit in a continuation',
    send: [frame(OP.text, WARM.subarray(0, 9), { fin: false }), frame(OP.more, WARM.subarray(9), { reserved: 0x40 })],
    answer: ['close:1002'],
  },
  ...[0x3, 0x4, 0x5, 0x6, 0x7, 0xb, 0xc, 0xd, 0xe, 0xf].map((opcode) => ({
    name: `a reserved opcode, ${opcode.toString(16)}`,
    send: [frame(opcode, 'x')],
    answer: ['close:1002'],
  })),
  { name: 'a frame that is not masked', send: [frame(OP.text, WARM, { masked: false })], answer: ['close:1002'] },
  { name: 'a continuation of nothing', send: [frame(OP.more, WARM)], answer: ['close:1002'] },
  {
    name: 'a new message inside a fragmented one',
    send: [frame(OP.text, 'a', { fin: false }), frame(OP.text, WARM)],
    answer: ['close:1002'],
  },
  { name: 'no UTF-8', send: [frame(OP.text, Buffer.from([0x22, 0xc3, 0x28, 0x22]))], answer: ['close:1007'] },
  { name: 'UTF-8 that ends early', send: [frame(OP.text, Buffer.from([0x22, 0xe2, 0x82]))], answer: ['close:1007'] },
  { name: 'a surrogate in UTF-8', send: [frame(OP.text, Buffer.from([0xed, 0xa0, 0x80]))], answer: ['close:1007'] },
  {
    name: 'no UTF-8, cut between fragments in the middle of the sequence',
    send: [frame(OP.text, Buffer.from([0x22, 0xe2]), { fin: false }), frame(OP.more, Buffer.from([0x28, 0xa1, 0x22]))],
    answer: ['close:1007'],
  },
  {
    name: 'UTF-8 that ends early over fragments',
    send: [frame(OP.text, Buffer.from([0x22, 0xf0, 0x9f]), { fin: false }), frame(OP.more, Buffer.from([0x91]))],
    answer: ['close:1007'],
  },
  { name: 'an overlong form', send: [frame(OP.text, Buffer.from([0xc0, 0xaf]))], answer: ['close:1007'] },
  { name: 'beyond the last code point', send: [frame(OP.text, Buffer.from([0xf4, 0x90, 0x80, 0x80]))], answer: ['close:1007'] },
  {
    name: 'a binary message in fragments, no UTF-8',
    send: [frame(OP.binary, Buffer.from([0xff]), { fin: false }), frame(OP.more, Buffer.from([0xfe]))],
    answer: ['text:invalid_websocket_event', 'close:1000'],
  },
  { name: 'a binary message', send: [frame(OP.binary, WARM)], answer: ['text:invalid_websocket_event', 'close:1000'] },
  {
    name: 'W4: a message over the bound',
    send: [frame(OP.text, Buffer.alloc(4097, 0x20))],
    answer: ['text:request_too_large', 'close:1009'],
  },
  {
    name: 'W4: fragments over the bound together',
    send: [frame(OP.text, Buffer.alloc(4000, 0x20), { fin: false }), frame(OP.more, Buffer.alloc(97, 0x20))],
    answer: ['text:request_too_large', 'close:1009'],
  },
  {
    name: 'a length that no message has',
    send: [Buffer.from([0x81, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 1, 2, 3, 4])],
    answer: ['text:request_too_large', 'close:1009'],
  },
  { name: 'a close without a code', send: [closeFrame()], answer: ['close:1005'] },
  ...[1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999].map((code) => ({
    name: `the close code ${code} is echoed`,
    send: [closeFrame(code, 'bye')],
    answer: [`close:${code}`],
  })),
  ...[0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65_535].map((code) => ({
    name: `the close code ${code} may not be sent`,
    send: [closeFrame(code)],
    answer: ['close:1002'],
  })),
  { name: 'a close reason of 123 bytes', send: [closeFrame(1000, 'r'.repeat(123))], answer: ['close:1000'] },
  { name: 'a close reason of 124 bytes', send: [closeFrame(1000, 'r'.repeat(124))], answer: ['close:1002'] },
  {
    name: 'a close inside a fragmented message',
    send: [frame(OP.text, WARM.subarray(0, 9), { fin: false }), closeFrame(1000)],
    answer: ['close:1000'],
  },
  { name: 'a ping behind the close', send: [closeFrame(1000), frame(OP.ping, 'x')], answer: ['close:1000'] },
  { name: 'a close of one byte', send: [frame(OP.close, 'x')], answer: ['close:1002'] },
  {
    name: 'a close reason that is no UTF-8',
    send: [frame(OP.close, Buffer.from([0x03, 0xe8, 0xc3, 0x28]))],
    answer: ['close:1007'],
  },
  { name: 'a message behind the close', send: [closeFrame(1000), frame(OP.text, WARM)], answer: ['close:1000'] },
];

const gateway = await testGateway(CONFIG);
test.after(async () => await gateway[Symbol.asyncDispose]());

for (const { name, send, answer } of CASES) {
  test(`F26: frames: ${name}`, async () => {
    const expected = answer.map((line) => (line === 'close:1005' ? 'close:none' : line));
    assert.deepEqual(await converse(gateway, send, answer.length - 1), expected);
  });
}

test('F26: frames: the server closes first, waits for the echo, and ends the connection without it too', async () => {
  for (const echoes of [true, false]) {
    const clock = createFakeClock();
    await using idle = await testGateway({ ...CONFIG, websocket: { idle_ms: 1_000 } }, { clock });
    const socket = await open(idle);
    const chunks: Buffer[] = [];
    socket.on('data', (chunk: Buffer) => chunks.push(chunk));
    const ended = once(socket, 'close');
    clock.advance(30_000);
    while (!readFrames(Buffer.concat(chunks)).includes('close:1000')) await new Promise((resolve) => setImmediate(resolve));
    if (echoes) socket.write(closeFrame(1000));
    else socket.write(frame(OP.text, WARM));
    await ended;
    assert.deepEqual(readFrames(Buffer.concat(chunks)), ['close:1000'], 'and nothing is answered behind it');
  }
});

test('F26: frames: a message in thousands of pieces is refused', async () => {
  const pieces = [frame(OP.text, '', { fin: false })];
  for (let index = 0; index < 2_000; index++) pieces.push(frame(OP.more, '', { fin: false }));
  assert.deepEqual(await converse(gateway, [Buffer.concat(pieces)], 1), ['close:1008']);
});

test('F17, F26: frames: a client that only pings and never reads is let go', async () => {
  const socket = await open(gateway);
  socket.pause();
  socket.on('error', () => undefined);
  const pings = Buffer.concat(Array.from({ length: 500 }, () => frame(OP.ping, 'p'.repeat(125))));
  let written = 0;
  while (!socket.destroyed && written < 64 * 1024 * 1024) {
    written += pings.length;
    if (!socket.write(pings)) {
      await new Promise<void>((resolve) => {
        socket.once('drain', resolve);
        socket.once('close', () => resolve());
      });
    }
  }
  assert.ok(socket.destroyed, `still open after ${written} bytes`);
});

test('handshakes that are none', async () => {
  const answers: [string, RegExp][] = [
    [
      'sec-websocket-version: 12\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==',
      /^HTTP\/1\.1 (400|426) [\s\S]*sec-websocket-version: .*13/i,
    ],
    ['sec-websocket-version: 13', /^HTTP\/1\.1 400 /],
    ['sec-websocket-version: 13\r\nsec-websocket-key: short', /^HTTP\/1\.1 400 /],
  ];
  for (const [headers, expected] of answers) {
    const socket = connectTcp(gateway.running.port, '127.0.0.1');
    socket.write(
      `GET /v1/responses HTTP/1.1\r\nhost: x\r\nconnection: Upgrade\r\nupgrade: websocket\r\nauthorization: Bearer ${KEY}\r\n${headers}\r\n\r\n`,
    );
    const chunks: Buffer[] = [];
    for await (const chunk of socket) chunks.push(chunk);
    const answer = Buffer.concat(chunks).toString();
    assert.match(answer, expected);
    assert.match(
      answer,
      /\r\nx-request-id: req_[\s\S]*\r\n\r\n\{"error":\{.*"code":"invalid_request"\}\}$/,
      'said as any error is',
    );
  }
  assert.equal(gateway.running.gateway.unready().length, 0);
});
