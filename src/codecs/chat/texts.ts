/**
 * The texts and refusals of one streamed answer, and the citations that belong to them. A text is said when another kind
 * begins, and then ends, unless citations may still come for it: they mostly come with the last chunk.
 */
import { append } from '../append.ts';
import { grown } from '../canonical/grown.ts';
import { upstreamFault } from '../canonical/error.ts';
import type { CanonicalEvent } from '../canonical/event.ts';
import type { Citation, ItemStatus, Logprobs, TokenLogprob } from '../canonical/item.ts';
import type { JsonObject } from '../canonical/json.ts';
import { GrowingLength } from '../answers/citations.ts';
import { logprobsOf, spokenBy } from '../answers/logprobs.ts';
import { annotation, place, sourcesIn, within } from './annotations.ts';

type TextKind = 'text' | 'refusal';

/** More than the tokens of any character, and than a server holds back. */
const MAX_EARLY = 16;
const NONE: Logprobs = [];

interface OpenText {
  readonly kind: TextKind;
  readonly index: number;
  text: string;
  readonly length: GrowingLength;
  readonly citations: Citation[];
  logprobs: TokenLogprob[] | undefined;
  /** Where the item begins in the whole content, in code points: annotations count from there. */
  readonly base: number;
}

export class Texts {
  /** Makes way for a new item and counts it. */
  readonly #begin: (out: CanonicalEvent[]) => number;
  /** Whether a text that is said waits for the end of the answer: the first citation promises more. */
  #awaitsCitations: boolean;
  #open: OpenText | undefined;
  /** Texts that say no more and wait for their citations. */
  readonly #said: OpenText[] = [];
  /** Code points of the content when a text ended last; undefined before the first. */
  #ended: number | undefined;
  /** Code points of the content. */
  readonly #length = new GrowingLength();
  /** What was said of each kind by texts that are not open any more. */
  readonly #past: Record<TextKind, string> = { text: '', refusal: '' };
  /** Citations that no text has yet. */
  #citations: Citation[] = [];
  /** Made for the first citation. */
  #cited: Set<string> | undefined;
  /** What is listed beside the answer, by its link: said at the end, where no citation of the answer names it. */
  #sources: Map<string, Citation> | undefined;
  /** Tokens that came with no text of their own: perhaps pieces of the next character. */
  #early: Logprobs | undefined;

  constructor(awaitsCitations: boolean, begin: (out: CanonicalEvent[]) => number) {
    this.#awaitsCitations = awaitsCitations;
    this.#begin = begin;
  }

  /** What all texts say together. */
  get content(): string {
    return this.#all('text');
  }

