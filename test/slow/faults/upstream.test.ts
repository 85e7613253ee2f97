/**
 * E4 1 to 12: every way in which an upstream can fail, over every upstream dialect and every client dialect, streaming and whole.
 * For each: the client is told of a failure in its own dialect (or gets the whole answer where nothing was wrong), the exchange
 * is settled once, a failure without reported usage costs nothing, and no timer, reservation or socket is left.
 */
import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { test } from 'node:test';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { figure } from '../../support/figures.ts';
import { CLIENTS, chunk, endingOf, exchange, GOOD, rig, STREAM_HEAD, TYPES, type Type, WHOLE } from './support/rig.ts';

interface Fault {
  readonly name: string;
  /** What must come of it: an error, the whole answer, or either (the fault says nothing about the answer). */
  readonly expect: 'failure' | 'success' | 'either';
  /** Usage was reported before the fault, so there may be a charge. */
  readonly mayCost?: boolean;
  /** Absent: both. */
  readonly only?: 'stream' | 'whole';
  play(socket: Socket, type: Type, stream: boolean): void;
}

const head = (status: number | string, headers: string): string => `HTTP/1.1 ${status} X\r\n${headers}\r\n`;
const JSON_HEAD = (text: string | Buffer, extra = ''): string =>
  head(200, `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(text)}\r\n${extra}`);

/** The frames up to (not with) the last `left`, written as chunks. */
function begin(socket: Socket, type: Type, left: number): void {
  const frames = GOOD[type];
  socket.write(STREAM_HEAD);
  for (const frame of frames.slice(0, frames.length - left)) socket.write(chunk(frame));
}

function sayAll(socket: Socket, type: Type, stream: boolean): void {
  if (!stream) {
    socket.write(JSON_HEAD(WHOLE[type]) + WHOLE[type]);
    return;
  }
  begin(socket, type, 0);
  socket.write('0\r\n\r\n');
}

function status(code: number, headers = '', body = '{"error":{"message":"no","type":"x","code":"y"}}'): Fault {
  return {
    name: `F9: status ${code} ${headers.trim()}`,
    expect: 'failure',
    play: (socket) =>
      void socket.write(`${head(code, `content-type: application/json\r\ncontent-length: ${body.length}\r\n${headers}`)}${body}`),
  };
}

/** Writes for as long as the other side takes it. */
function forever(socket: Socket, piece: Buffer, limit = 64 * 1024 * 1024): void {
  let left = limit;
  const more = (): void => {
    while (left > 0 && !socket.destroyed) {
      left -= piece.length;
      if (!socket.write(piece)) {
        socket.once('drain', more);
        return;
      }
    }
  };
  more();
}

/** Every `ms`, until the connection is closed. */
function repeat(socket: Socket, ms: number, say: () => void): void {
  const timer = setInterval(say, ms);
  socket.once('close', () => clearInterval(timer));
}

/** Compressed although `identity` was asked for: what is read whole can be undone, a stream is refused before its first word. */
function gzipUnasked(socket: Socket, type: Type, stream: boolean): void {
  const body = gzipSync(stream ? GOOD[type].join('') : WHOLE[type]);
  const media = stream ? 'text/event-stream' : 'application/json';
  socket.write(head(200, `content-type: ${media}\r\ncontent-encoding: gzip\r\ncontent-length: ${body.length}\r\n`));
  socket.write(body);
}

