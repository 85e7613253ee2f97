/**
 * What a turn of the event loop spends on the work of clients: on their requests, on large bodies, or on what their upstreams
 * say. Much may arrive in one turn, and streams that run already would wait for all of it. So whoever comes after some
 * milliseconds waits for a turn that follows. Those who wait are served in a circle, one piece of each party (a key, or a
 * connection), in order of arrival: nobody is behind the crowd of another.
 *
 * While little happens it costs a look at the clock a piece, and an immediate each few milliseconds.
 */

/** How long the work goes on: milliseconds. The last piece of it may take longer. */
const TURN_MS = 5;

/** What a party waits for, in order. Gone when nothing is left. */
interface Line {
  readonly works: (() => void)[];
  next: number;
}

export class LoopTurns {
  /** The parties that wait. The first has the next piece, and goes to the end. */
  readonly #lines = new Map<unknown, Line>();
  #waiting = 0;
  /** When the time that is spent now is over. It may have begun a turn or more ago. */
  #until = 0;
  /** Until its immediate comes: this is the turn in which the time began. */
  #isSameTurn = false;

  /** Pieces of work that wait for their turn. */
  get waiting(): number {
    return this.#waiting;
  }

  /** True where the work of this turn should end. */
  get isOver(): boolean {
    return performance.now() >= this.#until;
  }

  /** A promise of a turn with time left; undefined where this one has some, and nobody else waits for it. */
  enter(party: unknown = ''): Promise<void> | undefined {
    if (this.#hasTime()) return undefined;
    return new Promise((resolve) => this.#wait(party, resolve));
  }

  /** Does the work at once where {@link enter} would not wait, otherwise in a turn that follows. It may not throw. */
  do(party: unknown, work: () => void): void {
    if (this.#hasTime()) work();
    else this.#wait(party, work);
  }

  #hasTime(): boolean {
    if (this.#waiting > 0) return false;
    if (!this.isOver) return true;
    if (this.#isSameTurn) return false;
    this.#begin();
    return true;
  }

  #begin(): void {
    this.#until = performance.now() + TURN_MS;
    this.#isSameTurn = true;
    setImmediate(this.#nextTurn);
  }

  readonly #nextTurn = (): void => {
    this.#isSameTurn = false;
    if (this.#waiting === 0) return;
    this.#begin();
    this.#serve();
  };

  #wait(party: unknown, work: () => void): void {
    this.#waiting += 1;
    const line = this.#lines.get(party);
    if (line === undefined) this.#lines.set(party, { works: [work], next: 0 });
    else line.works.push(work);
  }

  /** One after another: the next follows when the one before has done what it can without waiting. */
  readonly #serve = (): void => {
    if (this.#waiting === 0 || this.isOver) return;
    this.#next()?.();
    // A tick that is asked for among the jobs of promises comes after all of them.
    queueMicrotask(this.#serveNext);
  };

  readonly #serveNext = (): void => process.nextTick(this.#serve);

  #next(): (() => void) | undefined {
    for (const [party, line] of this.#lines) {
      const work = line.works[line.next++];
      this.#waiting -= 1;
      this.#lines.delete(party);
      if (line.next < line.works.length) this.#lines.set(party, line);
      return work;
    }
    return undefined;
  }
}