  #all(kind: TextKind): string {
    const open = this.#open;
    return open?.kind === kind ? this.#past[kind] + open.text : this.#past[kind];
  }

  /** The part of a whole content, or refusal, that was not said yet. */
  unsaid(kind: TextKind, whole: string): string {
    if (whole === '') return '';
    const said = this.#all(kind);
    if (!whole.startsWith(said)) {
      throw upstreamFault('illegal_lifecycle', `The upstream's final ${kind} contradicts what it streamed.`);
    }
    return whole.slice(said.length);
  }

  /** Tokens without text. Those that the next piece does not say are marks of the model, which no text has. */
  hold(logprobs: Logprobs): void {
    this.#early = [...(this.#early ?? NONE), ...logprobs].slice(-MAX_EARLY);
  }

  /** Returns the item that says it; undefined where there is nothing to say. */
  say(kind: TextKind, piece: string, scored: Logprobs | undefined, out: CanonicalEvent[]): number | undefined {
    if (piece === '') return undefined;
    const open = this.#open?.kind === kind ? this.#open : this.#start(kind, out);
    const logprobs = scored === undefined ? undefined : saying(piece, [...(this.#early ?? NONE), ...scored]);
    this.#early = undefined;
    open.text = grown(open.text, piece);
    if (logprobs !== undefined && kind === 'text') {
      open.logprobs ??= [];
      append(open.logprobs, logprobs);
    }
    const delta =
      logprobs === undefined ? { kind: 'text' as const, text: piece } : { kind: 'text' as const, text: piece, logprobs };
    out.push({ type: 'item.delta', index: open.index, delta });
    return open.index;
  }

  /** One more piece of what is open; undefined where it says nothing. */
  extend(piece: string): CanonicalEvent | undefined {
    const open = this.#open;
    if (open === undefined || piece === '') return undefined;
    open.text = grown(open.text, piece);
    return { type: 'item.delta', index: open.index, delta: { kind: 'text', text: piece } };
  }

  /** Another kind begins: what is open says no more. */
  pause(out: CanonicalEvent[]): void {
    const open = this.#open;
    if (open === undefined) return;
    this.#open = undefined;
    this.#past[open.kind] += open.text;
    if (open.kind === 'text' && this.#awaitsCitations) this.#said.push(open);
    else this.#end(open, 'completed', out);
  }

  cite(citation: Citation, out: CanonicalEvent[]): void {
    const key = JSON.stringify(citation);
    if (!this.#isNew(key)) return;
    if (citation.kind === 'url') this.#isNew(citation.url);
    this.#awaitsCitations = true;
    if (this.#isLate(citation)) {
      sayLate(citation, out);
      return;
    }
    const open = this.#textOf(citation);
    if (open === undefined) {
      this.#citations.push(citation);
      return;
    }
    const placed = place(citation, open.base);
    open.citations.push(placed);
    // One that points beyond what has been said waits for the end of the text.
    if (within(placed, open.length.of(open.text)) !== placed) return;
    out.push({ type: 'item.delta', index: open.index, delta: { kind: 'citation', citation: placed } });
  }

  /** True the first time. */
  #isNew(citation: string): boolean {
    this.#cited ??= new Set();
    if (this.#cited.has(citation)) return false;
    this.#cited.add(citation);
    return true;
  }

  /** Sources that are listed beside the answer; a repeated one is said once. */
  citeSources(chunk: JsonObject): void {
    for (const { url, title } of sourcesIn(chunk)) {
      this.#sources ??= new Map();
      if (this.#sources.has(url)) continue;
      this.#awaitsCitations = true;
      this.#sources.set(url, { kind: 'url', url, ...(title === '' ? {} : { title }) });
    }
  }

  /**
   * The answer says no more. Citations that came before any text stand in the one that they point into; sources stand in the latest text,
   * and where there is none at all in an empty one.
   */
  settleSources(out: CanonicalEvent[]): void {
    for (const [url, source] of this.#sources ?? []) if (this.#isNew(url)) this.#citations.push(source);
    if (this.#citations.length === 0) return;
    if (this.#latest === undefined && this.#ended === undefined) this.#start('text', out);
    for (const citation of this.#citations) {
      const cited = this.#textOf(citation);
      if (cited === undefined) sayLate(citation, out);
      else cited.citations.push(place(citation, cited.base));
    }
  }

  /** Ends every item. `cut`: the item that was cut, if any. */
  close(cut: number | undefined, out: CanonicalEvent[]): void {
    const open = this.#open;
    const status = open !== undefined && open.index === cut ? 'incomplete' : 'completed';
    if (open?.kind === 'refusal') this.#end(open, status, out);
    else if (open !== undefined) this.#said.push(open);
    for (const said of this.#said) this.#end(said, said === open ? status : 'completed', out);
  }

  #start(kind: TextKind, out: CanonicalEvent[]): OpenText {
    const index = this.#begin(out);
    const base = this.#length.of(this.content);
    const length = new GrowingLength();
    const open: OpenText = { kind, index, text: '', length, citations: [], logprobs: undefined, base };
    this.#open = open;
    out.push({ type: 'item.start', index, head: kind === 'text' ? { kind, role: 'assistant' } : { kind } });
    return open;
  }

  get #latest(): OpenText | undefined {
    return this.#open?.kind === 'text' ? this.#open : this.#said.at(-1);
  }

  /** The text that a citation points into; one without a position belongs to the latest. */
  #textOf(citation: Citation): OpenText | undefined {
    const start = startOf(citation);
    const latest = this.#latest;
    if (start === undefined || latest === undefined || start >= latest.base) return latest;
    return this.#said.findLast((open) => open.base <= start);
  }

  /** What it points into has ended. */
  #isLate(citation: Citation): boolean {
    if (this.#ended === undefined) return false;
    const start = startOf(citation);
    return start === undefined ? this.#latest === undefined : start < this.#ended;
  }

  #end(open: OpenText, status: ItemStatus, out: CanonicalEvent[]): void {
    const { kind, index } = open;
    if (kind === 'refusal') {
      out.push({ type: 'item.end', index, item: { kind, text: open.text }, status });
      return;
    }
    this.#ended = this.#length.of(this.content);
    const length = open.citations.length === 0 ? 0 : open.length.of(open.text);
    const citations = open.citations.map((citation) => within(citation, length));
    const logprobs = logprobsOf(open.text, open.logprobs);
    const scored = logprobs === undefined ? {} : { logprobs };
    out.push({ type: 'item.end', index, item: { kind, role: 'assistant', text: open.text, citations, ...scored }, status });
  }
}

/** Those tokens that say the piece. Where none do all are taken: a server that holds text back says it later (vLLM), and the sum decides. */
function saying(piece: string, logprobs: Logprobs): Logprobs {
  return spokenBy(piece, logprobs) ?? logprobs;
}

function startOf(citation: Citation): number | undefined {
  return citation.kind === 'url' ? citation.start : undefined;
}

/** A citation of a text that has ended: no item can take it any more, so it stays in its own protocol, as a position that no other can say. */
function sayLate(citation: Citation, out: CanonicalEvent[]): void {
  const body = citation.kind === 'native' ? citation.body : annotation(citation, 0);
  if (body !== undefined) out.push({ type: 'native.event', dialect: 'chat', name: 'annotations', body });
}
