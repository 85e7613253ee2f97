/**
 * The texts and refusals of one streamed answer, and the citations that belong to them. A text is complete when another kind of item begins.
 * It ends then, unless citations may still arrive for it: they mostly arrive with the last chunk.
 */
import { append } from '../../append.ts';
import { grown } from '../../canonical/grown.ts';
import { upstreamFault } from '../../canonical/error.ts';
import type { CanonicalEvent } from '../../canonical/event.ts';
import type { Citation, ItemStatus, Logprobs, TokenLogprob } from '../../canonical/item.ts';
import type { JsonObject } from '../../canonical/json.ts';
import { CodePointCounter } from '../../answers/citations.ts';
import { logprobsOf, runSpelling } from '../../answers/logprobs.ts';
import { sourcesIn, toItemPositions, withinText, writeAnnotation } from './annotations.ts';

type TextKind = 'text' | 'refusal';

/** More tokens than any character has, and more than servers hold back. */
const MAX_HELD_TOKENS = 16;
const NONE: Logprobs = [];

interface OpenText {
  readonly kind: TextKind;
  readonly index: number;
  text: string;
  /** Its code points. */
  length: number;
  readonly citations: Citation[];
  logprobs: TokenLogprob[] | undefined;
  /** The code point of the whole content at which the item begins. */
  readonly base: number;
}

export class Texts {
  /** Ends what a new item ends, and gives its index. */
  readonly #begin: (out: CanonicalEvent[]) => number;
  /** Whether complete texts stay open until the end of the answer; true from the first citation on, since more may follow. */
  #keepsTextsOpen: boolean;
  #open: OpenText | undefined;
  /** Complete texts that wait for their citations. */
  readonly #awaitingCitations: OpenText[] = [];
  /** Length of the content, in code points, when a text ended last; undefined while none has. */
  #endedLength: number | undefined;
  /** Counts the whole content. */
  readonly #length = new CodePointCounter();
  /** The joined text of each kind before the open item. */
  readonly #earlier: Record<TextKind, string> = { text: '', refusal: '' };
  /** Citations that arrived before any text. */
  #unassigned: Citation[] = [];
  /** Citations and links that were cited already; made for the first citation. */
  #seen: Set<string> | undefined;
  /** Sources that are listed beside the answer, by URL. Those that no citation names are cited at the end. */
  #sources: Map<string, Citation> | undefined;
  /** Tokens that arrived without text: perhaps pieces of the next character. */
  #heldTokens: Logprobs | undefined;

  constructor(keepsTextsOpen: boolean, begin: (out: CanonicalEvent[]) => number) {
    this.#keepsTextsOpen = keepsTextsOpen;
    this.#begin = begin;
  }

  /** All texts so far, joined. */
  get content(): string {
    return this.#joined('text');
  }

  #joined(kind: TextKind): string {
    const open = this.#open;
    return open?.kind === kind ? this.#earlier[kind] + open.text : this.#earlier[kind];
  }

  /** The part of the whole content, or refusal, that was not streamed yet. Throws where the two differ. */
  rest(kind: TextKind, whole: string): string {
    if (whole === '') return '';
    const streamed = this.#joined(kind);
    if (!whole.startsWith(streamed)) {
      throw upstreamFault('illegal_lifecycle', `The upstream's final ${kind} contradicts what it streamed.`);
    }
    return whole.slice(streamed.length);
  }

  /** Keeps tokens that arrived without text for the next piece. Those that are not in it are special tokens of the model. */
  holdTokens(logprobs: Logprobs): void {
    this.#heldTokens = [...(this.#heldTokens ?? NONE), ...logprobs].slice(-MAX_HELD_TOKENS);
  }

  /** Adds a piece. Returns the index of its item; undefined for an empty piece. */
  add(kind: TextKind, piece: string, tokens: Logprobs | undefined, out: CanonicalEvent[]): number | undefined {
    if (piece === '') return undefined;
    const open = this.#open?.kind === kind ? this.#open : this.#start(kind, out);
    const logprobs = tokens === undefined ? undefined : tokensOf(piece, [...(this.#heldTokens ?? NONE), ...tokens]);
    this.#heldTokens = undefined;
    this.#grow(open, piece);
    if (logprobs !== undefined && kind === 'text') {
      open.logprobs ??= [];
      append(open.logprobs, logprobs);
    }
    const delta =
      logprobs === undefined ? { kind: 'text' as const, text: piece } : { kind: 'text' as const, text: piece, logprobs };
    out.push({ type: 'item.delta', index: open.index, delta });
    return open.index;
  }

  /** Adds a piece without logprobs to the open item; undefined where there is nothing to emit. */
  extend(piece: string): CanonicalEvent | undefined {
    const open = this.#open;
    if (open === undefined || piece === '') return undefined;
    this.#grow(open, piece);
    return { type: 'item.delta', index: open.index, delta: { kind: 'text', text: piece } };
  }

  /** The open item is complete because another kind begins. */
  completeOpen(out: CanonicalEvent[]): void {
    const open = this.#open;
    if (open === undefined) return;
    this.#open = undefined;
    this.#earlier[open.kind] += open.text;
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
    out.push({ type: 'item.delta', index: open.index, delta: { kind: 'citation', citation: placed } });
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
   * Assigns what is left at the end of the answer: citations that arrived before any text go to the text that they point into, sources to the
   * latest text. An answer without text gets an empty one for them.
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
    const status = open !== undefined && open.index === cut ? 'incomplete' : 'completed';
    if (open?.kind === 'refusal') this.#end(open, status, out);
    else if (open !== undefined) this.#awaitingCitations.push(open);
    for (const text of this.#awaitingCitations) this.#end(text, text === open ? status : 'completed', out);
  }

  #start(kind: TextKind, out: CanonicalEvent[]): OpenText {
    const index = this.#begin(out);
    const base = this.#length.length;
    const open: OpenText = { kind, index, text: '', length: 0, citations: [], logprobs: undefined, base };
    this.#open = open;
    out.push({ type: 'item.start', index, head: kind === 'text' ? { kind, role: 'assistant' } : { kind } });
    return open;
  }

  #grow(open: OpenText, piece: string): void {
    open.text = grown(open.text, piece);
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
    const { kind, index } = open;
    if (kind === 'refusal') {
      out.push({ type: 'item.end', index, item: { kind, text: open.text }, status });
      return;
    }
    this.#endedLength = this.#length.length;
    const { length } = open;
    const citations = open.citations.map((citation) => withinText(citation, length));
    const logprobs = logprobsOf(open.text, open.logprobs);
    const tokens = logprobs === undefined ? {} : { logprobs };
    out.push({ type: 'item.end', index, item: { kind, role: 'assistant', text: open.text, citations, ...tokens }, status });
  }
}

/** The tokens of the piece. Where none match it, all are kept: a server may send their text later (vLLM), and the whole item decides. */
function tokensOf(piece: string, logprobs: Logprobs): Logprobs {
  return runSpelling(piece, logprobs) ?? logprobs;
}

function startOf(citation: Citation): number | undefined {
  return citation.kind === 'url' ? citation.start : undefined;
}

/** A citation of a text that has ended. No item can take it any more, so it is a native event, which other protocols do not see. */
function emitLate(citation: Citation, out: CanonicalEvent[]): void {
  const body = citation.kind === 'native' ? citation.body : writeAnnotation(citation, 0);
  if (body !== undefined) out.push({ type: 'native.event', dialect: 'chat', name: 'annotations', body });
}
