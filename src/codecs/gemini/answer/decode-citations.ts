/**
 * Grounding and citation metadata as citations of text items. The wire counts UTF-8 bytes: grounding counts within one part,
 * citation metadata within the whole visible text of the candidate. Both arrive late, so citations are pending until their item
 * ends.
 */
import { append } from '../../append.ts';
import { upstreamFault } from '../../canonical/error.ts';
import { type Span, TextPositions } from '../../answers/citations.ts';
import type { Citation } from '../../canonical/item.ts';
import { isObject, type JsonObject, type JsonValue } from '../../canonical/json.ts';
import { arrayOrEmpty, malformed, optionalObject, optionalString } from './decode-chunk.ts';

/** Where a text item stands in the answer. */
export interface CitedItem {
  readonly text: string;
  /** UTF-8 bytes of the candidate's visible text before this item. */
  readonly base: number;
  /** The wire parts that make up the item, with the code unit at which each begins. */
  readonly parts: readonly { readonly part: number; readonly start: number }[];
}

/** What is cited. The same one is one object. */
type Source = { readonly url: string; readonly title?: string } | { readonly native: JsonObject };

/** Where the wire says that something is cited: one place of however many sources. */
interface Place {
  readonly span: Span;
  /** The part in which the span counts; undefined where it counts in the whole candidate. */
  readonly part: number | undefined;
  /**
   * The cited text, where the wire repeats it. It decides what the span counts, and where the citation stands if the span is off.
   */
  readonly quote: string | undefined;
}

interface PendingCitation {
  readonly source: Source;
  readonly place: Place;
  /** How many items it was held against. */
  tries: number;
}

/** Citations that this many items did not hold are then held only against items in which their bytes of the whole text fall. */
const MANY_TRIES = 64;
/** Bytes of the whole text to a bucket of such citations. */
const BUCKET = 256;
/** Characters of links and titles. Supports name sources by their number, and clients read the whole link with each citation. */
const MAX_CITED = 8 * 1024 * 1024;
/** Sources that all supports of an event may name: two characters name one, and each is looked up. Searches cite dozens. */
const MAX_NAMED = 250_000;

export class CitedSources {
  /** By their number; undefined: nothing that can be cited. */
  #chunks: readonly (Source | undefined)[] = [];
  #cited = 0;
  readonly #sources = new Map<string, Source>();
  readonly #numbers = new Map<Source, number>();
  #pending: PendingCitation[] = [];
  /** Those of many tries, by where they begin in the whole text: an answer may have very many texts and citations. */
  readonly #far = new Map<number, PendingCitation[]>();
  #farCount = 0;
  readonly #seen = new Set<string>();

  /** True while there are citations that no text has taken. */
  get hasPending(): boolean {
    return this.#pending.length + this.#farCount > 0;
  }

  /** Reads the candidate's metadata. Throws `malformed_event` for known members of a wrong type. */
  read(candidate: JsonObject): void {
    const grounding = optionalObject(candidate, 'groundingMetadata');
    if (grounding !== undefined) this.#readGrounding(grounding);
    const citations = optionalObject(candidate, 'citationMetadata');
    if (citations === undefined) return;
    for (const source of [...arrayOrEmpty(citations, 'citationSources'), ...arrayOrEmpty(citations, 'citations')])
      this.#readSource(source);
  }

