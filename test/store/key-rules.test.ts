/** What a key may be and may do. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { allowsIp, allowsModel, checkIps } from '../../src/store/key-rules.ts';

test('an address is matched against single addresses and ranges, IPv4 inside IPv6 too', () => {
  const key = { ips: ['10.0.0.0/8', '192.168.1.7', '2001:db8::/32', '::1'] };
  for (const ip of ['10.1.2.3', '::ffff:10.1.2.3', '192.168.1.7', '2001:db8:1::5', '::1'])
    assert.equal(allowsIp(key, ip), true, ip);
  for (const ip of ['11.0.0.1', '192.168.1.8', '2001:db9::1', '::ffff:11.0.0.1', 'x', '', undefined])
    assert.equal(allowsIp(key, ip), false);
  assert.equal(allowsIp({}, undefined), true);
});

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
  ]) {
    const checked = checkIps(['10.0.0.1', bad]);
    assert.equal(!checked.ok && checked.refusal.field, 'ips[1]', bad);
  }
  assert.equal(checkIps(['0.0.0.0/0', '::/0']).ok, true);
});

test('a model list allows exactly its members', () => {
  assert.equal(allowsModel({ models: ['a'] }, 'a'), true);
  assert.equal(allowsModel({ models: ['a'] }, 'A'), false);
  assert.equal(allowsModel({}, 'anything'), true);
});
