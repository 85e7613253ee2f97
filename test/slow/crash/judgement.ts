/**
 * What may be true of one request after the gateway was killed, from three witnesses: the client, the upstream's own log, the
 * ledger. Pure, so that planted violations can be shown to it.
 */

/**
 * How long before the kill something may have happened and still not be in the ledger: rows wait at most 10 ms for their flush;
 * the rest is the commit and the scheduling of a loaded machine with two cores.
 */
export const WINDOW_MS = 400;

/**
 * A disk that stalls holds back everything: the queue is flushed in its order. So what is missing may be older where nothing that
 * reached the upstream later is there either; but no disk may take as long as this.
 */
export const STALL_MS = 10_000;

/** `compacts`: the upstream reports what it counted itself. */
export type Kind = 'ok' | 'fail' | 'unreported' | 'leaves' | 'compacts';

export interface Evidence {
  readonly kind: Kind;
  readonly sentAtMs: number;
  /** When the client had its whole answer; absent: it never did, or left. */
  readonly answeredAtMs?: number;
  /** When the upstream received it; absent: never. */
  readonly receivedAtMs?: number;
  /** How often the upstream received it. */
  readonly received: number;
  readonly rows: readonly Row[];
  readonly killedAtMs: number;
  /**
   * When the upstream received the newest request of this life whose settlement is in the ledger; absent: none is. The settlement
   * was queued after that, whenever its client saw the answer, so whatever was queued before is in the ledger, too.
   */
  readonly durableAtMs?: number;
}

export interface Row {
  readonly status: 'success' | 'error' | 'interrupted';
  readonly chargedNanos: bigint;
  readonly estimated: boolean;
  /** Sum and number of the journal's charges of this exchange. */
  readonly journaledNanos: bigint;
  readonly journaledCharges: number;
}

export type Verdict =
  | { readonly fate: 'settled' | 'interrupted' | 'unflushed' | 'never_admitted' }
  | { readonly fate: 'violation'; readonly why: string };

/** What an answer with reported usage costs in these tests. */
export const CHARGE = 175_000n;

export function judge(seen: Evidence): Verdict {
  const violation = (why: string): Verdict => ({ fate: 'violation', why });
  if (seen.received > 1) return violation('sent upstream twice');
  if (seen.rows.length > 1) return violation('settled twice');
  const flushedAtMs = Math.min(seen.killedAtMs, seen.durableAtMs ?? Number.NEGATIVE_INFINITY);
  const oldest = Math.max(flushedAtMs - WINDOW_MS, seen.killedAtMs - STALL_MS);
  const recent = (atMs: number | undefined): boolean => atMs !== undefined && atMs > oldest;
  const [row] = seen.rows;
  if (row === undefined) {
    if (seen.answeredAtMs !== undefined)
      return recent(seen.answeredAtMs) ? { fate: 'unflushed' } : violation('answered, and not in the ledger');
    if (seen.receivedAtMs === undefined) return { fate: 'never_admitted' };
    return recent(seen.receivedAtMs) ? { fate: 'unflushed' } : violation('upstream had it, and the ledger does not know it');
  }
  if (row.journaledCharges > 1) return violation('charged twice');
  if (row.journaledNanos !== row.chargedNanos)
    return violation(`the journal says ${row.journaledNanos}, the log ${row.chargedNanos}`);
  if (row.status === 'interrupted') {
    if (row.chargedNanos !== 0n) return violation('interrupted and charged');
    if (seen.answeredAtMs !== undefined && !recent(seen.answeredAtMs))
      return violation('answered long ago, and closed as interrupted');
    return { fate: 'interrupted' };
  }
  if (row.chargedNanos > 0n && seen.received === 0) return violation('charged for what the upstream never saw');
  return chargeFits(seen.kind, row) ? { fate: 'settled' } : violation(`a charge of ${row.chargedNanos} for ${seen.kind}`);
}

function chargeFits(kind: Kind, row: Row): boolean {
  switch (kind) {
    case 'ok':
      return row.status === 'success' && row.chargedNanos === CHARGE && !row.estimated;
    case 'compacts':
      return row.status === 'success' && row.chargedNanos > 0n && !row.estimated;
    case 'fail':
      return row.status === 'error' && row.chargedNanos === 0n;
    case 'unreported':
      return row.status === 'success' && row.chargedNanos > 0n && row.estimated;
    case 'leaves':
      // It left before or after the report came: either way at most one charge, which the rows above have counted.
      return row.status === 'success';
  }
}
