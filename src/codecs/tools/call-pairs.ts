/**
 * Which tool result answers which call. Vendors refuse a history in which a call has no result, a result has no call, or
 * something stands between the two; clients send such histories after an interruption, a retry or a summary of their own.
 */
import type { RequestFeature } from '../canonical/features.ts';
import type { Item, ToolCallItem, ToolResultItem } from '../canonical/item.ts';

/**
 * Results by their call. A result belongs to the nearest earlier call of its id (the same id may be used in several turns),
 * else to the first later one; of several results for one call the last counts. Where one answer holds several calls of one id
 * (servers that have names for ids), its results are theirs in order. Calls without a result, and results without a call, are in no
 * pair. In the order in which the calls were first answered.
 */
export function pairCalls(items: readonly Item[]): ReadonlyMap<ToolCallItem, ToolResultItem> {
  const pairs: Pair[] = [];
  const groups: Namesakes[] = [];
  const latest = new Map<string, Namesakes>();
  const early = new Map<string, ToolResultItem>();
  let answer = 0;
  for (const [rank, item] of items.entries()) {
    if (!isOfModel(item)) answer += 1;
    if (item.kind === 'toolCall') {
      const known = latest.get(item.callId);
      const group = known?.answer === answer ? known : { answer, calls: [], results: [] };
      if (group !== known) groups.push(group);
      latest.set(item.callId, group);
      group.calls.push(item);
      const result = early.get(item.callId);
      if (result !== undefined) pairs.push({ rank, call: item, result });
      early.delete(item.callId);
    } else if (item.kind === 'toolResult') {
      const group = latest.get(item.callId);
      if (group === undefined) early.set(item.callId, item);
      else addResult(group, rank, item);
    }
  }
  for (const { calls, results } of groups) {
    // Fewer results than calls are those of the last calls.
    const answered = results.length === 0 ? [] : calls.slice(-results.length);
    for (const [index, call] of answered.entries()) {
      const found = results[index];
      if (found !== undefined) pairs.push({ ...found, call });
    }
  }
  pairs.sort((a, b) => a.rank - b.rank);
  return new Map(pairs.map(({ call, result }) => [call, result]));
}

interface Answered {
  /** Where the call was first answered. */
  readonly rank: number;
  readonly result: ToolResultItem;
}

interface Pair extends Answered {
  readonly call: ToolCallItem;
}

/** The calls of one answer that share an id, and what answered them. */
interface Namesakes {
  readonly answer: number;
  readonly calls: ToolCallItem[];
  readonly results: Answered[];
}

function addResult({ calls, results }: Namesakes, rank: number, result: ToolResultItem): void {
  const replaced = results.length === calls.length ? results.pop() : undefined;
  results.push({ rank: replaced?.rank ?? rank, result });
}

/**
 * The items with every call answered once, right behind the turn that made it, and without what has no counterpart (semantics
 * 6.2.9); `lose` hears of each loss. Calls of a turn that nothing follows stay: they wait for their results, or for the rest of a
 * paused turn. Results of one turn keep their order among themselves. Calls of one turn that share an id get ids of their own.
 */
export function withAnsweredCalls(items: readonly Item[], lose: (feature: RequestFeature, item: Item) => void): Item[] {
  const pairs = pairCalls(items);
  const ranks = new Map([...pairs.keys()].map((call, rank) => [call, rank]));
  const answeredIds = new Set([...pairs.keys()].map((call) => call.callId));
  const lastTurn = items.findLastIndex((item) => !isOfModel(item)) + 1;
  const settled: Item[] = [];
  const ownIds = new OwnIds(items);
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
    } else {
      settled.push(item.kind === 'toolCall' ? ownIds.ofCall(item) : item);
      if (item.kind === 'toolCall') turn.push(item);
    }
  }
  endTurn();
  return settled;
}

/** No vendor can tell two calls of one turn apart by one id. */
class OwnIds {
  readonly #taken: Set<string>;
  readonly #given = new Map<ToolCallItem, string>();
  /** How often each id was said in the turn. */
  readonly #uses = new Map<string, number>();

  constructor(items: readonly Item[]) {
    this.#taken = new Set(items.flatMap((item) => (item.kind === 'toolCall' ? [item.callId] : [])));
  }

  endTurn(): void {
    this.#uses.clear();
  }

  /** The call, under an id of its own where a call before it in the turn has the same. */
  ofCall(call: ToolCallItem): ToolCallItem {
    let use = (this.#uses.get(call.callId) ?? 0) + 1;
    while (use > 1 && this.#taken.has(`${call.callId}_${use}`)) use += 1;
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
