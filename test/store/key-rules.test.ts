/** What a key may be. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkExpiry, checkIps, checkLimits, checkModels, checkName, digestOf, sameDigest } from '../../src/store/key-rules.ts';
import { MAX_NANOS } from '../../src/store/money.ts';
import { ok, refusal } from './support/store.ts';

test('malformed ranges are refused by their place', () => {
  for (const bad of [
    '10.0.0.0/',
    '10.0.0.0/08',
    '10.0.0.0/33',
    '::/129',
    '10.0.0.0/8/8',
    '10.0.0.256',
    'fe80::1%eth0',
    'example.com',
    '',
    ' 10.0.0.1',
    '::ffff:10.0.0.0/95',
  ]) {
    const message = 'must be an IP address or a CIDR range, such as "10.0.0.0/8"';
    assert.deepEqual(refusal(checkIps(['10.0.0.1', bad])), { reason: 'invalid', field: 'ips[1]', message }, bad);
  }
  const message = 'must not be empty: leave it out to allow all addresses';
  assert.deepEqual(refusal(checkIps([])), { reason: 'invalid', field: 'ips', message });
  for (const good of ['10.0.0.0/8', '10.0.0.1/32', '::1/128', '::ffff:10.0.0.0/96', '::fffe:0:0/95']) ok(checkIps([good]));
  assert.equal(checkIps(['0.0.0.0/0', '::/0']).ok, true);
});

test('models are names, each once, and ones that there are where they are known', () => {
  assert.deepEqual(checkModels(['a', 'b', 'a']), { ok: true, value: ['a', 'b'] });
  assert.deepEqual(checkModels(['a'], new Set(['a'])), { ok: true, value: ['a'] });
  for (const [models, field, message] of [
    [[], 'models', 'must not be empty: leave it out to allow all models'],
    [['a', ''], 'models[1]', 'is not a model name'],
    [['a', 'b\n'], 'models[1]', 'is not a model name'],
    [['a', 'c'], 'models[1]', 'no such model: c'],
  ] as const)
    assert.deepEqual(refusal(checkModels(models, new Set(['a', 'b']))), { reason: 'invalid', field, message });
});

test('a name is 1 to 128 characters, of any script, that forge no line and have no space around them', () => {
  for (const good of ['a', '水 \u{1f600}', 'x'.repeat(128)]) assert.equal(ok(checkName('name', good)), good);
  const message = 'must be 1 to 128 characters, without control characters and outer spaces';
  for (const bad of ['', 'x'.repeat(129), 'a\u0007', '\ud800', ' a', 'a '])
    assert.deepEqual(refusal(checkName('who', bad)), { reason: 'invalid', field: 'who', message }, bad);
});

test('limits are greater than zero and in range, each by itself; absent ones stay absent', () => {
  for (const window of ['total', 'hourly', 'daily']) {
    for (const limit of [1n, MAX_NANOS]) assert.deepEqual(ok(checkLimits({ [window]: limit })), { [window]: limit });
    for (const bad of [0n, -1n, MAX_NANOS + 1n]) {
      const expected = { reason: 'invalid', field: `limits.${window}`, message: 'must be greater than zero' };
      assert.deepEqual(refusal(checkLimits({ [window]: bad })), expected);
    }
  }
  assert.deepEqual(ok(checkLimits({})), {});
});

test('a time of expiry is a whole number, also one that is over', () => {
  for (const good of [0, 1, Number.MAX_SAFE_INTEGER]) assert.equal(ok(checkExpiry(good)), good);
  for (const bad of [1.5, Number.NaN, Number.MAX_SAFE_INTEGER + 1])
    assert.deepEqual(refusal(checkExpiry(bad)), { reason: 'invalid', field: 'expiresAtMs', message: 'must be a time' });
});

test('digests are the same only whole', () => {
  const digest = digestOf('token');
  assert.equal(sameDigest(digest, digest), true);
  for (const other of ['', digest.slice(1), `${digest}0`, digestOf('other'), digest.replace(/.$/, 'x')]) {
    assert.equal(sameDigest(digest, other), false);
    assert.equal(sameDigest(other, digest), false);
  }
  assert.equal(sameDigest('', ''), false);
});
