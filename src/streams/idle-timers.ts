/**
 * How long an upstream may be silent: `first_data_ms` until its first data event, `idle_ms` between bytes after that. One timer an
 * exchange. Bytes without data (comments, pings) keep an upstream alive for no longer than `first_data_ms`, also in mid-stream. Knows
 * nothing of what counts as data: the caller says `data` for an event and `touch` for any bytes.
 */
import type { Clock } from './clock.ts';
import { createDeadline } from './deadline.ts';
import { StreamError } from './stream-error.ts';

export interface IdleTimers {
  /** Any bytes arrived, comments and pings too. Re-arms the idle limit; before the first data it does nothing. */
  touch(): void;
  /** A data event arrived: the first one ends the first-data limit and starts the idle limit. */
  data(): void;
  /** Nobody reads the upstream now (the client is slow): its silence counts no more. The first-data limit runs on. */
  pause(): void;
  /** The upstream is read again: the idle limit starts anew. */
  resume(): void;
  stop(): void;
}

export interface IdleLimits {
  readonly firstDataMs: number;
  readonly idleMs: number;
}

/** Starts the first-data limit at once. `onExpire` is called at most once, with reason `first_data_timeout` or `idle_timeout`. */
export function createIdleTimers(clock: Clock, limits: IdleLimits, onExpire: (error: StreamError) => void): IdleTimers {
  let phase: 'waiting' | 'flowing' | 'paused' | 'over' = 'waiting';
  /** Comments alone do not move this on. */
  let dataDueAt = clock.monotonic() + limits.firstDataMs;

  const deadline = createDeadline(clock, () => {
    const waiting = phase === 'waiting';
    phase = 'over';
    onExpire(
      waiting
        ? new StreamError('first_data_timeout', `no data within ${limits.firstDataMs} ms`)
        : new StreamError('idle_timeout', `silent for ${limits.idleMs} ms`),
    );
  });
  deadline.in(limits.firstDataMs);

  return {
    touch() {
      if (phase === 'flowing') deadline.in(Math.min(limits.idleMs, dataDueAt - clock.monotonic()));
    },
    data() {
      if (phase === 'waiting') phase = 'flowing';
      dataDueAt = clock.monotonic() + Math.max(limits.firstDataMs, limits.idleMs);
      if (phase === 'flowing') deadline.in(limits.idleMs);
    },
    pause() {
      if (phase !== 'flowing') return;
      phase = 'paused';
      deadline.clear();
    },
    resume() {
      if (phase !== 'paused') return;
      phase = 'flowing';
      dataDueAt = clock.monotonic() + Math.max(limits.firstDataMs, limits.idleMs);
      deadline.in(limits.idleMs);
    },
    stop() {
      phase = 'over';
      deadline.stop();
    },
  };
}
