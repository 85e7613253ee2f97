/**
 * Resolves items that a request names only by id to the items as their answer had them, each once. Together they may be as large
 * as one stored conversation: a short reference can stand for a large item.
 */
import { GatewayError } from '../../codecs/canonical/error.ts';
import { isObject, type JsonObject } from '../../codecs/canonical/json.ts';
import { scanJson } from '../../codecs/json/scan.ts';
import { isReference } from '../../codecs/responses/request/decode-input.ts';
import type { TurnsByItem } from './memory.ts';
import { outputItems, type PastTurn } from './past-turn.ts';

/** Ids of input items without their content: references, and stored reasoning without its encrypted value. Each once. */
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

/** What the items that one request names may have together. */
export interface NamedBounds {
  readonly maxBytes: number;
  readonly maxValues: number;
}

/** How many JSON values the output has, found before it is parsed; infinitely many where there are more than `most`. */
function valuesIn({ output }: PastTurn, most: number): number {
  const figures = scanJson(`[${output.bytes.toString()}]`, { depth: Infinity, values: most, members: Infinity });
  return typeof figures === 'string' ? Infinity : figures.values;
}

/**
 * A lookup for one request. It throws `request_too_large`, and returns undefined for an unknown item and for one that was named
 * before.
 */
export function namedItems(turns: TurnsByItem, { maxBytes, maxValues }: NamedBounds): (id: string) => JsonObject | undefined {
  const read = new Map<PastTurn, Map<string, JsonObject>>();
  let bytes = 0;
  let values = 0;
  return (id) => {
    const turn = turns.get(id);
    if (turn === undefined) return undefined;
    let items = read.get(turn);
    if (items === undefined) {
      bytes += turn.output.bytes.length;
      if (bytes <= maxBytes) values += valuesIn(turn, maxValues - values);
      if (bytes > maxBytes || values > maxValues)
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
