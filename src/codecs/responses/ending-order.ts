/**
 * An item ends after every item before it. An upstream may leave a text open behind which calls, images or their signatures
 * have ended (its citations come last), but agents keep the finished items in the order in which they are done and send them
 * back as the history: a call's results must not come to stand before a text that was said first, nor a signature before
 * what it signs.
 */
import type { JsonObject } from '../canonical/json.ts';
import type { Emit } from './told.ts';

const DONE = 'response.output_item.done';

/** Passes events on, but keeps the `response.output_item.done` of an item until every item before it is done. */
export function endingInOrder(emit: Emit): Emit {
  /** Ends beyond the next one. */
  const waiting = new Map<number, JsonObject>();
  let next = 0;
  return (name, body) => {
    const { output_index: index } = body;
    if (name !== DONE || typeof index !== 'number') {
      emit(name, body);
      return;
    }
    waiting.set(index, body);
    for (let done = waiting.get(next); done !== undefined; done = waiting.get(next)) {
      waiting.delete(next);
      next += 1;
      emit(DONE, done);
    }
  };
}
