/**
 * Thought signatures: which part of an answer carried each one, and how it returns to that part in a later request.
 *
 * A signature is opaque and tied to its part. `Opaque.form` names that part: `text` or `thought` (with `:start:end` in code units
 * where it covered only a piece of the item's text, which may be empty), `thought+empty` (an empty text part after the thought),
 * `functionCall`, `inlineData`, or `empty` (an empty part of its own). Clients that cannot keep a signature on a text or a call
 * return it in a reasoning item of its own: such a signature is called detached, and its form tells to which item it belongs.
 */
import { isOfModel } from '../tools/call-pairs.ts';
import type { Item, ReasoningItem } from '../canonical/item.ts';
import type { Opaque, Owner } from '../canonical/opaque.ts';
import type { Target } from '../codec.ts';
import { mayReplay } from '../requests/opaque-replay.ts';
import type { Part } from './wire.ts';

/** The vendor's documented value for calls that another model made. */
export const FOREIGN_CALL_SIGNATURE = 'skip_thought_signature_validator';

/** The piece of its item's text that a signature covers, in code units. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

export function sign(owner: Owner, value: string, form: string, itemId?: string): Opaque {
  return { owner, value, form, ...(itemId === undefined ? {} : { itemId }) };
}

/** The form of a signature that covered `span` of a text of `length` code units. */
export function formOf(kind: 'text' | 'thought', span: Span, length: number): string {
  return span.start === 0 && span.end === length ? kind : `${kind}:${span.start}:${span.end}`;
}

/** The kind of part that a form names; a thought where a form is missing. */
function kindOfForm(form: string | undefined): string {
  return form?.split(':')[0] ?? 'thought';
}

/** The text as parts, with the signature on the piece that it covers. A span that no longer fits covers the whole text. */
export function signedText(kind: 'text' | 'thought', text: string, opaque: Opaque | undefined): Part[] {
  const part = (piece: string): Part => (kind === 'thought' ? { text: piece, thought: true } : { text: piece });
  const plain = (piece: string): Part[] => (piece === '' ? [] : [part(piece)]);
  if (opaque === undefined) return plain(text);
  const signed = (piece: string): Part => ({ ...part(piece), thoughtSignature: opaque.value });
  if (opaque.form === 'thought+empty') return [...plain(text), { text: '', thoughtSignature: opaque.value }];
  const span = spanOf(opaque.form);
  if (span === undefined || span.end > text.length) return [signed(text)];
  return [...plain(text.slice(0, span.start)), signed(text.slice(span.start, span.end)), ...plain(text.slice(span.end))];
}

function spanOf(form: string | undefined): Span | undefined {
  const match = /^(?:text|thought):(\d+):(\d+)$/.exec(form ?? '');
  if (match === null) return undefined;
  const span = { start: Number(match[1]), end: Number(match[2]) };
  return span.start <= span.end ? span : undefined;
}

/** The signatures in one request that its target may receive, by the item that each belongs to. */
export class Signatures {
  readonly #target: Target;
  readonly #byItem = new Map<Item, Opaque>();
  /** Items whose detached signature was given to the item that it belongs to. */
  readonly #reattached = new Set<ReasoningItem>();
  /** True when a value of another owner was left out. */
  readonly droppedForeign: boolean;

  constructor(items: readonly Item[], target: Target) {
    this.#target = target;
    this.droppedForeign = items.some((item) => this.isForeign(item));
    for (const item of items) {
      const opaque = this.#ownOf(item);
      if (opaque !== undefined && !isDetached(item, opaque)) this.#byItem.set(item, opaque);
    }
    const signed = new SignedItems(items);
    for (const [at, item] of items.entries()) {
      signed.pass(item);
      const opaque = item.kind === 'reasoning' ? this.#ownOf(item) : undefined;
      if (item.kind !== 'reasoning' || opaque === undefined || !isDetached(item, opaque)) continue;
      const owner = signed.itemOf(opaque, at);
      if (owner === undefined) continue;
      this.#reattached.add(item);
      if (!this.#byItem.has(owner)) this.#byItem.set(owner, opaque);
    }
  }

  of(item: Item): Opaque | undefined {
    return this.#byItem.get(item);
  }

  /** The signature of a reasoning item's own part; undefined where it was given to another item. */
  ofReasoning(item: ReasoningItem): Opaque | undefined {
    return this.#reattached.has(item) ? undefined : this.#ownOf(item);
  }

  /** True for an item whose value the target may not receive. A vendor checks value and text together, so neither is sent. */
  isForeign(item: Item): boolean {
    return 'opaque' in item && item.opaque !== undefined && this.#ownOf(item) === undefined;
  }

  #ownOf(item: Item): Opaque | undefined {
    if (!('opaque' in item) || item.opaque === undefined) return undefined;
    return mayReplay(item.opaque, this.#target, 'gemini') ? item.opaque : undefined;
  }
}

type SignedKind = 'text' | 'toolCall' | 'media';

/** Finds the items that detached signatures belong to: the call that they name, else the nearest item of their kind. */
class SignedItems {
  readonly #items: readonly Item[];
  /** The calls so far by id; of several with one id, the latest. */
  readonly #calls = new Map<string, Item>();
  /** The first call of each id in the whole request; made when it is first needed. */
  #firstCalls: ReadonlyMap<string, Item> | undefined;
  readonly #neighbours = new Map<SignedKind, readonly (Item | undefined)[]>();

  constructor(items: readonly Item[]) {
    this.#items = items;
  }

  /** Must be called for every item, in order. */
  pass(item: Item): void {
    if (item.kind === 'toolCall') this.#calls.set(item.callId, item);
  }

  /** `at`: the index of the reasoning item that holds the signature. */
  itemOf(opaque: Opaque, at: number): Item | undefined {
    const kind = kindOfForm(opaque.form);
    if (kind === 'functionCall') return this.#call(opaque.itemId) ?? this.#neighbour('toolCall', at);
    if (kind === 'text') return this.#neighbour('text', at);
    return kind === 'inlineData' ? this.#neighbour('media', at) : undefined;
  }

  #call(id: string | undefined): Item | undefined {
    if (id === undefined) return undefined;
    this.#firstCalls ??= new Map(
      this.#items.toReversed().flatMap((item) => (item.kind === 'toolCall' ? [[item.callId, item]] : [])),
    );
    return this.#calls.get(id) ?? this.#firstCalls.get(id);
  }

  #neighbour(kind: SignedKind, at: number): Item | undefined {
    const known = this.#neighbours.get(kind) ?? neighboursOf(this.#items, kind);
    this.#neighbours.set(kind, known);
    return known[at];
  }
}

/** For each item the nearest one of `kind` in the same run of assistant items: before it, or else after it. */
function neighboursOf(items: readonly Item[], kind: SignedKind): readonly (Item | undefined)[] {
  const found: (Item | undefined)[] = [];
  let near: Item | undefined;
  for (const item of items) {
    found.push(near);
    near = isOfModel(item) ? (item.kind === kind ? item : near) : undefined;
  }
  near = undefined;
  for (let at = items.length - 1; at >= 0; at--) {
    const item = items[at];
    found[at] ??= near;
    near = item !== undefined && isOfModel(item) ? (item.kind === kind ? item : near) : undefined;
  }
  return found;
}

/** True for a reasoning item that holds the signature of another item. */
function isDetached(item: Item, opaque: Opaque): boolean {
  if (item.kind !== 'reasoning') return false;
  const kind = kindOfForm(opaque.form);
  return kind === 'functionCall' || kind === 'text' || kind === 'inlineData';
}
