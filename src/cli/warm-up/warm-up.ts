/**
 * Warms a process that has just become ready: a fresh one spends twice the processor time on its first thousand requests, and one
 * that gets a request a second would be cold for hours. Nothing of it is seen: `rig.ts` has a ledger, metrics, a log and circuits
 * of its own. Nobody waits for it.
 */
import type { Gateway } from '../../http/gateway.ts';
import { ANSWERS } from './answers.ts';
import { createRig, type RigOptions } from './rig.ts';
import { workInSlices } from './slices.ts';

export interface WarmUpOptions extends Omit<RigOptions, 'types' | 'level' | 'signal'> {
  /** What it prepares for: its configuration, its requests in flight, its log. */
  readonly gateway: Gateway;
}

export interface WarmUp {
  /** Settled when it is over, with one line in the log. Never rejects. */
  readonly over: Promise<void>;
  /** Ends it. */
  stop(): Promise<void>;
}

/** Does nothing with `warm_up_ms` 0, and without a Channel of a type that it knows. */
export function startWarmUp(options: WarmUpOptions): WarmUp {
  const stopping = new AbortController();
  const over = warmUp(options, stopping.signal);
  return {
    over,
    stop() {
      stopping.abort();
      return over;
    },
  };
}

async function warmUp({ gateway, ...options }: WarmUpOptions, stopping: AbortSignal): Promise<void> {
  const { log, inFlight, clock } = gateway;
  const { warmUpMs: atMostMs, channels } = gateway.config.current();
  const types = [...new Set(channels.map(({ type }) => type))].filter((type) => ANSWERS[type] !== undefined);
  if (atMostMs === 0 || types.length === 0) return;
  const began = clock.monotonic();
  // An exchange that hangs is cut, too.
  const signal = AbortSignal.any([stopping, AbortSignal.timeout(atMostMs)]);
  try {
    await using rig = await createRig({ ...options, types, level: log.level, signal });
    const exchanges = await workInSlices({
      exchange: () => rig.exchange(),
      ...{ inFlight, clock, processorMicros, until: began + atMostMs, signal },
    });
    log.info({ exchanges, ms: Math.round(clock.monotonic() - began) }, 'warm-up');
  } catch (thrown) {
    log.warn({ err: thrown }, 'the warm-up failed: the first requests will be slower');
  }
}

/** Of the thread that serves. */
function processorMicros(): number {
  const { user, system } = process.threadCpuUsage();
  return user + system;
}
