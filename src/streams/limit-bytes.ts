/** A cap on how much a source may send. */
import type { Stage } from './stage.ts';
import { StreamError } from './stream-error.ts';

/** Passes the first `maxBytes` bytes and throws reason `too_many_bytes` on the first byte after them. */
export function limitBytes(maxBytes: number): Stage<Uint8Array, Uint8Array> {
  let left = maxBytes;
  return {
    ended: false,
    push(bytes, out) {
      if (bytes.length > left) {
        if (left > 0) out.push(bytes.subarray(0, left));
        left = 0;
        throw new StreamError('too_many_bytes', `more than ${maxBytes} bytes`);
      }
      left -= bytes.length;
      out.push(bytes);
    },
    end() {
      // The end adds nothing to count.
    },
  };
}
