/**
 * API keys on LMDB. Keys that were looked up are remembered, and one small read of the store tells whether any key or account
 * has changed since, so a change by another process counts at once.
 */
import { keyChanges } from '../books/keys.ts';
import { accepted, digestOf, MAX_TOKEN } from '../key-rules.ts';
import type { Balance, KeyRecord, Keys, NotAccepted, Principal } from '../keys.ts';
import { paysFromSubAccount, subAccountOf, walletOf } from '../payer.ts';
import { refused } from '../result.ts';
import { createdRows } from './steps.ts';
import type { Environment } from './environment.ts';
import { metaOf, type Tables } from './tables.ts';

export function createKeys(environment: Environment): Keys {
  const remembered = new PrincipalCache();

  return {
    ...keyChanges(environment),

    authenticate: (token, nowMs) => environment.look((tables) => authenticate(tables, remembered, token, nowMs)),

    find: (id) => environment.read((tables) => tables.keys.get(id)),

    list: (accountId, { isWanted = () => true, ...page } = {}) =>
      createdRows(environment, ({ keys }) => keys, {
        ...page,
        isWanted: (key) => (accountId ?? key.accountId) === key.accountId && isWanted(key),
      }),

    balance: (keyId) =>
      environment.read((tables) => {
        const key = tables.keys.get(keyId);
        return key === undefined ? undefined : balanceOf(tables, key);
      }),
  };
}

function authenticate(tables: Tables, remembered: PrincipalCache, token: string, nowMs: number) {
  if (token.length === 0 || token.length > MAX_TOKEN) return refused<NotAccepted>({ reason: 'unknown' });
  const digest = digestOf(token);
  return accepted(digest, remembered.find(tables, digest), nowMs);
}

const REMEMBERED = 10_000;

/** Keys by digest, all of one generation; only keys that exist, so that guesses cannot fill it. */
class PrincipalCache {
  readonly #principals = new Map<string, Principal>();
  #generation = -1;

  find(tables: Tables, digest: string): Principal | undefined {
    const generation = metaOf(tables, 'keyGeneration') ?? 0;
    if (generation !== this.#generation || this.#principals.size >= REMEMBERED) {
      this.#principals.clear();
      this.#generation = generation;
    }
    const known = this.#principals.get(digest);
    if (known !== undefined) return known;
    const id = tables.keyDigests.get(digest);
    const key = id === undefined ? undefined : tables.keys.get(id);
    const account = key === undefined ? undefined : tables.accounts.get(key.accountId);
    if (key === undefined || account === undefined) return undefined;
    const principal = { key, account };
    this.#principals.set(digest, principal);
    return principal;
  }
}

function balanceOf(tables: Tables, key: KeyRecord): Balance {
  const sub = paysFromSubAccount(key);
  const unlimited = !sub && (tables.accounts.get(key.accountId)?.unlimited ?? false);
  const nanos = tables.balances.get(sub ? subAccountOf(key.id) : walletOf(key.accountId)) ?? 0n;
  return { source: sub ? 'sub_account' : 'wallet', nanos, unlimited };
}
