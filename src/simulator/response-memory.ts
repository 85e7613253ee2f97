/** The responses that the vendor stored (`store` not false), bounded: for `previous_response_id` and item ids. */
import type { JsonObject } from './json.ts';

export interface StoredItem {
  readonly item: JsonObject;
  /** The reasoning item that this item must be sent back with. */
  readonly needs?: string;
}

export class ResponseMemory {
  readonly #limit: number;
  /** Input and output items of each stored response, in order. */
  readonly #turns = new Map<string, readonly JsonObject[]>();
  readonly #items = new Map<string, StoredItem>();

  constructor(limit: number) {
    this.#limit = limit;
  }

  keep(responseId: string, history: readonly JsonObject[], output: readonly JsonObject[]): void {
    this.#turns.set(responseId, [...history, ...output]);
    let reasoning: string | undefined;
    for (const item of output) {
      const id = item.id;
      if (typeof id !== 'string') continue;
      this.#items.set(id, reasoning === undefined ? { item } : { item, needs: reasoning });
      reasoning = item.type === 'reasoning' ? id : undefined;
    }
    trim(this.#turns, this.#limit);
    trim(this.#items, this.#limit * 8);
  }

  turn(responseId: string): readonly JsonObject[] | undefined {
    return this.#turns.get(responseId);
  }

  item(id: string): StoredItem | undefined {
    return this.#items.get(id);
  }
}

function trim(map: Map<string, unknown>, limit: number): void {
  for (const key of map.keys()) {
    if (map.size <= limit) return;
    map.delete(key);
  }
}
