/**
 * A protocol step is a pure, synchronous machine; Web Streams or a pump only carry it (design: "Streams"). Knows no byte format,
 * protocol or vendor.
 */

/** A pure step. `push` and `end` append to `out` and may throw; what was appended before the throw is good output. */
export interface Stage<In, Out> {
  /** True once the output is complete: later input is ignored and the source is cancelled. */
  readonly ended: boolean;
  push(input: In, out: Out[]): void;
  /** {@link push} for each until the output is complete, for a stage to which it matters what came together. */
  pushAll?(inputs: readonly In[], out: Out[]): void;
  /** The input ended. Called at most once, never after a throw. */
  end(out: Out[]): void;
}

/** A last step that can express a failure in its output format. */
export interface SealingStage<In, Out, Failure> extends Stage<In, Out> {
  /** Never throws. Appends nothing when `ended` is already true; afterwards `ended` is true. */
  fail(failure: Failure, out: Out[]): void;
  /**
   * Read only after a throw: the length up to which `out` is whole. Absent: everything since that call began is half-written
   * (an encoder need not care). A chain sets it, since output made from earlier events of the same call are whole.
   */
  readonly kept?: number | undefined;
}
