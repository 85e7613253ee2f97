/**
 * The edits of an upstream's own JSON for a client of the same dialect: the gateway's response id and logical model, sealed
 * opaque values, sanitised errors, no router prices, and required members that the upstream left out. Every other byte stays as
 * it came.
 */
import { append } from '../../append.ts';
import type { Outcome } from '../../canonical/outcome.ts';
import { isObject, type JsonObject, type JsonValue } from '../../canonical/json.ts';
import { countOf } from '../../canonical/usage.ts';
import type { ResponseContext } from '../../codec.ts';
import type { JsonEdit } from '../../json/edit.ts';
import type { JsonPath } from '../../json/text.ts';
import { sanitise } from '../../errors/sanitise.ts';
import { leaveOutPrices } from '../../answers/token-usage.ts';
import { errorObject, incompleteDetails } from './response-object.ts';
import { errorOf } from './outcome.ts';
import { finalInput, formOf, inputMember } from './decode-items.ts';
import { OPAQUE_MEMBERS, nonEmptyString } from '../wire.ts';

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
  // SDKs append the items of the stream to this list.
  if (!Array.isArray(response['output'])) edits.push({ path: [...path, 'output'], value: '[]' });
  const output = Array.isArray(response['output']) ? response['output'] : [];
  for (const [index, item] of output.entries()) append(edits, itemEdits([...path, 'output', index], item, context, 'finished'));
  if (isObject(response['usage'])) edits.push(...usageEdits([...path, 'usage'], response['usage']));
  if (outcome !== undefined) edits.push(...outcomeEdits(path, response, outcome));
  return edits;
}

/** Takes router prices out, and makes the required counters numbers (known failure R15). */
function usageEdits(path: JsonPath, usage: JsonObject): JsonEdit[] {
  const edits: JsonEdit[] = [];
  leaveOutPrices(usage, path, edits);
  const input = countOf(usage['input_tokens']) ?? countOf(usage['prompt_tokens']) ?? 0;
  const output = countOf(usage['output_tokens']) ?? countOf(usage['completion_tokens']) ?? 0;
  for (const [key, count] of [
    ['input_tokens', input],
    ['output_tokens', output],
    ['total_tokens', input + output],
  ] as const)
    edits.push(...countEdits(path, usage, key, count));
  for (const [key, counter] of [
    ['input_tokens_details', 'cached_tokens'],
    ['output_tokens_details', 'reasoning_tokens'],
  ] as const) {
    const details = usage[key];
    if (isObject(details)) edits.push(...countEdits([...path, key], details, counter, 0));
    else edits.push({ path: [...path, key], value: JSON.stringify({ [counter]: 0 }) });
  }
  return edits;
}

function countEdits(path: JsonPath, usage: JsonObject, key: string, otherwise: number): JsonEdit[] {
  const given = usage[key];
  return typeof given === 'number' ? [] : [{ path: [...path, key], value: String(countOf(given) ?? otherwise) }];
}

function outcomeEdits(path: JsonPath, response: JsonObject, outcome: Outcome): JsonEdit[] {
  const edits: JsonEdit[] = [];
  const status = outcome.status === 'cancelled' ? 'failed' : outcome.status;
  if (response['status'] !== status) edits.push({ path: [...path, 'status'], value: JSON.stringify(status) });
  if (outcome.status === 'incomplete' && nonEmptyString(detailsOf(response), 'reason') === undefined)
    edits.push({ path: [...path, 'incomplete_details'], value: JSON.stringify(incompleteDetails(outcome)) });
  const { error: given } = response;
  const isFailure = outcome.status === 'failed' || outcome.status === 'cancelled';
  if (!isFailure && (given === undefined || given === null)) return edits;
  const shown = errorObject(isFailure ? outcome.error : errorOf(given, ''));
  edits.push(...errorEdits([...path, 'error'], given, shown));
  return edits;
}

