/**
 * A conversation as a flat, ordered list of items that belongs to no protocol. Encoders rebuild messages, output items and
 * content blocks from the order of the items.
 */
import type { Dialect } from './dialect.ts';
import type { JsonObject, JsonValue } from './json.ts';
import type { Opaque } from './opaque.ts';

export const ROLES = ['user', 'assistant', 'system', 'developer'] as const;
export type Role = (typeof ROLES)[number];

export function isRole(value: unknown): value is Role {
  return ROLES.some((role) => role === value);
}

/** A tool's identity. `namespace` is the responses namespace that contains it. */
export interface ToolName {
  readonly name: string;
  readonly namespace?: string;
}

/** A citation of a URL over `[start, end)` in code points of its item's text; positions are absent where none are known. */
export type Citation =
  | { readonly kind: 'url'; readonly url: string; readonly title?: string; readonly start?: number; readonly end?: number }
  /** Readable by one dialect only (messages locations, file citations, …). */
  | { readonly kind: 'native'; readonly dialect: Dialect; readonly body: JsonObject };

export interface TokenLogprob {
  readonly token: string;
  readonly logprob: number;
  readonly bytes?: readonly number[] | null;
  readonly top?: readonly { readonly token: string; readonly logprob: number; readonly bytes?: readonly number[] | null }[];
}
/** The tokens of an item's text in order; their concatenation is that text, or the entries are dropped (spec rule 7). */
export type Logprobs = readonly TokenLogprob[];

export type MediaSource =
  /** `data` is base64 and passed on without decoding. */
  | { readonly from: 'inline'; readonly mime: string; readonly data: string }
  | { readonly from: 'url'; readonly url: string; readonly mime?: string }
  /** A private file id: valid with one vendor, Channel and credential (`file_scope`). */
  | { readonly from: 'reference'; readonly id: string; readonly mime?: string }
  /** A document given as plain text. */
  | { readonly from: 'text'; readonly text: string };

export interface Media {
  readonly type: 'image' | 'audio' | 'video' | 'file';
  readonly source: MediaSource;
  readonly filename?: string;
  /** Image detail: low, high, auto, original. */
  readonly detail?: string;
  /** Facts that the upstream reported of an image it made (size, quality, background, output_format, revised_prompt, …). */
  readonly reported?: JsonObject;
  /** Path of this media in the client's body, for errors (`messages[0].content[1]`). */
  readonly at?: string;
}

/** A part of a tool's result. */
export type Part =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'media'; readonly media: Media }
  | { readonly kind: 'native'; readonly dialect: Dialect; readonly body: JsonValue };

/** Ends a prefix of the prompt that the upstream is to cache. */
export interface CacheBreakpoint {
  /** How long at least: `5m`, `30m`, `1h`, `12h`, or whatever the client wrote. Absent: as the vendor does. */
  readonly ttl?: string;
}

/** What any item may have beside its content. */
export interface ItemFacts {
  /** The id that its own dialect gave it (`msg_…`, `rs_…`, `fc_…`); kept within the same dialect, remade elsewhere. */
  readonly id?: string;
  /** Request items: the ordinal of the source message, so that neighbouring messages of one role stay separate. */
  readonly turn?: number;
  /** The prompt up to and with this item is to be cached. */
  readonly breakpoint?: CacheBreakpoint;
  /** Path in the client's body, for errors. */
  readonly at?: string;
}

export interface TextItem extends ItemFacts {
  readonly kind: 'text';
  readonly role: Role;
  readonly text: string;
  readonly citations: readonly Citation[];
  readonly logprobs?: Logprobs;
  /** responses: `commentary` or `final_answer`. */
  readonly phase?: string;
  /** A signature that belongs to this text (gemini). */
  readonly opaque?: Opaque;
}
export interface RefusalItem extends ItemFacts {
  readonly kind: 'refusal';
  readonly text: string;
}
/** Reasoning has three kinds that are never mixed (spec rule 10): raw text, readable summary parts, and an opaque payload. */
export interface ReasoningItem extends ItemFacts {
  readonly kind: 'reasoning';
  readonly raw?: string;
  readonly summary?: readonly string[];
  readonly opaque?: Opaque;
}
export interface ToolCallItem extends ItemFacts {
  readonly kind: 'toolCall';
  readonly toolType: 'function' | 'custom';
  readonly callId: string;
  readonly tool: ToolName;
  /** The argument text as it came: JSON text for functions, free text for custom tools. Never re-serialised. */
  readonly input: string;
  readonly opaque?: Opaque;
}
export interface ToolResultItem extends ItemFacts {
  readonly kind: 'toolResult';
  readonly toolType: 'function' | 'custom';
  readonly callId: string;
  readonly content: readonly Part[];
  readonly isError: boolean;
}
export interface MediaItem extends ItemFacts {
  readonly kind: 'media';
  readonly role: Role;
  readonly media: Media;
  readonly opaque?: Opaque;
}
/** An item that only its own dialect has; the loss tables of all others drop it. */
export interface NativeItem extends ItemFacts {
  readonly kind: 'native';
  readonly dialect: Dialect;
  readonly body: JsonValue;
  readonly role?: Role;
  /** Path of a private file that it refers to (spec rule 2). */
  readonly referenceAt?: string;
}

export type Item = TextItem | RefusalItem | ReasoningItem | ToolCallItem | ToolResultItem | MediaItem | NativeItem;

/** The items of a response. */
export type OutputItem = Exclude<Item, ToolResultItem>;
export type ItemStatus = 'completed' | 'incomplete';

/**
 * Whether it has an opaque value. In a request that may be one of megabytes, which took milliseconds to open: a step ends behind
 * it.
 */
export function hasOpaque(item: Item): boolean {
  return 'opaque' in item && item.opaque !== undefined;
}
