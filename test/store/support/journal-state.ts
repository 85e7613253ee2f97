/** What a row of the journal says of the key or account that it is about, read strictly. */
import assert from 'node:assert/strict';
import type { JournalRow } from '../../../src/store/ledger.ts';

export function checkedState({ state }: JournalRow): Readonly<Record<string, unknown>> {
  const value: unknown = JSON.parse(state ?? 'null');
  assert.ok(typeof value === 'object' && value !== null && !Array.isArray(value));
  return { ...value };
}
