/**
 * A synchronous step between two Web Streams. One chunk is a batch, one batch in is at most one batch out, and nothing is taken
 * before the reader asks for it (writable highWaterMark 1, readable 0). It is not a `TransformStream`, since that drops what
 * `flush` enqueued before it threw.
 */
import { createHandOff } from './hand-off.ts';
import { ENDED } from './stream-error.ts';

/** Each method appends its output to `out`; what was appended before a throw is still handed over. */
export interface HopStep<In, Out> {
  /** True once the output is complete: the readable closes, and the source is cancelled with reason `ended`. */
  readonly over: boolean;
  push(batch: readonly In[], out: Out[]): void;
  end(out: Out[]): void;
  /** The input failed. Absent: then the readable fails with the same reason. */
  abort?(reason: unknown, out: Out[]): void;
}

/**
 * A step that throws fails both streams, after its last output and `finalFrames`. A reader that cancels errors the writable, so
 * that the source is cancelled; it gets no more output.
 */
export function createHop<In, Out>(
  step: HopStep<In, Out>,
  finalFrames: readonly Out[] = [],
): { readonly readable: ReadableStream<readonly Out[]>; readonly writable: WritableStream<readonly In[]> } {
  let controller: WritableStreamDefaultController | undefined;
  const reader = createHandOff<Out>((reason) => controller?.error(reason));

  const outputOf = (act: (out: Out[]) => void): readonly Out[] => {
    const out: Out[] = [];
    try {
      act(out);
    } catch (reason) {
      reader.fail([...out, ...finalFrames], reason);
      throw reason;
    }
    return out;
  };

  const run = (batch: readonly In[]): void => {
    const output = outputOf((out) => step.push(batch, out));
    if (step.over) {
      reader.close(output);
      controller?.error(ENDED);
    } else {
      reader.give(output);
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
        reader.close(outputOf((out) => step.end(out)));
      },
      abort(reason) {
        if (step.abort === undefined) reader.fail([], reason);
        else reader.close(outputOf((out) => step.abort?.(reason, out)));
      },
    },
    { highWaterMark: 1 },
  );

  return { readable: reader.readable, writable };
}
