/** Which tool result answers which call. The protocol wants every call answered, at once, in the next content. */
import type { Item, ToolCallItem, ToolResultItem } from '../canonical/item.ts';

/**
 * Results by their call. A result belongs to the nearest earlier call of its id (the same id may be used in several turns),
 * else to the first later one; of several results for one call the last counts. Calls without a result, and results without
 * a call, are in no pair.
 */
export function pairCalls(items: readonly Item[]): ReadonlyMap<ToolCallItem, ToolResultItem> {
  const pairs = new Map<ToolCallItem, ToolResultItem>();
  const latest = new Map<string, ToolCallItem>();
  const early = new Map<string, ToolResultItem>();
  for (const item of items) {
    if (item.kind === 'toolCall') {
      latest.set(item.callId, item);
      const result = early.get(item.callId);
      if (result !== undefined) pairs.set(item, result);
      early.delete(item.callId);
    } else if (item.kind === 'toolResult') {
      const call = latest.get(item.callId);
      if (call === undefined) early.set(item.callId, item);
      else pairs.set(call, item);
    }
  }
  return pairs;
}
