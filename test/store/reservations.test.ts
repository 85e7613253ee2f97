/** What one process has let in and not yet settled. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Principal } from '../../src/store/keys.ts';
import { Reservations } from '../../src/store/reservations.ts';

const PAYER = 'wallet:a';

function sums(reservations: Reservations): readonly bigint[] {
  return [reservations.ofPayer(PAYER), reservations.ofKey('k1'), reservations.ofKey('k2')];
}

test('estimates add up for who pays and for the key, and are given back once', () => {
  const reservations = new Reservations();
  assert.deepEqual(sums(reservations), [0n, 0n, 0n]);
  const first = reservations.reserve(PAYER, 'k1', 5n);
  const second = reservations.reserve(PAYER, 'k2', 7n);
  assert.deepEqual(sums(reservations), [12n, 5n, 7n]);
  first.release();
  first.release();
  assert.deepEqual(sums(reservations), [7n, 0n, 7n]);
  second.release();
  assert.deepEqual(sums(reservations), [0n, 0n, 0n]);
});

test('the charge takes the place of the estimate, and only the store gives it back', () => {
  for (const charge of [0n, 3n, 9n]) {
    const reservations = new Reservations();
    const reservation = reservations.reserve(PAYER, 'k1', 5n);
    const onDisk = reservation.handOver(charge);
    assert.deepEqual(sums(reservations), [charge, charge, 0n]);
    reservation.release();
    assert.deepEqual(sums(reservations), [charge, charge, 0n], 'it is not the exchange’s any more');
    onDisk();
    onDisk();
    assert.deepEqual(sums(reservations), [0n, 0n, 0n]);
  }
});

test('what was released is not taken up again by a late settlement', () => {
  const reservations = new Reservations();
  const reservation = reservations.reserve(PAYER, 'k1', 5n);
  reservation.release();
  const onDisk = reservation.handOver(9n);
  assert.deepEqual(sums(reservations), [0n, 0n, 0n]);
  onDisk();
  assert.deepEqual(sums(reservations), [0n, 0n, 0n]);
});

test('what is in flight is told for one key and for all of them', () => {
  const reservations = new Reservations();
  const [first] = [reservations.reserve(PAYER, 'k1', 5n), reservations.reserve(PAYER, 'k2', 7n)];
  assert.deepEqual(
    [undefined, 'k1', 'k2', 'k3'].map((keyId) => reservations.reserved(keyId)),
    [12n, 5n, 7n, 0n],
  );
  first.release();
  assert.equal(reservations.reserved(undefined), 7n);
});

test('what a key has spent is read only where a limit asks for it, and a balance only where somebody pays', () => {
  const principal = (limits: object, unlimited: boolean): Principal => ({
    key: {
      ...{ id: 'k', accountId: 'acct', name: 'k', digest: '', prefix: '', last4: '', createdAtMs: 0 },
      ...{ disabled: false, subAccount: false, limits },
    },
    account: { id: 'acct', name: 'a', class: 'default', unlimited, disabled: false, createdAtMs: 0 },
  });
  const read: string[] = [];
  const standing = {
    balance: (payer: string) => BigInt(read.push(payer)),
    spend: (keyId: string) => {
      read.push(keyId);
      return { total: 0n, hour: 0, hourly: 0n, day: 0, daily: 0n, held: 0n };
    },
  };
  for (const [limits, unlimited, expected] of [
    [{}, false, ['wallet:acct']],
    [{}, true, []],
    [{ total: 9n }, true, ['k']],
    [{ total: 9n }, false, ['wallet:acct', 'k']],
  ] as const) {
    read.length = 0;
    assert.equal(new Reservations().admit(principal(limits, unlimited), standing, 0n, 0).ok, true);
    assert.deepEqual([...new Set(read)], expected);
  }
});
