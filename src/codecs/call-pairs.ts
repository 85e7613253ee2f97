/**
 * Which tool result answers which call. Vendors refuse a history in which a call has no result, a result has no call, or
 * something stands between the two; clients send such histories after an interruption, a retry or a summary of their own.
 */
import type { RequestFeature } from './canonical/features.ts';
import type { Item, ToolCallItem, ToolResultItem } from './canonical/item.ts';

/**
 * Results by their call. A result belongs to the nearest earlier call of its id (the same id may be used in several turns),
 * else to the first later one; of several results for one call the last counts. Calls without a result, and results without
 * a call, are in no pair. In the order in which the calls were first answered.
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

/**
 * The items with every call answered once, right behind the turn that made it, and without what has no counterpart (semantics
 * 6.2.9); `lose` hears of each loss. Calls of a turn that nothing follows stay: they wait for their results, or for the rest of a
 * paused turn. Results of one turn keep their order among themselves.
 */
export function withAnsweredCalls(items: readonly Item[], lose: (feature: RequestFeature, item: Item) => void): Item[] {
  const pairs = pairCalls(items);
  const ranks = new Map([...pairs.keys()].map((call, rank) => [call, rank]));
  const answeredIds = new Set([...pairs.keys()].map((call) => call.callId));
  const lastTurn = items.findLastIndex((item) => !isOfModel(item)) + 1;
  const settled: Item[] = [];
  let turn: ToolCallItem[] = [];
  let hasLostCall = false;
  const endTurn = () => {
    // Reasoning that led to nothing but a lost call goes with it (known failure R23).
    if (hasLostCall) while (settled.at(-1)?.kind === 'reasoning') settled.pop();
    hasLostCall = false;
    turn.sort((a, b) => (ranks.get(a) ?? 0) - (ranks.get(b) ?? 0));
    for (const call of turn) {
      const result = pairs.get(call);
      if (result !== undefined) settled.push(result);
    }
    turn = [];
  };
  for (const [index, item] of items.entries()) {
    if (!isOfModel(item) || isBehind(item, turn.at(-1))) endTurn();
    if (item.kind === 'toolResult') {
      // One that a later one replaced is no loss.
      if (!answeredIds.has(item.callId)) lose('tool result without a call', item);
    } else if (item.kind === 'toolCall' && !pairs.has(item) && index < lastTurn) {
      lose('function call without a result', item);
      hasLostCall = true;
    } else {
      settled.push(item);
      if (item.kind === 'toolCall') turn.push(item);
    }
  }
  endTurn();
  return settled;
}

/**
 * What began after the call, in a message or item of its own. More calls, and what the model said or thought beside them, are the
 * same answer still: behind the results those words would be an answer to be continued, and thinking between calls comes back
 * where its owner said it.
 */
function isBehind(item: Item, call: ToolCallItem | undefined): boolean {
  if (item.kind === 'toolCall' || item.kind === 'text' || item.kind === 'reasoning') return false;
  return call !== undefined && item.turn !== call.turn;
}

/** True for what the model itself said. */
export function isOfModel(item: Item): boolean {
  switch (item.kind) {
    case 'text':
    case 'media':
      return item.role === 'assistant';
    case 'toolResult':
      return false;
    case 'native':
      return item.role === undefined || item.role === 'assistant';
    default:
      return true;
  }
}
