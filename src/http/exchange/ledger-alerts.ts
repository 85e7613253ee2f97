/**
 * What the ledger itself can raise: a balance, or what a spend limit leaves, is under its threshold. One line at warn and one
 * count of the metric for each crossing; what has recovered may cross again. A process knows of what it charged itself.
 */
import type { Logger } from 'pino';
import type { Principal } from '../../store/keys.ts';
import { formatUsd } from '../../store/money.ts';
import type { SpendWindow } from '../../store/spend-windows.ts';
import type { Store } from '../../store/store.ts';
import type { Clock, Timer } from '../../streams/clock.ts';
import type { Config } from '../config/config.ts';
import type { Metrics } from '../operations/metrics.ts';

/** How long after a charge balances are looked at: what many exchanges cost meanwhile is one look for each key. */
const LOOK_MS = 2_000;

const WINDOWS = ['total', 'hourly', 'daily'] as const satisfies readonly SpendWindow[];

/** A limit left in thousandths is exact enough for a threshold. */
const THOUSAND = 1_000;

interface AlertOptions {
  readonly store: Pick<Store, 'keys' | 'spend' | 'settlements'>;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Pick<Metrics, 'ledgerAlert'>;
  /** The current configuration. */
  readonly config: () => Config;
}

export class LedgerAlerts {
  readonly #options: AlertOptions;
  /** Keys that were charged since the last look. */
  readonly #charged = new Map<string, Principal>();
  /** What is under its threshold and was told. */
  readonly #low = new Set<string>();
  #timer: Timer | undefined;
  #isClosed = false;

  constructor(options: AlertOptions) {
    this.#options = options;
  }

  /** An exchange of this key cost something. Never throws. */
  charged(principal: Principal): void {
    if (this.#isClosed) return;
    this.#charged.set(principal.key.id, principal);
    this.#timer ??= this.#options.clock.setTimeout(() => void this.look(), LOOK_MS);
  }

  /** Looks at nothing any more. */
  close(): void {
    this.#isClosed = true;
    this.#charged.clear();
    this.#timer?.cancel();
  }

  /** Looks at every key that was charged. Never rejects: a store that is unwell tells of that itself. */
  async look(): Promise<void> {
    const principals = [...this.#charged.values()];
    this.#charged.clear();
    this.#timer = undefined;
    try {
      await this.#options.store.settlements.caughtUp();
      for (const principal of principals) await this.#lookAt(principal);
    } catch (thrown) {
      this.#options.log.debug({ err: thrown }, 'balances could not be looked at');
    }
  }

  async #lookAt(principal: Principal): Promise<void> {
    const { store, clock, config } = this.#options;
    const { account, key } = principal;
    const { alerts } = config();
    const threshold = alerts.accounts.get(account.id) ?? alerts.accounts.get(account.name) ?? alerts.balanceNanos;
    const balance = await store.keys.balance(key.id);
    if (balance !== undefined && !balance.unlimited && threshold !== undefined) {
      const isOwn = balance.source === 'sub_account';
      this.#cross(balance.nanos < threshold, isOwn ? key.id : account.id, 'balance', {
        account_id: account.id,
        ...(isOwn ? { key_id: key.id } : {}),
        ...{ balance: formatUsd(balance.nanos), threshold: formatUsd(threshold) },
      });
    }
    const limited = WINDOWS.filter((window) => key.limits[window] !== undefined);
    if (limited.length === 0 || alerts.window === 0) return;
    const spend = await store.spend.spend(key.id, clock.now());
    for (const window of limited) {
      const limit = key.limits[window] ?? 0n;
      const left = limit - spend[window] - spend.held;
      const isLow = left * BigInt(THOUSAND) < limit * BigInt(Math.round(alerts.window * THOUSAND));
      const told = { limit: formatUsd(limit), left: formatUsd(left < 0n ? 0n : left) };
      this.#cross(isLow, key.id, window, { account_id: account.id, key_id: key.id, window, ...told });
    }
  }

  #cross(isLow: boolean, whose: string, what: 'balance' | SpendWindow, told: object): void {
    const name = `${what} ${whose}`;
    if (!isLow) {
      this.#low.delete(name);
      return;
    }
    if (this.#low.has(name)) return;
    this.#low.add(name);
    this.#options.metrics.ledgerAlert(what);
    this.#options.log.warn(told, what === 'balance' ? 'a balance is low' : 'a spend limit is nearly reached');
  }
}
