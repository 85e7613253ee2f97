/**
 * Grounding and citation metadata as citations of text items. The wire counts UTF-8 bytes: grounding inside one part,
 * citation metadata inside the whole visible text of the candidate. It comes late, so it waits for its item to end.
 */
import { type Span, TextPlaces } from '../answers/citations.ts';
import type { Citation } from '../canonical/item.ts';
import { isObject, type JsonObject, type JsonValue } from '../canonical/json.ts';
import { array, malformed, object, text } from './read-chunk.ts';

/** Where a text item stands in the answer. */
export interface CitedItem {
  readonly text: string;
  /** UTF-8 bytes of the candidate's visible text before this item. */
  readonly base: number;
  /** The wire parts that make up the item, with the code unit at which each begins. */
  readonly parts: readonly { readonly place: number; readonly start: number }[];
}

interface Waiting {
  readonly source: { readonly url: string; readonly title?: string } | { readonly native: JsonObject };
  readonly span: Span;
  /** The part that the span counts in; undefined when it counts in the whole candidate. */
  readonly place: number | undefined;
  /** The cited words, where the wire repeats them: they settle what the numbers mean, and where those are off, the place. */
  readonly words: string | undefined;
}

export class CitedSources {
  #chunks: readonly JsonValue[] = [];
  #waiting: Waiting[] = [];
  readonly #seen = new Set<string>();

  /** True while there are citations that no text has taken. */
  get areWaiting(): boolean {
    return this.#waiting.length > 0;
  }

  /** Reads the candidate's metadata. Throws `malformed_event` for known members of a wrong type. */
  read(candidate: JsonObject): void {
    const grounding = object(candidate, 'groundingMetadata');
    if (grounding !== undefined) this.#readGrounding(grounding);
    const citations = object(candidate, 'citationMetadata');
    if (citations === undefined) return;
    for (const source of [...array(citations, 'citationSources'), ...array(citations, 'citations')]) this.#readSource(source);
  }

  /** The citations of an item that ends now. With `isLast` those that fit nowhere come without a position. */
  take(item: CitedItem, isLast: boolean): Citation[] {
    if (this.#waiting.length === 0) return [];
    const taken: Citation[] = [];
    const left: Waiting[] = [];
    const ground = groundOf(item);
    for (const waiting of this.#waiting) {
      const span = locate(waiting, ground) ?? (isLast ? placeOf(waiting.words, ground) : undefined);
      if (span === undefined && !isLast) left.push(waiting);
      else if (span !== undefined || this.#isNew(waiting)) taken.push(citationOf(waiting, span));
    }
    this.#waiting = left;
    return taken;
  }

  /** Without positions one citation of a source says all. */
  #isNew({ source }: Waiting): boolean {
    const key = JSON.stringify(source);
    const isNew = !this.#seen.has(key);
    this.#seen.add(key);
    return isNew;
  }

  #readGrounding(metadata: JsonObject): void {
    const chunks = array(metadata, 'groundingChunks');
    if (chunks.length > 0) this.#chunks = chunks;
    for (const support of array(metadata, 'groundingSupports')) {
      if (!isObject(support)) throw malformed('groundingSupports');
      const segment = object(support, 'segment') ?? {};
      const place = count(segment, 'partIndex');
      const span = { start: count(segment, 'startIndex'), end: count(segment, 'endIndex') };
      for (const index of array(support, 'groundingChunkIndices')) {
        const source = typeof index === 'number' ? sourceOf(this.#chunks[index]) : undefined;
        if (source !== undefined) this.#add({ source, span, place, words: text(segment, 'text') });
      }
    }
  }

  #readSource(source: JsonValue): void {
    if (!isObject(source)) throw malformed('citationMetadata');
    const url = text(source, 'uri');
    const title = text(source, 'title');
    this.#add({
      source: url === undefined ? { native: source } : { url, ...(title === undefined ? {} : { title }) },
      span: { start: count(source, 'startIndex'), end: count(source, 'endIndex') },
      place: undefined,
      words: undefined,
    });
  }

  #add(waiting: Waiting): void {
    const key = JSON.stringify([waiting.source, waiting.span, waiting.place ?? null]);
    if (this.#seen.has(key)) return;
    this.#seen.add(key);
    this.#waiting.push(waiting);
  }
}

function sourceOf(chunk: JsonValue | undefined): Waiting['source'] | undefined {
  if (!isObject(chunk)) return undefined;
  for (const kind of ['web', 'maps', 'retrievedContext']) {
    const source = chunk[kind];
    const url = isObject(source) ? text(source, 'uri') : undefined;
    if (!isObject(source) || url === undefined) continue;
    const title = text(source, 'title');
    return { url, ...(title === undefined ? {} : { title }) };
  }
  return undefined;
}

/** An index; left out means 0, as in every number of this protocol. */
function count(holder: JsonObject, name: string): number {
  const value = holder[name];
  if (value === undefined || value === null) return 0;
  if (typeof value !== 'number' || !Number.isInteger(value)) throw malformed(name);
  return value;
}

function citationOf({ source }: Waiting, span: Span | undefined): Citation {
  if ('native' in source) return { kind: 'native', dialect: 'gemini', body: source.native };
  return span === undefined ? { kind: 'url', ...source } : { kind: 'url', ...source, ...span };
}

/** Code units that are looked through, in all, for words whose numbers are off: 200 searches of a text of 300,000. Others stay without a place. */
const MAX_SEARCHED = 64 * 1024 * 1024;

/** What every citation of an item is located by. */
interface Ground {
  readonly item: CitedItem;
  readonly places: TextPlaces;
  /** The UTF-8 bytes of the item before each of its parts, by the part's place on the wire. */
  readonly bases: ReadonlyMap<number, readonly number[]>;
  /** Code units that were looked through for words so far. */
  searched: number;
}

function groundOf(item: CitedItem): Ground {
  const places = new TextPlaces(item.text);
  const bases = new Map<number, number[]>();
  for (const { place, start } of item.parts) {
    const base = places.convert(start, 'utf16', 'utf8');
    if (base === undefined) continue;
    const known = bases.get(place);
    if (known === undefined) bases.set(place, [base]);
    else known.push(base);
  }
  return { item, places, bases, searched: 0 };
}

/** The place in code points, or undefined when the citation does not fit this item. */
function locate(waiting: Waiting, { item, places, bases }: Ground): Span | undefined {
  const inParts = waiting.place === undefined ? [] : (bases.get(waiting.place) ?? []);
  // Servers also count grounding in the whole visible text.
  for (const base of [...inParts, -item.base]) {
    const bytes = { start: waiting.span.start + base, end: waiting.span.end + base };
    const units = places.convertSpan(bytes, 'utf8', 'utf16');
    if (units === undefined || units.start === units.end) continue;
    if (waiting.words !== undefined && item.text.slice(units.start, units.end) !== waiting.words) continue;
    return places.convertSpan(bytes, 'utf8', 'codePoint');
  }
  return undefined;
}

/** Where the words stand in the text, if that is one place: servers count text that they trimmed since (off by one or two bytes). */
function placeOf(words: string | undefined, ground: Ground): Span | undefined {
  const { text } = ground.item;
  if (words === undefined || words === '' || ground.searched > MAX_SEARCHED) return undefined;
  ground.searched += text.length;
  const start = text.indexOf(words);
  if (start === -1 || text.includes(words, start + 1)) return undefined;
  return ground.places.convertSpan({ start, end: start + words.length }, 'utf16', 'codePoint');
}
