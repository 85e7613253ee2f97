/**
 * The pictures of one upstream answer, or of several together. Pictures stay base64 text or the link that the upstream gave: none
 * is opened.
 */
import { upstreamFault } from '../canonical/error.ts';
import type { JsonObject, JsonValue } from '../canonical/json.ts';
import type { Usage } from '../canonical/usage.ts';
import { readBase64 } from '../media.ts';
import { endsStep, type Steps } from '../steps.ts';

export interface MadeImage {
  /** Base64; exactly one of `data` and `url`. */
  readonly data?: string;
  readonly url?: string;
  readonly revisedPrompt?: string;
  /**
   * What the upstream reports of this picture (`quality`, `size`, `background`, `output_format`, `model`, unknown members). Never
   * made up.
   */
  readonly facts: JsonObject;
  /** Members that the upstream gave beside the picture itself (`media_type`). */
  readonly beside: JsonObject;
}

export interface ImageAnswer {
  /** At least one. */
  readonly images: readonly MadeImage[];
  /** Unix seconds; absent where the upstream gave none. */
  readonly created?: number;
  readonly usage?: ImageUsage;
  /**
   * The upstream's own text, where it is what a client of this endpoint reads: the whole JSON body, or the data of its one event.
   */
  readonly native?: { readonly form: 'json' | 'event'; readonly text: string };
}

export interface ImageUsage {
  /** What is billed. */
  readonly billed: Usage;
  /** In the shape of the images API, as the client reads it. */
  readonly shown: JsonObject;
}

/** Some servers of the images API (Huawei ModelArts, relays) write a data URL where the Base64 belongs. */
const DATA_URL = /^data:[^,]{0,256};\s*base64,/i;

/** What a client can open as a picture. A link without a scheme is left to it. */
const LINKS = /^(https?:|data:image\/)/i;

/**
 * A picture by its base64, else by its link. Throws an upstream fault for a link that no picture has: a page that shows it as a
 * link would run a `javascript:`.
 */
export function* pictureOf(data: JsonValue | undefined, url: JsonValue | undefined): Steps<Pick<MadeImage, 'data' | 'url'>> {
  const isLink = typeof url === 'string' && url !== '' && (data === undefined || data === null || data === '');
  if (!isLink) return { data: yield* checkedData(data) };
  if (!isOpenable(url)) throw upstreamFault('undecodable', 'The upstream returned an image whose link no client can open.');
  return { url };
}

/** As many as servers take of a link. A longer one is looked at by its beginning alone, as it stands there. */
const LONG_LINK = 8192;

/** Also of a link that stands beside a picture, where a page may show it all the same. */
export function isOpenable(url: JsonValue | undefined): boolean {
  if (typeof url === 'string' && url.length > LONG_LINK) return LINKS.test(url);
  return typeof url !== 'string' || !URL.canParse(url) || LINKS.test(new URL(url).href);
}

/** A picture as base64. Throws an upstream fault for one that is empty or no base64: it is not billed (known failure I9). */
export function* checkedData(value: JsonValue | undefined): Steps<string> {
  const payload = typeof value === 'string' ? value.slice(DATA_URL.exec(value)?.[0].length ?? 0) : '';
  if (payload === '') throw upstreamFault('empty', 'The upstream returned an empty image.');
  // Some servers wrap its lines.
  const data = yield* base64InSteps(payload);
  if (data === undefined || !isBase64(data)) {
    throw upstreamFault('undecodable', 'The upstream returned an image that cannot be decoded.');
  }
  return data;
}

/** Characters of a picture that are looked at in a step. */
const PIECE = 1024 * 1024;

/** {@link readBase64}, of a long text in pieces. What is percent-encoded is no piece by piece: no upstream is known to do so. */
function* base64InSteps(payload: string): Steps<string | undefined> {
  if (payload.length <= PIECE || payload.includes('%')) return readBase64(payload);
  const pieces: string[] = [];
  let isPlain = true;
  for (let at = 0; at < payload.length; at += PIECE) {
    const piece = payload.slice(at, at + PIECE);
    const read = readBase64(piece);
    if (read === undefined) return undefined;
    isPlain &&= read === piece;
    pieces.push(read);
    yield;
  }
  return isPlain ? payload : pieces.join('');
}

/** Of the characters that {@link readBase64} leaves. Padding may be missing, but stands nowhere else than at the end. */
function isBase64(data: string): boolean {
  const padding = data.indexOf('=');
  const end = padding === -1 ? data.length : padding;
  const tail = data.slice(end, end + 3);
  return end > 0 && end % 4 !== 1 && data.length - end === tail.length && /^={0,2}$/.test(tail);
}

/** The same picture told twice (a finished item and the final snapshot, an entry and its repetition) is one picture. */
export function* withoutRepeats(images: readonly MadeImage[]): Steps<readonly MadeImage[]> {
  if (images.length < 2) return images;
  const seen = new Set<string>();
  const kept: MadeImage[] = [];
  for (const [index, image] of images.entries()) {
    const key = image.data ?? image.url ?? '';
    // To look for a long one is to look at all of it.
    if (endsStep(index) || key.length >= PIECE) yield;
    if (seen.has(key)) continue;
    seen.add(key);
    kept.push(image);
  }
  return kept;
}

/** Characters that an answer may grow by where it says of each picture what its upstream said once, of all of them. */
const MOST_REPEATED = 1024 * 1024;

/**
 * What an upstream said once of so many pictures, for each of them; of very many, or where it is very long, only for the first.
 * `size`: its characters.
 */
export function saidOfAll<Said>(said: Said, size: number, pictures: number): (index: number) => Said | undefined {
  const isShort = size * (pictures - 1) <= MOST_REPEATED;
  return (index) => (isShort || index === 0 ? said : undefined);
}

/** {@link saidOfAll} of the members of an answer that are about its pictures. */
export function factsOfAll(facts: JsonObject, pictures: number): (index: number) => JsonObject {
  const factsAt = saidOfAll(facts, pictures > 1 ? JSON.stringify(facts).length : 0, pictures);
  return (index) => factsAt(index) ?? {};
}

/** Several answers, in order, as one. */
export function joinAnswers(answers: readonly ImageAnswer[]): ImageAnswer {
  const [only] = answers;
  if (only !== undefined && answers.length === 1) return only;
  const created = answers.map((answer) => answer.created).find((value) => value !== undefined && value > 0);
  const usages = answers.flatMap(({ usage }) => (usage === undefined ? [] : [usage]));
  const usage = usages.length === 0 ? undefined : sumUsage(usages);
  return {
    images: answers.flatMap(({ images }) => images),
    ...(created === undefined ? {} : { created }),
    ...(usage === undefined ? {} : { usage }),
  };
}

function sumUsage(usages: readonly ImageUsage[]): ImageUsage {
  const [first, ...rest] = usages;
  let shown: JsonObject = first?.shown ?? {};
  for (const usage of rest) shown = addJson(shown, usage.shown);
  // Each request settles its own share; together they are only shown.
  return { billed: {}, shown };
}

/** Numbers are added, objects joined member by member; of anything else the first stays. */
function addJson(left: JsonObject, right: JsonObject): JsonObject {
  const members = new Map<string, JsonValue | undefined>(Object.entries(left));
  for (const [name, value] of Object.entries(right)) {
    const known = members.get(name);
    if (typeof known === 'number' && typeof value === 'number') members.set(name, known + value);
    else if (isPlain(known) && isPlain(value)) members.set(name, addJson(known, value));
    else if (known === undefined) members.set(name, value);
  }
  return Object.fromEntries(members);
}

function isPlain(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
