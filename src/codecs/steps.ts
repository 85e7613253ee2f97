/**
 * Work on a request in steps. A request may hold so much that its work would keep everybody else waiting: whoever drives the
 * steps may let others have a turn between two of them. One step takes a few milliseconds, but for what the engine does in one go
 * (`JSON.stringify` of one large value).
 */
export type Steps<Result> = Generator<undefined, Result, undefined>;

/** A loop that does little for each entry makes a step of this many. */
const ENTRIES = 256;

/** True where a loop over entries should end a step: after every 256th. */
export const endsStep = (index: number): boolean => index % ENTRIES === ENTRIES - 1;

/** All steps one right after the other, for what is small. */
export function atOnce<Result>(steps: Steps<Result>): Result {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

/** The function that does all steps of another one at once. */
export function whole<Given extends readonly unknown[], Result>(
  steps: (...given: Given) => Steps<Result>,
): (...given: Given) => Result {
  return (...given) => atOnce(steps(...given));
}
