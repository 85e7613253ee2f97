/**
 * Entries of `reasoning_details`: which of them are fragments of one reasoning item, and how an opaque payload keeps the type,
 * format, index and id of its entry, which the vendor checks on replay. Does not know streams or messages.
 */
import { isObject, type JsonObject, type JsonValue, tryJson } from '../canonical/json.ts';
import type { Opaque } from '../canonical/opaque.ts';

/** One entry of the array. `other` entries (server tool calls) have no canonical form. */
export interface Detail {
  readonly kind: 'text' | 'summary' | 'encrypted' | 'other';
  readonly id: string | undefined;
  readonly format: string | undefined;
  readonly index: number | undefined;
  /** The readable text of the fragment; may be empty. */
  readonly text: string;
  /** The `signature` of a text or the `data` of an encrypted entry, never a fragment. */
  readonly payload: string | undefined;
  readonly body: JsonObject;
}

/** What is known of the item that fragments belong to. `sealed`: an encrypted entry and its summary. */
export interface DetailIdentity {
  readonly kind: 'text' | 'sealed';
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
  const kind = detail.kind === 'text' ? 'text' : 'sealed';
  return { kind, id: detail.id, format: detail.format, index: detail.index, payload: detail.payload };
}

/**
 * True when the fragment belongs to the item. Text and signature of one index are one item, and so are a summary and an encrypted
 * payload of one index and format. A signed text takes no more text, and another payload is another item.
 */
export function isSameItem(identity: DetailIdentity, detail: Detail): boolean {
  if (detail.kind === 'other' || (detail.kind === 'text') !== (identity.kind === 'text')) return false;
  if (
    !isCompatible(identity.index, detail.index) ||
    !isCompatible(identity.format, detail.format) ||
    !isCompatible(identity.id, detail.id)
  )
    return false;
  if (identity.payload === undefined) return true;
  if (detail.payload !== undefined) return detail.payload === identity.payload;
  return detail.kind === 'summary';
}

/** Adds what the fragment says to the identity. */
export function mergeIdentity(identity: DetailIdentity, detail: Detail): void {
  identity.id ??= detail.id;
  identity.format ??= detail.format;
  identity.index ??= detail.index;
  identity.payload ??= detail.payload;
}

/** Entries leave members out that were sent before. */
function isCompatible<T>(a: T | undefined, b: T | undefined): boolean {
  return a === undefined || b === undefined || a === b;
}

/** The payload as an opaque value that keeps the other members of its entry in `form`. */
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

/** Keeps the signed text with its signature, since clients of other protocols may send the value back without it. */
export function withSignedText(opaque: Opaque, text: string): Opaque {
  const form = entryOfForm(opaque.form);
  if (form?.['type'] !== 'reasoning.text' || text === '') return opaque;
  return { ...opaque, form: JSON.stringify({ ...form, text }) };
}

/** The `form` of a value that arrived in the member `reasoning_opaque` of older routers. */
export const SCALAR_FORM = 'reasoning_opaque';

/** The other members of the entry that a value arrived in; undefined for a value of another dialect. */
export function entryOfForm(form: string | undefined): JsonObject | undefined {
  if (form === undefined || !form.startsWith('{')) return undefined;
  const json = tryJson(form);
  return isObject(json) && typeof json['type'] === 'string' ? json : undefined;
}

/** The entries for a payload (raw upstream value or envelope) and its readable text, in the form of their vendor. */
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

/**
 * The format of details that stood in `thinking_blocks`. LiteLLM gives the thinking of Claude as blocks of messages beside their
 * text in `reasoning_content`, and sends to its vendor what comes back there.
 */
const THINKING_BLOCK = 'anthropic-thinking-block';

/** Blocks of thinking as details. A signature comes in a block of its own, without text. */
export function detailsOfBlocks(blocks: readonly JsonValue[]): JsonObject[] {
  return blocks.flatMap((block): JsonObject[] => {
    if (!isObject(block)) return [];
    const { type, thinking, signature, data } = block;
    if (type === 'redacted_thinking') return [{ type: 'reasoning.encrypted', data: data ?? null, format: THINKING_BLOCK }];
    if (type !== 'thinking') return [];
    return [{ type: 'reasoning.text', text: thinking ?? null, signature: signature ?? null, format: THINKING_BLOCK }];
  });
}

/** The block of thinking that a detail was; undefined for one of another member. */
export function blockOfDetail(detail: JsonObject): JsonObject | undefined {
  if (detail['format'] !== THINKING_BLOCK) return undefined;
  const { type, text, signature, data } = detail;
  if (type === 'reasoning.encrypted') return { type: 'redacted_thinking', data: data ?? '' };
  return { type: 'thinking', thinking: text ?? '', signature: signature ?? '' };
}

/** True for formats whose readable text is always followed by a payload. */
export function awaitsPayload(format: string | undefined): boolean {
  return format !== undefined && /anthropic|responses/.test(format);
}
