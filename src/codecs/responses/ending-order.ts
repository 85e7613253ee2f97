/**
 * An item ends after every item before it. An upstream may leave a text open behind which other items have ended (its citations
 * come last), but agents keep the finished items in the order in which they are done, show them so, and send them back as the
 * history: what was said first must not come to stand behind a thought, another text or a call's results.
 */
import type { JsonObject } from '../canonical/json.ts';
import type { Emit } from './told.ts';

const DONE = 'response.output_item.done';

/** Passes events on, but keeps each `response.output_item.done` until every item before it is done. */
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
