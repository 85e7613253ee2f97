/**
 * What a process remembers, whatever the order in which it hears of changes: the answers to its own commits, to its looks and to
 * its watcher come over different connections, so any of them may overtake any other.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { AccountRecord } from '../../../src/store/accounts.ts';
import type { KeyRecord } from '../../../src/store/keys.ts';
import { Cache, type Changes, NO_CHANGES } from '../../../src/store/postgres/cache.ts';
import { NOTHING_SPENT, type SpendRow } from '../../../src/store/spend-windows.ts';

const KEYS = 3;
const idOf = (n: number): string => `key_${n}`;
const walletOf = (n: number): string => `wallet:${n}`;

/** The state of a key after a change of it: everything about it carries the number of that change. */
const keyAt = (n: number, seq: number): KeyRecord => {
  const never = { prefix: '', last4: '', createdAtMs: 0, disabled: false, limits: {}, subAccount: false };
  return { id: idOf(n), accountId: `acct_${n}`, name: `as of ${seq}`, digest: `digest_${n}`, ...never };
};
const accountAt = (n: number, seq: number): AccountRecord => {
  const never = { class: 'default', unlimited: false, disabled: false, createdAtMs: 0 };
  return { id: `acct_${n}`, name: `as of ${seq}`, ...never };
};
const spendAt = (seq: number): SpendRow => ({ ...NOTHING_SPENT, total: BigInt(seq) });

/** The database, as the journal alone: which key each change was made to. */
class Journal {
  readonly #changes: number[] = [];

  get head(): number {
    return this.#changes.length;
  }

  change(n: number): number {
    return this.#changes.push(n);
  }

  /** The last change of a key up to `seq`, or 0. */
  last(n: number, seq: number): number {
    return this.#changes.slice(0, seq).lastIndexOf(n) + 1;
  }

  changes(keys: readonly number[], seq: number): Changes {
    const existing = keys.filter((n) => this.last(n, seq) > 0);
    const each = <T>(make: (n: number, at: number) => T): T[] => existing.map((n) => make(n, this.last(n, seq)));
    return {
      seq,
      keys: each(keyAt),
      accounts: each(accountAt),
      balances: new Map(each((n, at) => [walletOf(n), BigInt(at)] as const)),
      spend: new Map(each((n, at) => [idOf(n), spendAt(at)] as const)),
    };
  }

  changedSince(seen: number, seq: number): number[] {
    return [...new Set(this.#changes.slice(seen, seq))];
  }
}

class World {
  readonly journal = new Journal();
  readonly cache = new Cache(KEYS);
  /** What was answered and has not arrived yet. */
  readonly #answers: (() => void)[] = [];
  #watching = false;
  /** The newest change of each key whose commit this process was told of. */
  readonly #own = new Map<number, number>();

  /** By this process, which is told when its commit is over, or by another. */
  commit(n: number, own: boolean): void {
    const seq = this.journal.change(n);
    if (!own) return;
    const changes = this.journal.changes([n], seq);
    this.#answers.push(() => {
      this.cache.committed(changes);
      this.#own.set(n, Math.max(this.#own.get(n) ?? 0, seq));
    });
  }

  look(n: number): void {
    const { head } = this.journal;
    const found = this.journal.changes([n], head);
    this.#answers.push(() => {
      if (found.keys.length > 0) return this.cache.remember(found);
      this.cache.rememberUnknown(`digest_${n}`, head);
      this.cache.remember({
        ...NO_CHANGES,
        seq: head,
        balances: new Map([[walletOf(n), 0n]]),
        spend: new Map([[idOf(n), NOTHING_SPENT]]),
      });
    });
  }

  /** One look at a time. */
  watch(): void {
    if (this.#watching) return;
    this.#watching = true;
    const { head } = this.journal;
    const found = this.journal.changes(this.journal.changedSince(this.cache.seen, head), head);
    this.#answers.push(() => {
      this.#watching = false;
      this.cache.follow(found);
    });
  }

  /** As at the first look, or after a long silence, when no commit of this process is under way. */
  restart(): void {
    while (this.#answers.length > 0) this.arrive(0);
    this.cache.restart(this.journal.head);
  }

  arrive(which: number): void {
    if (this.#answers.length > 0) this.#answers.splice(which % this.#answers.length, 1)[0]?.();
  }

  /**
   * Nothing that is remembered is older than what the watcher has seen, or than what this process knows that it has changed
   * itself.
   */
  check(): void {
    const { cache, journal } = this;
    for (let n = 0; n < KEYS; n += 1) {
      const bound = Math.max(cache.seen, this.#own.get(n) ?? 0);
      const newest = journal.last(n, bound);
      const remembered: readonly (readonly [string, number | undefined])[] = [
        ['key', asOf(cache.keyByDigest(`digest_${n}`)?.name)],
        ['account', asOf(cache.account(`acct_${n}`)?.name)],
        ['balance', cache.balance(walletOf(n)) && Number(cache.balance(walletOf(n))?.value)],
        ['spend', cache.spend(idOf(n)) && Number(cache.spend(idOf(n))?.value.total)],
        ['unknown', cache.isUnknown(`digest_${n}`) ? 0 : undefined],
      ];
      for (const [what, at] of remembered)
        if (at !== undefined) assert.ok(at >= newest, `${what} ${n} is remembered as of ${at}, it changed at ${newest}`);
      const standing = cache.balance(walletOf(n));
      if (standing !== undefined) assert.equal(Number(standing.value), journal.last(n, standing.seq));
    }
  }
}

const asOf = (name: string | undefined): number | undefined =>
  name === undefined ? undefined : Number(name.slice('as of '.length));

const key = fc.nat(KEYS - 1);
const step = fc.oneof(
  fc.record({ step: fc.constant('commit' as const), key, own: fc.boolean() }),
  fc.record({ step: fc.constant('look' as const), key }),
  fc.record({ step: fc.constant('watch' as const) }),
  fc.record({ step: fc.constant('watch' as const) }),
  fc.record({ step: fc.constant('restart' as const) }),
  fc.record({ step: fc.constant('arrive' as const), which: fc.nat(5) }),
  fc.record({ step: fc.constant('arrive' as const), which: fc.nat(5) }),
);

test('whatever overtakes what, nothing is remembered that is known to have changed', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40, size: 'max' }), (steps) => {
      const world = new World();
      for (const one of steps) {
        if (one.step === 'commit') world.commit(one.key, one.own);
        else if (one.step === 'look') world.look(one.key);
        else if (one.step === 'watch') world.watch();
        else if (one.step === 'restart') world.restart();
        else world.arrive(one.which);
        world.check();
      }
    }),
    { numRuns: 1_000 },
  );
});
