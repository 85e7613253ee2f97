/** Reads a whole upstream body, bounded; knows no dialect. For errors, for answers without a stream, and for JSON that came instead of one. */
import type { Readable } from 'node:stream';
import { StreamError } from '../../streams/stream-error.ts';

/** An error body is read no further than this: the rest says nothing new. */
export const MAX_ERROR_BYTES = 256 * 1024;

/** Throws reason `too_many_bytes`, or what the connection failed with. */
export async function readWhole(body: Readable, maxBytes: number): Promise<string> {
  const { text, cut } = await read(body, maxBytes);
  if (cut) throw new StreamError('too_many_bytes', `more than ${maxBytes} bytes`);
  return text;
}

/** What can be had of an error body; never throws, since the status already says that it is one. */
export async function readErrorText(body: Readable): Promise<string> {
  try {
    return (await read(body, MAX_ERROR_BYTES)).text;
  } catch {
    // The status line is the failure; a body that breaks off adds nothing.
    return '';
  }
}

async function read(body: Readable, maxBytes: number): Promise<{ readonly text: string; readonly cut: boolean }> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body) {
    const bytes: Buffer = chunk;
    size += bytes.length;
    if (size > maxBytes) {
      chunks.push(bytes.subarray(0, bytes.length - (size - maxBytes)));
      body.destroy();
      return { text: Buffer.concat(chunks).toString('utf8'), cut: true };
    }
    chunks.push(bytes);
  }
  return { text: Buffer.concat(chunks).toString('utf8'), cut: false };
}