  /** Takes the citations of an item that ends now. With `isLast`, also all others: without a position where they fit nowhere. */
  take(item: CitedItem, isLast: boolean): Citation[] {
    if (!this.hasPending) return [];
    const taken: Citation[] = [];
    const left: PendingCitation[] = [];
    const text = indexOf(item);
    const candidates = [...(isLast ? this.#takeAllFar() : this.#takeFar(item)), ...this.#pending];
    for (const pending of candidates) {
      const span = located(pending.place, text, isLast);
      if (span === undefined && !isLast) left.push(pending);
      else if (span !== undefined || this.#isNew(pending)) taken.push(citationOf(pending, span));
    }
    this.#pending = [];
    for (const pending of left) this.#keep(pending);
    return taken;
  }

  #keep(pending: PendingCitation): void {
    pending.tries += 1;
    if (pending.tries < MANY_TRIES) {
      this.#pending.push(pending);
      return;
    }
    const bucket = Math.floor(pending.place.span.start / BUCKET);
    const known = this.#far.get(bucket);
    if (known === undefined) this.#far.set(bucket, [pending]);
    else known.push(pending);
    this.#farCount += 1;
  }

  #takeFar({ base, text }: CitedItem): PendingCitation[] {
    if (this.#farCount === 0) return [];
    const found: PendingCitation[] = [];
    const last = Math.floor((base + Buffer.byteLength(text)) / BUCKET);
    for (let bucket = Math.floor(base / BUCKET); bucket <= last; bucket += 1) {
      append(found, this.#far.get(bucket) ?? []);
      this.#far.delete(bucket);
    }
    this.#farCount -= found.length;
    return found;
  }

  #takeAllFar(): PendingCitation[] {
    const all = [...this.#far.values()].flat();
    this.#far.clear();
    this.#farCount = 0;
    return all;
  }

  /** A source without a position is cited once. */
  #isNew({ source }: PendingCitation): boolean {
    return this.#isUnseen(`${this.#numbers.get(source)}`);
  }

  #isUnseen(key: string): boolean {
    const isNew = !this.#seen.has(key);
    this.#seen.add(key);
    return isNew;
  }

  #readGrounding(metadata: JsonObject): void {
    const chunks = arrayOrEmpty(metadata, 'groundingChunks');
    if (chunks.length > 0) this.#chunks = chunks.map((chunk) => this.#only(sourceOf(chunk)));
    let named = 0;
    for (const support of arrayOrEmpty(metadata, 'groundingSupports')) {
      if (!isObject(support)) throw malformed('groundingSupports');
      const segment = optionalObject(support, 'segment') ?? {};
      const place = {
        span: { start: count(segment, 'startIndex'), end: count(segment, 'endIndex') },
        part: count(segment, 'partIndex'),
        quote: optionalString(segment, 'text'),
      };
      const indices = arrayOrEmpty(support, 'groundingChunkIndices');
      named += indices.length;
      if (named > MAX_NAMED)
        throw upstreamFault('malformed_event', `The upstream's citations name more than ${MAX_NAMED} sources.`);
      for (const index of indices) {
        const source = typeof index === 'number' ? this.#chunks[index] : undefined;
        if (source !== undefined && this.#add(source, place)) this.#countCited(source);
      }
    }
  }

  #countCited(source: Source): void {
    if ('url' in source) this.#cited += source.url.length + (source.title ?? '').length;
    if (this.#cited > MAX_CITED)
      throw upstreamFault('malformed_event', `The upstream cites more than ${MAX_CITED} characters of links.`);
  }

  #readSource(source: JsonValue): void {
    if (!isObject(source)) throw malformed('citationMetadata');
    const url = optionalString(source, 'uri');
    const title = optionalString(source, 'title');
    const cited = this.#only(url === undefined ? { native: source } : { url, ...(title === undefined ? {} : { title }) });
    const span = { start: count(source, 'startIndex'), end: count(source, 'endIndex') };
    if (cited !== undefined) this.#add(cited, { span, part: undefined, quote: undefined });
  }

  /** The one object of a source: its text is looked at once, however often it is cited. */
  #only(source: Source | undefined): Source | undefined {
    if (source === undefined) return undefined;
    const text = JSON.stringify(source);
    const known = this.#sources.get(text);
    if (known !== undefined) return known;
    this.#numbers.set(source, this.#sources.size);
    this.#sources.set(text, source);
    return source;
  }

  /** False for what was added before. */
  #add(source: Source, place: Place): boolean {
    const { span, part = '' } = place;
    const isNew = this.#isUnseen(`${this.#numbers.get(source)} ${span.start} ${span.end} ${part}`);
    if (isNew) this.#pending.push({ source, place, tries: 0 });
    return isNew;
  }
}

