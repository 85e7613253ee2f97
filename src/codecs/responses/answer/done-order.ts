/**
 * Keeps `response.output_item.done` in the order of the items. An upstream may leave a text open after later items have ended
 * (its citations come last). But agents keep finished items in the order of their `done` events, show them in that order and send
 * them back as the history, so a text must not move behind reasoning, another text or the results of calls. Items that are not
 * streamed (an image, a reasoning item with an opaque value alone) wait for nothing.
 */
import { isObject, type JsonObject, type JsonValue } from '../../canonical/json.ts';
import type { Emit } from './sent-items.ts';

const DONE = 'response.output_item.done';

/** Passes events on, but holds the `response.output_item.done` of a streamed item back until every item before it is done. */
export function emitDoneInOrder(emit: Emit): Emit {
  /** `done` events that came before their turn; null where the event has been sent. */
  const waiting = new Map<number, JsonObject | null>();
  let next = 0;
  return (name, body) => {
    const { output_index: index, item } = body;
    if (name !== DONE || typeof index !== 'number') {
      emit(name, body);
      return;
    }
    const waits = isStreamed(item);
    if (!waits) emit(name, body);
    waiting.set(index, waits ? body : null);
    for (let done = waiting.get(next); done !== undefined; done = waiting.get(next)) {
      waiting.delete(next);
      next += 1;
      if (done !== null) emit(DONE, done);
    }
  };
}

function isStreamed(item: JsonValue | undefined): boolean {
  if (!isObject(item)) return false;
  const { type, summary, content } = item;
  if (type === 'reasoning') return isFilled(summary) || isFilled(content);
  return type === 'message' || type === 'function_call' || type === 'custom_tool_call';
}

function isFilled(list: JsonValue | undefined): boolean {
  return Array.isArray(list) && list.length > 0;
}
