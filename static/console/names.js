/** Names of accounts and keys for their ids, as lists show them. Kept for a minute: a name changes seldom. */
import { h, link, one } from './dom.js';

const MOST = 1000;
const KEPT_MS = 60_000;
let known = { accounts: new Map(), keys: new Map(), untilMs: 0 };

/** To be awaited in `load` before the others are used in `draw`. */
export async function readNames(get) {
  if (performance.now() < known.untilMs) return;
  const [accounts, keys] = await Promise.all([get('accounts', { limit: MOST }), get('keys', { limit: MOST })]);
  known = {
    accounts: new Map(accounts.data.map((account) => [account.id, account])),
    keys: new Map(keys.data.map((key) => [key.id, key])),
    untilMs: performance.now() + KEPT_MS,
  };
}

/** After a change. */
export function forgetNames() {
  known.untilMs = 0;
}

export const accountName = (id) => known.accounts.get(id)?.name ?? id;
export const keyName = (id) => known.keys.get(id)?.name || id;
export const accountLink = (id) => (id === '' || id === undefined ? '–' : link(one('account', id), accountName(id)));
export const keyLink = (id) => (id === '' || id === undefined ? '–' : link(one('key', id), keyName(id)));

/** Suggestions for a field that takes an account's name; `id` is the list's. */
export function accountOptions(id) {
  return h(
    'datalist',
    { id },
    [...known.accounts.values()].map(({ name }) => h('option', { value: name })),
  );
}
export const keysOf = () => [...known.keys.values()];
