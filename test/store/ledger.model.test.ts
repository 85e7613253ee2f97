/** The ledger against a model that is only maps: any interleaving of any operations, checked after each and by `verify`. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Principal } from '../../src/store/keys.ts';
import type { Store } from '../../src/store/store.ts';
import { cause, entry, FakeClock, funded, ok } from './support/store.ts';
import { eachStore, openPlace } from './support/stores.ts';

interface ModelKey {
  readonly sub: boolean;
  disabled: boolean;
  balance: bigint;
  spent: bigint;
  readonly byHour: Map<number, bigint>;
}

interface Model {
  readonly wallets: bigint[];
  readonly keys: ModelKey[];
  readonly settled: Map<string, bigint>;
}

interface Real {
  readonly path: string;
  readonly clock: FakeClock;
  store: Store;
  readonly owners: Principal[];
}

const ACCOUNTS = 2;
/** Three keys an account: a plain one, and two with a sub-account each. */
const KEYS = 3;
const accountOf = (key: number): number => Math.floor(key / KEYS);
/** The other one with a sub-account. */
const heirOf = (key: number): number => (key % KEYS === 1 ? key + 1 : key - 1);

abstract class Step implements fc.AsyncCommand<Model, Real> {
  check(): boolean {
    return true;
  }
  abstract run(model: Model, real: Real): Promise<void>;
  abstract toString(): string;
}

/** Who pays, in the model's words. */
function pay(model: Model, index: number, nanos: bigint): void {
  const key = at(model.keys, index);
  if (key.sub && !key.disabled) key.balance -= nanos;
  else model.wallets[accountOf(index)] = at(model.wallets, accountOf(index)) - nanos;
}

function at<T>(list: readonly T[], index: number): T {
  const found = list[index];
  if (found === undefined) throw new RangeError(`no ${index}`);
  return found;
}

