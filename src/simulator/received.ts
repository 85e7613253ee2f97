/** Reads one request whole: bounded body, JSON or multipart, into the journal's form. */
import type { IncomingMessage } from 'node:http';
import { MultipartParseError, parseMultipart } from '@mjackson/multipart-parser';
import type { AnswerState, ReceivedPart, ReceivedRequest } from './journal.ts';
import { isObject, type JsonValue, parseJson } from './json.ts';

export interface Received {
  readonly entry: ReceivedRequest;
  readonly settle: (state: AnswerState) => void;
  /** The body was no JSON, no multipart, or cut off. */
  readonly malformed: boolean;
}

export interface ReceiveLimits {
  readonly bodyBytes: number;
  readonly journalTextBytes: number;
}

/** Rejects when the body is longer than `bodyBytes` or the caller leaves. */
export async function receive(request: IncomingMessage, limits: ReceiveLimits, at: number): Promise<Received> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request) {
    if (!Buffer.isBuffer(chunk)) throw new Error('a request body must arrive as bytes');
    bytes += chunk.length;
    if (bytes > limits.bodyBytes) throw new Error(`the request body is longer than ${limits.bodyBytes} bytes`);
    chunks.push(chunk);
  }
  const raw = Buffer.concat(chunks);
  const url = new URL(request.url ?? '/', 'http://simulator');
  const boundary = /^multipart\/form-data;.*boundary="?([^";]+)"?/i.exec(request.headers['content-type'] ?? '')?.[1];
  const parts = boundary === undefined ? [] : partsOf(raw, boundary);
  const body = boundary === undefined && bytes > 0 ? parseJson(raw.toString('utf8')) : undefined;
  const { promise: over, resolve } = Promise.withResolvers<AnswerState>();
  const entry: ReceivedRequest = {
    at,
    method: request.method ?? 'GET',
    path: url.pathname,
    query: Object.fromEntries(url.searchParams),
    headers: Object.fromEntries(
      Object.entries(request.headers).map(([name, value]) => [name, Array.isArray(value) ? value.join(', ') : (value ?? '')]),
    ),
    body,
    text: raw.subarray(0, limits.journalTextBytes).toString(boundary === undefined ? 'utf8' : 'latin1'),
    bytes,
    model: modelOf(body, url.pathname) ?? parts?.find(({ name }) => name === 'model')?.text,
    parts: parts ?? [],
    status: 0,
    state: 'open',
    over,
  };
  return {
    entry,
    settle(state) {
      entry.state = state;
      resolve(state);
    },
    malformed: parts === undefined || (boundary === undefined && bytes > 0 && body === undefined),
  };
}

function modelOf(body: JsonValue | undefined, path: string): string | undefined {
  const named = /\/models\/([^/:]+):/.exec(path)?.[1];
  if (named !== undefined) return decodeURIComponent(named);
  return isObject(body) && typeof body.model === 'string' ? body.model : undefined;
}

const MIB = 1024 * 1024;

function partsOf(raw: Buffer, boundary: string): readonly ReceivedPart[] | undefined {
  try {
    const limits = { boundary, maxFileSize: 64 * MIB, maxTotalSize: 256 * MIB };
    return [...parseMultipart(raw, limits)].map((part) => ({
      name: part.name,
      filename: part.filename,
      mimeType: part.mediaType,
      bytes: part.bytes,
      text: part.isFile ? undefined : part.text,
    }));
  } catch (error) {
    if (error instanceof MultipartParseError) return undefined;
    throw error;
  }
}
