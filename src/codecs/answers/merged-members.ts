/**
 * The members of objects that come one after another, such as the usage reports of a stream. Merging an object costs what it
 * holds, however many members the earlier ones have brought.
 */
import { isObject, type JsonObject, type JsonValue } from '../canonical/json.ts';

type Members = Record<string, JsonValue>;

/** No vendor reports more. Above it a snapshot is no copy, since a copy for each report would take the square of the stream. */
const MOST_COPIED = 50;

export class MergedMembers {
  readonly members: Members = newMembers();
  #count = 0;

  set(key: string, value: JsonValue): void {
    if (this.members[key] === undefined) this.#count += 1;
    this.members[key] = value;
  }

  delete(key: string): void {
    if (this.members[key] === undefined) return;
    delete this.members[key];
    this.#count -= 1;
  }

  /** Null and zero replace nothing. `levels`: how deep nested objects are merged. */
  merge(report: JsonObject, levels: number): void {
    merge(this, report, levels);
  }

  /** The members so far; those of very many may still grow. Undefined for none. */
  snapshot(): JsonObject | undefined {
    if (this.#count === 0) return undefined;
    return this.#count > MOST_COPIED ? this.members : { ...this.members };
  }
}

/** Without a prototype: `__proto__` is a key like any other. */
function newMembers(): Members {
  return Object.create(null) as Members;
}

function merge(into: MergedMembers | Nested, report: JsonObject, levels: number): void {
  for (const [key, value] of Object.entries(report)) {
    if (value === undefined) continue;
    const before = into.members[key];
    if (levels > 0 && isObject(value)) {
      const inner = new Nested(isObject(before) ? before : undefined);
      merge(inner, value, levels - 1);
      into.set(key, inner.members);
    } else if ((value !== null && value !== 0) || before === undefined) into.set(key, value);
  }
}

/** The members of a nested object. Only merging makes these objects, so they may be changed. */
class Nested {
  readonly members: Members;

  constructor(before: JsonObject | undefined) {
    this.members = before === undefined ? newMembers() : (before as Members);
  }

  set(key: string, value: JsonValue): void {
    this.members[key] = value;
  }
}
