/**
 * `reasoning_details`: which fragments are one reasoning item, and how an opaque payload keeps the type, format, index and
 * id that its vendor checks on replay. Knows the entry shapes; does not know streams or messages.
 */
import { isObject, type JsonObject, type JsonValue, tryJson } from '../canonical/json.ts';
import type { Opaque } from '../canonical/opaque.ts';

/** One entry of the array, read. `other` entries (server tool calls) have no canonical reading. */
export interface Detail {
  readonly kind: 'text' | 'summary' | 'encrypted' | 'other';
  readonly id: string | undefined;
  readonly format: string | undefined;
  readonly index: number | undefined;
  /** Readable text of the fragment, perhaps empty. */
  readonly text: string;
  /** `signature` of a text, `data` of an encrypted entry: complete. */
  readonly payload: string | undefined;
  readonly body: JsonObject;
}

/** What is known of the item that fragments accumulate into. */
export interface DetailIdentity {
  readonly face: 'text' | 'sealed';
  id: string | undefined;
  format: string | undefined;
  index: number | undefined;
  payload: string | undefined;
}

/** The format of entries that the gateway makes from answers of other protocols. */
export const UNKNOWN_FORMAT = 'unknown';

const KINDS: Readonly<Record<string, Detail['kind']>> = {
  'reasoning.text': 'text',
  'reasoning.summary': 'summary',
  'reasoning.encrypted': 'encrypted',
};

const CONTENT_MEMBER = { text: 'text', summary: 'summary', encrypted: 'data', other: undefined } as const;

export function readDetail(entry: JsonValue): Detail | undefined {
  if (!isObject(entry)) return undefined;
  const { type, id, format, index } = entry;
  const kind = (typeof type === 'string' && Object.hasOwn(KINDS, type) ? KINDS[type] : undefined) ?? 'other';
  const readable = kind === 'text' ? entry['text'] : kind === 'summary' ? entry['summary'] : undefined;
  const payload = kind === 'text' ? entry['signature'] : kind === 'encrypted' ? entry['data'] : undefined;
  return {
    kind,
    id: typeof id === 'string' && id !== '' ? id : undefined,
    format: typeof format === 'string' ? format : undefined,
    index: typeof index === 'number' ? index : undefined,
    text: typeof readable === 'string' ? readable : '',
    payload: typeof payload === 'string' && payload !== '' ? payload : undefined,
    body: entry,
  };
}

export function identityOf(detail: Detail): DetailIdentity {
  const face = detail.kind === 'text' ? 'text' : 'sealed';
  return { face, id: detail.id, format: detail.format, index: detail.index, payload: detail.payload };
}

/**
 * True when the fragment belongs to the item: text and signature of one index are one item; so are a summary and an
 * encrypted payload of one index and format. A signed text is finished; another payload is another item.
 */
export function belongs(identity: DetailIdentity, detail: Detail): boolean {
  if (detail.kind === 'other' || (detail.kind === 'text') !== (identity.face === 'text')) return false;
  if (!alike(identity.index, detail.index) || !alike(identity.format, detail.format) || !alike(identity.id, detail.id))
    return false;
  if (identity.payload === undefined) return true;
  if (detail.payload !== undefined) return detail.payload === identity.payload;
  return detail.kind === 'summary';
}

export function absorb(identity: DetailIdentity, detail: Detail): void {
  identity.id ??= detail.id;
  identity.format ??= detail.format;
  identity.index ??= detail.index;
  identity.payload ??= detail.payload;
}

function alike<T>(a: T | undefined, b: T | undefined): boolean {
  return a === undefined || b === undefined || a === b;
}

/** The payload as an opaque value that remembers its entry's other members. */
export function opaqueOfDetail(detail: Detail, payload: string, owner: Opaque['owner']): Opaque {
  const content = CONTENT_MEMBER[detail.kind];
  const members = Object.entries(detail.body).filter(([key]) => key !== content && key !== 'signature' && key !== 'data');
  return {
    owner,
    value: payload,
    ...(detail.id === undefined ? {} : { itemId: detail.id }),
    form: JSON.stringify(Object.fromEntries(members)),
  };
}

/** A signature vouches for words. They stay with it, since clients of other protocols may bring the value back without them. */
export function withSignedWords(opaque: Opaque, words: string): Opaque {
  const form = entryOfForm(opaque.form);
  if (form?.['type'] !== 'reasoning.text' || words === '') return opaque;
  return { ...opaque, form: JSON.stringify({ ...form, text: words }) };
}

/** The scalar surface of older routers, as a `form`. */
export const SCALAR_FORM = 'reasoning_opaque';

/** The members that the payload's own entry had, where this dialect made the value. */
export function entryOfForm(form: string | undefined): JsonObject | undefined {
  if (form === undefined || !form.startsWith('{')) return undefined;
  const json = tryJson(form);
  return isObject(json) && typeof json['type'] === 'string' ? json : undefined;
}

/** The entries that say `payload` (raw upstream value or envelope) and its readable text as their vendor said them. */
export function detailEntries(form: JsonObject, readable: string | undefined, payload: string): JsonObject[] {
  const { type, text: signed, ...members } = form;
  if (type === 'reasoning.text') {
    const text = signed ?? readable;
    return [{ type, ...(text === undefined ? {} : { text }), signature: payload, ...members }];
  }
  const entry = { type: 'reasoning.encrypted', data: payload, ...members };
  if (readable === undefined) return [entry];
  const { id: _, ...rest } = members;
  return [{ type: 'reasoning.summary', summary: readable, ...rest }, entry];
}

/** Formats whose readable text is followed by its payload before anything else is said. */
export function awaitsPayload(format: string | undefined): boolean {
  return format !== undefined && /anthropic|responses/.test(format);
}
