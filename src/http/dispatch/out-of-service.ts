/**
 * Channels that an operator took out of service while gateways run: the store keeps them, every process looks once a second, and
 * gives them no new work from then on. What runs on them goes on, videos are still asked for. `disabled` in the file is stronger:
 * nothing is sent at all.
 */
import type { Logger } from 'pino';
import type { Controls } from '../../store/controls.ts';
import type { Clock, Timer } from '../../streams/clock.ts';
import type { Config } from '../config/config.ts';
import type { ConfigSource } from '../config/source.ts';

const LOOK_MS = 1_000;

export interface WatchedService extends ConfigSource {
  /** Looks now. Rejects where the store fails. */
  look(): Promise<void>;
  /** Begins to look once a second. */
  start(): void;
  stop(): void;
}

export interface WatchOptions {
  readonly config: ConfigSource;
  readonly controls: Pick<Controls, 'list'>;
  readonly clock: Clock;
  readonly log: Logger;
}

/** The configuration, in which Channels that are out of service have no weight. */
export function watchService({ config, controls, clock, log }: WatchOptions): WatchedService {
  let out: ReadonlySet<string> = new Set();
  let made = { from: config.current(), config: config.current() };
  let timer: Timer | undefined;
  let isStopped = false;
  let hasFailed = false;
  const listeners = new Set<(config: Config) => void>();
  const current = (): Config => {
    const from = config.current();
    if (made.from !== from) made = { from, config: without(from, out) };
    return made.config;
  };
  const look = async (): Promise<void> => {
    const found = new Set((await controls.list('channel')).map(({ id }) => id));
    if (found.size === out.size && [...found].every((id) => out.has(id))) return;
    log.warn({ channels: [...found] }, 'Channels out of service');
    out = found;
    made = { from: config.current(), config: without(config.current(), out) };
    for (const listener of listeners) listener(made.config);
  };
  const lookAgain = (): void => {
    timer = clock.setTimeout(() => {
      look()
        .then(
          () => {
            hasFailed = false;
          },
          (error: unknown) => {
            // What was known stays; the store tells of its own health.
            if (!hasFailed) log.warn({ err: error }, 'which Channels are out of service could not be read');
            hasFailed = true;
          },
        )
        .finally(() => {
          if (!isStopped) lookAgain();
        });
    }, LOOK_MS);
  };
  const stopListening = config.onChange(() => {
    for (const listener of listeners) listener(current());
  });
  return {
    current,
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    look,
    start: lookAgain,
    stop() {
      isStopped = true;
      timer?.cancel();
      stopListening();
    },
  };
}

function without(config: Config, out: ReadonlySet<string>): Config {
  if (!config.channels.some(({ id }) => out.has(id))) return config;
  return { ...config, channels: config.channels.map((channel) => (out.has(channel.id) ? { ...channel, weight: 0 } : channel)) };
}
