/** What settlements write, inside a transaction: charges, spend, the day's usage and the rows of the request log, many at once. */
import { countsOf } from '../day-usage.ts';
import type { LedgerAccount } from '../ledger.ts';
import { logText } from '../log-text.ts';
import { payerOf } from '../payer.ts';
import type { RequestLogEntry } from '../request-log.ts';
import { type OpenExchange, openFields, type Settled } from '../settlement.ts';
import { StoreError } from '../store-error.ts';
import { storable } from '../storable.ts';
import { flag, int, object, type Row, text } from './rows.ts';
import type { Statement } from './session.ts';
import type { Work } from './work.ts';

/** $1: key ids, $2: exchange ids. */
const KNOWN: Statement = {
  name: 'settle_known',
  text: `SELECT 'key' AS what, k.id, json_build_object('account_id', k.account_id, 'sub_account', k.sub_account,
      'disabled', k.disabled, 'unlimited', a.unlimited)::text AS value
    FROM keys k JOIN accounts a ON a.id = k.account_id WHERE k.id = ANY ($1::text[])
    UNION ALL SELECT 'log', exchange_id, json_build_object('seq', seq, 'status', status, 'logged_at_ms', logged_at_ms, 'model', model)::text
    FROM request_log WHERE exchange_id = ANY ($2::text[])
    UNION ALL SELECT 'charge', ref, '{}' FROM journal WHERE kind = 'charge' AND ref = ANY ($2::text[])`,
};

interface KnownKey {
  readonly accountId: string;
  readonly payer: LedgerAccount;
}

/** A row of the log that is there already. */
interface Logged {
  readonly seq: number;
  readonly status: string;
  readonly model: string;
  readonly loggedAtMs: number;
}

function loggedOf(value: Row): Logged {
  const [status, model] = [text(value, 'status'), text(value, 'model')];
  return { seq: int(value, 'seq'), status, model, loggedAtMs: int(value, 'logged_at_ms') };
}

/** What is there already of the exchanges of a batch, and who pays for them. */
export class Settler {
  readonly #work: Work;
  readonly #nowMs: number;
  readonly #keys: ReadonlyMap<string, KnownKey>;
  readonly #logged: Map<string, Logged>;
  readonly #charged: Set<string>;

  private constructor(
    work: Work,
    nowMs: number,
    keys: ReadonlyMap<string, KnownKey>,
    logged: Map<string, Logged>,
    charged: Set<string>,
  ) {
    this.#work = work;
    this.#nowMs = nowMs;
    this.#keys = keys;
    this.#logged = logged;
    this.#charged = charged;
  }

  /** Two round trips, however many exchanges. */
  static async prepare(
    work: Work,
    exchanges: readonly { readonly exchangeId: string; readonly keyId: string }[],
    nowMs: number,
  ): Promise<Settler> {
    const keyIds = [...new Set(exchanges.map(({ keyId }) => storable(keyId)))];
    const ids = [...new Set(exchanges.map(({ exchangeId }) => storable(exchangeId)))];
    const keys = new Map<string, KnownKey>();
    const logged = new Map<string, Logged>();
    const charged = new Set<string>();
    for (const row of await work.run(KNOWN, [keyIds, ids])) {
      const [what, id, value] = [text(row, 'what'), text(row, 'id'), object(text(row, 'value'))];
      if (what === 'charge') charged.add(id);
      else if (what === 'log') logged.set(id, loggedOf(value));
      else {
        const accountId = text(value, 'account_id');
        const key = { id, accountId, subAccount: flag(value, 'sub_account'), disabled: flag(value, 'disabled') };
        keys.set(id, { accountId, payer: payerOf(key, flag(value, 'unlimited')) });
      }
    }
    await work.load(['revenue', ...[...keys.values()].map(({ payer }) => payer)], keys.keys());
    return new Settler(work, nowMs, keys, logged, charged);
  }

  /** Settles once: a second settlement of an exchange changes nothing. One that was closed as interrupted is settled late. `entryText`: its `logText`. */
  settle(entry: RequestLogEntry, entryText: string): Settled {
    const { exchangeId, accountId, keyId } = entry;
    const chargedNanos = entry.charge?.total ?? 0n;
    if (chargedNanos < 0n) throw new StoreError('amount_out_of_range', `a charge of ${chargedNanos} nano-dollars`);
    const known = this.#logged.get(storable(exchangeId));
    // The row of the log may have been pruned: the journal still knows.
    if ((known !== undefined && known.status !== 'interrupted') || this.#charged.has(storable(exchangeId)))
      return { settled: false, reason: 'already_settled' };
    const key = this.#keys.get(keyId);
    if (key === undefined || key.accountId !== accountId) throw new StoreError('corrupt', `no key ${keyId} of ${accountId}`);
    const [work, atMs] = [this.#work, this.#nowMs];
    if (chargedNanos > 0n) {
      work.move({
        kind: 'charge',
        ref: exchangeId,
        from: key.payer,
        to: 'revenue',
        nanos: chargedNanos,
        accountId,
        keyId,
        atMs,
      });
      work.addSpend(keyId, chargedNanos, atMs);
      this.#charged.add(storable(exchangeId));
    }
    const usage = entry.usage === undefined ? {} : countsOf(entry.usage);
    work.addUsage(keyId, atMs, { requests: known === undefined ? 1 : 0, chargedNanos, ...usage });
    if (known !== undefined && work.isSummedUp(known.loggedAtMs))
      work.rollups.exchange({ ...entry, ...interrupted(known.model) }, {}, known.loggedAtMs, -1);
    if (known !== undefined) work.replaceLog(known.seq, entry, entryText);
    const loggedAtMs = known?.loggedAtMs ?? work.appendLog(entry, entryText, atMs);
    work.rollups.exchange(entry, usage, loggedAtMs);
    this.#logged.set(storable(exchangeId), { seq: 0, status: entry.status, model: entry.model, loggedAtMs });
    return { settled: true, chargedNanos };
  }

  /** The process died with it open: free, and journaled as such. False when it was settled or closed before. */
  interrupt(exchange: OpenExchange): boolean {
    const { exchangeId, accountId, keyId, startedAtMs } = exchange;
    if (this.isLogged(exchangeId) || this.#charged.has(storable(exchangeId))) return false;
    const [work, atMs] = [this.#work, this.#nowMs];
    work.note({ kind: 'interrupted', ref: exchangeId, accountId, keyId, atMs });
    work.addUsage(keyId, atMs, { requests: 1 });
    const durationMs = Math.max(0, atMs - startedAtMs);
    const entry: RequestLogEntry = { ...openFields(exchange), status: 'interrupted', durationMs, attempts: [] };
    const loggedAtMs = work.appendLog(entry, logText(entry), atMs);
    work.rollups.exchange(entry, {}, loggedAtMs);
    this.#logged.set(storable(exchangeId), { seq: 0, status: 'interrupted', model: entry.model, loggedAtMs });
    return true;
  }

  isLogged(exchangeId: string): boolean {
    return this.#logged.has(storable(exchangeId));
  }
}

/** What the row of an interrupted exchange had added to the sums. */
function interrupted(model: string) {
  return { status: 'interrupted', model, channelId: '', attempts: [], charge: chargeOfNothing } as const;
}

const chargeOfNothing = { lines: [], total: 0n, flags: [] } as const;