function sourceOf(chunk: JsonValue | undefined): Source | undefined {
  if (!isObject(chunk)) return undefined;
  for (const kind of ['web', 'maps', 'retrievedContext']) {
    const source = chunk[kind];
    const url = isObject(source) ? optionalString(source, 'uri') : undefined;
    if (!isObject(source) || url === undefined) continue;
    const title = optionalString(source, 'title');
    return { url, ...(title === undefined ? {} : { title }) };
  }
  return undefined;
}

/** An index. The protocol leaves out zeros. */
function count(holder: JsonObject, name: string): number {
  const value = holder[name];
  if (value === undefined || value === null) return 0;
  if (typeof value !== 'number' || !Number.isInteger(value)) throw malformed(name);
  return value;
}

function citationOf({ source }: PendingCitation, span: Span | undefined): Citation {
  if ('native' in source) return { kind: 'native', dialect: 'gemini', body: source.native };
  return span === undefined ? { kind: 'url', ...source } : { kind: 'url', ...source, ...span };
}

/** How many code units are searched for quotes in all (200 searches of a text of 300,000). Quotes beyond that get no position. */
const MAX_SEARCHED = 64 * 1024 * 1024;

/** The text of an item, prepared to locate its citations. */
interface TextIndex {
  readonly item: CitedItem;
  readonly positions: TextPositions;
  /** The UTF-8 offsets in the item at which each wire part begins. */
  readonly partOffsets: ReadonlyMap<number, readonly number[]>;
  /** What was found of the places so far: many sources may be cited at one, whose quote is compared once. */
  readonly found: Map<Place, Span | undefined>;
  /** Code units that were searched for quotes so far. */
  searched: number;
}

function indexOf(item: CitedItem): TextIndex {
  const positions = new TextPositions(item.text);
  const partOffsets = new Map<number, number[]>();
  for (const { part, start } of item.parts) {
    const offset = positions.convert(start, 'utf16', 'utf8');
    if (offset === undefined) continue;
    const known = partOffsets.get(part);
    if (known === undefined) partOffsets.set(part, [offset]);
    else known.push(offset);
  }
  return { item, positions, partOffsets, found: new Map(), searched: 0 };
}

function located(place: Place, text: TextIndex, isLast: boolean): Span | undefined {
  const known = text.found.get(place);
  if (known !== undefined || text.found.has(place)) return known;
  const span = locate(place, text) ?? (isLast ? locateQuote(place.quote, text) : undefined);
  text.found.set(place, span);
  return span;
}

/** The position in code points, or undefined when the citation does not fit this item. */
function locate({ span, part, quote }: Place, { item, positions, partOffsets }: TextIndex): Span | undefined {
  const offsets = part === undefined ? [] : (partOffsets.get(part) ?? []);
  // Servers also count grounding in the whole visible text.
  for (const offset of [...offsets, -item.base]) {
    const bytes = { start: span.start + offset, end: span.end + offset };
    const units = positions.convertSpan(bytes, 'utf8', 'utf16');
    if (units === undefined || units.start === units.end) continue;
    if (quote !== undefined && item.text.slice(units.start, units.end) !== quote) continue;
    return positions.convertSpan(bytes, 'utf8', 'codePoint');
  }
  return undefined;
}

/**
 * The position of a quote that the text holds exactly once. Servers count text that they trimmed since, so spans are off by a
 * byte or two.
 */
function locateQuote(quote: string | undefined, index: TextIndex): Span | undefined {
  const { text } = index.item;
  if (quote === undefined || quote === '' || index.searched > MAX_SEARCHED) return undefined;
  index.searched += text.length;
  const start = text.indexOf(quote);
  if (start === -1 || text.includes(quote, start + 1)) return undefined;
  return index.positions.convertSpan({ start, end: start + quote.length }, 'utf16', 'codePoint');
}
