/** Reads a whole upstream body, bounded; knows no dialect. For errors, for answers without a stream, and for JSON that came instead of one. */
import type { BodyReader } from '../../streams/body-source.ts';
import { StreamError } from '../../streams/stream-error.ts';

/** An error body is read no further than this: the rest says nothing new. */
export const MAX_ERROR_BYTES = 256 * 1024;

/** Throws reason `too_many_bytes`, or what the connection failed with. */
export async function readWhole(body: BodyReader, maxBytes: number): Promise<string> {
  const { text, cut } = await read(body, maxBytes);
  if (cut) throw new StreamError('too_many_bytes', `more than ${maxBytes} bytes`);
  return text;
}

/** What can be had of an error body; never throws, since the status already says that it is one. */
export async function readErrorText(body: BodyReader): Promise<string> {
  try {
    return (await read(body, MAX_ERROR_BYTES)).text;
  } catch {
    // The status line is the failure; a body that breaks off adds nothing.
    return '';
  }
}

async function read(body: BodyReader, maxBytes: number): Promise<{ readonly text: string; readonly cut: boolean }> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for (;;) {
    const batch = body.take();
    if (batch === null) return { text: textOf(chunks), cut: false };
    if (batch === undefined) await body.wait();
    else
      for (const bytes of batch) {
        size += bytes.length;
        if (size > maxBytes) {
          body.cancel();
          return { text: textOf([...chunks, bytes.subarray(0, bytes.length - (size - maxBytes))]), cut: true };
        }
        chunks.push(bytes);
      }
  }
}

function textOf(chunks: readonly Uint8Array[]): string {
  const [only] = chunks;
  return chunks.length === 1 && Buffer.isBuffer(only) ? only.toString('utf8') : Buffer.concat(chunks).toString('utf8');
}
