/**
 * Reads a whole upstream body, bounded; knows no dialect. For errors, for answers without a stream, and for JSON that came
 * instead of one.
 */
import { promisify } from 'node:util';
import { brotliDecompress, gunzip, inflate, zstdDecompress } from 'node:zlib';
import { byClient } from '../../codecs/canonical/error.ts';
import type { BodyReader } from '../../streams/body-source.ts';
import type { Clock } from '../../streams/clock.ts';
import { SmallChunks } from '../../streams/small-chunks.ts';
import { StreamError } from '../../streams/stream-error.ts';
import { readUtf8 } from '../../codecs/bodies/utf8.ts';
import { upstreamFailure } from '../errors.ts';
import { isLarge, type LargeWork } from '../request/large-work.ts';
import { headerOf, type UpstreamHead } from './upstream-call.ts';

/** An error body is read no further than this: the rest adds nothing. */
const MAX_ERROR_BYTES = 256 * 1024;
/** Nor for longer: whoever asked waits for the next Channel. */
const ERROR_BODY_MS = 5_000;

/**
 * Throws reason `too_many_bytes`, `encoded_body`, or what the connection failed with; for JSON of too many bytes the error that
 * does not blame the Channel. A large body is read as text in turns of `work`; absent: at once.
 */
export async function readWhole(
  { headers, body }: Pick<UpstreamHead, 'headers' | 'body'>,
  maxBytes: number,
  work?: LargeWork,
): Promise<string> {
  const { chunks, size, cut } = await read(body, maxBytes);
  if (cut) {
    const tooLong = new StreamError('too_many_bytes', `more than ${maxBytes} bytes`);
    throw isJson(chunks) ? byClient(upstreamFailure(tooLong)) : tooLong;
  }
  const encoding = encodingOf(headers);
  // What is JSON as it stands is not encoded, whatever its header claims.
  if (encoding === '' || isJson(chunks)) return await textOf(chunks, size, work);
  const bytes = await decoded(joined(chunks), encoding, maxBytes).catch((cause: unknown) => {
    if (cause instanceof RangeError) throw new StreamError('too_many_bytes', `more than ${maxBytes} bytes`);
    throw new StreamError('encoded_body', `the body is not what its encoding ${encoding.slice(0, 20)} says`);
  });
  return await textOf([bytes], bytes.length, work);
}

function isJson([first]: readonly Uint8Array[]): boolean {
  return first !== undefined && /^\s*[[{]/.test(Buffer.from(first.subarray(0, 64)).toString('latin1'));
}

/** What can be had of an error body in a short time; never throws, since the status already shows that it is one. */
export async function readErrorText({ headers, body }: UpstreamHead, clock: Clock): Promise<string> {
  const patience = clock.setTimeout(() => body.cancel(), ERROR_BODY_MS);
  try {
    const bytes = joined((await read(body, MAX_ERROR_BYTES)).chunks);
    const encoding = encodingOf(headers);
    return unmarked(encoding === '' ? bytes : await decoded(bytes, encoding, MAX_ERROR_BYTES));
  } catch {
    // The status line is the failure; a body that breaks off, or is not what it claims to be, adds nothing.
    return '';
  } finally {
    patience.cancel();
  }
}

const DECODERS: Readonly<Record<string, (bytes: Buffer, options: { readonly maxOutputLength: number }) => Promise<Buffer>>> = {
  gzip: promisify(gunzip),
  'x-gzip': promisify(gunzip),
  deflate: promisify(inflate),
  br: promisify(brotliDecompress),
  zstd: promisify(zstdDecompress),
};

/** Empty for a body that is as it stands. */
function encodingOf(headers: UpstreamHead['headers']): string {
  const encoding = headerOf(headers, 'content-encoding').trim().toLowerCase();
  return encoding === 'identity' ? '' : encoding;
}

/**
 * Proxies before an upstream compress what they send, whatever was asked for. Rejects for what does not fit its name, and for a
 * bomb.
 */
async function decoded(bytes: Buffer, encoding: string, maxOutputLength: number): Promise<Buffer> {
  const decode = DECODERS[encoding];
  if (decode === undefined) throw new Error('nobody knows this encoding');
  return await decode(bytes, { maxOutputLength });
}

const BYTE_ORDER_MARK = Buffer.from('\ufeff');

function textOf(chunks: readonly Uint8Array[], size: number, work: LargeWork | undefined): string | Promise<string> {
  if (work === undefined || !isLarge({ length: size })) return unmarked(joined(chunks));
  return work.run(readUtf8(chunks, new TextDecoder()));
}

/** Without the mark that some servers put before JSON, and that no JSON parser takes. */
function unmarked(bytes: Buffer): string {
  const isMarked = bytes[0] === BYTE_ORDER_MARK[0] && bytes.subarray(0, BYTE_ORDER_MARK.length).equals(BYTE_ORDER_MARK);
  return bytes.toString('utf8', isMarked ? BYTE_ORDER_MARK.length : 0);
}

interface Received {
  readonly chunks: readonly Uint8Array[];
  readonly size: number;
  /** There was more. */
  readonly cut: boolean;
}

async function read(body: BodyReader, maxBytes: number): Promise<Received> {
  const chunks: Uint8Array[] = [];
  const gathered = new SmallChunks((bytes) => void chunks.push(bytes));
  let size = 0;
  for (;;) {
    const batch = body.take();
    if (batch === null) {
      gathered.flush();
      return { chunks, size, cut: false };
    }
    if (batch === undefined) await body.wait();
    else
      for (const bytes of batch) {
        size += bytes.length;
        if (size > maxBytes) {
          body.cancel();
          gathered.flush();
          return { chunks: [...chunks, bytes.subarray(0, bytes.length - (size - maxBytes))], size: maxBytes, cut: true };
        }
        gathered.add(bytes);
      }
  }
}

function joined(chunks: readonly Uint8Array[]): Buffer {
  const [only] = chunks;
  return chunks.length === 1 && Buffer.isBuffer(only) ? only : Buffer.concat(chunks);
}