class Credit extends Step {
  readonly #account: number;
  readonly #nanos: bigint;
  constructor(account: number, nanos: bigint) {
    super();
    this.#account = account;
    this.#nanos = nanos;
  }
  async run(model: Model, { store, owners }: Real): Promise<void> {
    const owner = at(owners, this.#account * KEYS);
    const credited = await store.accounts.credit(owner.account.id, this.#nanos, cause());
    assert.equal(credited.ok, this.#nanos !== 0n);
    if (credited.ok) model.wallets[this.#account] = at(model.wallets, this.#account) + this.#nanos;
  }
  toString = () => `credit ${this.#account} ${this.#nanos}`;
}

class Transfer extends Step {
  readonly #key: number;
  readonly #nanos: bigint;
  constructor(key: number, nanos: bigint) {
    super();
    this.#key = key;
    this.#nanos = nanos;
  }
  async run(model: Model, { store, owners }: Real): Promise<void> {
    const key = at(model.keys, this.#key);
    const wallet = at(model.wallets, accountOf(this.#key));
    const giver = this.#nanos > 0n ? wallet : key.balance;
    const size = this.#nanos > 0n ? this.#nanos : -this.#nanos;
    const allowed = key.sub && !key.disabled && size > 0n && giver >= size;
    const moved = await store.keys.transfer(at(owners, this.#key).key.id, this.#nanos, cause());
    assert.equal(moved.ok, allowed);
    if (!allowed) return;
    key.balance += this.#nanos;
    model.wallets[accountOf(this.#key)] = wallet - this.#nanos;
  }
  toString = () => `transfer ${this.#key} ${this.#nanos}`;
}

/** Several settlements at once, some of the same exchange. */
class Settle extends Step {
  readonly #settlements: readonly (readonly [number, number, bigint])[];
  constructor(settlements: readonly (readonly [number, number, bigint])[]) {
    super();
    this.#settlements = settlements;
  }
  async run(model: Model, { store, owners, clock }: Real): Promise<void> {
    const all = this.#settlements.map(async ([key, exchange, nanos]) => {
      const owner = at(owners, key);
      if (exchange % 3 === 0) void store.settlements.open({ ...entry(owner, `x${exchange}`, 0n) });
      return store.settlements.settle({ entry: entry(owner, `x${exchange}`, nanos) });
    });
    await store.settlements.flush();
    for (const [index, done] of (await Promise.all(all)).entries()) {
      const [key, exchange, nanos] = at(this.#settlements, index);
      const known = model.settled.has(`x${exchange}`);
      assert.equal(done.settled, !known);
      if (known) continue;
      model.settled.set(`x${exchange}`, nanos);
      pay(model, key, nanos);
      const spender = at(model.keys, key);
      spender.spent += nanos;
      const hour = Math.floor(clock.now() / 3_600_000);
      spender.byHour.set(hour, (spender.byHour.get(hour) ?? 0n) + nanos);
    }
  }
  toString = () => `settle ${this.#settlements.map((one) => one.join('/')).join(' ')}`;
}

class Able extends Step {
  readonly #key: number;
  readonly #disabled: boolean;
  readonly #hasHeir: boolean;
  constructor(key: number, disabled: boolean, hasHeir: boolean) {
    super();
    this.#key = key;
    this.#disabled = disabled;
    this.#hasHeir = hasHeir;
  }
  async run(model: Model, { store, owners }: Real): Promise<void> {
    const key = at(model.keys, this.#key);
    const returns = this.#disabled && !key.disabled && key.sub;
    const heir = this.#hasHeir && returns ? at(model.keys, heirOf(this.#key)) : undefined;
    const changes = { disabled: this.#disabled, ...(heir === undefined ? {} : { heir: at(owners, heirOf(this.#key)).key.id }) };
    const changed = await store.keys.change(at(owners, this.#key).key.id, changes, cause());
    assert.equal(changed.ok, heir?.disabled !== true, 'who is disabled inherits nothing');
    if (!changed.ok) return;
    if (returns) {
      if (heir !== undefined && key.balance > 0n) heir.balance += key.balance;
      else model.wallets[accountOf(this.#key)] = at(model.wallets, accountOf(this.#key)) + key.balance;
      key.balance = 0n;
    }
    key.disabled = this.#disabled;
  }
  toString = () => `${this.#disabled ? 'disable' : 'enable'} ${this.#key}${this.#hasHeir ? ` for ${heirOf(this.#key)}` : ''}`;
}

class Wait extends Step {
  readonly #minutes: number;
  constructor(minutes: number) {
    super();
    this.#minutes = minutes;
  }
  async run(_: Model, { clock }: Real): Promise<void> {
    clock.advance(this.#minutes * 60_000);
  }
  toString = () => `wait ${this.#minutes} min`;
}

class Reopen extends Step {
  async run(_: Model, real: Real): Promise<void> {
    await real.store.close();
    real.store = await openPlace(real.path, { clock: real.clock });
  }
  toString = () => 'reopen';
}

class Compare extends Step {
  async run(model: Model, { store, owners, clock }: Real): Promise<void> {
    for (const [index, owner] of owners.entries()) {
      const key = at(model.keys, index);
      assert.equal((await store.accounts.find(owner.account.id))?.walletNanos, at(model.wallets, accountOf(index)));
      const paysAlone = key.sub && !key.disabled;
      assert.equal(
        (await store.keys.balance(owner.key.id))?.nanos,
        paysAlone ? key.balance : at(model.wallets, accountOf(index)),
      );
      const spend = await store.spend.spend(owner.key.id, clock.now());
      assert.equal(spend.total, key.spent);
      assert.equal(spend.hourly, key.byHour.get(Math.floor(clock.now() / 3_600_000)) ?? 0n);
    }
    assert.deepEqual((await store.ledger.verify()).differences, []);
  }
  toString = () => 'compare';
}

const key = fc.nat(ACCOUNTS * KEYS - 1);
const amount = fc.bigInt({ min: -50n, max: 200n });
const settlement = fc.tuple(key, fc.nat(40), fc.bigInt({ min: 0n, max: 120n }));

eachStore(({ makePlace, dropPlace, histories }) => {
  test('F45: any interleaving of operations keeps Σ journal = balances, and nothing happens twice', async () => {
    const steps = [
      fc.tuple(fc.nat(ACCOUNTS - 1), amount).map((args) => new Credit(...args)),
      fc.tuple(key, amount).map((args) => new Transfer(...args)),
      fc.array(settlement, { minLength: 1, maxLength: 6 }).map((all) => new Settle(all)),
      fc.tuple(key, fc.boolean(), fc.boolean()).map((args) => new Able(...args)),
      fc.integer({ min: 1, max: 200 }).map((minutes) => new Wait(minutes)),
      fc.constant(new Compare()),
      fc.constant(new Reopen()),
    ];
    await fc.assert(
      fc.asyncProperty(fc.commands(steps, { maxCommands: 40, size: '+1' }), async (commands) => {
        const path = await makePlace();
        const clock = new FakeClock();
        const store = await openPlace(path, { clock });
        const owners: Principal[] = [];
        for (let account = 0; account < ACCOUNTS; account += 1) {
          const owner = await funded(store, 100n);
          owners.push(owner);
          for (const name of ['sub', 'heir']) {
            const sub = ok(await store.keys.create({ accountId: owner.account.id, name, subAccount: true }, cause()));
            owners.push({ account: owner.account, key: sub.key });
          }
        }
        const keys = owners.map((_, index) => ({
          sub: index % KEYS !== 0,
          disabled: false,
          balance: 0n,
          spent: 0n,
          byHour: new Map(),
        }));
        const real: Real = { path, clock, store, owners };
        try {
          const model: Model = { wallets: Array.from({ length: ACCOUNTS }, () => 100n), keys, settled: new Map() };
          await fc.asyncModelRun(() => ({ model, real }), [...commands]);
          await new Compare().run(model, real);
        } finally {
          await real.store.close();
          await dropPlace(path);
        }
      }),
      { numRuns: histories },
    );
  });
});
