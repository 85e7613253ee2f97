/** Real sockets on 127.0.0.1 for tests of the two ends of a stream. */
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Agent, type Dispatcher, request } from 'undici';

export interface Loopback extends AsyncDisposable {
  readonly url: string;
  /** Asks with undici, as the gateway asks an upstream. */
  ask(options?: { readonly signal?: AbortSignal }): Promise<Dispatcher.ResponseData>;
}

/** Serves `listener` on a free port until disposed; every connection of both sides is closed then. */
export async function serve(listener: RequestListener<typeof IncomingMessage, typeof ServerResponse>): Promise<Loopback> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}/`;
  const agent = new Agent();
  return {
    url,
    ask: (options = {}) => request(url, { dispatcher: agent, ...options }),
    async [Symbol.asyncDispose]() {
      await agent.destroy();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Waits until `condition` holds; fails after five seconds, which only a bug takes. */
export async function until(condition: () => boolean, what: string): Promise<void> {
  const deadline = performance.now() + 5000;
  while (!condition()) {
    if (performance.now() > deadline) throw new Error(`never happened: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}
