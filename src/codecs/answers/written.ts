/**
 * What an encoder has written of a text: places in the fold's record of its item, so that encoders remember no text. The fold may
 * be ahead of the encoder, since it takes all that one read brought before any of it is written.
 */
interface Range {
  readonly from: number;
  to: number;
}

export class Written {
  /** In code units. */
  length = 0;
  readonly #record: () => string;
  /** Mostly one: only the raw texts of a reasoning item may be written by turns. */
  readonly #ranges: Range[] = [];

  /** `record`: the record's text as it is now. */
  constructor(record: () => string) {
    this.#record = record;
  }

  /** `length` more code units were written. `from`: where the record has them; by default behind the last ones. */
  add(length: number, from?: number): void {
    const last = this.#ranges.at(-1);
    this.length += length;
    if (last !== undefined && (from === undefined || from === last.to)) last.to += length;
    else this.#ranges.push({ from: from ?? 0, to: (from ?? 0) + length });
  }

  get text(): string {
    const record = this.#record();
    return this.#ranges.map(({ from, to }) => record.slice(from, to)).join('');
  }
}
