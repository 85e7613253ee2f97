/**
 * The upstream of every relay bench: serves prepared bytes as fast as it can, so that it is never what is measured. The shape is the
 * upstream model's name in the request: `full-flow`, `paced`, `whole`, `hold` (headers and one event, then silence until told).
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type BenchDialect, textFrames, tokens, wholeBody } from '../fixtures.ts';

const WORDS = tokens(96);
const PACE_MS = 1;

const dialects: readonly (readonly [string, BenchDialect])[] = [
  ['/chat/completions', 'chat'],
  ['/responses', 'responses'],
  ['/messages', 'messages'],
];
const prepared = new Map(
  dialects.map(([, dialect]) => {
    const frames = textFrames(dialect, WORDS);
    return [
      dialect,
      {
        frames: frames.map((frame) => Buffer.from(frame)),
        joined: Buffer.from(frames.join('')),
        whole: Buffer.from(wholeBody(dialect, WORDS)),
      },
    ] as const;
  }),
);

const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    const path = (request.url ?? '').split('?')[0] ?? '';
    const dialect = dialects.find(([suffix]) => path.endsWith(suffix))?.[1] ?? 'chat';
    const bytes = prepared.get(dialect);
    if (bytes === undefined) return response.destroy();
    const text = Buffer.concat(chunks).toString('latin1');
    const shape = /"model"\s*:\s*"([^"]*)"/.exec(text)?.[1] ?? 'full-flow';
    if (shape === 'whole') {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': bytes.whole.length });
      return response.end(bytes.whole);
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    if (shape === 'full-flow') return response.end(bytes.joined);
    if (shape === 'hold') {
      for (const frame of bytes.frames.slice(0, 6)) response.write(frame);
      return undefined;
    }
    let index = 0;
    const next = (): void => {
      const frame = bytes.frames[index++];
      if (frame === undefined) {
        response.end();
        return;
      }
      response.write(frame);
      setTimeout(next, PACE_MS);
    };
    return next();
  });
});
server.keepAliveTimeout = 60_000;
server.listen(Number(process.argv[2] ?? 0), '127.0.0.1', () => {
  process.stdout.write(`ready ${(server.address() as AddressInfo).port}\n`);
});
