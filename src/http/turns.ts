/**
 * What a turn of the event loop spends on the requests of clients. Many may arrive in one turn, each with work of its own, and
 * streams that run already would wait for all of it. So whoever comes after some milliseconds waits for a turn that follows, in
 * order of arrival.
 */

/** How long the work of a turn goes on: milliseconds. The last piece of it may take longer. */
const TURN_MS = 5;

export class Turns {
  readonly #waiting: (() => void)[] = [];
  #next = 0;
  #isBegun = false;
  #until = 0;

  /** Pieces of work that wait for their turn. */
  get waiting(): number {
    return this.#waiting.length - this.#next;
  }

  /** True where the work of this turn should end. */
  get isOver(): boolean {
    return performance.now() >= this.#until;
  }

  /** A promise of a turn with time left; undefined where this one has some, and nobody else waits for it. */
  enter(): Promise<void> | undefined {
    if (!this.#isBegun) this.#begin();
    else if (this.waiting > 0 || this.isOver) return new Promise((resolve) => void this.#waiting.push(resolve));
    return undefined;
  }

  #begin(): void {
    this.#isBegun = true;
    this.#until = performance.now() + TURN_MS;
    setImmediate(() => {
      this.#isBegun = this.waiting > 0;
      if (!this.#isBegun) return;
      this.#begin();
      this.#letIn();
    });
  }

  /** One after another: the next follows when the one before has done what it can without waiting. */
  readonly #letIn = (): void => {
    const enter = this.#waiting[this.#next];
    if (enter === undefined) {
      this.#waiting.length = 0;
      this.#next = 0;
      return;
    }
    if (this.isOver) return;
    this.#next += 1;
    enter();
    // A tick that is asked for among the jobs of promises comes after all of them.
    queueMicrotask(() => process.nextTick(this.#letIn));
  };
}
