/**
 * Active probes, off unless `health.probe_ms` is set: each Channel whose type has a model list is asked for it now and then, with
 * its own credential. What they find concerns the Channel as a whole and is reported to its health; models keep their own
 * circuits.
 */
import type { Clock, Timer } from '../../streams/clock.ts';
import type { Channel } from '../config/config.ts';
import type { ConfigSource } from '../config/source.ts';
import type { Metrics } from '../operations/metrics.ts';
import type { Health } from './health.ts';
import { askModelList, hasModelList, judgeModelList } from './model-list.ts';
import type { Upstreams } from './upstream.ts';
import { readErrorText } from './upstream-body.ts';

export interface ProbesOptions {
  readonly config: ConfigSource;
  readonly upstreams: Upstreams;
  readonly health: Health;
  readonly metrics: Metrics;
  readonly clock: Clock;
}

/** An upstream that takes longer to list its models is not well. */
const PROBE_TIMEOUT_MS = 10_000;
/** How often the configuration is asked whether probes are wanted. */
const OFF_MS = 5_000;

/** Returns how to stop: no probe begins after it, and those under way are cut. */
export function startProbes(options: ProbesOptions): () => void {
  const { config, clock } = options;
  const stop = new AbortController();
  let timer: Timer;
  const round = async (): Promise<void> => {
    const { health, channels } = config.current();
    if (health.probeMs !== undefined) await Promise.all(channels.map((channel) => look(channel, options, stop.signal)));
    if (!stop.signal.aborted) timer = clock.setTimeout(() => void round(), config.current().health.probeMs ?? OFF_MS);
  };
  timer = clock.setTimeout(() => void round(), config.current().health.probeMs ?? OFF_MS);
  return () => {
    timer.cancel();
    stop.abort();
  };
}

async function look(channel: Channel, options: ProbesOptions, stopped: AbortSignal): Promise<void> {
  const { health, metrics } = options;
  const good = await probe(channel, options, stopped);
  if (good === undefined || stopped.aborted) return;
  metrics.probed(channel.id, good);
  health.probed(channel.id, good);
}

/** Whether the Channel answered as a healthy one; undefined where its type has no list, or nothing was learnt. */
async function probe(channel: Channel, { upstreams, clock }: ProbesOptions, stopped: AbortSignal): Promise<boolean | undefined> {
  if (!hasModelList(channel.type)) return undefined;
  try {
    const head = await askModelList(upstreams, channel, AbortSignal.any([stopped, AbortSignal.timeout(PROBE_TIMEOUT_MS)]), clock);
    await readErrorText(head, clock);
    const { result } = judgeModelList(head, channel);
    return result === 'unsure' ? undefined : result === 'good';
  } catch {
    // Whatever failed, the upstream did not answer; an attempt of a request tells the operator why.
    return false;
  }
}
