/**
 * Calls and thoughts that can be read end after every item before them. An upstream may leave a text open behind which they have
 * ended (its citations come last), but agents keep the finished items in the order in which they are done and send them back as
 * the history: neither the results of a call nor a later thought may come to stand before a text that was said first. Other
 * items wait for nothing: they begin with their end, as a sealed value does, which follows its message at once.
 */
import { isObject, type JsonObject } from '../canonical/json.ts';
import type { Emit } from './told.ts';

const DONE = 'response.output_item.done';

/** Passes events on, but keeps the `response.output_item.done` of such items until every item before them is done. */
export function endingInOrder(emit: Emit): Emit {
  /** Ends beyond the next one; null where it has been said. */
  const waiting = new Map<number, JsonObject | null>();
  let next = 0;
  return (name, body) => {
    const { output_index: index, item } = body;
    if (name !== DONE || typeof index !== 'number') {
      emit(name, body);
      return;
    }
    const waits = isObject(item) && wasBegun(item);
    if (!waits) emit(name, body);
    waiting.set(index, waits ? body : null);
    for (let done = waiting.get(next); done !== undefined; done = waiting.get(next)) {
      waiting.delete(next);
      next += 1;
      if (done !== null) emit(DONE, done);
    }
  };
}

/** True where the client has read of the item before its end. */
function wasBegun({ type, summary, content }: JsonObject): boolean {
  if (type !== 'reasoning') return type === 'function_call' || type === 'custom_tool_call';
  return (Array.isArray(summary) && summary.length > 0) || Array.isArray(content);
}
