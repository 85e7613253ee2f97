/**
 * Pairs tool results with their calls. Vendors refuse a history in which a call has no result, a result has no call, or something
 * stands between the two. Clients send such histories after an interruption, a retry or a summary of their own.
 */
import type { RequestFeature } from '../canonical/features.ts';
import type { Item, ToolCallItem, ToolResultItem } from '../canonical/item.ts';
import { endsStep, type Steps } from '../steps.ts';

/**
 * Results by their call, in the order in which the calls were first answered. A result belongs to the nearest earlier call with
 * its id (turns may reuse ids), else to the first later one. Of several results for one call the last counts. Where one answer
 * has several calls with one id (some servers use the tool's name), they take its results in order. Calls and results without a
 * counterpart are left out.
 */
export function* pairCalls(items: readonly Item[]): Steps<ReadonlyMap<ToolCallItem, ToolResultItem>> {
  const pairs: Pair[] = [];
  const groups: SameIdCalls[] = [];
  const latest = new Map<string, SameIdCalls>();
  const unclaimed = new Map<string, ToolResultItem>();
  let answer = 0;
  for (const [rank, item] of items.entries()) {
    if (endsStep(rank)) yield;
    if (!isOfModel(item)) answer += 1;
    if (item.kind === 'toolCall') {
      const known = latest.get(item.callId);
      const group = known?.answer === answer ? known : { answer, calls: [], results: [] };
      if (group !== known) groups.push(group);
      latest.set(item.callId, group);
      group.calls.push(item);
      const result = unclaimed.get(item.callId);
      if (result !== undefined) pairs.push({ rank, call: item, result });
      unclaimed.delete(item.callId);
    } else if (item.kind === 'toolResult') {
      const group = latest.get(item.callId);
      if (group === undefined) unclaimed.set(item.callId, item);
      else addResult(group, rank, item);
    }
  }
  yield;
  for (const { calls, results } of groups) {
    // If there are fewer results than calls, they belong to the last calls.
    const answered = results.length === 0 ? [] : calls.slice(-results.length);
    for (const [index, call] of answered.entries()) {
      const found = results[index];
      if (found !== undefined) pairs.push({ ...found, call });
    }
  }
  yield;
  pairs.sort((a, b) => a.rank - b.rank);
  yield;
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

/** The calls of one answer that share an id, and their results. */
interface SameIdCalls {
  readonly answer: number;
  readonly calls: ToolCallItem[];
  readonly results: Answered[];
}

function addResult({ calls, results }: SameIdCalls, rank: number, result: ToolResultItem): void {
  const replaced = results.length === calls.length ? results.pop() : undefined;
  results.push({ rank: replaced?.rank ?? rank, result });
}

/**
 * The items with every call answered once, directly after the turn that made it, and without calls and results that have no
 * counterpart (semantics 6.2.9); `reportLoss` is told of each. Calls of the last turn stay: they wait for their results, or for
 * the rest of a paused turn. Results of one turn keep their order. Calls of one turn that share an id get ids of their own.
 */
export function* withAnsweredCalls(
  items: readonly Item[],
  reportLoss: (feature: RequestFeature, item: Item) => void,
): Steps<readonly Item[]> {
  // Most conversations have no tools.
  if (!items.some(isOfCall)) return items;
  const pairs = yield* pairCalls(items);
  yield;
  const ranks = new Map([...pairs.keys()].map((call, rank) => [call, rank]));
  const answeredIds = new Set([...pairs.keys()].map((call) => call.callId));
  yield;
  const lastTurn = items.findLastIndex((item) => !isOfModel(item)) + 1;
  const kept: Item[] = [];
  const ownIds = new OwnIds(items);
  yield;
  let turn: ToolCallItem[] = [];
  let hasLostCall = false;
  const endTurn = () => {
    // Reasoning that led only to a lost call is lost with it (known failure R23).
    if (hasLostCall) while (kept.at(-1)?.kind === 'reasoning') kept.pop();
    hasLostCall = false;
    turn.sort((a, b) => (ranks.get(a) ?? 0) - (ranks.get(b) ?? 0));
    for (const call of turn) {
      const result = pairs.get(call);
      if (result !== undefined) kept.push(ownIds.ofResult(result, call));
    }
    turn = [];
    ownIds.endTurn();
  };
  for (const [index, item] of items.entries()) {
    if (endsStep(index)) yield;
    if (!isOfModel(item) || isAfterTurn(item, turn.at(-1))) endTurn();
    if (item.kind === 'toolResult') {
      // A result that a later one replaces is no loss.
      if (!answeredIds.has(item.callId)) reportLoss('tool result without a call', item);
    } else if (item.kind === 'toolCall' && !pairs.has(item) && index < lastTurn) {
      reportLoss('function call without a result', item);
      hasLostCall = true;
    } else {
      kept.push(item.kind === 'toolCall' ? ownIds.ofCall(item) : item);
      if (item.kind === 'toolCall') turn.push(item);
    }
  }
  endTurn();
  return kept;
}

function isOfCall({ kind }: Item): boolean {
  return kind === 'toolCall' || kind === 'toolResult';
}

/** Gives calls of one turn that share an id distinct ones. */
export class OwnIds {
  readonly #taken: Set<string>;
  readonly #given = new Map<ToolCallItem, string>();
  /** How many calls of the turn have each id. */
  readonly #uses = new Map<string, number>();

  constructor(items: readonly Item[]) {
    this.#taken = new Set(items.flatMap((item) => (item.kind === 'toolCall' ? [item.callId] : [])));
  }

  endTurn(): void {
    this.#uses.clear();
  }

  /** The call, with a new id if an earlier call of the turn has the same. */
  ofCall(call: ToolCallItem): ToolCallItem {
    let use = (this.#uses.get(call.callId) ?? 0) + 1;
    while (use > 1 && this.#taken.has(`${call.callId}_${use}`)) use += 1;
    this.#uses.set(call.callId, use);
    if (use === 1) return call;
    const callId = `${call.callId}_${use}`;
    this.#given.set(call, callId);
    return { ...call, callId };
  }

  /** The id that the call has by now. */
  idOf(call: ToolCallItem): string {
    return this.#given.get(call) ?? call.callId;
  }

  ofResult(result: ToolResultItem, call: ToolCallItem): ToolResultItem {
    const callId = this.#given.get(call);
    return callId === undefined ? result : { ...result, callId };
  }
}

/**
 * True for an item of another source message than the call before it, unless it is a call, a text or reasoning. Those belong to
 * the same answer: after the results, a text would be an answer that the model continues, and reasoning must stay where its owner
 * put it.
 */
function isAfterTurn(item: Item, call: ToolCallItem | undefined): boolean {
  if (item.kind === 'toolCall' || item.kind === 'text' || item.kind === 'reasoning') return false;
  return call !== undefined && item.turn !== call.turn;
}

/** True for items that the model made. */
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
