/**
 * The texts and refusals of one streamed answer, and the citations that belong to them. A text is complete when another kind of
 * item begins. It ends then, unless citations may still arrive for it: they mostly arrive with the last chunk.
 */
import type { CanonicalEvent } from '../../canonical/event.ts';
import type { OpenItem } from '../../canonical/fold.ts';
import type { Citation, ItemStatus, Logprobs } from '../../canonical/item.ts';
import type { ItemEmitter, StartItem } from '../../canonical/item-emitter.ts';
import type { JsonObject } from '../../canonical/json.ts';
import { restOf } from '../../canonical/missing-deltas.ts';
import { CodePointCounter } from '../../answers/citations.ts';
import { logprobsOf, runSpelling } from '../../answers/logprobs.ts';
import { sourcesIn, toItemPositions, withinText, writeAnnotation } from './annotations.ts';

type TextKind = 'text' | 'refusal';

/** More tokens than any character has, and more than servers hold back. */
const MAX_HELD_TOKENS = 16;
const NONE: Logprobs = [];

interface OpenText {
  readonly kind: TextKind;
  readonly item: OpenItem;
  /** Its code points. */
  length: number;
  /** Those that point beyond the text so far, too. */
  readonly citations: Citation[];
  /** The code point of the whole content at which the item begins. */
  readonly base: number;
}

export class Texts {
  readonly #items: ItemEmitter;
  /** Ends what a new item ends, and starts it. */
  readonly #begin: StartItem;
  /** Whether complete texts stay open until the end of the answer; true from the first citation on, since more may follow. */
  #keepsTextsOpen: boolean;
  #open: OpenText | undefined;
  /** Complete texts that wait for their citations. */
  readonly #awaitingCitations: OpenText[] = [];
  /** Length of the content, in code points, when a text ended last; undefined while none has. */
  #endedLength: number | undefined;
  /** Counts the whole content. */
  readonly #length = new CodePointCounter();
  /** All items of each kind. */
  readonly #streamed: Readonly<Record<TextKind, OpenItem[]>> = { text: [], refusal: [] };
  /** Citations that arrived before any text. */
  #unassigned: Citation[] = [];
  /** Citations and links that were cited already; made for the first citation. */
  #seen: Set<string> | undefined;
  /** Sources that are listed beside the answer, by URL. Those that no citation names are cited at the end. */
  #sources: Map<string, Citation> | undefined;
  /** Tokens that arrived without text: perhaps pieces of the next character. */
  #heldTokens: Logprobs | undefined;

  constructor(keepsTextsOpen: boolean, items: ItemEmitter, begin: StartItem) {
    this.#keepsTextsOpen = keepsTextsOpen;
    this.#items = items;
    this.#begin = begin;
  }

  /** Some text was streamed. */
  get any(): boolean {
    return this.#streamed.text.length > 0;
  }

