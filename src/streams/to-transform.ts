/**
 * Carries a stage in a pair of Web Streams: one chunk is a batch, one batch in is at most one batch out. The gateway itself pumps
 * (`pump.ts`); this is the form that the law of the pump compares with, and that others may pipe.
 */
import { createHandOff } from './hand-off.ts';
import type { Stage } from './stage.ts';
import { ENDED } from './stream-error.ts';

/**
 * Runs `stage` on every batch that its reader asks for (writable highWaterMark 1, readable 0).
 * A stage that throws: what it said before is handed over, then the readable fails with the same reason and the source is cancelled.
 * A stage that has ended: its last words are handed over, the readable closes, and the source is cancelled with reason `ended`.
 * It is a pair of its own and no `new TransformStream`, since that one drops what `flush` said before it threw.
 */
export function toTransform<In, Out>(stage: Stage<In, Out>): TransformStream<readonly In[], readonly Out[]> {
  let controller: WritableStreamDefaultController | undefined;
  const reader = createHandOff<Out>((reason) => controller?.error(reason));

  const run = (batch: readonly In[]): void => {
    const said: Out[] = [];
    try {
      for (const input of batch) {
        if (stage.ended) break;
        stage.push(input, said);
      }
    } catch (reason) {
      reader.fail(said, reason);
      throw reason;
    }
    if (stage.ended) {
      reader.close(said);
      controller?.error(ENDED);
    } else {
      reader.give(said);
    }
  };

  const writable = new WritableStream<readonly In[]>(
    {
      start(given) {
        controller = given;
      },
      write(batch) {
        const demand = reader.demand();
        if (demand === undefined) return run(batch);
        return demand.then(() => run(batch));
      },
      close() {
        const said: Out[] = [];
        try {
          if (!stage.ended) stage.end(said);
        } catch (reason) {
          reader.fail(said, reason);
          throw reason;
        }
        reader.close(said);
      },
      abort(reason) {
        reader.fail([], reason);
      },
    },
    { highWaterMark: 1 },
  );

  return { readable: reader.readable, writable };
}
