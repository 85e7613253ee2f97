/** A step that watches and changes nothing: meters, timers and logs hang here. */
import type { Stage } from './stage.ts';

/** Calls `watch` with every value before it is passed on, and `watchEnd` at a regular end. What they throw fails the stream. */
export function tap<T>(watch: (value: T) => void, watchEnd?: () => void): Stage<T, T> {
  return {
    ended: false,
    push(value, out) {
      watch(value);
      out.push(value);
    },
    end() {
      watchEnd?.();
    },
  };
}