/** Other members than code and message are kept where they only say which fault this is. */
function errorEdits(path: JsonPath, given: JsonValue | undefined, shown: JsonObject): JsonEdit[] {
  if (!isObject(given)) return [{ path, value: JSON.stringify(shown) }];
  const isNamed = given['code'] === shown['code'];
  const edits = Object.entries(shown).map(([key, value]) => ({ path: [...path, key], value: JSON.stringify(value) }));
  const rest = Object.entries(given).filter(([key]) => shown[key] === undefined);
  const removed = rest.filter(([key, value]) => !(isPlain(value) || (isNamed && isNaming(key, value))));
  return [...edits, ...removed.map(([key]) => ({ path: [...path, key], value: undefined }))];
}

function isPlain(value: JsonValue | undefined): boolean {
  return value === null || typeof value === 'number' || typeof value === 'boolean';
}

function isNaming(key: string, value: JsonValue | undefined): boolean {
  return (key === 'type' || key === 'param') && typeof value === 'string' && /^[\w.[\]-]{1,100}$/.test(value);
}

function detailsOf(response: JsonObject): JsonObject {
  return isObject(response['incomplete_details']) ? response['incomplete_details'] : {};
}

/**
 * Edits for an output item at `path`. An announced item loses its opaque value, which comes sealed with the finished one.
 * Compaction items pass unchanged (design: "Opaque").
 */
function itemEdits(
  path: JsonPath,
  item: JsonValue | undefined,
  context: ResponseContext,
  form: 'announced' | 'finished',
): JsonEdit[] {
  if (!isObject(item)) return [];
  const edits = memberEdits(path, item, form);
  if (item['response_id'] !== undefined)
    edits.push({ path: [...path, 'response_id'], value: JSON.stringify(context.responseId) });
  if (item['type'] === 'message' && Array.isArray(item['content'])) {
    for (const [index, part] of item['content'].entries()) edits.push(...partEdits([...path, 'content', index], part));
  }
  if (item['type'] === 'reasoning') {
    for (const member of OPAQUE_MEMBERS) {
      if (item[member] === undefined || item[member] === null || item[member] === '') continue;
      const value = form === 'announced' ? undefined : sealMember(item, member, context);
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

/** The members that official clients walk through or append to without asking whether they are there. */
function memberEdits(path: JsonPath, item: JsonObject, form: 'announced' | 'finished'): JsonEdit[] {
  switch (item['type']) {
    case 'message':
      return Array.isArray(item['content']) ? [] : [{ path: [...path, 'content'], value: '[]' }];
    case 'reasoning':
      return Array.isArray(item['summary']) ? [] : [{ path: [...path, 'summary'], value: '[]' }];
    case 'function_call':
    case 'custom_tool_call': {
      const member = inputMember(item);
      if (typeof item[member] === 'string') return [];
      const input = form === 'announced' ? '' : finalInput(item, '');
      return [{ path: [...path, member], value: JSON.stringify(input) }];
    }
    default:
      return [];
  }
}

/** A text part always has a list of annotations (known failure R15). */
function partEdits(path: JsonPath, part: JsonValue | undefined): JsonEdit[] {
  if (!isObject(part) || part['type'] !== 'output_text' || Array.isArray(part['annotations'])) return [];
  return [{ path: [...path, 'annotations'], value: '[]' }];
}

/** The value in an envelope; undefined for a value that is not a string, which is left out. */
function sealMember(item: JsonObject, member: (typeof OPAQUE_MEMBERS)[number], context: ResponseContext): string | undefined {
  const value = nonEmptyString(item, member);
  if (value === undefined) return undefined;
  const id = nonEmptyString(item, 'id');
  const form = formOf(item, member);
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
    append(edits, itemEdits(['item'], body['item'], context, name === 'response.output_item.added' ? 'announced' : 'finished'));
  if (body['part'] !== undefined) edits.push(...partEdits(['part'], body['part']));
  return edits;
}
