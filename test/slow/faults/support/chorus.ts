/** An upstream whose streams all speak at once, when the test says so: each holds what it was asked until then. */
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Chorus {
  readonly url: string;
  /** Streams that were asked for and have not ended. */
  readonly open: number;
  /** Each stream says this, one right after the other. */
  say(text: string): void;
  /** Each says this and ends. */
  end(text: string): void;
  close(): void;
}

/** `first`: what a stream begins with. Absent: not even its head is sent before it is told to speak. */
export async function startChorus(first?: string): Promise<Chorus> {
  const streams = new Set<ServerResponse>();
  const server = createServer((incoming, response) => {
    incoming.resume();
    incoming.on('end', () => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      if (first !== undefined) response.write(first);
      streams.add(response);
      response.on('close', () => streams.delete(response));
    });
  });
  server.keepAliveTimeout = 0;
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', 4_096, listening));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    get open() {
      return streams.size;
    },
    say(text) {
      for (const stream of streams) stream.write(text);
    },
    end(text) {
      for (const stream of streams) stream.end(text);
    },
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}