  /** The part of the whole content, or refusal, that was not streamed yet. Throws where the two differ. */
  rest(kind: TextKind, whole: string): string {
    return whole === '' ? '' : restOf(whole, this.#streamed[kind].map(({ text }) => text).join(''), kind);
  }

  /** Keeps tokens that arrived without text for the next piece. Those that are not in it are special tokens of the model. */
  holdTokens(logprobs: Logprobs): void {
    this.#heldTokens = [...(this.#heldTokens ?? NONE), ...logprobs].slice(-MAX_HELD_TOKENS);
  }

  /** Adds a piece, which is not empty. Returns the index of its item. */
  add(kind: TextKind, piece: string, tokens: Logprobs | undefined, out: CanonicalEvent[]): number {
    const open = this.#open?.kind === kind ? this.#open : this.#start(kind, out);
    const logprobs = tokens === undefined ? undefined : tokensOf(piece, [...(this.#heldTokens ?? NONE), ...tokens]);
    this.#heldTokens = undefined;
    this.#count(open, piece);
    const delta = { kind: 'text', text: piece } as const;
    this.#items.delta(open.item, logprobs === undefined ? delta : { ...delta, logprobs }, out);
    return open.item.index;
  }

  /** Adds a piece without logprobs to the open item; undefined where there is nothing to emit. */
  extend(piece: string): CanonicalEvent | undefined {
    const open = this.#open;
    if (open === undefined || piece === '') return undefined;
    this.#count(open, piece);
    return this.#items.piece(open.item, { kind: 'text', text: piece });
  }

  /** The open item is complete because another kind begins. */
  completeOpen(out: CanonicalEvent[]): void {
    const open = this.#open;
    if (open === undefined) return;
    this.#open = undefined;
    if (open.kind === 'text' && this.#keepsTextsOpen) this.#awaitingCitations.push(open);
    else this.#end(open, 'completed', out);
  }

  addCitation(citation: Citation, out: CanonicalEvent[]): void {
    const key = JSON.stringify(citation);
    if (!this.#isNew(key)) return;
    if (citation.kind === 'url') this.#isNew(citation.url);
    this.#keepsTextsOpen = true;
    if (this.#isLate(citation)) {
      emitLate(citation, out);
      return;
    }
    const open = this.#textOf(citation);
    if (open === undefined) {
      this.#unassigned.push(citation);
      return;
    }
    const placed = toItemPositions(citation, open.base);
    open.citations.push(placed);
    // One that points beyond the text so far is emitted with the whole item.
    if (withinText(placed, open.length) !== placed) return;
    this.#items.delta(open.item, { kind: 'citation', citation: placed }, out);
  }

  /** True the first time. */
  #isNew(citation: string): boolean {
    this.#seen ??= new Set();
    if (this.#seen.has(citation)) return false;
    this.#seen.add(citation);
    return true;
  }

  /** Adds the sources that a chunk lists beside the answer. */
  addSources(chunk: JsonObject): void {
    for (const { url, title } of sourcesIn(chunk)) {
      this.#sources ??= new Map();
      if (this.#sources.has(url)) continue;
      this.#keepsTextsOpen = true;
      this.#sources.set(url, { kind: 'url', url, ...(title === '' ? {} : { title }) });
    }
  }

  /**
   * Assigns what is left at the end of the answer: citations that arrived before any text go to the text that they point into,
   * sources to the latest text. An answer without text gets an empty one for them.
   */
  assignCitations(out: CanonicalEvent[]): void {
    for (const [url, source] of this.#sources ?? []) if (this.#isNew(url)) this.#unassigned.push(source);
    if (this.#unassigned.length === 0) return;
    if (this.#latest === undefined && this.#endedLength === undefined) this.#start('text', out);
    for (const citation of this.#unassigned) {
      const cited = this.#textOf(citation);
      if (cited === undefined) emitLate(citation, out);
      else cited.citations.push(toItemPositions(citation, cited.base));
    }
  }

  /** Ends every item; the one with the index `cut` is incomplete. */
  close(cut: number | undefined, out: CanonicalEvent[]): void {
    const open = this.#open;
    const status = open !== undefined && open.item.index === cut ? 'incomplete' : 'completed';
    if (open?.kind === 'refusal') this.#end(open, status, out);
    else if (open !== undefined) this.#awaitingCitations.push(open);
    for (const text of this.#awaitingCitations) this.#end(text, text === open ? status : 'completed', out);
  }

  #start(kind: TextKind, out: CanonicalEvent[]): OpenText {
    const item = this.#begin(kind === 'text' ? { kind, role: 'assistant' } : { kind }, out);
    const open: OpenText = { kind, item, length: 0, citations: [], base: this.#length.length };
    this.#open = open;
    this.#streamed[kind].push(item);
    return open;
  }

  #count(open: OpenText, piece: string): void {
    if (open.kind === 'text') open.length = this.#length.add(piece) - open.base;
  }

  get #latest(): OpenText | undefined {
    return this.#open?.kind === 'text' ? this.#open : this.#awaitingCitations.at(-1);
  }

  /** The text that a citation points into; one without a position belongs to the latest. */
  #textOf(citation: Citation): OpenText | undefined {
    const start = startOf(citation);
    const latest = this.#latest;
    if (start === undefined || latest === undefined || start >= latest.base) return latest;
    // They stand in the order of their bases.
    let [from, to] = [0, this.#awaitingCitations.length];
    while (from < to) {
      const middle = (from + to) >>> 1;
      if ((this.#awaitingCitations[middle]?.base ?? 0) <= start) from = middle + 1;
      else to = middle;
    }
    return this.#awaitingCitations[from - 1];
  }

  /** True when the text that it points into has ended. */
  #isLate(citation: Citation): boolean {
    if (this.#endedLength === undefined) return false;
    const start = startOf(citation);
    return start === undefined ? this.#latest === undefined : start < this.#endedLength;
  }

  #end(open: OpenText, status: ItemStatus, out: CanonicalEvent[]): void {
    const { kind, item, length } = open;
    if (kind === 'refusal') {
      this.#items.end(item, status, out);
      return;
    }
    this.#endedLength = this.#length.length;
    const citations = open.citations.map((citation) => withinText(citation, length));
    this.#items.end(item, status, out, { citations, logprobs: logprobsOf(item.text, item.logprobs) });
  }
}

/**
 * The tokens of the piece. Where none match it, all are kept: a server may send their text later (vLLM), and the whole item
 * decides.
 */
function tokensOf(piece: string, logprobs: Logprobs): Logprobs {
  return runSpelling(piece, logprobs) ?? logprobs;
}

function startOf(citation: Citation): number | undefined {
  return citation.kind === 'url' ? citation.start : undefined;
}

/**
 * A citation of a text that has ended. No item can take it any more, so it is a native event, which other protocols do not see.
 */
function emitLate(citation: Citation, out: CanonicalEvent[]): void {
  const body = citation.kind === 'native' ? citation.body : writeAnnotation(citation, 0);
  if (body !== undefined) out.push({ type: 'native.event', dialect: 'chat', name: 'annotations', body });
}
