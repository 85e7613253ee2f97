/**
 * Items that one request names by their ids alone. Each is said once, as its answer said it, and all of them are no more than one stored
 * conversation may be: a reference is short, and what it stands for is not.
 */
import { GatewayError } from '../../codecs/canonical/error.ts';
import type { JsonObject } from '../../codecs/canonical/json.ts';
import { outputItems, type PastTurn } from './past-turn.ts';

/** For one request. What is returned throws `request_too_large`, and is undefined for what nobody remembers or was named before. */
export function namedItems(
  turnOf: (itemId: string) => PastTurn | undefined,
  maxBytes: number,
): (id: string) => JsonObject | undefined {
  const read = new Map<PastTurn, Map<string, JsonObject>>();
  let bytes = 0;
  return (id) => {
    const turn = turnOf(id);
    if (turn === undefined) return undefined;
    let items = read.get(turn);
    if (items === undefined) {
      bytes += turn.output.bytes.length;
      if (bytes > maxBytes)
        throw new GatewayError('request_too_large', 'The input names more than may be kept of a conversation.', {
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
