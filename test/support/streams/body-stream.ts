/** A body as a Web Stream: the twin of what the pump reads, for the law that pumping and piping are the same. */
import type { Readable } from 'node:stream';
import { type Drain, readBody } from '../../../src/streams/body-source.ts';

/** {@link readBody} as a pull source: highWaterMark 0, one batch a chunk. Cancelling it destroys the body. */
export function bodyStream(body: Readable, drain?: Drain): ReadableStream<readonly Uint8Array[]> {
  const reader = readBody(body, drain);
  let cancelled = false;

  /** True once the pull was answered. Throws the body's failure, which then is the stream's. */
  const deliver = (controller: ReadableStreamDefaultController<readonly Uint8Array[]>): boolean => {
    if (cancelled) return true;
    const batch = reader.take();
    if (batch === undefined) return false;
    if (batch === null) controller.close();
    else controller.enqueue(batch);
    return true;
  };

  return new ReadableStream<readonly Uint8Array[]>(
    {
      async pull(controller) {
        while (!deliver(controller)) await reader.wait();
      },
      cancel(reason) {
        cancelled = true;
        reader.cancel(reason);
      },
    },
    { highWaterMark: 0 },
  );
}
