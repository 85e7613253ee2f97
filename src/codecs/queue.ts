/**
 * A line of entries, first come, first served. `Array.shift` moves all that are left, and a `Set` passes over what was deleted
 * from its front: both take quadratic time for a line that is as long as an upstream likes.
 */
export class Queue<T> {
  #entries: (T | undefined)[] = [];
  #first = 0;

  get size(): number {
    return this.#entries.length - this.#first;
  }

  get first(): T | undefined {
    return this.#entries[this.#first];
  }

  add(entry: T): void {
    this.#entries.push(entry);
  }

  /** Takes the first entry out. */
  take(): T | undefined {
    const entry = this.#entries[this.#first];
    if (entry === undefined) return undefined;
    this.#entries[this.#first] = undefined;
    this.#first += 1;
    // The room in front is given back when it is half of all.
    if (this.#first * 2 >= this.#entries.length) {
      this.#entries = this.#entries.slice(this.#first);
      this.#first = 0;
    }
    return entry;
  }

  *[Symbol.iterator](): Generator<T> {
    for (let at = this.#first; at < this.#entries.length; at += 1) {
      const entry = this.#entries[at];
      if (entry !== undefined) yield entry;
    }
  }
}
