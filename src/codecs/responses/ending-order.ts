/**
 * A tool call ends after every item before it. An upstream may leave a text open behind which calls have ended (its citations
 * come last), but agents keep the finished items in the order in which they are done and send them back as the history: a
 * call's results must not come to stand before a text that was said first. Other items wait for nothing: a sealed value
 * follows its message at once.
 */
import { isObject, type JsonObject } from '../canonical/json.ts';
import type { Emit } from './told.ts';

const DONE = 'response.output_item.done';

/** Passes events on, but keeps the `response.output_item.done` of a call until every item before it is done. */
export function endingCallsInOrder(emit: Emit): Emit {
  /** Ends beyond the next one; null where it has been said. */
  const waiting = new Map<number, JsonObject | null>();
  let next = 0;
  return (name, body) => {
    const { output_index: index, item } = body;
    if (name !== DONE || typeof index !== 'number') {
      emit(name, body);
      return;
    }
    const waits = isObject(item) && (item['type'] === 'function_call' || item['type'] === 'custom_tool_call');
    if (!waits) emit(name, body);
    waiting.set(index, waits ? body : null);
    for (let done = waiting.get(next); done !== undefined; done = waiting.get(next)) {
      waiting.delete(next);
      next += 1;
      if (done !== null) emit(DONE, done);
    }
  };
}
