/**
 * Which tool result answers which call. Vendors refuse a history in which a call has no result, a result has no call, or
 * something stands between the two; clients send such histories after an interruption, a retry or a summary of their own.
 */
import type { RequestFeature } from './canonical/features.ts';
import type { Item, ToolCallItem, ToolResultItem } from './canonical/item.ts';

/** Calls of one answer that have one id, as models give it that number their calls badly. */
interface Namesakes {
  readonly calls: ToolCallItem[];
  /** Which answer of the model they stand in. */
  readonly answer: number;
  /** How many of them have a result. */
  answered: number;
}

/**
 * Results by their call. A result belongs to the nearest earlier call of its id (the same id may be used in several turns),
 * else to the first later one; calls of one turn that share an id are answered one after another. Of several results for one call
 * the last counts. Calls without a result, and results without a call, are in no pair. In the order in which the calls were first answered.
 */
export function pairCalls(items: readonly Item[]): ReadonlyMap<ToolCallItem, ToolResultItem> {
  const pairs = new Map<ToolCallItem, ToolResultItem>();
  const latest = new Map<string, Namesakes>();
  const early = new Map<string, ToolResultItem>();
  let answer = 0;
  for (const item of items) {
    if (!isOfModel(item)) answer += 1;
    if (item.kind === 'toolCall') {
      const known = latest.get(item.callId);
      if (known?.answer === answer) known.calls.push(item);
      else latest.set(item.callId, { calls: [item], answer, answered: 0 });
      const result = early.get(item.callId);
      if (result !== undefined) pairs.set(item, result);
      early.delete(item.callId);
    } else if (item.kind === 'toolResult') {
      const asked = latest.get(item.callId);
      const call = asked?.calls[asked.answered] ?? asked?.calls.at(-1);
      if (asked === undefined || call === undefined) early.set(item.callId, item);
      else pairs.set(call, item);
      if (asked !== undefined) asked.answered += 1;
    }
  }
  return pairs;
}

/**
 * The items with every call answered once, right behind the turn that made it, and without what has no counterpart (semantics
 * 6.2.9); `lose` hears of each loss. Calls of a turn that nothing follows stay: they wait for their results, or for the rest of a
 * paused turn. Results of one turn keep their order among themselves. A call whose id another one of its turn has gets one of its own.
 */
export function withAnsweredCalls(items: readonly Item[], lose: (feature: RequestFeature, item: Item) => void): Item[] {
  const pairs = pairCalls(items);
  const ranks = new Map([...pairs.keys()].map((call, rank) => [call, rank]));
  const answeredIds = new Set([...pairs.keys()].map((call) => call.callId));
  const lastTurn = items.findLastIndex((item) => !isOfModel(item)) + 1;
  const settled: Item[] = [];
  const ownIds = new OwnIds();
  let turn: ToolCallItem[] = [];
  let hasLostCall = false;
  const endTurn = () => {
    // Reasoning that led to nothing but a lost call goes with it (known failure R23).
    if (hasLostCall) while (settled.at(-1)?.kind === 'reasoning') settled.pop();
    hasLostCall = false;
    turn.sort((a, b) => (ranks.get(a) ?? 0) - (ranks.get(b) ?? 0));
    for (const call of turn) {
      const result = pairs.get(call);
      if (result !== undefined) settled.push(ownIds.ofResult(result, call));
    }
    turn = [];
    ownIds.endTurn();
  };
  for (const [index, item] of items.entries()) {
    if (!isOfModel(item) || isBehind(item, turn.at(-1))) endTurn();
    if (item.kind === 'toolResult') {
      // One that a later one replaced is no loss.
      if (!answeredIds.has(item.callId)) lose('tool result without a call', item);
    } else if (item.kind === 'toolCall' && !pairs.has(item) && index < lastTurn) {
      lose('function call without a result', item);
      hasLostCall = true;
    } else if (item.kind === 'toolCall') {
      settled.push(ownIds.ofCall(item));
      turn.push(item);
    } else {
      settled.push(item);
    }
  }
  endTurn();
  return settled;
}

/** Ids that tell the calls of one turn apart; the same history always gets the same ones. */
class OwnIds {
  readonly #uses = new Map<string, number>();
  readonly #given = new Map<ToolCallItem, string>();

  ofCall(call: ToolCallItem): ToolCallItem {
    const use = (this.#uses.get(call.callId) ?? 0) + 1;
    this.#uses.set(call.callId, use);
    if (use === 1) return call;
    const callId = `${call.callId}_${use}`;
    this.#given.set(call, callId);
    return { ...call, callId };
  }

  ofResult(result: ToolResultItem, call: ToolCallItem): ToolResultItem {
    const callId = this.#given.get(call);
    return callId === undefined ? result : { ...result, callId };
  }

  endTurn(): void {
    this.#uses.clear();
    this.#given.clear();
  }
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
