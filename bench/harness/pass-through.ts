/**
 * The floor: a bare node:http + undici proxy that copies bytes, checks nothing and knows nothing. Usage: pass-through.ts
 * UPSTREAM_URL.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Pool } from 'undici';

const pool = new Pool(process.argv[2] ?? '', {
  pipelining: 1,
  allowH2: false,
  headersTimeout: 0,
  bodyTimeout: 0,
});

const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    const body = Buffer.concat(chunks);
    const abort = new AbortController();
    response.on('close', () => abort.abort());
    pool
      .request({
        method: 'POST',
        path: request.url ?? '/',
        headers: { 'content-type': 'application/json', authorization: 'Bearer x' },
        body,
        signal: abort.signal,
      })
      .then((answer) => {
        response.writeHead(answer.statusCode, { 'content-type': String(answer.headers['content-type']) });
        answer.body.pipe(response);
        answer.body.on('error', () => response.destroy());
      })
      .catch(() => response.destroy());
  });
});
server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () => {
  process.stdout.write(`ready ${(server.address() as AddressInfo).port}\n`);
});
