/**
 * A turn that continues a response sends only what is new, so a result without its call is a mistake of the client: nothing that
 * it could have left out. A turn that continues nothing may hold any history; what has no counterpart there is left out.
 */
import { GatewayError } from '../../codecs/canonical/error.ts';
import type { Item } from '../../codecs/canonical/item.ts';
import { isObject } from '../../codecs/canonical/json.ts';
import type { CanonicalRequest } from '../../codecs/canonical/request.ts';

/**
 * Throws `tool_call_not_found` at the first result of the client's own input, behind the `itemsBefore` that it continues, whose
 * call is nowhere in the conversation. An earlier turn was answered without such a one, and the client cannot take it back.
 */
export function refuseOrphanResults({ items }: CanonicalRequest, itemsBefore: number): void {
  const calls = new Set<string>();
  for (const item of items) {
    const called = item.kind === 'toolCall' ? item.callId : nativeCallId(item);
    if (called !== undefined) calls.add(called);
    // An upstream that stored the item knows what it was: it may be the call.
    else if (isReference(item)) return;
  }
  for (const item of items) {
    if (item.kind !== 'toolResult' || calls.has(item.callId) || indexOf(item) < itemsBefore) continue;
    const shown = item.callId.length > MOST_SHOWN ? `${item.callId.slice(0, MOST_SHOWN)}…` : item.callId;
    throw new GatewayError('tool_call_not_found', `No tool call found for the output with call_id ${JSON.stringify(shown)}.`, {
      param: `${item.at ?? 'input'}.call_id`,
    });
  }
}

const MOST_SHOWN = 100;

/** Its place in the input. */
function indexOf({ at }: Item): number {
  const found = /^input\[(\d+)\]/.exec(at ?? '');
  return found === null ? Number.POSITIVE_INFINITY : Number(found[1]);
}

/** Of a call that only its own protocol knows: a result of a function may answer a `tool_search_call`. */
function nativeCallId(item: Item): string | undefined {
  if (item.kind !== 'native' || !isObject(item.body)) return undefined;
  const { type, call_id: callId } = item.body;
  return typeof callId === 'string' && String(type).endsWith('_call') ? callId : undefined;
}

function isReference(item: Item): boolean {
  if (item.kind !== 'native' || !isObject(item.body)) return false;
  const { type, role } = item.body;
  return type === 'item_reference' || (type === undefined && role === undefined);
}
