/**
 * The upstream of every relay bench: serves prepared bytes as fast as it can, so that it is never what is measured. The shape is
 * the upstream model's name in the request: `full-flow`, `many-chunks` (each event an HTTP chunk of its own, all of them in one
 * packet), `paced` and `paced-2ms` (an event each so often), `short` (paced, and soon over), `whole`, `slow` (an event now and
 * then, without end), `hold` (headers and some events, then silence).
 */
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type BenchDialect, seeded, textFrames, tokens, wholeBody } from '../fixtures.ts';

const WORDS = tokens(96);
const PACE_MS = 1;
const SLOWER_PACE_MS = 2;
const SLOW_MS = 500;
/** Frames before the first word of any dialect, and some words. */
const BEGINNING = 6;

const dialects: readonly (readonly [string, BenchDialect])[] = [
  ['/chat/completions', 'chat'],
  ['/responses', 'responses'],
  ['/messages', 'messages'],
];

function prepare(dialect: BenchDialect) {
  const frames = textFrames(dialect, WORDS).map((frame) => Buffer.from(frame));
  return {
    frames,
    joined: Buffer.concat(frames),
    short: textFrames(dialect, WORDS.slice(0, 4)).map((frame) => Buffer.from(frame)),
    whole: Buffer.from(wholeBody(dialect, WORDS)),
  };
}
type Prepared = ReturnType<typeof prepare>;
const prepared = new Map(dialects.map(([, dialect]) => [dialect, prepare(dialect)] as const));
const random = seeded(5);

function answer(response: ServerResponse, bytes: Prepared, shape: string): void {
  if (shape === 'whole') {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': bytes.whole.length });
    response.end(bytes.whole);
    return;
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  switch (shape) {
    case 'hold':
      response.write(Buffer.concat(bytes.frames.slice(0, BEGINNING)));
      return;
    case 'slow':
      response.write(Buffer.concat(bytes.frames.slice(0, BEGINNING)));
      trickle(response, bytes.frames[BEGINNING - 1]);
      return;
    case 'many-chunks':
      // The socket, not the response: that would make one chunk of them.
      response.socket?.cork();
      for (const frame of bytes.frames) response.write(frame);
      response.end();
      response.socket?.uncork();
      return;
    case 'paced':
      pace(response, bytes.frames, PACE_MS);
      return;
    case 'paced-2ms':
      pace(response, bytes.frames, SLOWER_PACE_MS);
      return;
    case 'short':
      pace(response, bytes.short, PACE_MS);
      return;
    default:
      response.end(bytes.joined);
  }
}

function pace(response: ServerResponse, frames: readonly Buffer[], ms: number): void {
  let index = 0;
  const next = (): void => {
    const frame = frames[index++];
    if (frame === undefined) {
      response.end();
      return;
    }
    response.write(frame);
    setTimeout(next, ms);
  };
  next();
}

/** The same word again and again; streams that begin together do not speak together. */
function trickle(response: ServerResponse, word: Buffer | undefined): void {
  const next = (): void => {
    response.write(word);
    timer = setTimeout(next, SLOW_MS);
  };
  let timer = setTimeout(next, SLOW_MS * random());
  response.on('close', () => clearTimeout(timer));
}

const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    const path = (request.url ?? '').split('?')[0] ?? '';
    const dialect = dialects.find(([suffix]) => path.endsWith(suffix))?.[1] ?? 'chat';
    const bytes = prepared.get(dialect);
    if (bytes === undefined) return response.destroy();
    const text = Buffer.concat(chunks).toString('latin1');
    return answer(response, bytes, /"model"\s*:\s*"([^"]*)"/.exec(text)?.[1] ?? 'full-flow');
  });
});
server.keepAliveTimeout = 60_000;
server.listen(Number(process.argv[2] ?? 0), '127.0.0.1', () => {
  process.stdout.write(`ready ${(server.address() as AddressInfo).port}\n`);
});
