/**
 * The wire names of the declared tools, for a name that arrives in pieces: whether it is one of them, or the beginning of one.
 * Takes the same time, nearly, for any number of tools.
 */
export class DeclaredNames {
  readonly #all: ReadonlySet<string>;
  /** In the order of their code units, so that names stand right before those that begin with them. */
  readonly #sorted: readonly string[];

  constructor(names: Iterable<string>) {
    this.#all = new Set(names);
    this.#sorted = [...this.#all].sort();
  }

  has(name: string): boolean {
    return this.#all.has(name);
  }

  /** True where a declared name begins with `name` and goes on. */
  hasLonger(name: string): boolean {
    let [from, to] = [0, this.#sorted.length];
    while (from < to) {
      const middle = (from + to) >>> 1;
      if ((this.#sorted[middle] ?? '') <= name) from = middle + 1;
      else to = middle;
    }
    return this.#sorted[from]?.startsWith(name) === true;
  }
}
