/** The chain of the journal: what a row's hash is of, said here a second time, so that an older journal goes on being sound. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { chainHash, FIRST_HASH, isOfExchange, JOURNAL_KINDS, journalHash, journalText } from '../../src/store/ledger.ts';

const ROW = { seq: 1, atMs: 2, kind: 'credit', ref: 'c"', from: 'external', to: 'wallet:a', nanos: 3n } as const;
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

test('a hash is of the hash before, every field in its order, and the state where there is one', () => {
  const whole = { ...ROW, accountId: 'a', keyId: 'k', by: 'me', note: 'ü' };
  for (const [row, fields] of [
    [ROW, [1, 2, 'credit', 'c"', 'external', 'wallet:a', '3', null, null, null, null]],
    [whole, [1, 2, 'credit', 'c"', 'external', 'wallet:a', '3', 'a', 'k', 'me', 'ü']],
  ] as const) {
    assert.equal(journalText(row), JSON.stringify(fields));
    for (const previous of [FIRST_HASH, 'f'.repeat(64)]) {
      assert.equal(journalHash(previous, row), sha256(JSON.stringify([previous, ...fields])));
      const state = '{"id":"a"}';
      assert.equal(journalHash(previous, { ...row, state }), sha256(JSON.stringify([previous, ...fields, state])));
      assert.equal(chainHash(previous, journalText(row), state), journalHash(previous, { ...row, state }));
    }
  }
  assert.equal(FIRST_HASH, '0'.repeat(64));
});

test('an exchange causes charges and interruptions, and nothing else', () => {
  assert.deepEqual(JOURNAL_KINDS.filter(isOfExchange), ['charge', 'interrupted']);
});
