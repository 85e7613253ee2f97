/**
 * Admission on PostgreSQL. What is in flight comes from this process; balances and spend come from the cache, which knows exactly what
 * this process has settled, and what others have settled as of at most `staleMs` ago. With a warm cache the database is
 * not asked; a refusal is never given from the cache alone, so that a top-up counts at once.
 *
 * The bound. For a limit L and processes p = 1…N, let I(q) be what q has in flight, S(q) what q settled within `staleMs`,
 * C and E the charges and estimates of requests, and `last` the largest charge of one request. Process p admits only while
 * L − (all settled − Σ S(q≠p)) − I(p) > 0, so the whole passes L by at most
 *   Σ over q≠p of (I(q) + S(q))  +  last  +  Σ max(0, C − E) over what is in flight.
 */
import type { Principal } from '../keys.ts';
import { payerOf } from '../payer.ts';
import type { Admission, NotAdmitted, Reservation, Reservations } from '../reservations.ts';
import { done, refused, type Result } from '../result.ts';
import { reachedWindow, roomLeft, type SpendRow, spendAt } from '../spend-windows.ts';
import { type Known, newest, NO_BALANCE, NO_CHANGES, NO_SPEND } from './cache.ts';
import type { Database } from './database.ts';
import { int, maybeText, object, SPEND_JSON, spendOf } from './rows.ts';
import type { Statement } from './session.ts';
import type { Watch } from './watch.ts';

/** $1: the ledger account that pays, $2: the key. */
const STANDING: Statement = {
  name: 'standing',
  text: `SELECT h.seq, b.nanos::text AS nanos, s.key_id IS NOT NULL AS spent, ${SPEND_JSON} AS spend
    FROM ledger_head h LEFT JOIN balances b ON b.account = $1 LEFT JOIN spend s ON s.key_id = $2`,
};

interface Standing {
  readonly balance: Known<bigint>;
  readonly spend: Known<SpendRow>;
}

export function createAdmission(database: Database, watch: Watch, reservations: Reservations): Admission {
  const { cache } = database;
  /** One look at a time for each payer and key, however many requests wait for it. */
  const looks = new Map<string, Promise<Standing>>();

  const remembered = (payer: string, keyId: string): Standing | undefined => {
    if (!watch.isFresh()) return undefined;
    const [balance, spend] = [cache.balance(payer), cache.spend(keyId)];
    return balance === undefined || spend === undefined ? undefined : { balance, spend };
  };

  const look = (payer: string, keyId: string): Promise<Standing> => {
    const name = `${payer} ${keyId}`;
    const running = looks.get(name);
    if (running !== undefined) return running;
    const started = lookUp(payer, keyId).finally(() => looks.delete(name));
    looks.set(name, started);
    return started;
  };

  const lookUp = async (payer: string, keyId: string): Promise<Standing> => {
    const [row] = await database.run(STANDING, [payer, keyId]);
    if (row === undefined) return { balance: NO_BALANCE, spend: NO_SPEND };
    const seq = int(row, 'seq');
    const nanos = BigInt(maybeText(row, 'nanos') ?? '0');
    const spend = row['spent'] === true ? spendOf(object(maybeText(row, 'spend') ?? '{}')) : NO_SPEND.value;
    cache.remember({ ...NO_CHANGES, seq, balances: new Map([[payer, nanos]]), spend: new Map([[keyId, spend]]) });
    return { balance: { value: nanos, seq }, spend: { value: spend, seq } };
  };

  /** Synchronous from the look at the reservations to the reservation: no other admission comes between. */
  const decide = (
    { key, account }: Principal,
    estimateNanos: bigint,
    nowMs: number,
    found: Standing,
  ): Result<Reservation, NotAdmitted> => {
    const payer = payerOf(key, account.unlimited);
    const balance = newest(found.balance, cache.balance(payer));
    if (!payer.startsWith('house:') && balance - reservations.ofPayer(payer) <= 0n) {
      return refused({ reason: 'insufficient_balance', source: payer.startsWith('sub:') ? 'sub_account' : 'wallet' });
    }
    const spend = spendAt(newest(found.spend, cache.spend(key.id)), nowMs);
    const inFlight = reservations.ofKey(key.id);
    const window = reachedWindow(key.limits, spend, inFlight);
    if (window !== undefined) return refused({ reason: 'spend_limit_reached', window });
    return done(reservations.reserve(payer, key.id, estimateNanos, roomLeft(key.limits, spend, inFlight)));
  };

  return {
    async admit(principal, estimateNanos, nowMs) {
      database.requireHealth();
      const { key, account } = principal;
      const payer = payerOf(key, account.unlimited);
      const known = remembered(payer, key.id);
      if (known !== undefined) {
        const decided = decide(principal, estimateNanos, nowMs, known);
        if (decided.ok) return decided;
      }
      return decide(principal, estimateNanos, nowMs, await look(payer, key.id));
    },

    reserved: (keyId) => reservations.reserved(keyId),
  };
}
