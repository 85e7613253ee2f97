/** Reads a whole upstream body, bounded; knows no dialect. For errors, for answers without a stream, and for JSON that came instead of one. */
import { brotliDecompressSync, gunzipSync, inflateSync, zstdDecompressSync } from 'node:zlib';
import type { BodyReader } from '../../streams/body-source.ts';
import type { Clock } from '../../streams/clock.ts';
import { StreamError } from '../../streams/stream-error.ts';
import { headerOf, type UpstreamHead } from './upstream-call.ts';

/** An error body is read no further than this: the rest says nothing new. */
const MAX_ERROR_BYTES = 256 * 1024;
/** Nor for longer: whoever asked waits for the next Channel. */
const ERROR_BODY_MS = 5_000;

/** Throws reason `too_many_bytes`, or what the connection failed with. */
export async function readWhole(body: BodyReader, maxBytes: number): Promise<string> {
  const { bytes, cut } = await read(body, maxBytes);
  if (cut) throw new StreamError('too_many_bytes', `more than ${maxBytes} bytes`);
  return textOf(bytes);
}

/** What can be had of an error body in a short time; never throws, since the status already shows that it is one. */
export async function readErrorText({ headers, body }: UpstreamHead, clock: Clock): Promise<string> {
  const patience = clock.setTimeout(() => body.cancel(), ERROR_BODY_MS);
  try {
    const { bytes } = await read(body, MAX_ERROR_BYTES);
    return decoded(bytes, headerOf(headers, 'content-encoding').trim().toLowerCase());
  } catch {
    // The status line is the failure; a body that breaks off, or is not what it says, adds nothing.
    return '';
  } finally {
    patience.cancel();
  }
}

const DECODERS: Readonly<Record<string, (bytes: Buffer, options: { readonly maxOutputLength: number }) => Buffer>> = {
  gzip: gunzipSync,
  'x-gzip': gunzipSync,
  deflate: inflateSync,
  br: brotliDecompressSync,
  zstd: zstdDecompressSync,
};

/** Proxies before an upstream compress their errors whatever was asked for. Throws for what does not fit its name, and for a bomb. */
function decoded(bytes: Buffer, encoding: string): string {
  if (encoding === '' || encoding === 'identity') return textOf(bytes);
  const decoded = DECODERS[encoding]?.(bytes, { maxOutputLength: MAX_ERROR_BYTES });
  return decoded === undefined ? '' : textOf(decoded);
}

const BYTE_ORDER_MARK = Buffer.from('\ufeff');

/** Without the mark that some servers put before JSON, and that no JSON parser takes. */
function textOf(bytes: Buffer): string {
  const isMarked = bytes[0] === BYTE_ORDER_MARK[0] && bytes.subarray(0, BYTE_ORDER_MARK.length).equals(BYTE_ORDER_MARK);
  return bytes.toString('utf8', isMarked ? BYTE_ORDER_MARK.length : 0);
}

async function read(body: BodyReader, maxBytes: number): Promise<{ readonly bytes: Buffer; readonly cut: boolean }> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for (;;) {
    const batch = body.take();
    if (batch === null) return { bytes: joined(chunks), cut: false };
    if (batch === undefined) await body.wait();
    else
      for (const bytes of batch) {
        size += bytes.length;
        if (size > maxBytes) {
          body.cancel();
          return { bytes: joined([...chunks, bytes.subarray(0, bytes.length - (size - maxBytes))]), cut: true };
        }
        chunks.push(bytes);
      }
  }
}

function joined(chunks: readonly Uint8Array[]): Buffer {
  const [only] = chunks;
  return chunks.length === 1 && Buffer.isBuffer(only) ? only : Buffer.concat(chunks);
}
