/**
 * Events that were recognised by their shape, for a client of the same dialect: they are parsed only on demand, and get the edits
 * of the first event of their shape. Knows no dialect.
 */
import type { Dialect } from '../canonical/dialect.ts';
import type { Native } from '../canonical/event.ts';
import type { JsonValue } from '../canonical/json.ts';
import type { Frame } from '../codec.ts';
import { editShape, fill, type JsonShape, jsonOf, type Repeat } from './shape.ts';
import type { JsonEdit } from './edit.ts';

/**
 * An event that was recognised and not parsed: its JSON is made on demand. It is its own `repeat`, since most events of a stream
 * are such.
 */
export class RepeatedNative implements Native, Repeat {
  readonly dialect: Dialect;
  readonly name: string;
  readonly text: string;
  readonly shape: JsonShape;
  readonly raws: readonly string[];
  #json: JsonValue | undefined;

  constructor(dialect: Dialect, name: string, text: string, repeat: Repeat) {
    this.dialect = dialect;
    this.name = name;
    this.text = text;
    this.shape = repeat.shape;
    this.raws = repeat.raws;
  }

  get repeat(): Repeat {
    return this;
  }

  get json(): JsonValue {
    this.#json ??= jsonOf(this);
    return this.#json;
  }
}

/** Remembers the edits of an event and applies them to events of the same shape. One for each stream. */
export class RepeatedEdits {
  #known:
    | { readonly shape: JsonShape; readonly name: string; readonly literals: readonly string[]; readonly oneLine: boolean }
    | undefined;

  /** The edited frame of an event that repeats the noted one; undefined for any other. */
  apply(native: Native, event: string | undefined): Frame | undefined {
    const known = this.#known;
    const { repeat } = native;
    if (known === undefined || repeat === undefined || repeat.shape !== known.shape || native.name !== known.name)
      return undefined;
    const { literals, oneLine } = known;
    return { event, data: literals === repeat.shape.literals ? native.text : fill(literals, repeat.raws), oneLine };
  }

  /** Notes an event with its edits, which must not depend on the values of its holes. */
  note({ repeat, name }: Native, edits: readonly JsonEdit[]): void {
    this.#known = undefined;
    if (repeat === undefined) return;
    const { shape } = repeat;
    const literals = edits.length === 0 ? shape.literals : editShape(shape, edits);
    if (literals === undefined) return;
    this.#known = { shape, name, literals, oneLine: !literals.some((literal) => LINE_END.test(literal)) };
  }

  /** The edits no longer apply to the events that follow. */
  forget(): void {
    this.#known = undefined;
  }
}

const LINE_END = /[\r\n]/;
