/**
 * An item ends after every item before it. An upstream may leave a text open behind which other items have ended (its citations
 * come last), but agents keep the finished items in the order in which they are done, show them so, and send them back as the
 * history: what was said first must not come to stand behind a thought, another text or a call's results. What says nothing before
 * its end waits for nothing, since readers take its place from its end: a picture, and a sealed value, which names its item anyway.
 */
import { isObject, type JsonObject, type JsonValue } from '../canonical/json.ts';
import type { Emit } from './told.ts';

const DONE = 'response.output_item.done';

/** Passes events on, but keeps the `response.output_item.done` of what was said in pieces until every item before it is done. */
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
    const waits = isSaidInPieces(item);
    if (!waits) emit(name, body);
    waiting.set(index, waits ? body : null);
    for (let done = waiting.get(next); done !== undefined; done = waiting.get(next)) {
      waiting.delete(next);
      next += 1;
      if (done !== null) emit(DONE, done);
    }
  };
}

function isSaidInPieces(item: JsonValue | undefined): boolean {
  if (!isObject(item)) return false;
  const { type, summary, content } = item;
  if (type === 'reasoning') return isFilled(summary) || isFilled(content);
  return type === 'message' || type === 'function_call' || type === 'custom_tool_call';
}

function isFilled(list: JsonValue | undefined): boolean {
  return Array.isArray(list) && list.length > 0;
}
