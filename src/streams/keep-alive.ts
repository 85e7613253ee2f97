/** Says something after a while of silence, so that proxies and clients do not give up on a slow answer. Knows no frame format. */
import type { Clock } from './clock.ts';
import { createDeadline } from './deadline.ts';

export const KEEP_ALIVE_INTERVAL_MS = 15_000;

export interface KeepAlive {
  /** Something was said: the silence starts anew. Also ends a pause. */
  touch(): void;
  /** The reader is behind: say nothing until `touch`. */
  pause(): void;
  stop(): void;
}

/** Calls `say` after each `intervalMs` of silence, for the first time `intervalMs` from now; what it says counts as something said. */
export function createKeepAlive(clock: Clock, say: () => void, intervalMs: number = KEEP_ALIVE_INTERVAL_MS): KeepAlive {
  let state: 'on' | 'paused' | 'stopped' = 'on';
  const deadline = createDeadline(clock, () => {
    deadline.in(intervalMs);
    say();
  });
  deadline.in(intervalMs);

  return {
    touch() {
      if (state === 'stopped') return;
      state = 'on';
      deadline.in(intervalMs);
    },
    pause() {
      if (state === 'stopped') return;
      state = 'paused';
      deadline.clear();
    },
    stop() {
      state = 'stopped';
      deadline.stop();
    },
  };
}
