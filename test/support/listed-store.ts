/**
 * All that can be listed of a store through its contract, as JSON text: to compare what one version wrote with what another one
 * reads.
 */
import type { Store } from '../../src/store/store.ts';
import { dayName, dayOf } from '../../src/store/spend-windows.ts';
import { T0 } from '../store/support/store.ts';

export async function listedStore(store: Store) {
  const keys = await store.keys.list();
  const ofKeys = async <T>(look: (keyId: string) => Promise<T>): Promise<Record<string, T>> =>
    Object.fromEntries(await Promise.all(keys.map(async ({ id, name }) => [name, await look(id)] as const)));
  return {
    accounts: await store.accounts.list(),
    keys,
    balances: await ofKeys((id) => store.keys.balance(id)),
    spend: await ofKeys((id) => store.spend.spend(id, T0 + 3_600_000)),
    days: await ofKeys((id) => store.spend.usageByDay(id, { to: dayName(dayOf(T0)) })),
    journal: await store.ledger.journal(),
    holds: (await store.ledger.holds()).sort((a, b) => (a.id < b.id ? -1 : 1)),
    log: await store.requestLog.list({ limit: 1_000 }),
    videos: (await store.videos.all()).sort((a, b) => a.number - b.number),
    secrets: [1, 2].map((id) => Buffer.from(store.secrets.byId(id)?.bytes ?? []).toString('hex')),
  };
}

/** Amounts as decimal text, maps as lists of pairs; members in the order of their names, since engines differ in theirs. */
export function listText(listed: object): string {
  return `${JSON.stringify(listed, plain, 1)}\n`;
}

function plain(_: string, value: unknown): unknown {
  if (typeof value === 'bigint') return value.toString();
  if (value instanceof Map) return [...value];
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}
