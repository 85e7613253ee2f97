/**
 * The schemas within a schema that are written in a later step, so that one of any size and form is rewritten in steps. What stands in their place is an
 * empty object until then: nobody looks into a schema that was rewritten.
 */
import { type JsonObject, setMember } from '../canonical/json.ts';
import type { Steps } from '../steps.ts';

/** How many schemas a step writes: some milliseconds. */
const STEP = 500;

export class LaterSchemas {
  readonly #write: (schema: JsonObject, depth: number) => JsonObject;
  readonly #places: JsonObject[] = [];
  readonly #schemas: JsonObject[] = [];
  readonly #depths: number[] = [];
  #left = STEP;

  /** `write` rewrites a schema, and asks {@link orNow} for those within it. */
  constructor(write: (schema: JsonObject, depth: number) => JsonObject) {
    this.#write = write;
  }

  /** The rewritten schema, or its place where this step has written enough. */
  orNow(schema: JsonObject, depth: number): JsonObject {
    if (this.#left > 0) {
      this.#left -= 1;
      return this.#write(schema, depth);
    }
    const place: JsonObject = {};
    this.#places.push(place);
    this.#schemas.push(schema);
    this.#depths.push(depth);
    return place;
  }

  /** Writes all that was put off, and what that puts off in turn. To be asked after each schema that was not put off. */
  *write(): Steps<void> {
    for (let index = 0; ; index += 1) {
      if (this.#left === 0) {
        yield;
        this.#left = STEP;
      }
      const [place, schema] = [this.#places[index], this.#schemas[index]];
      if (place === undefined || schema === undefined) break;
      this.#left -= 1;
      const written = this.#write(schema, this.#depths[index] ?? 0);
      for (const key of Object.keys(written)) setMember(place, key, written[key]);
    }
    this.#places.length = this.#schemas.length = this.#depths.length = 0;
  }
}