const FAULTS: readonly Fault[] = [
  { name: 'F45: everything is fine', expect: 'success', mayCost: true, play: sayAll },
  { name: 'F1: refuses: reset at once', expect: 'failure', play: (socket) => void socket.resetAndDestroy() },
  { name: 'F1: closes without a word', expect: 'failure', play: (socket) => void socket.end() },
  { name: 'F1: closes inside the status line', expect: 'failure', play: (socket) => void socket.end('HTTP/1.1 20') },
  { name: 'F4: stalls before headers', expect: 'failure', play: () => undefined },
  { name: 'F4: stalls inside headers', expect: 'failure', play: (socket) => void socket.write('HTTP/1.1 200 OK\r\ncontent-ty') },
  { name: 'F4: stalls after headers', expect: 'failure', play: (socket) => void socket.write(STREAM_HEAD) },
  {
    name: 'F4: stalls before its end',
    expect: 'failure',
    only: 'stream',
    mayCost: true,
    play: (socket, type) => begin(socket, type, type === 'gemini' ? 1 : 3),
  },
  {
    name: 'F4: stalls in mid-event',
    expect: 'failure',
    only: 'stream',
    mayCost: true,
    play(socket, type) {
      begin(socket, type, 3);
      socket.write(chunk('data: {"typ'));
    },
  },
  {
    name: 'F4: stalls inside a JSON body',
    expect: 'failure',
    only: 'whole',
    play: (socket, type) => void socket.write(JSON_HEAD(WHOLE[type]) + WHOLE[type].slice(0, 40)),
  },
  {
    name: 'F2: resets in mid-stream',
    expect: 'failure',
    only: 'stream',
    mayCost: true,
    play(socket, type) {
      begin(socket, type, 3);
      setTimeout(() => socket.resetAndDestroy(), 20);
    },
  },
  {
    name: 'F2, F5: half-closes in mid-stream',
    expect: 'failure',
    only: 'stream',
    mayCost: true,
    play(socket, type) {
      begin(socket, type, type === 'gemini' ? 1 : 3);
      socket.end();
    },
  },
  ...['data: {"a":"\u00e9', 'data: {', 'data:', 'event: x', 'data: {}\r'].map(
    (tail): Fault => ({
      name: `F2: resets after ${JSON.stringify(tail)}`,
      expect: 'failure',
      only: 'stream',
      mayCost: true,
      play(socket, type) {
        begin(socket, type, 3);
        socket.write(chunk(Buffer.from(tail).subarray(0, tail.includes('\u00e9') ? -1 : undefined)));
        setTimeout(() => socket.destroy(), 20);
      },
    }),
  ),
  {
    name: 'F3, V16: clean end without a terminal',
    expect: 'failure',
    only: 'stream',
    mayCost: true,
    play(socket, type) {
      begin(socket, type, type === 'gemini' ? 1 : 3);
      socket.write('0\r\n\r\n');
    },
  },
  {
    name: 'F3: [DONE] without a finish',
    expect: 'failure',
    only: 'stream',
    mayCost: true,
    play(socket, type) {
      begin(socket, type, type === 'gemini' ? 1 : 3);
      socket.write(`${chunk('data: [DONE]\n\n').toString()}0\r\n\r\n`);
    },
  },
  { name: 'F3: an empty stream', expect: 'failure', play: (socket) => void socket.write(`${STREAM_HEAD}0\r\n\r\n`) },
  { name: 'F6: an empty body', expect: 'failure', play: (socket) => void socket.write(JSON_HEAD('')) },
  { name: 'F6: an empty object', expect: 'failure', play: (socket) => void socket.write(`${JSON_HEAD('{}')}{}`) },
  { name: 'F6: a JSON null', expect: 'failure', play: (socket) => void socket.write(`${JSON_HEAD('null')}null`) },
  {
    name: 'F6: truncated JSON',
    expect: 'failure',
    only: 'whole',
    play: (socket, type) => void socket.write(JSON_HEAD(WHOLE[type].slice(0, -9)) + WHOLE[type].slice(0, -9)),
  },
  {
    name: 'F6: HTML with 200',
    expect: 'failure',
    play: (socket) => void socket.write(`${head(200, 'content-type: text/html\r\ncontent-length: 15\r\n')}<html>no</html>`),
  },
  {
    name: 'F6: HTML as an event stream',
    expect: 'failure',
    play: (socket) => void socket.write(`${STREAM_HEAD}${chunk('<html>no</html>\n')}0\r\n\r\n`),
  },
  {
    name: 'F6: binary garbage',
    expect: 'failure',
    play: (socket) =>
      void socket.write(
        Buffer.concat([
          Buffer.from(STREAM_HEAD),
          chunk(Buffer.from(Array.from({ length: 4096 }, (_, n) => (n * 7919) % 256))),
          Buffer.from('0\r\n\r\n'),
        ]),
      ),
  },
  { name: 'F6: no HTTP at all', expect: 'failure', play: (socket) => void socket.write('SSH-2.0-OpenSSH_9.9\r\n') },
  {
    name: 'F6: a malformed event',
    expect: 'failure',
    only: 'stream',
    mayCost: true,
    play(socket, type) {
      begin(socket, type, 3);
      socket.write(chunk('data: {"not": json\n\n'));
    },
  },
  {
    name: 'F6: an error event',
    expect: 'failure',
    only: 'stream',
    mayCost: true,
    play(socket, type) {
      begin(socket, type, 3);
      socket.write(
        chunk(`event: error\ndata: {"type":"error","error":{"type":"overloaded_error","code":503,"message":"later"}}\n\n`),
      );
      socket.write('0\r\n\r\n');
    },
  },
  {
    name: 'F6: an early 200 with an error',
    expect: 'failure',
    play: (socket) => {
      const text = '{"error":{"message":"quota","code":429,"type":"insufficient_quota"}}';
      socket.write(JSON_HEAD(text) + text);
    },
  },
  {
    name: 'F6: a stream that is only an error',
    expect: 'failure',
    play: (socket) => void socket.write(`${STREAM_HEAD}${chunk('data: {"error":{"message":"quota","code":429}}\n\n')}0\r\n\r\n`),
  },
  {
    name: 'F6: JSON where a stream was asked',
    expect: 'success',
    only: 'stream',
    mayCost: true,
    play: (socket, type) => void socket.write(JSON_HEAD(WHOLE[type]) + WHOLE[type]),
  },
  {
    name: 'F6: a stream where JSON was asked',
    expect: 'success',
    only: 'whole',
    mayCost: true,
    play: (socket, type) => sayAll(socket, type, true),
  },
  {
    name: 'F6: a stream of another content type',
    expect: 'success',
    only: 'stream',
    mayCost: true,
    play(socket, type) {
      socket.write(STREAM_HEAD.replace('text/event-stream', 'text/plain'));
      for (const frame of GOOD[type]) socket.write(chunk(frame));
      socket.write('0\r\n\r\n');
    },
  },
  {
    name: 'F6: all events in one packet with CR line ends',
    expect: 'success',
    only: 'stream',
    mayCost: true,
    play: (socket, type) =>
      void socket.write(`${STREAM_HEAD}${chunk(`\ufeff${GOOD[type].join('').replaceAll('\n', '\r')}`)}0\r\n\r\n`),
  },
  {
    name: 'F6: one byte a packet',
    expect: 'success',
    only: 'stream',
    mayCost: true,
    play(socket, type) {
      socket.setNoDelay(true);
      socket.write(STREAM_HEAD);
      for (const byte of Buffer.from(GOOD[type].join(''))) socket.write(chunk(Buffer.from([byte])));
      socket.write('0\r\n\r\n');
    },
  },
  { name: 'F8: gzip unasked, whole', expect: 'success', mayCost: true, only: 'whole', play: gzipUnasked },
  { name: 'F8: gzip unasked, stream', expect: 'failure', only: 'stream', play: gzipUnasked },
  {
    name: 'F8: brotli under a wrong name',
    expect: 'failure',
    play(socket, type, stream) {
      const body = brotliCompressSync(stream ? GOOD[type].join('') : WHOLE[type]);
      socket.write(
        Buffer.concat([
          Buffer.from(
            head(
              200,
              `content-type: ${stream ? 'text/event-stream' : 'application/json'}\r\ncontent-encoding: zstd\r\ncontent-length: ${body.length}\r\n`,
            ),
          ),
          body,
        ]),
      );
    },
  },
  {
    name: 'F4: endless comments before data',
    expect: 'failure',
    play(socket) {
      socket.write(STREAM_HEAD);
      repeat(socket, 20, () => socket.write(chunk(': still here\n\n')));
    },
  },
  {
    name: 'F4: endless comments after data',
    expect: 'failure',
    only: 'stream',
    mayCost: true,
    play(socket, type) {
      begin(socket, type, 3);
      repeat(socket, 20, () => socket.write(chunk(': still here\n\n')));
    },
  },
  {
    name: 'F7: an event that is too large',
    expect: 'failure',
    play(socket) {
      socket.write(STREAM_HEAD);
      socket.write(chunk('data: {"padding":"'));
      forever(socket, chunk('x'.repeat(65_536)), 100 * 1024 * 1024);
    },
  },
  {
    name: 'F7: an event for ever without a line end',
    expect: 'failure',
    only: 'stream',
    mayCost: true,
    play(socket, type) {
      begin(socket, type, 3);
      forever(socket, chunk('x'.repeat(65_536)));
    },
  },
  {
    name: 'F4: comments for ever without pause',
    expect: 'failure',
    play(socket) {
      socket.write(STREAM_HEAD);
      forever(socket, chunk(': x\n'.repeat(16_384)));
    },
  },
  {
    name: 'F7: a JSON body for ever',
    expect: 'failure',
    play(socket) {
      socket.write(head(200, 'content-type: application/json\r\ntransfer-encoding: chunked\r\n'));
      forever(socket, chunk(`{"a":"${'x'.repeat(65_536)}`));
    },
  },
  {
    name: 'F7: an error body for ever',
    expect: 'failure',
    play(socket) {
      socket.write(head(500, 'content-type: text/plain\r\ntransfer-encoding: chunked\r\n'));
      forever(socket, chunk('x'.repeat(65_536)));
    },
  },
  {
    name: 'F7: an error body that stalls',
    expect: 'failure',
    play: (socket) => void socket.write(`${head(500, 'content-type: text/plain\r\ncontent-length: 500\r\n')}half`),
  },
  {
    name: 'F9: a flood of 1xx',
    expect: 'failure',
    play: (socket) =>
      forever(socket, Buffer.from('HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n'.repeat(1000)), 8 * 1024 * 1024),
  },
  {
    name: 'F9: one 103, then the answer',
    expect: 'success',
    mayCost: true,
    play(socket, type, stream) {
      socket.write('HTTP/1.1 103 Early Hints\r\n\r\n');
      sayAll(socket, type, stream);
    },
  },
  {
    name: 'F9: an upgrade that nobody asked for',
    expect: 'failure',
    play: (socket) => void socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n'),
  },
  {
    name: 'F7: headers that are too large',
    expect: 'failure',
    play: (socket) => void socket.write(head(200, `x: ${'y'.repeat(200_000)}\r\n`)),
  },
  {
    name: 'F20: two lengths that differ',
    expect: 'failure',
    play: (socket) =>
      void socket.write(`${head(200, 'content-type: application/json\r\ncontent-length: 2\r\ncontent-length: 3\r\n')}{}`),
  },
  {
    name: 'F20: a length and chunks',
    expect: 'failure',
    play: (socket) =>
      void socket.write(
        `${head(200, 'content-type: application/json\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n')}2\r\n{}\r\n0\r\n\r\n`,
      ),
  },
  { name: 'F6: a chunk size that is none', expect: 'failure', play: (socket) => void socket.write(`${STREAM_HEAD}zz\r\n`) },
  {
    name: 'F11: terminal twice',
    expect: 'either',
    only: 'stream',
    mayCost: true,
    play(socket, type) {
      begin(socket, type, 0);
      socket.write(chunk(GOOD[type].at(-1) ?? ''));
      socket.write('0\r\n\r\n');
    },
  },
  {
    name: 'F11: data after the terminal',
    expect: 'success',
    only: 'stream',
    mayCost: true,
    play(socket, type) {
      begin(socket, type, 0);
      setTimeout(() => {
        socket.write(chunk(GOOD[type][1] ?? ''));
        socket.write('0\r\n\r\n');
      }, 20);
    },
  },
  {
    name: 'F3: all said, but never closed',
    expect: 'success',
    only: 'stream',
    mayCost: true,
    play: (socket, type) => begin(socket, type, 0),
  },
  {
    name: 'F4: all said, then comments for ever',
    expect: 'success',
    only: 'stream',
    mayCost: true,
    play(socket, type) {
      begin(socket, type, 0);
      repeat(socket, 50, () => socket.write(chunk(': x\n\n')));
    },
  },
  {
    name: 'F9, F25: a redirect into the network',
    expect: 'failure',
    play: (socket) => void socket.write(`${head(302, 'location: http://169.254.169.254/latest/\r\ncontent-length: 0\r\n')}`),
  },
  {
    name: 'F9: a redirect to itself',
    expect: 'failure',
    play: (socket) => void socket.write(`${head(307, 'location: /\r\ncontent-length: 0\r\n')}`),
  },
  ...[204, 205, 206, 300, 304].map(
    (code): Fault => ({
      name: `F9: status ${code}`,
      expect: 'failure',
      play: (socket) => void socket.write(head(code, code === 206 || code === 300 ? 'content-length: 0\r\n' : '')),
    }),
  ),
  ...[400, 401, 402, 403, 404, 405, 408, 409, 410, 413, 418, 422, 425, 451, 499, 500, 501, 502, 503, 504, 520, 524, 529, 599].map(
    (code) => status(code),
  ),
  status(429, 'retry-after: 99999999999\r\n'),
  status(429, 'retry-after: soon\r\n'),
  status(429, 'retry-after: -5\r\n'),
  status(503, 'retry-after: Fri, 31 Dec 9999 23:59:59 GMT\r\n'),
  status(400, '', '['.repeat(5000)),
  status(400, '', 'x'.repeat(1_000_000)),
  { name: 'F9: status 999', expect: 'failure', play: (socket) => void socket.write(head(999, 'content-length: 0\r\n')) },
];

