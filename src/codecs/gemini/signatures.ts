/**
 * Thought signatures: which part of an answer each one sat on, and how it gets back to that part.
 *
 * A signature is opaque and tied to its part. The part it came from is written into `Opaque.form`: `text` and `thought`
 * (with `:start:end` in code units when it covered only a piece of the item's text, an empty piece included),
 * `thought+empty` (an empty text part behind the thought), `functionCall`, `inlineData`, or `empty` (an empty part of its
 * own). Clients that cannot hold a signature on a text or a call return it in a reasoning item; the form finds its part.
 */
import { isOfModel } from '../tools/call-pairs.ts';
import type { Item, ReasoningItem } from '../canonical/item.ts';
import type { Opaque, Owner } from '../canonical/opaque.ts';
import type { Target } from '../codec.ts';
import { mayReplay } from '../requests/opaque-replay.ts';
import type { Part } from './wire.ts';

/** The vendor's documented value for calls that another model made; it is checked nowhere else. */
export const FOREIGN_CALL_SIGNATURE = 'skip_thought_signature_validator';

/** Where in its item's text a signature sat, in code units. */
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

/** The text as parts, the signature on the piece that it came with. A span that no longer fits covers everything. */
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

/** The signatures of this owner in one request, each found for the item that it belongs to. */
export class Signatures {
  readonly #target: Target;
  readonly #byItem = new Map<Item, Opaque>();
  readonly #settled = new Set<ReasoningItem>();
  /** True when a value of another owner was left out. */
  readonly droppedForeign: boolean;

  constructor(items: readonly Item[], target: Target) {
    this.#target = target;
    this.droppedForeign = items.some((item) => this.isForeign(item));
    for (const item of items) {
      const opaque = this.#ownOf(item);
      if (opaque !== undefined && !isDetached(item, opaque)) this.#byItem.set(item, opaque);
    }
    const homes = new Homes(items);
    for (const [at, item] of items.entries()) {
      homes.pass(item);
      const opaque = item.kind === 'reasoning' ? this.#ownOf(item) : undefined;
      if (item.kind !== 'reasoning' || opaque === undefined || !isDetached(item, opaque)) continue;
      const home = homes.of(opaque, at);
      if (home === undefined) continue;
      this.#settled.add(item);
      if (!this.#byItem.has(home)) this.#byItem.set(home, opaque);
    }
  }

  of(item: Item): Opaque | undefined {
    return this.#byItem.get(item);
  }

  /** What a reasoning item holds for a part of its own: nothing when its signature went home to another item. */
  ofReasoning(item: ReasoningItem): Opaque | undefined {
    return this.#settled.has(item) ? undefined : this.#ownOf(item);
  }

  /** True for an item whose value belongs to another owner: a vendor checks value and words together, so neither is sent. */
  isForeign(item: Item): boolean {
    return 'opaque' in item && item.opaque !== undefined && this.#ownOf(item) === undefined;
  }

  #ownOf(item: Item): Opaque | undefined {
    if (!('opaque' in item) || item.opaque === undefined) return undefined;
    return mayReplay(item.opaque, this.#target, 'gemini') ? item.opaque : undefined;
  }
}

type HomeKind = 'text' | 'toolCall' | 'media';

/** The items that detached signatures belong to: clients put one behind its item where they cannot put it on it. Goes through the items once. */
class Homes {
  readonly #items: readonly Item[];
  /** The calls so far by their ids: of several with one id, the latest. */
  readonly #passed = new Map<string, Item>();
  /** The first call of each id in all; made for the first signature that asks for a call. */
  #first: ReadonlyMap<string, Item> | undefined;
  readonly #neighbours = new Map<HomeKind, readonly (Item | undefined)[]>();

  constructor(items: readonly Item[]) {
    this.#items = items;
  }

  pass(item: Item): void {
    if (item.kind === 'toolCall') this.#passed.set(item.callId, item);
  }

  of(opaque: Opaque, at: number): Item | undefined {
    const kind = kindOfForm(opaque.form);
    if (kind === 'functionCall') return this.#call(opaque.itemId) ?? this.#neighbour('toolCall', at);
    if (kind === 'text') return this.#neighbour('text', at);
    return kind === 'inlineData' ? this.#neighbour('media', at) : undefined;
  }

  #call(id: string | undefined): Item | undefined {
    if (id === undefined) return undefined;
    this.#first ??= new Map(this.#items.toReversed().flatMap((item) => (item.kind === 'toolCall' ? [[item.callId, item]] : [])));
    return this.#passed.get(id) ?? this.#first.get(id);
  }

  #neighbour(kind: HomeKind, at: number): Item | undefined {
    const known = this.#neighbours.get(kind) ?? neighboursOf(this.#items, kind);
    this.#neighbours.set(kind, known);
    return known[at];
  }
}

/** For each item the nearest one of `kind` in the same run of assistant items, first before, then behind. */
function neighboursOf(items: readonly Item[], kind: HomeKind): readonly (Item | undefined)[] {
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

/** True for a reasoning item that carries the signature of something else. */
function isDetached(item: Item, opaque: Opaque): boolean {
  if (item.kind !== 'reasoning') return false;
  const kind = kindOfForm(opaque.form);
  return kind === 'functionCall' || kind === 'text' || kind === 'inlineData';
}
