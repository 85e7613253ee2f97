/**
 * The schemas within a schema that are written in a later step, so that one of any size and form is rewritten in steps. What
 * stands in their place is an empty object until then: nobody looks into a schema that was rewritten.
 */
import { type JsonObject, setMember } from '../canonical/json.ts';
import type { Steps } from '../steps.ts';

/** How many schemas, or members, a step writes: some milliseconds. */
const STEP = 500;

/** Members of one schema of which only the first ones are written. */
interface LaterMembers {
  readonly names: readonly string[];
  readonly write: (name: string) => void;
}

export class LaterSchemas {
  readonly #write: (schema: JsonObject, depth: number) => JsonObject;
  readonly #writeInSteps: ((schema: JsonObject, depth: number) => Steps<JsonObject>) | undefined;
  readonly #places: JsonObject[] = [];
  readonly #schemas: JsonObject[] = [];
  readonly #depths: number[] = [];
  readonly #members: LaterMembers[] = [];
  #left = STEP;

  /** Both rewrite a schema, and ask {@link orNow} for those within it; the second one those that were put off. */
  constructor(
    write: (schema: JsonObject, depth: number) => JsonObject,
    writeInSteps?: (schema: JsonObject, depth: number) => Steps<JsonObject>,
  ) {
    this.#write = write;
    this.#writeInSteps = writeInSteps;
  }

  /** The rewritten schema, or its place where this step has written enough. */
  orNow(schema: JsonObject, depth: number): JsonObject {
    if (this.#left > 0) {
      this.#left -= 1;
      return this.#write(schema, depth);
    }
    return this.later(schema, depth);
  }

  /** A schema took as long as so many others do. */
  took(schemas: number): void {
    this.#left = Math.max(0, this.#left - schemas);
  }

  /** The place of a schema that takes several steps by itself. */
  later(schema: JsonObject, depth: number): JsonObject {
    const place: JsonObject = {};
    this.#places.push(place);
    this.#schemas.push(schema);
    this.#depths.push(depth);
    return place;
  }

  /** Writes the members of an object of schemas in order; true where only the first ones now, and the others later. */
  each(names: readonly string[], write: (name: string) => void): boolean {
    for (const name of names.length > STEP ? names.slice(0, STEP) : names) write(name);
    if (names.length > STEP) this.#members.push({ names, write });
    return names.length > STEP;
  }

  /** Writes all that was put off, and what that puts off in turn. To be asked after each schema that was not put off. */
  *write(): Steps<void> {
    for (let index = 0; index < this.#places.length || this.#members.length > 0; ) {
      yield* this.#writeMembers();
      if (this.#left === 0) yield* this.#step();
      const [place, schema] = [this.#places[index], this.#schemas[index]];
      if (place === undefined || schema === undefined) continue;
      this.#left -= 1;
      const depth = this.#depths[index] ?? 0;
      const written = this.#writeInSteps === undefined ? this.#write(schema, depth) : yield* this.#writeInSteps(schema, depth);
      for (const key of Object.keys(written)) setMember(place, key, written[key]);
      index += 1;
    }
    if (this.#left === 0) yield* this.#step();
    this.#places.length = this.#schemas.length = this.#depths.length = 0;
  }

  *#step(): Steps<void> {
    yield;
    this.#left = STEP;
  }

  *#writeMembers(): Steps<void> {
    for (let members = this.#members.pop(); members !== undefined; members = this.#members.pop()) {
      for (let at = STEP; at < members.names.length; at += 1) {
        if (at % STEP === 0) yield* this.#step();
        members.write(members.names[at] ?? '');
      }
    }
  }
}
