/** A WebSocket client for tests: sends JSON, collects what comes back, and says how the connection ended. */
import { once } from 'node:events';
import { WebSocket } from 'ws';
import { KEY, type TestGateway } from '../../support/test-gateway.ts';

export interface ServerEvent {
  readonly type: string;
  readonly [member: string]: unknown;
}

export interface SocketClient {
  readonly ws: WebSocket;
  readonly events: ServerEvent[];
  send(event: object | string | Buffer): void;
  /** Resolves with the events of one turn, its terminal or an error frame included. */
  turn(event: object | string): Promise<ServerEvent[]>;
  /** The next event that `wanted` accepts, counted from the last one that was waited for. */
  next(wanted?: (event: ServerEvent) => boolean): Promise<ServerEvent>;
  /** The code and reason of the close. */
  readonly closed: Promise<{ readonly code: number; readonly reason: string }>;
}

const TERMINALS = new Set(['response.completed', 'response.done', 'response.failed', 'response.incomplete', 'error']);

export interface ConnectOptions {
  readonly path?: string;
  readonly headers?: Record<string, string>;
}

export async function connect(gateway: TestGateway, options: ConnectOptions = {}): Promise<SocketClient> {
  const url = gateway.url.replace('http', 'ws') + (options.path ?? '/v1/responses');
  const ws = new WebSocket(url, { headers: { authorization: `Bearer ${KEY}`, ...options.headers } });
  const client = socketClient(ws);
  await once(ws, 'open');
  return client;
}

export function socketClient(ws: WebSocket): SocketClient {
  const events: ServerEvent[] = [];
  let seen = 0;
  let wake: (() => void) | undefined;
  let over = false;
  ws.on('message', (data) => {
    events.push(JSON.parse(String(data)));
    wake?.();
  });
  const closed = new Promise<{ code: number; reason: string }>((resolve) => {
    ws.on('close', (code, reason) => {
      over = true;
      wake?.();
      resolve({ code, reason: String(reason) });
    });
  });
  ws.on('error', () => undefined);
  const next = async (wanted: (event: ServerEvent) => boolean = () => true): Promise<ServerEvent> => {
    for (;;) {
      while (seen < events.length) {
        const event = events[seen++];
        if (event !== undefined && wanted(event)) return event;
      }
      if (over) throw new Error(`the connection closed; seen: ${events.map(({ type }) => type).join(', ')}`);
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  };
  const send = (event: object | string | Buffer): void => {
    ws.send(typeof event === 'string' || Buffer.isBuffer(event) ? event : JSON.stringify(event));
  };
  return {
    ws,
    events,
    send,
    next,
    closed,
    async turn(event) {
      const from = seen;
      send(event);
      await next(({ type }) => TERMINALS.has(type));
      return events.slice(from, seen);
    },
  };
}
