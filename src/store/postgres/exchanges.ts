/** What is there already of the exchanges of a batch, and who pays for them: read in one round trip, however many there are. */
import type { InterruptedRow } from '../books/books.ts';
import type { LedgerAccount } from '../ledger.ts';
import { payerOf } from '../payer.ts';
import type { OpenExchange } from '../settlement.ts';
import { storable } from '../storable.ts';
import { StoreError } from '../store-error.ts';
import { flag, int, object, text } from './rows.ts';
import type { Session, Statement } from './session.ts';

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

interface Payer {
  readonly accountId: string;
  readonly from: LedgerAccount;
}

export class KnownExchanges {
  readonly #payers = new Map<string, Payer>();
  /** Those that were closed as interrupted, and those that were settled. */
  readonly #interrupted = new Map<string, InterruptedRow>();
  readonly #settled = new Set<string>();

  async load(
    session: Pick<Session, 'run'>,
    exchanges: readonly Pick<OpenExchange, 'exchangeId' | 'keyId'>[],
  ): Promise<readonly LedgerAccount[]> {
    const keyIds = [...new Set(exchanges.map(({ keyId }) => storable(keyId)))];
    const ids = [...new Set(exchanges.map(({ exchangeId }) => storable(exchangeId)))];
    for (const row of await session.run(KNOWN, [keyIds, ids])) {
      const [what, id, value] = [text(row, 'what'), text(row, 'id'), object(text(row, 'value'))];
      if (what === 'key') {
        const accountId = text(value, 'account_id');
        const key = { id, accountId, subAccount: flag(value, 'sub_account'), disabled: flag(value, 'disabled') };
        this.#payers.set(id, { accountId, from: payerOf(key, flag(value, 'unlimited')) });
      } else if (what === 'log' && text(value, 'status') === 'interrupted')
        this.#interrupted.set(id, {
          seq: int(value, 'seq'),
          model: text(value, 'model'),
          loggedAtMs: int(value, 'logged_at_ms'),
        });
      // The row of the log may have been pruned: the journal still knows.
      else this.#settled.add(id);
    }
    return [...this.#payers.values()].map(({ from }) => from);
  }

  get keyIds(): Iterable<string> {
    return this.#payers.keys();
  }

  payer(keyId: string): Payer {
    const payer = this.#payers.get(keyId);
    if (payer === undefined) throw new StoreError('corrupt', `no key ${keyId}`);
    return payer;
  }

  has(exchangeId: string): boolean {
    const id = storable(exchangeId);
    return this.#settled.has(id) || this.#interrupted.has(id);
  }

  enter(exchangeId: string): boolean {
    if (this.has(exchangeId)) return false;
    this.#settled.add(storable(exchangeId));
    return true;
  }

  /** Its row is written in this same transaction. */
  interrupted(exchangeId: string, row: InterruptedRow): void {
    const id = storable(exchangeId);
    this.#settled.delete(id);
    this.#interrupted.set(id, row);
  }

  enterAgain(exchangeId: string): InterruptedRow | 'settled' {
    const id = storable(exchangeId);
    const row = this.#settled.has(id) ? undefined : this.#interrupted.get(id);
    this.#settled.add(id);
    return row ?? 'settled';
  }
}
