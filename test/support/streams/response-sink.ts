/** The response writer as the last Web Stream of a pipeline: the twin of the pump's writer. */
import type { Writable } from 'node:stream';
import { createResponseWriter, type ResponseWriter, type ResponseWriterOptions } from '../../../src/streams/response-writer.ts';

/**
 * A sink for batches of whole frames. When the client leaves it errors at once, a waiting write included, so that `pipeTo`
 * cancels the source; do not pass a signal to that `pipeTo` (with a write waiting for `drain` it would never cancel). An abort
 * cuts the connection.
 */
export function sinkTo(response: Writable, options: ResponseWriterOptions): WritableStream<readonly string[]> {
  let writer: ResponseWriter | undefined;
  return new WritableStream<readonly string[]>(
    {
      start(controller) {
        writer = createResponseWriter(response, {
          ...options,
          onGone(reason) {
            controller.error(reason);
            options.onGone?.(reason);
          },
        });
      },
      write(frames) {
        return writer?.write(frames);
      },
      close() {
        return writer?.end();
      },
      abort(reason) {
        writer?.destroy(reason);
      },
    },
    { highWaterMark: 1 },
  );
}
