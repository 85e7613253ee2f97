/** Compares keys and accounts with the journal: digests, limits and flags change by a row and no other way. */
import type { AccountRecord } from './accounts.ts';
import type { Difference, JournalRow } from './ledger.ts';
import type { KeyRecord } from './keys.ts';
import type { Expect } from './recount-spend.ts';
import { ABSENT, isStating, type Stated, statedAfter, textOfAccount, textOfKey } from './stated.ts';

export class RecordRecount {
  readonly #accounts = new Map<string, Stated>();
  readonly #keys = new Map<string, Stated>();
  readonly #found = new Set<string>();

  journal(row: JournalRow): void {
    if (!isStating(row)) return;
    const isKey = row.keyId !== undefined;
    const [records, id = ''] = isKey ? [this.#keys, row.keyId] : [this.#accounts, row.accountId];
    records.set(id, statedAfter(records.get(id), row));
  }

  account(record: AccountRecord, expect: Expect): void {
    this.#compare('account', record.id, this.#accounts.get(record.id), textOfAccount(record), expect);
  }

  key(record: KeyRecord, expect: Expect): void {
    this.#compare('key', record.id, this.#keys.get(record.id), textOfKey(record), expect);
  }

  *finish(expect: Expect): Generator<void> {
    for (const [what, records] of [
      ['account', this.#accounts],
      ['key', this.#keys],
    ] as const)
      for (const id of records.keys()) {
        if (!this.#found.has(id)) expect(what, id, 'a record', 'nothing');
        yield;
      }
  }

  #compare(
    what: Difference['what'],
    id: string,
    stated: Stated | undefined,
    found: ReadonlyMap<string, string>,
    expect: Expect,
  ): void {
    this.#found.add(id);
    if (stated === undefined) {
      expect(what, id, 'a journal row that made it', 'nothing');
      return;
    }
    const names = stated.isWhole ? new Set([...stated.fields.keys(), ...found.keys()]) : stated.fields.keys();
    for (const name of names) expect(what, `${name} of ${id}`, stated.fields.get(name) ?? ABSENT, found.get(name) ?? ABSENT);
  }
}
