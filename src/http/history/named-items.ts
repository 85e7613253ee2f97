/**
 * Items that one request names by their ids alone. Each is said once, as its answer said it, and all of them are no more than one stored
 * conversation may be: a reference is short, and what it stands for is not.
 */
import { GatewayError } from '../../codecs/canonical/error.ts';
import { isObject, type JsonObject } from '../../codecs/canonical/json.ts';
import { isReference } from '../../codecs/responses/read-input.ts';
import type { TurnsByItem } from './memory.ts';
import { outputItems, type PastTurn } from './past-turn.ts';

/** Ids of the input's items that say less than was said: references, and reasoning that only whoever stored it can read. Each once. */
export function idsToFind({ input }: JsonObject): readonly string[] {
  const ids = new Set<string>();
  for (const item of Array.isArray(input) ? input : []) {
    if (!isObject(item) || typeof item['id'] !== 'string') continue;
    if (isReference(item) || isStoredReasoning(item)) ids.add(item['id']);
  }
  return [...ids];
}

function isStoredReasoning({ type, encrypted_content: value }: JsonObject): boolean {
  return type === 'reasoning' && (typeof value !== 'string' || value === '');
}

/** For one request. What is returned throws `request_too_large`, and is undefined for what is in no turn or was named before. */
export function namedItems(turns: TurnsByItem, maxBytes: number): (id: string) => JsonObject | undefined {
  const read = new Map<PastTurn, Map<string, JsonObject>>();
  let bytes = 0;
  return (id) => {
    const turn = turns.get(id);
    if (turn === undefined) return undefined;
    let items = read.get(turn);
    if (items === undefined) {
      bytes += turn.output.bytes.length;
      if (bytes > maxBytes)
        throw new GatewayError('request_too_large', 'The items that the input refers to by id are too large together.', {
          param: 'input',
        });
      items = new Map(outputItems(turn).map((item) => [String(item['id']), item]));
      read.set(turn, items);
    }
    const item = items.get(id);
    items.delete(id);
    return item;
  };
}
