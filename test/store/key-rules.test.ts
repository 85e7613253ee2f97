/** What a key may be. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkIps, checkModels } from '../../src/store/key-rules.ts';

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
    const checked = checkIps(['10.0.0.1', bad]);
    assert.equal(!checked.ok && checked.refusal.field, 'ips[1]', bad);
  }
  assert.equal(checkIps(['0.0.0.0/0', '::/0']).ok, true);
});

test('models are names, each once, and ones that there are where they are known', () => {
  assert.deepEqual(checkModels(['a', 'b', 'a']), { ok: true, value: ['a', 'b'] });
  assert.deepEqual(checkModels(['a'], new Set(['a'])), { ok: true, value: ['a'] });
  for (const [models, field] of [
    [[], 'models'],
    [['a', ''], 'models[1]'],
    [['a', 'b\n'], 'models[1]'],
    [['a', 'c'], 'models[1]'],
  ] as const) {
    const checked = checkModels(models, new Set(['a', 'b']));
    assert.equal(!checked.ok && checked.refusal.field, field);
  }
});
