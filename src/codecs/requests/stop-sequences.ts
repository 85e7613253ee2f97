/**
 * Stop sequences for a vendor that refuses a request with more than it takes, or with some of them. The gateway enforces the
 * rest.
 */
import type { Dialect } from '../canonical/dialect.ts';
import { notConvertible } from '../canonical/error.ts';

/**
 * The most characters that all sequences have which the gateway enforces. What it takes to watch for one grows with what has been
 * read of it, for each answer: a request of megabytes would take the memory of everybody.
 */
const MOST_OWN_CHARS = 16_384;

export interface Stops {
  /** For the upstream; undefined where there are none. */
  readonly sent: readonly string[] | undefined;
  /** For the gateway (`answers/own-stops.ts`); undefined where there are none. */
  readonly own: readonly string[] | undefined;
}

/** An empty sequence is none. */
export function splitStops(
  stop: readonly string[] | undefined,
  most: number,
  takes: (sequence: string) => boolean = () => true,
): Stops {
  if (stop === undefined) return { sent: undefined, own: undefined };
  const sent: string[] = [];
  const own: string[] = [];
  for (const sequence of stop) if (sequence !== '') (sent.length < most && takes(sequence) ? sent : own).push(sequence);
  return { sent: sent.length === 0 ? undefined : sent, own: own.length === 0 ? undefined : own };
}

/** Throws `unsupported_conversion` for more than the gateway enforces: a Channel that takes them itself may serve the request. */
export function refuseLongStops({ own = [] }: Stops, dialect: Dialect): void {
  if (own.reduce((sum, { length }) => sum + length, 0) <= MOST_OWN_CHARS) return;
  throw notConvertible(
    dialect === 'messages' ? 'stop_sequences' : 'stop',
    `Stop sequences that the upstream does not take may have ${MOST_OWN_CHARS} characters together.`,
  );
}

export function ownStops({ own }: Stops): { readonly ownStops?: readonly string[] } {
  return own === undefined ? {} : { ownStops: own };
}
