/**
 * Signatures that Gemini's compatible endpoint puts on tool calls and messages (`extra_content.google.thought_signature`). It refuses calls
 * that come back without theirs.
 */
import { isObject, type JsonObject, type JsonValue } from '../canonical/json.ts';
import type { Opaque } from '../canonical/opaque.ts';
import type { ResponseContext } from '../codec.ts';
import type { JsonEdit } from '../json/edit.ts';
import type { JsonPath } from '../json/text.ts';
import { nonEmptyString } from './wire.ts';

/** The `form` of such a signature. */
export const CALL_FORM = 'extra_content';

export const SIGNATURE_PATH = ['extra_content', 'google', 'thought_signature'] as const;

/** The signature of an entry of `tool_calls`, of a message or of a delta. */
export function signatureOf(entry: JsonValue): string | undefined {
  let value: JsonValue | undefined = entry;
  for (const key of SIGNATURE_PATH) value = isObject(value) ? value[key] : undefined;
  return nonEmptyString(value);
}

export function callOpaque(value: string, owner: Opaque['owner']): Opaque {
  return { owner, value, form: CALL_FORM };
}

/** The call with its signature, where it has one. */
export function signedCall(call: JsonObject, signature: string | undefined): JsonObject {
  return signature === undefined ? call : { ...call, extra_content: { google: { thought_signature: signature } } };
}

/** Adds the edits that seal the signatures of a native delta or message at `path`. */
export function sealSignatures(message: JsonObject, path: JsonPath, context: ResponseContext, edits: JsonEdit[]): void {
  const seal = (signed: JsonValue, at: JsonPath): void => {
    const value = signatureOf(signed);
    if (value === undefined) return;
    const sealed = context.seal(callOpaque(value, context.owner));
    edits.push({ path: [...at, ...SIGNATURE_PATH], value: JSON.stringify(sealed) });
  };
  seal(message, path);
  const calls = message['tool_calls'];
  if (!Array.isArray(calls)) return;
  for (const [at, entry] of calls.entries()) seal(entry, [...path, 'tool_calls', at]);
}
