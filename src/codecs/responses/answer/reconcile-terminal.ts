/**
 * Reconciles the output of an upstream's terminal event with the items that its client was sent. An item that only the terminal
 * has, or that was not streamed to its end, gets its missing events first, since agents build their answer from item events alone
 * (design, decisions). That holds for native items too.
 */
import { isObject, type JsonObject, type JsonValue, parseJson } from '../../canonical/json.ts';
import type { Outcome } from '../../canonical/outcome.ts';
import type { Mint } from '../../codec.ts';
import { sliceElements } from '../../json/text.ts';
import { type MatchedItem, matchOutput, unusedIndices } from './match-output.ts';
import { announceItem, emitItem } from './emit-item.ts';
import { closeItem, type Emit, type SentItem } from './sent-items.ts';
import { missingId, nonEmptyString } from '../wire.ts';

/** An item as it was sent, to be matched with those of the terminal. */
interface Streamed {
  readonly outputIndex: number;
  readonly type: string;
  readonly item: JsonObject;
  readonly sent: SentItem;
}

/** True when the items of the terminal's `response` are not those that were sent, under the same ids and finished. */
export function needsReconciling(sent: ReadonlyMap<number, SentItem>, response: JsonObject, outcome: Outcome): boolean {
  const output = Array.isArray(response['output']) ? response['output'] : [];
  const isSame = (item: JsonValue, index: number) => {
    const known = sent.get(index);
    if (known === undefined || !isObject(item)) return false;
    return known.type === item['type'] && !isRenamed(item, known, outcome.status !== 'completed');
  };
  if (output.length !== sent.size || !output.every(isSame)) return true;
  return [...sent.values()].some((item) => item.final === undefined);
}

/**
 * True when the terminal has the item under other ids than the client, or under none. SDKs accept another id for a finished item
 * that is no call when the answer is complete (routers give new ones). `isStrict`: where they do not.
 */
function isRenamed(item: JsonObject, sent: SentItem, isStrict: boolean): boolean {
  const callId = sent.announced['call_id'];
  if (callId !== undefined && callId !== item['call_id']) return true;
  const isOther = isStrict || callId !== undefined ? item['id'] !== sent.id : nonEmptyString(item, 'id') === undefined;
  return sent.id !== '' && isOther;
}

/** The item as the terminal has it, under the ids that the client knows. */
function withSentIds(item: JsonObject, { id, announced }: SentItem): JsonObject {
  const callId = announced['call_id'];
  return { ...item, id, ...(callId === undefined ? {} : { call_id: callId }) };
}

/**
 * Sends the missing events. Returns the JSON text that must replace `response.output`, or undefined where that is right. `text`
 * is the terminal event as the client will read it. Items that a failure leaves out of its output are kept (spec rule 8).
 */
export function reconcileItems(
  sent: Map<number, SentItem>,
  text: string,
  outcome: Outcome,
  emit: Emit,
  mint: Mint,
): string | undefined {
  const listed = sliceElements(text, ['response', 'output']) ?? [];
  return new Reconciliation(sent, listed, outcome.status !== 'completed', emit, mint).run();
}

type Listed = MatchedItem<Streamed>;

class Reconciliation {
  readonly #sent: Map<number, SentItem>;
  /** The items of the terminal, as their own text. */
  readonly #listed: readonly string[];
  readonly #isCut: boolean;
  readonly #emit: Emit;
  readonly #mint: Mint;
  /** The items of the new `output` as JSON text, by output index; undefined: left out. */
  readonly #finals = new Map<number, string | undefined>();
  /** The terminal leaves an item out, has an item under other ids, or lists the items in another order. */
  #isAmended = false;
  /** The position in the terminal's list of the item that was reconciled last. */
  #latest = -1;

  constructor(sent: Map<number, SentItem>, listed: readonly string[], isCut: boolean, emit: Emit, mint: Mint) {
    this.#sent = sent;
    this.#listed = listed;
    this.#isCut = isCut;
    this.#emit = emit;
    this.#mint = mint;
  }

  run(): string | undefined {
    const streamed = new Map([...this.#sent].map(([index, item]) => [index, streamedOf(item)]));
    const { found } = matchOutput(
      this.#listed.map((item) => parseJson(item)),
      streamed,
    );
    const matched = new Map(
      found.flatMap((entry) => (entry.streamed === undefined ? [] : [[entry.streamed.sent, entry] as const])),
    );
    for (const item of [...this.#sent.values()].sort((a, b) => a.outputIndex - b.outputIndex)) {
      this.#reconcile(item, matched.get(item));
    }
    const indexAt = unusedIndices(this.#sent);
    for (const entry of found) if (entry.streamed === undefined) this.#introduce(entry, indexAt(entry.position));
    const isComplete = this.#listed.length === this.#finals.size || (this.#listed.length > 0 && !this.#isCut);
    if (isComplete && !this.#isAmended) return undefined;
    const inOrder = [...this.#finals].sort(([a], [b]) => a - b).flatMap(([, final]) => (final === undefined ? [] : [final]));
    return `[${inOrder.join(',')}]`;
  }

  /** `entry`: the item as the terminal has it. */
  #reconcile(item: SentItem, entry: Listed | undefined): void {
    const isFinished = item.final !== undefined;
    const isRewritten = entry === undefined || isRenamed(entry.item, item, this.#isCut || !isFinished);
    if (!isFinished) this.#finish(item, entry, isRewritten);
    this.#finals.set(item.outputIndex, isRewritten ? item.final : this.#listed[entry.position]);
    this.#isAmended ||= isRewritten;
    if (entry === undefined) return;
    // The new list has the order in which the items were announced to the client.
    this.#isAmended ||= entry.position < this.#latest;
    this.#latest = entry.position;
  }

  /** Sends the rest of an item that is open. */
  #finish(item: SentItem, entry: Listed | undefined, isRewritten: boolean): void {
    if (entry === undefined) {
      closeItem(item, this.#isCut ? 'incomplete' : 'completed', this.#emit);
    } else {
      const final = isRewritten ? withSentIds(entry.item, item) : entry.item;
      emitItem(item, final, isRewritten ? JSON.stringify(final) : this.#textOf(entry), this.#emit);
    }
  }

  /** Sends an item that only the terminal has. */
  #introduce(entry: Listed, index: number): void {
    const id = missingId(entry.item, this.#mint);
    const final = id === undefined ? entry.item : { ...entry.item, id };
    this.#isAmended ||= id !== undefined;
    const item = announceItem(index, final, this.#emit);
    this.#sent.set(item.outputIndex, item);
    emitItem(item, final, id === undefined ? this.#textOf(entry) : JSON.stringify(final), this.#emit);
    this.#finals.set(item.outputIndex, item.final);
  }

  #textOf({ position }: Listed): string {
    return this.#listed[position] ?? 'null';
  }
}

function streamedOf(sent: SentItem): Streamed {
  const final = sent.final === undefined ? undefined : parseJson(sent.final);
  return { outputIndex: sent.outputIndex, type: sent.type, item: isObject(final) ? final : sent.announced, sent };
}
