/** The pages on a real socket, as the gateway's server will call them. Each request that arrived is written down. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createPages, type PagesOptions } from '../../../src/pages/create-pages.ts';

/** Answers a request itself and returns true, or leaves it to the pages. */
export type Interceptor = (request: IncomingMessage, response: ServerResponse) => boolean;

export interface PagesServer extends AsyncDisposable {
  readonly origin: string;
  /** Paths in the order of arrival. */
  readonly requests: string[];
  intercept: Interceptor;
}

export async function servePages(options: PagesOptions): Promise<PagesServer> {
  const pages = createPages(options);
  const requests: string[] = [];
  const server = createServer((request, response) => {
    const path = (request.url ?? '').split('?', 1)[0] ?? '';
    requests.push(path);
    if (served.intercept(request, response)) return;
    const answer = pages.respond(request.method ?? '', path, request.headers);
    if (answer === undefined) {
      response.writeHead(404).end();
      return;
    }
    response.writeHead(answer.status, answer.headers).end(answer.body);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const served: PagesServer = {
    origin: `http://127.0.0.1:${port}`,
    requests,
    intercept: () => false,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return served;
}
