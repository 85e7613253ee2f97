/**
 * Admission on PostgreSQL. What is in flight comes from this process; balances and spend come from the cache, which knows exactly
 * what this process has settled, and what others have settled as of at most `staleMs` ago. With a warm cache the database is not
 * asked; a refusal is never given from the cache alone, so that a top-up counts at once.
 *
 * The bound. For a limit L and processes p = 1…N, let I(q) be what q has in flight, S(q) what q settled within `staleMs`,
 * C and E the charges and estimates of requests, and `last` the largest charge of one request. Process p admits only while
 * L − (all settled − Σ S(q≠p)) − I(p) > 0, so the whole passes L by at most
 *   Σ over q≠p of (I(q) + S(q))  +  last  +  Σ max(0, C − E) over what is in flight.
 */
import type { LedgerAccount } from '../ledger.ts';
import type { Admission, Reservations, Standing } from '../reservations.ts';
import type { SpendRow } from '../spend-windows.ts';
import { type Cache, type Known, newest, NO_BALANCE, NO_CHANGES, NO_SPEND } from './cache.ts';
import type { Database } from './database.ts';
import { SPEND } from './record-tables.ts';
import { int, maybeText, object, spendOf } from './rows.ts';
import type { Statement } from './session.ts';
import type { Watch } from './watch.ts';

/** $1: the ledger account that pays, $2: the key. */
const STANDING: Statement = {
  name: 'standing',
  text: `SELECT h.seq, b.nanos::text AS nanos, s.key_id IS NOT NULL AS spent, ${SPEND.json('s')} AS spend
    FROM ledger_head h LEFT JOIN balances b ON b.account = $1 LEFT JOIN spend s ON s.key_id = $2`,
};

/** What was found, or what is remembered since where that is newer. */
class Found implements Standing {
  readonly #cache: Cache;
  readonly #balance: Known<bigint>;
  readonly #spend: Known<SpendRow>;

  constructor(cache: Cache, balance: Known<bigint>, spend: Known<SpendRow>) {
    this.#cache = cache;
    this.#balance = balance;
    this.#spend = spend;
  }

  balance(payer: LedgerAccount): bigint {
    return newest(this.#balance, this.#cache.balance(payer));
  }

  spend(keyId: string): SpendRow {
    return newest(this.#spend, this.#cache.spend(keyId));
  }
}

export function createAdmission(database: Database, watch: Watch, reservations: Reservations): Admission {
  const { cache } = database;
  /** One look at a time for each payer and key, however many requests wait for it. */
  const looks = new Map<string, Promise<Standing>>();

  const remembered = (payer: string, keyId: string): Standing | undefined => {
    if (!watch.isFresh()) return undefined;
    const [balance, spend] = [cache.balance(payer), cache.spend(keyId)];
    return balance === undefined || spend === undefined ? undefined : new Found(cache, balance, spend);
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
    if (row === undefined) return new Found(cache, NO_BALANCE, NO_SPEND);
    const seq = int(row, 'seq');
    const nanos = BigInt(maybeText(row, 'nanos') ?? '0');
    const spend = row['spent'] === true ? spendOf(object(maybeText(row, 'spend') ?? '{}')) : NO_SPEND.value;
    cache.remember({ ...NO_CHANGES, seq, balances: new Map([[payer, nanos]]), spend: new Map([[keyId, spend]]) });
    return new Found(cache, { value: nanos, seq }, { value: spend, seq });
  };

  return {
    async admit(principal, estimateNanos, nowMs) {
      database.requireHealth();
      const payer = reservations.payerOf(principal);
      const known = remembered(payer, principal.key.id);
      if (known !== undefined) {
        const decided = reservations.admit(principal, known, estimateNanos, nowMs);
        if (decided.ok) return decided;
      }
      return reservations.admit(principal, await look(payer, principal.key.id), estimateNanos, nowMs);
    },

    reserved: (keyId) => reservations.reserved(keyId),
  };
}
