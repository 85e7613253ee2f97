/**
 * What a turn of the event loop spends on what streams have to convert. A thousand upstreams may speak at once; whoever comes
 * after some milliseconds of work waits for a turn that follows, and those who wait are served in a circle: one of each party,
 * in order of arrival. So the streams of one party are behind no crowd of another's.
 *
 * While little happens it costs two looks at the clock a piece of work: a turn is watched once some work was seen since the last
 * one that was.
 */

/** How long the work of a watched turn goes on: milliseconds. The last piece of it may take longer. */
const TURN_MS = 5;
/** After so much work (milliseconds), in however many turns, one is watched: the work may have been all in one. */
const UNWATCHED_MS = 1;

/** What a party waits for, in order. */
interface Line {
  readonly works: (() => void)[];
  next: number;
}

export class StreamTurns {
  /** The parties that wait. The first has the next turn and goes to the end. */
  readonly #lines = new Map<string, Line>();
  #waiting = 0;
  #isWatched = false;
  #until = 0;
  #unwatchedMs = 0;

  /** Pieces of work that wait for their turn. */
  get waiting(): number {
    return this.#waiting;
  }

  /** Does the work at once where this turn has time left and nobody waits, otherwise in a turn that follows. It may not throw. */
  do(party: string, work: () => void): void {
    if (this.#isWatched) {
      if (this.#isFree()) work();
      else this.#wait(party, work);
      return;
    }
    const from = performance.now();
    work();
    this.#unwatchedMs += performance.now() - from;
    if (this.#unwatchedMs >= UNWATCHED_MS) this.#watch();
  }

  /** The same for what goes on after a promise, which is undefined where it need not wait. */
  enter(party: string): Promise<void> | undefined {
    if (this.#isWatched && !this.#isFree()) return new Promise((resolve) => this.#wait(party, resolve));
    return undefined;
  }

  /** Counts work that was not done by {@link do}, and began then (by `performance.now()`). */
  worked(from: number): void {
    if (this.#isWatched) return;
    this.#unwatchedMs += performance.now() - from;
    if (this.#unwatchedMs >= UNWATCHED_MS) this.#watch();
  }

  #isFree(): boolean {
    return this.#waiting === 0 && performance.now() < this.#until;
  }

  #watch(): void {
    this.#isWatched = true;
    this.#unwatchedMs = 0;
    this.#until = performance.now() + TURN_MS;
    setImmediate(this.#nextTurn);
  }

  readonly #nextTurn = (): void => {
    this.#isWatched = this.#waiting > 0;
    if (!this.#isWatched) return;
    this.#watch();
    this.#serve();
  };

  #wait(party: string, work: () => void): void {
    this.#waiting += 1;
    const line = this.#lines.get(party);
    if (line === undefined) this.#lines.set(party, { works: [work], next: 0 });
    else line.works.push(work);
  }

  /** One after another: the next follows when the one before has done what it can without waiting. */
  readonly #serve = (): void => {
    if (performance.now() >= this.#until) return;
    for (const [party, line] of this.#lines) {
      this.#lines.delete(party);
      const work = line.works[line.next++];
      if (line.next < line.works.length) this.#lines.set(party, line);
      if (work === undefined) continue;
      this.#waiting -= 1;
      work();
      // A tick that is asked for among the jobs of promises comes after all of them.
      if (this.#waiting > 0) queueMicrotask(this.#serveNext);
      return;
    }
  };

  readonly #serveNext = (): void => process.nextTick(this.#serve);
}
