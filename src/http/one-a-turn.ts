/**
 * Work of which one piece is done in each turn of the event loop, so that everybody else comes to theirs between two of them.
 * Clients that left are let go of this way: what follows for each (the upstream is cancelled, its words are counted and settled)
 * takes a fraction of a millisecond, and a thousand at once would stall everybody else's stream. So is the work on large bodies
 * (`request/large-work.ts`).
 */
export class OneATurn {
  readonly #waiting: (() => void)[] = [];
  #next = 0;
  #isTurnTaken = false;

  /** Pieces that wait. */
  get waiting(): number {
    return this.#waiting.length - this.#next;
  }

  /** Does the first piece in a turn at once, and the others in the turns that follow, in order. */
  do(work: () => void): void {
    if (this.#isTurnTaken) {
      this.#waiting.push(work);
      return;
    }
    this.#takeTurn();
    work();
  }

  /** A turn in which nothing waits any more is free for the next piece. */
  #takeTurn(): void {
    this.#isTurnTaken = true;
    setImmediate(() => {
      const work = this.#waiting[this.#next++];
      if (work === undefined) {
        this.#waiting.length = 0;
        this.#next = 0;
        this.#isTurnTaken = false;
        return;
      }
      this.#takeTurn();
      work();
    });
  }
}
