/**
 * What of an upstream's own JSON is the gateway's when the client speaks the same dialect: ids of the response, the logical
 * model, sealed opaque values, sanitised errors, prices of routers. Every other byte stays as it came.
 */
import type { Outcome } from '../canonical/outcome.ts';
import { isObject, type JsonObject, type JsonValue } from '../canonical/json.ts';
import { isPrice } from '../canonical/usage.ts';
import type { ResponseContext } from '../codec.ts';
import type { JsonEdit, JsonPath } from '../json-text.ts';
import { sanitise } from '../sanitise.ts';
import { errorObject } from './response-object.ts';
import { OPAQUE_MEMBERS, wordOf } from './wire.ts';

/** Edits for a whole response object at `path`. `outcome`: of a finished one. */
export function responseEdits(
  path: JsonPath,
  response: JsonObject,
  context: ResponseContext,
  outcome: Outcome | undefined,
): JsonEdit[] {
  const edits: JsonEdit[] = [
    { path: [...path, 'id'], value: JSON.stringify(context.responseId) },
    { path: [...path, 'model'], value: JSON.stringify(context.model) },
  ];
  const previous = context.request.previousResponseId;
  if (previous !== undefined) edits.push({ path: [...path, 'previous_response_id'], value: JSON.stringify(previous) });
  // SDKs put the items of the stream into the list that the response begins with.
  if (outcome === undefined && response['output'] === undefined) edits.push({ path: [...path, 'output'], value: '[]' });
  const output = Array.isArray(response['output']) ? response['output'] : [];
  for (const [index, item] of output.entries()) edits.push(...itemEdits([...path, 'output', index], item, context, false));
  if (isObject(response['usage'])) {
    for (const key of Object.keys(response['usage']))
      if (isPrice(key)) edits.push({ path: [...path, 'usage', key], value: undefined });
  }
  if (outcome !== undefined) edits.push(...outcomeEdits(path, response, outcome));
  return edits;
}

function outcomeEdits(path: JsonPath, response: JsonObject, outcome: Outcome): JsonEdit[] {
  const edits: JsonEdit[] = [];
  const status = outcome.status === 'cancelled' ? 'failed' : outcome.status;
  if (response['status'] !== status) edits.push({ path: [...path, 'status'], value: JSON.stringify(status) });
  if (outcome.status !== 'failed' && outcome.status !== 'cancelled') return edits;
  const { code, message } = errorObject(outcome.error);
  if (isObject(response['error'])) {
    edits.push({ path: [...path, 'error', 'code'], value: JSON.stringify(code) });
    edits.push({ path: [...path, 'error', 'message'], value: JSON.stringify(message) });
  } else {
    edits.push({ path: [...path, 'error'], value: JSON.stringify({ code, message }) });
  }
  return edits;
}

/**
 * Edits for an output item at `path`. An announced item (`isEarly`) loses its opaque value: the finished one brings it, whole,
 * in an envelope. Compaction items pass unchanged (design: "Opaque").
 */
function itemEdits(path: JsonPath, item: JsonValue | undefined, context: ResponseContext, isEarly: boolean): JsonEdit[] {
  if (!isObject(item)) return [];
  const edits: JsonEdit[] = [];
  if (item['response_id'] !== undefined)
    edits.push({ path: [...path, 'response_id'], value: JSON.stringify(context.responseId) });
  if (item['type'] === 'reasoning') {
    for (const member of OPAQUE_MEMBERS) {
      if (item[member] === undefined || item[member] === null || item[member] === '') continue;
      const value = isEarly ? undefined : sealMember(item, member, context);
      edits.push({ path: [...path, member], value: value === undefined ? undefined : JSON.stringify(value) });
    }
  }
  const error = item['error'];
  if (item['type'] === 'image_generation_call' && isObject(error) && typeof error['message'] === 'string') {
    const message = sanitise(error['message'], 'The image could not be made.');
    edits.push({ path: [...path, 'error', 'message'], value: JSON.stringify(message) });
  }
  return edits;
}

/** The value in an envelope of its owner; a value that is no string cannot be sealed and is left out. */
function sealMember(item: JsonObject, member: (typeof OPAQUE_MEMBERS)[number], context: ResponseContext): string | undefined {
  const value = wordOf(item, member);
  if (value === undefined) return undefined;
  const id = wordOf(item, 'id');
  const form = member === 'signature' ? member : wordOf(item, 'format');
  return context.seal({
    owner: context.owner,
    value,
    ...(id === undefined ? {} : { itemId: id }),
    ...(form === undefined ? {} : { form }),
  });
}

/** Edits for an event that carries no response object. */
export function eventEdits(name: string, body: JsonObject, context: ResponseContext): JsonEdit[] {
  const edits: JsonEdit[] = [];
  if (body['response_id'] !== undefined) edits.push({ path: ['response_id'], value: JSON.stringify(context.responseId) });
  if (body['item'] !== undefined)
    edits.push(...itemEdits(['item'], body['item'], context, name === 'response.output_item.added'));
  return edits;
}
