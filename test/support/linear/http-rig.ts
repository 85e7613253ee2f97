/** A gateway in this process with an upstream that always answers the same, for the rows of the linearity law that need both. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { Client } from 'undici';
import { KEY, type TestGateway, testGateway } from '../test-gateway.ts';

export interface UpstreamAnswer {
  readonly type: string;
  /** Each is written by itself. */
  readonly pieces: readonly string[];
}

export interface Asked {
  readonly path: string;
  readonly body?: string | Buffer;
  /** Names and values in turn. */
  readonly headers?: readonly string[];
  readonly type?: string;
  /** Anything else is a failure. Default 200. */
  readonly status?: number;
}

export interface Rig {
  readonly gateway: TestGateway;
  /** One request over a connection that is kept; resolves with the answer's text. */
  ask(asked: Asked): Promise<string>;
  /** A WebSocket whose frames are written by hand; resolves when it is open. */
  socket(): Promise<RawSocket>;
  close(): Promise<void>;
}

export interface RawSocket {
  /** Writes the bytes, and resolves when so many frames, of any kind, have come back. */
  exchange(bytes: Buffer, frames: number): Promise<void>;
  /** Writes the bytes, and resolves with the first text that has `end` in it. */
  until(bytes: Buffer, end: string): Promise<void>;
}

/** `type`: of the Channel for the one model, `m`. */
export async function httpRig(type: string, answer: UpstreamAnswer, file: object = {}): Promise<Rig> {
  const upstream = createServer({ maxHeaderSize: 65_536 }, (request, response) => {
    request.resume();
    request.on('end', () => {
      response.writeHead(200, { 'content-type': answer.type });
      for (const piece of answer.pieces) response.write(piece);
      response.end();
    });
  });
  upstream.listen(0, '127.0.0.1');
  await once(upstream, 'listening');
  const { port } = upstream.address() as AddressInfo;
  const gateway = await testGateway(
    {
      channels: [{ id: 'one', type, base_url: `http://127.0.0.1:${port}`, api_key: 'k', models: ['m'] }],
      models: { m: { ...(type === 'openai_image' ? { kind: 'image' } : {}), price: { input: '1', output: '2' } } },
      websocket: { turns: 100_000 },
      ...file,
    },
    { level: 'silent' },
  );
  const client = new Client(gateway.url);
  return {
    gateway,
    async ask({ path, body, headers = [], type: contentType = 'application/json', status = 200 }) {
      const answered = await client.request({
        ...{ path, method: body === undefined ? 'GET' : 'POST' },
        headers: ['authorization', `Bearer ${KEY}`, 'content-type', contentType, ...headers],
        ...(body === undefined ? {} : { body }),
      });
      const text = await answered.body.text();
      if (answered.statusCode !== status) throw new Error(`${path}: ${answered.statusCode} ${text.slice(0, 500)}`);
      return text;
    },
    socket: () => rawSocket(Number(new URL(gateway.url).port)),
    async close() {
      await client.destroy();
      await gateway[Symbol.asyncDispose]();
      upstream.closeAllConnections();
      upstream.close();
    },
  };
}

async function rawSocket(port: number): Promise<RawSocket> {
  const socket = connect({ host: '127.0.0.1', port, noDelay: true });
  await once(socket, 'connect');
  socket.write(
    `GET /v1/responses HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${KEY}\r\nupgrade: websocket\r\nconnection: Upgrade\r\n` +
      'sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n',
  );
  const [head] = (await once(socket, 'data')) as [Buffer];
  if (!head.toString('latin1').startsWith('HTTP/1.1 101')) throw new Error(head.toString('latin1', 0, 300));
  let onData: (chunk: Buffer) => void = () => undefined;
  let fail: (error: Error) => void = () => undefined;
  socket.on('data', (chunk: Buffer) => onData(chunk));
  socket.on('error', (error) => fail(error));
  socket.on('close', () => fail(new Error('the gateway closed the connection')));
  const answered = (bytes: Buffer, isOver: (chunk: Buffer) => boolean): Promise<void> =>
    new Promise((resolve, reject) => {
      fail = reject;
      onData = (chunk) => {
        if (isOver(chunk)) resolve();
      };
      socket.write(bytes);
    });
  return {
    exchange: (bytes, frames) => {
      const count = frameCounter();
      return answered(bytes, (chunk) => count(chunk) >= frames);
    },
    until: (bytes, end) => answered(bytes, (chunk) => chunk.includes(end)),
  };
}

/** Counts the frames that have begun, of an endpoint that masks nothing. */
function frameCounter(): (chunk: Buffer) => number {
  let count = 0;
  let rest: Buffer = Buffer.alloc(0);
  let skip = 0;
  return (chunk) => {
    const skipped = Math.min(skip, chunk.length);
    skip -= skipped;
    let bytes: Buffer = rest.length === 0 ? chunk.subarray(skipped) : Buffer.concat([rest, chunk.subarray(skipped)]);
    while (bytes.length >= 2) {
      const short = (bytes[1] ?? 0) & 0x7f;
      if (short >= 126 && bytes.length < 4) break;
      const [head, length] = short < 126 ? [2, short] : [4, bytes.readUInt16BE(2)];
      count += 1;
      skip = Math.max(0, head + length - bytes.length);
      bytes = bytes.subarray(Math.min(bytes.length, head + length));
    }
    rest = bytes;
    return count;
  };
}

/** A masked frame of a client; the mask is zero, so that its payload stands there as it is. */
export function frame(opcode: number, payload: string, isFinal = true): Buffer {
  const data = Buffer.from(payload);
  const head = [(isFinal ? 0x80 : 0) | opcode];
  if (data.length < 126) head.push(0x80 | data.length);
  else if (data.length < 65_536) head.push(0x80 | 126, data.length >> 8, data.length & 0xff);
  else throw new Error('no row needs such a frame');
  return Buffer.concat([Buffer.from([...head, 0, 0, 0, 0]), data]);
}

export const OP = { more: 0, text: 1, ping: 9 } as const;
