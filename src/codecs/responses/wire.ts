/**
 * Names and members of the responses wire. A known member of the wrong type is malformed; unknown members are not looked at.
 */
import { type GatewayError, upstreamFault } from '../canonical/error.ts';
import { isObject, type JsonObject, type JsonValue, tryJson } from '../canonical/json.ts';
import type { Mint } from '../codec.ts';
import { editJson, editKnown, editValue, type JsonEdit } from '../json/edit.ts';
import type { Ends } from '../json/text.ts';

/** The id prefixes of items that the gateway makes, by item type (known failure R22: an id must match its type). */
export const ID_PREFIX = {
  message: 'msg_',
  reasoning: 'rs_',
  function_call: 'fc_',
  custom_tool_call: 'ctc_',
  image_generation_call: 'ig_',
} as const;

/** Item types with a canonical reading; every other type is a native item. */
export type KnownItemType = keyof typeof ID_PREFIX;

export function isKnownItem(type: string): type is KnownItemType {
  return Object.hasOwn(ID_PREFIX, type);
}

/** The same of native items. */
const NATIVE_ID_PREFIX: ReadonlyMap<string, string> = new Map([
  ['web_search_call', 'ws_'],
  ['file_search_call', 'fs_'],
  ['code_interpreter_call', 'ci_'],
  ['mcp_call', 'mcp_'],
  ['mcp_list_tools', 'mcpl_'],
  ['mcp_approval_request', 'mcpr_'],
  ['shell_call', 'sh_'],
  ['apply_patch_call', 'apc_'],
  ['tool_search_call', 'tsc_'],
  ['tool_search_output', 'tso_'],
]);

/** Calls that the upstream may run by itself and that may change something: on servers of the client's, and in its containers. */
const WITH_EFFECTS: ReadonlySet<string> = new Set(['mcp_call', 'shell_call', 'code_interpreter_call']);

export function hasEffects(type: string): boolean {
  return WITH_EFFECTS.has(type);
}

/**
 * A new id for an item that has none: official clients refuse one without. Compaction items pass unchanged (design: "Opaque").
 */
export function missingId(item: JsonObject, mint: Mint): string | undefined {
  const type = nonEmptyString(item, 'type');
  if (type === undefined || type === 'compaction' || nonEmptyString(item, 'id') !== undefined) return undefined;
  return mint(isKnownItem(type) ? ID_PREFIX[type] : (NATIVE_ID_PREFIX.get(type) ?? 'item_'));
}

/** The longest that are known, those of a proxy that encrypts them, have some hundred characters. */
const LONGEST_ID = 4096;

/** Clients read the id of an item in each event about it, so a long one makes many times its length of a few bytes. */
export function checkId(item: JsonValue | undefined): void {
  if (!isObject(item) || typeof item['id'] !== 'string' || item['id'].length <= LONGEST_ID) return;
  throw upstreamFault('malformed_event', `The upstream sent an item whose id is longer than ${LONGEST_ID} characters.`);
}

/** Members of reasoning items that hold opaque values (`signature`: a router's addition). */
export const OPAQUE_MEMBERS = ['encrypted_content', 'signature'] as const;

/** Members of image_generation_call items that describe the image. */
export const IMAGE_FACTS = ['action', 'background', 'model', 'output_format', 'quality', 'revised_prompt', 'size'] as const;

/** An event as JSON text and what that parses to. */
export interface EventText {
  readonly text: string;
  readonly json: JsonObject;
  /** Where long values of the text end, by their start. */
  readonly ends?: Ends | undefined;
}

export interface NamedEvent {
  readonly name: string;
  readonly json: JsonObject;
}

/** Throws GatewayError blaming the upstream for anything but an object. */
export function parseEvent(text: string, json = tryJson(text), ends?: Ends): EventText {
  if (!isObject(json)) throw malformed('event');
  return ends === undefined ? { text, json } : { text, json, ends };
}

/** The event with all edits made. */
export function edited(event: EventText, edits: readonly JsonEdit[]): EventText {
  if (edits.length === 0) return event;
  const json = editValue(event.json, edits);
  if (!isObject(json)) throw malformed('event');
  const { text, ends } = event;
  return ends === undefined ? { text: editJson(text, edits), json } : { ...editKnown(text, edits, ends), json };
}

export function malformed(what: string): GatewayError {
  return upstreamFault('malformed_event', `The upstream sent a malformed ${what}.`);
}

export function needString(body: JsonObject, key: string, what: string): string {
  const value = body[key];
  if (typeof value !== 'string') throw malformed(what);
  return value;
}

export function needIndex(body: JsonObject, key: string, what: string): number {
  const value = body[key];
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 0) throw malformed(what);
  return value;
}

export function needObject(body: JsonObject, key: string, what: string): JsonObject {
  const value = body[key];
  if (!isObject(value)) throw malformed(what);
  return value;
}

/** An array member; absent and null count as empty. */
export function arrayOrEmpty(body: JsonObject, key: string, what: string): readonly JsonValue[] {
  const value = body[key];
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw malformed(what);
  return value;
}

/** A string member that may be absent, null or empty. */
export function nonEmptyString(body: JsonObject, key: string): string | undefined {
  const value = body[key];
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** Paths of the members in which the deltas of one part differ. */
export const DELTA = ['delta'] as const;
export const SEQUENCE_NUMBER = ['sequence_number'] as const;
export const OBFUSCATION = ['obfuscation'] as const;
