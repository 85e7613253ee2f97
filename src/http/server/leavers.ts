/**
 * Clients that have left, let go of one in each turn of the event loop: what follows for each (the upstream is cancelled, its words are
 * counted and settled) takes a fraction of a millisecond, and a thousand at once would stall everybody else's stream.
 */
export class Leavers {
  readonly #waiting: (() => void)[] = [];
  #next = 0;
  #isTurnTaken = false;

  /** Clients that wait. */
  get waiting(): number {
    return this.#waiting.length - this.#next;
  }

  /** Lets go at once of the first in a turn, and of the others in the turns that follow, in order. */
  leave(letGo: () => void): void {
    if (this.#isTurnTaken) {
      this.#waiting.push(letGo);
      return;
    }
    this.#takeTurn();
    letGo();
  }

  /** A turn in which nobody waits any more is free for the next who leaves. */
  #takeTurn(): void {
    this.#isTurnTaken = true;
    setImmediate(() => {
      const letGo = this.#waiting[this.#next++];
      if (letGo === undefined) {
        this.#waiting.length = 0;
        this.#next = 0;
        this.#isTurnTaken = false;
        return;
      }
      this.#takeTurn();
      letGo();
    });
  }
}
