/** The response writer as the last Web Stream of a pipeline: for pipes, as `to-transform.ts` is; the gateway pumps into the writer itself. */
import type { Writable } from 'node:stream';
import { createResponseWriter, type ResponseWriter, type ResponseWriterOptions } from './response-writer.ts';

/**
 * A sink for batches of whole frames. When the client leaves it errors at once, a waiting write included, so that `pipeTo` cancels the
 * source; do not pass a signal to that `pipeTo` (with a write waiting for `drain` it would never cancel). An abort cuts the connection.
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
