/**
 * The items of an upstream's terminal event against what its client has read. An item that stands only there, or of which only
 * a beginning was streamed, gets its missing events first: agents build their answer from item events alone (design, decisions),
 * be it an item that only the vendor can read.
 */
import { isObject, type JsonObject, type JsonValue, parseJson } from '../canonical/json.ts';
import type { Outcome } from '../canonical/outcome.ts';
import type { Mint } from '../codec.ts';
import { sliceElements } from '../json/text.ts';
import { type RepeatedItem, repeatedItems, unusedIndex } from './repeated.ts';
import { announceItem, sayItem } from './say-item.ts';
import { closeItem, type Emit, type ToldItem } from './told.ts';
import { missingId, nonEmptyString } from './wire.ts';

/** An item as the client read it, for the comparison with those of the terminal. */
interface Streamed {
  readonly outputIndex: number;
  readonly type: string;
  readonly item: JsonObject;
  readonly told: ToldItem;
}

/** True when the terminal's `response` says more of its items than was streamed, or less. */
export function owesItems(told: ReadonlyMap<number, ToldItem>, response: JsonObject, outcome: Outcome): boolean {
  const output = Array.isArray(response['output']) ? response['output'] : [];
  const isSame = (item: JsonValue, index: number) => {
    const known = told.get(index);
    if (known === undefined || !isObject(item)) return false;
    return known.type === item['type'] && !isRenamed(item, known, outcome.status !== 'completed');
  };
  if (output.length !== told.size || !output.every(isSame)) return true;
  return [...told.values()].some((item) => item.final === undefined);
}

/**
 * The terminal knows the item by other ids than the client does, or by none. Of a finished item that is no call SDKs take another
 * id where all is complete (routers give new ones); `isStrict` where they do not.
 */
function isRenamed(item: JsonObject, told: ToldItem, isStrict: boolean): boolean {
  const callId = told.announced['call_id'];
  if (callId !== undefined && callId !== item['call_id']) return true;
  const isOther = isStrict || callId !== undefined ? item['id'] !== told.id : nonEmptyString(item, 'id') === undefined;
  return told.id !== '' && isOther;
}

/** The item as the terminal has it, by the ids that the client knows. */
function asTold(item: JsonObject, { id, announced }: ToldItem): JsonObject {
  const callId = announced['call_id'];
  return { ...item, id, ...(callId === undefined ? {} : { call_id: callId }) };
}

/**
 * Says what is missing and returns the JSON text that `response.output` must have instead of its own, undefined where its own
 * is right. `text` is the terminal event as the client will read it. What a failure leaves out of its output is kept
 * (spec rule 8).
 */
export function settleItems(
  told: Map<number, ToldItem>,
  text: string,
  outcome: Outcome,
  emit: Emit,
  mint: Mint,
): string | undefined {
  const listed = sliceElements(text, ['response', 'output']) ?? [];
  return new Settlement(told, listed, outcome.status !== 'completed', emit, mint).run();
}

type Listed = RepeatedItem<Streamed>;

class Settlement {
  readonly #told: Map<number, ToldItem>;
  /** The items of the terminal, as their own text. */
  readonly #listed: readonly string[];
  readonly #isCut: boolean;
  readonly #emit: Emit;
  readonly #mint: Mint;
  /** What the client is to find in `output`, by output index; undefined: left out. */
  readonly #finals = new Map<number, string | undefined>();
  /** The terminal leaves an item out, names an item otherwise than the client knows it, or lists them in another order. */
  #isAmended = false;
  /** Where the item that was settled last stands in the terminal's list. */
  #latest = -1;

  constructor(told: Map<number, ToldItem>, listed: readonly string[], isCut: boolean, emit: Emit, mint: Mint) {
    this.#told = told;
    this.#listed = listed;
    this.#isCut = isCut;
    this.#emit = emit;
    this.#mint = mint;
  }

  run(): string | undefined {
    const streamed = new Map([...this.#told].map(([index, item]) => [index, streamedOf(item)]));
    const { found } = repeatedItems(
      this.#listed.map((item) => parseJson(item)),
      streamed,
    );
    const matched = new Map(found.flatMap((entry) => (entry.slot === undefined ? [] : [[entry.slot.told, entry] as const])));
    for (const item of [...this.#told.values()].sort((a, b) => a.outputIndex - b.outputIndex)) {
      this.#settle(item, matched.get(item));
    }
    for (const entry of found) if (entry.slot === undefined) this.#introduce(entry);
    const isComplete = this.#listed.length === this.#finals.size || (this.#listed.length > 0 && !this.#isCut);
    if (isComplete && !this.#isAmended) return undefined;
    const inOrder = [...this.#finals].sort(([a], [b]) => a - b).flatMap(([, final]) => (final === undefined ? [] : [final]));
    return `[${inOrder.join(',')}]`;
  }

  /** An item that the client knows, and what the terminal has of it. */
  #settle(item: ToldItem, entry: Listed | undefined): void {
    const isSaid = item.final !== undefined;
    const isOurs = entry === undefined || isRenamed(entry.item, item, this.#isCut || !isSaid);
    if (!isSaid) this.#finish(item, entry, isOurs);
    this.#finals.set(item.outputIndex, isOurs ? item.final : this.#listed[entry.position]);
    this.#isAmended ||= isOurs;
    if (entry === undefined) return;
    // The list has the order in which the client met its items.
    this.#isAmended ||= entry.position < this.#latest;
    this.#latest = entry.position;
  }

  /** Says the rest of an item that was announced. */
  #finish(item: ToldItem, entry: Listed | undefined, isOurs: boolean): void {
    if (entry === undefined) {
      closeItem(item, this.#isCut ? 'incomplete' : 'completed', this.#emit);
    } else {
      const final = isOurs ? asTold(entry.item, item) : entry.item;
      sayItem(item, final, isOurs ? JSON.stringify(final) : this.#textOf(entry), this.#emit);
    }
  }

  /** An item that stands only in the terminal. */
  #introduce(entry: Listed): void {
    const id = missingId(entry.item, this.#mint);
    const final = id === undefined ? entry.item : { ...entry.item, id };
    this.#isAmended ||= id !== undefined;
    const item = announceItem(unusedIndex(this.#told, entry.position), final, this.#emit);
    this.#told.set(item.outputIndex, item);
    sayItem(item, final, id === undefined ? this.#textOf(entry) : JSON.stringify(final), this.#emit);
    this.#finals.set(item.outputIndex, item.final);
  }

  #textOf({ position }: Listed): string {
    return this.#listed[position] ?? 'null';
  }
}

function streamedOf(told: ToldItem): Streamed {
  const final = told.final === undefined ? undefined : parseJson(told.final);
  return { outputIndex: told.outputIndex, type: told.type, item: isObject(final) ? final : told.announced, told };
}
