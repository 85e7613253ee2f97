/**
 * Images and audio in events of their own, which belong to no item. Those that no item holds become items of the answer, so that
 * clients of other protocols get them, or an error that they cannot (spec rule 4).
 */
import type { MediaItem } from '../../canonical/item.ts';
import type { JsonObject } from '../../canonical/json.ts';
import { audioItem } from './decode-items.ts';
import { needString, nonEmptyString } from '../wire.ts';

export class DetachedMedia {
  readonly #images: JsonObject[] = [];
  readonly #audio: string[] = [];
  #transcript = '';

  /** An event that belongs to no item. */
  take(name: string, event: JsonObject): void {
    switch (name) {
      case 'image_generation.completed':
      case 'response.image_generation.completed': {
        const result = nonEmptyString(event, 'result') ?? nonEmptyString(event, 'b64_json');
        if (result !== undefined) this.#images.push({ ...event, type: 'image_generation_call', result });
        return;
      }
      case 'response.audio.delta':
        this.#audio.push(needString(event, 'delta', name));
        return;
      case 'response.audio.transcript.delta':
        this.#transcript += needString(event, 'delta', name);
    }
  }

  /** The images that none of `items` holds, as items of this dialect. */
  images(items: readonly JsonObject[]): readonly JsonObject[] {
    const held = new Set(items.map(({ result }) => result));
    return this.#images.filter(({ result }) => !held.has(result));
  }

  /** The whole audio; undefined where there was none. */
  audio(): MediaItem | undefined {
    return this.#audio.length === 0 ? undefined : audioItem(this.#audio, this.#transcript);
  }
}
