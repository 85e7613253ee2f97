/**
 * Pictures and sound that a stream says in events of its own, beside its items: items of the answer where no item holds them, so that
 * clients of other protocols see and hear them, or are told that they cannot (spec rule 4).
 */
import type { MediaItem } from '../canonical/item.ts';
import type { JsonObject } from '../canonical/json.ts';
import { spokenItem } from './read-items.ts';
import { needString, nonEmptyString } from './wire.ts';

export class LooseMedia {
  readonly #pictures: JsonObject[] = [];
  readonly #audio: string[] = [];
  #transcript = '';

  /** An event that belongs to no item. */
  take(name: string, event: JsonObject): void {
    switch (name) {
      case 'image_generation.completed':
      case 'response.image_generation.completed': {
        const result = nonEmptyString(event, 'result') ?? nonEmptyString(event, 'b64_json');
        if (result !== undefined) this.#pictures.push({ ...event, type: 'image_generation_call', result });
        return;
      }
      case 'response.audio.delta':
        this.#audio.push(needString(event, 'delta', name));
        return;
      case 'response.audio.transcript.delta':
        this.#transcript += needString(event, 'delta', name);
    }
  }

  /** The pictures that none of `items` holds, as items of the protocol. */
  pictures(items: readonly JsonObject[]): readonly JsonObject[] {
    const held = new Set(items.map(({ result }) => result));
    return this.#pictures.filter(({ result }) => !held.has(result));
  }

  /** All that was spoken; undefined where nothing was. */
  sound(): MediaItem | undefined {
    return this.#audio.length === 0 ? undefined : spokenItem(this.#audio, this.#transcript);
  }
}
