/** An upstream on a raw socket, for what no HTTP library would send: each connection's requests are answered by a script. */
import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';

export interface FakeRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
  readonly socket: Socket;
}

/** Writes to the socket by itself. */
export type FakeAnswer = (request: FakeRequest) => void | Promise<void>;

export interface FakeUpstream {
  readonly url: string;
  readonly requests: FakeRequest[];
  /** Connections that are open. */
  readonly sockets: Set<Socket>;
  answer: FakeAnswer;
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

export async function fakeUpstream(answer: FakeAnswer): Promise<FakeUpstream> {
  const sockets = new Set<Socket>();
  const requests: FakeRequest[] = [];
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => sockets.delete(socket));
    let buffered = Buffer.alloc(0);
    socket.on('data', (chunk: Buffer) => {
      buffered = Buffer.concat([buffered, chunk]);
      for (;;) {
        const parsed = parseRequest(buffered, socket);
        if (parsed === undefined) return;
        buffered = buffered.subarray(parsed.end);
        requests.push(parsed.request);
        void upstream.answer(parsed.request);
      }
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const upstream: FakeUpstream = {
    url: `http://127.0.0.1:${port}`,
    requests,
    sockets,
    answer,
    async close() {
      const closed = once(server, 'close');
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
    [Symbol.asyncDispose]: () => upstream.close(),
  };
  return upstream;
}

function parseRequest(bytes: Buffer, socket: Socket): { readonly request: FakeRequest; readonly end: number } | undefined {
  const headEnd = bytes.indexOf('\r\n\r\n');
  if (headEnd < 0) return undefined;
  const [line = '', ...fields] = bytes.toString('latin1', 0, headEnd).split('\r\n');
  const headers = new Map(
    fields.map((field): [string, string] => {
      const colon = field.indexOf(':');
      return [field.slice(0, colon).toLowerCase(), field.slice(colon + 1).trim()];
    }),
  );
  const end = headEnd + 4 + Number(headers.get('content-length') ?? 0);
  if (bytes.length < end) return undefined;
  const [method = '', path = ''] = line.split(' ');
  return { request: { method, path, headers, body: bytes.toString('utf8', headEnd + 4, end), socket }, end };
}

/** A whole JSON answer. */
export function jsonAnswer(status: number, body: unknown, headers: Readonly<Record<string, string>> = {}): FakeAnswer {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return rawAnswer(status, { 'content-type': 'application/json', ...headers }, text);
}

export function rawAnswer(status: number, headers: Readonly<Record<string, string>>, text: string): FakeAnswer {
  return ({ socket }) => {
    const lines = Object.entries({ ...headers, 'content-length': String(Buffer.byteLength(text)) }).map(([k, v]) => `${k}: ${v}`);
    socket.write(`HTTP/1.1 ${status} X\r\n${lines.join('\r\n')}\r\n\r\n${text}`);
  };
}

/** Opens an event stream; the body is written by `more`, chunked by hand. */
export function openStream(socket: Socket): { event(name: string, data: unknown): void; raw(text: string): void; end(): void } {
  socket.write('HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n');
  const raw = (text: string): void => {
    socket.write(`${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`);
  };
  return {
    raw,
    event: (name, data) => raw(`event: ${name}\ndata: ${JSON.stringify(data)}\n\n`),
    end: () => {
      socket.write('0\r\n\r\n');
    },
  };
}

/** A whole messages stream that says `text`. */
export function sayMessages(text: string): FakeAnswer {
  return ({ socket }) => {
    const stream = openStream(socket);
    startMessage(stream);
    stream.event('content_block_delta', { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } });
    endMessage(stream);
  };
}

type Stream = ReturnType<typeof openStream>;

/** A messages stream that has begun to say `text` and goes on, or does not, as its test wants. */
export function beginMessage(socket: Socket, text: string): Stream {
  const stream = openStream(socket);
  startMessage(stream);
  stream.event('content_block_delta', { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } });
  return stream;
}

export function startMessage(stream: Stream): void {
  stream.event('message_start', {
    type: 'message_start',
    message: {
      id: 'msg_up',
      type: 'message',
      role: 'assistant',
      model: 'up',
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: { input_tokens: 7, output_tokens: 1 },
    },
  });
  stream.event('content_block_start', { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } });
}

export function endMessage(stream: Stream): void {
  stream.event('content_block_stop', { type: 'content_block_stop', index: 0 });
  stream.event('message_delta', {
    type: 'message_delta',
    delta: { stop_reason: 'end_turn', stop_sequence: null },
    usage: { output_tokens: 5 },
  });
  stream.event('message_stop', { type: 'message_stop' });
  stream.end();
}

/** A whole messages answer. */
export function wholeMessage(text: string): object {
  return {
    id: 'msg_up',
    type: 'message',
    role: 'assistant',
    model: 'up',
    content: [{ type: 'text', text }],
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage: { input_tokens: 7, output_tokens: 5 },
  };
}