const SECRETS = /sk-upstream|127\.0\.0\.1|localhost|169\.254/;

for (const type of TYPES) {
  test(`upstream of type ${type}`, async (t) => {
    await using r = await rig();
    let asked = 0;
    for (const fault of FAULTS) {
      await t.test(fault.name, async () => {
        const cases = CLIENTS.flatMap((client) => [true, false].map((stream) => ({ client, stream }))).filter(
          ({ stream }) => fault.only === undefined || (fault.only === 'stream') === stream,
        );
        r.answer = ({ socket, body, path }) => {
          const stream = path.includes('stream') || /"stream":\s*true/.test(body);
          fault.play(socket, type, stream);
        };
        const before = r.gateway.store.settled.length;
        const wallet = r.gateway.store.walletNanos;
        await Promise.all(
          cases.map(async ({ client, stream }) => {
            asked++;
            const { status: code, text, broken, type: contentType } = await exchange(r, client, type, stream);
            const place = `${client} ${stream ? 'stream' : 'whole'}: ${code} ${text.slice(0, 300)}`;
            assert.equal(broken, false, `the connection broke: ${place}`);
            assert.doesNotMatch(text, SECRETS, place);
            const streamed = contentType.startsWith('text/event-stream');
            const ending = streamed
              ? endingOf(client, text)
              : code === 200 && !/"status":"failed"/.test(text)
                ? 'success'
                : 'failure';
            if (fault.expect !== 'either') assert.equal(ending, fault.expect, place);
            else assert.notEqual(ending, 'none', place);
            if (!streamed && code !== 200) {
              const error: unknown = JSON.parse(text);
              assert.ok(typeof error === 'object' && error !== null && 'error' in error, place);
              assert.ok(code >= 400 && code !== 500 && code !== 401, place);
            }
            if (ending === 'success') assert.match(text, /hel/, place);
          }),
        );
        await r.quiet(asked);
        const rows = r.gateway.store.settled.slice(before);
        for (const row of rows) {
          const said = row.status === 'success';
          if (fault.expect !== 'either')
            assert.equal(said, fault.expect === 'success', `${row.endpoint}: ${row.errorCode ?? ''} ${row.errorText ?? ''}`);
          assert.notEqual(row.errorCode, 'internal_error', row.errorText ?? '');
        }
        if (fault.mayCost !== true) assert.equal(r.gateway.store.walletNanos, wallet, 'a failure without usage is free');
        if (fault.expect === 'success')
          assert.equal(wallet - r.gateway.store.walletNanos, BigInt(rows.length) * 17_000n, 'charged what was reported');
      });
    }
    figure(
      t,
      `upstream faults of ${type}, exchanges: each settled once, no success after a failure`,
      `${FAULTS.length}, ${asked}`,
    );
    const { eventually } = await import('../../support/test-gateway.ts');
    await eventually(() => r.upstream.sockets.size <= 40, `connections are let go (${r.upstream.sockets.size})`);
  });
}
