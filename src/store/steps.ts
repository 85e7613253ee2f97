/**
 * What goes through many rows for an operator gives the event loop back every few milliseconds, so that nobody's stream waits.
 */
import { setImmediate } from 'node:timers/promises';

/** How long a step goes on. */
export const STEP_MS = 2;

/** The items, those that are done with within a step in one turn of the event loop. */
export async function* inSteps<T>(items: Iterable<T>): AsyncGenerator<T> {
  let until = performance.now() + STEP_MS;
  for (const item of items) {
    yield item;
    if (performance.now() < until) continue;
    await setImmediate();
    until = performance.now() + STEP_MS;
  }
}
