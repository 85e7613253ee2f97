/**
 * Stop sequences for a vendor that refuses a request with more than it takes, or with some of them. The gateway enforces the
 * rest.
 */

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

export function ownStops({ own }: Stops): { readonly ownStops?: readonly string[] } {
  return own === undefined ? {} : { ownStops: own };
}
