import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { clientIp } from '../../../src/http/request/client-ip.ts';
import { inRanges, ipRanges } from '../../../src/http/request/ip-ranges.ts';
import { checkIps } from '../../../src/store/key-rules.ts';
import { fakeUpstream, jsonAnswer, wholeMessage } from '../../support/fake-upstream.ts';
import { ask, channel, MODELS, testGateway } from '../../support/test-gateway.ts';

const trusted = ipRanges(['127.0.0.0/8', '10.0.0.0/8', '::1']);
const of = (peer: string, headers: Record<string, string> = {}) => clientIp(peer, headers, trusted);

test('an address is matched against single addresses and ranges, IPv4 inside IPv6 too', () => {
  const allowed = ipRanges(['10.0.0.0/8', '192.168.1.7', '2001:db8::/32', '::1', '::ffff:172.16.0.0/108']);
  for (const ip of ['10.1.2.3', '::ffff:10.1.2.3', '::FFFF:a01:203', '192.168.1.7', '2001:db8:1::5', '::1', '172.31.0.1'])
    assert.equal(inRanges(allowed, ip), true, ip);
  for (const ip of ['11.0.0.1', '192.168.1.8', '2001:db9::1', '::ffff:11.0.0.1', '172.32.0.1', 'x', '', 'unknown'])
    assert.equal(inRanges(allowed, ip), false, ip);
});

test('every range that a key may be given is one that admission understands', () => {
  const address = fc.oneof(
    fc.ipV4(),
    fc.ipV6(),
    fc.ipV4().map((ip) => `::ffff:${ip}`),
  );
  const range = fc.tuple(address, fc.option(fc.nat(130), { nil: undefined }));
  fc.assert(
    fc.property(range, ([ip, bits]) => {
      const entry = bits === undefined ? ip : `${ip}/${bits}`;
      if (!checkIps([entry]).ok) return;
      const list = ipRanges([entry], (_, problem) => assert.fail(problem));
      assert.equal(inRanges(list, ip), true, entry);
    }),
    { numRuns: 500 },
  );
});

test('headers of an untrusted peer mean nothing', () => {
  assert.equal(of('203.0.113.9', { 'x-forwarded-for': '1.2.3.4', forwarded: 'for=1.2.3.4' }), '203.0.113.9');
  assert.equal(of('::ffff:203.0.113.9'), '203.0.113.9');
});

test('the nearest address that is no trusted proxy', () => {
  assert.equal(of('127.0.0.1', { 'x-forwarded-for': '6.6.6.6, 203.0.113.9, 10.1.1.1' }), '203.0.113.9');
  assert.equal(of('127.0.0.1', { forwarded: 'for="[2001:db8::7]:4711";proto=https, for=10.0.0.1' }), '2001:db8::7');
  assert.equal(of('::1', { 'x-real-ip': '203.0.113.9' }), '203.0.113.9');
  assert.equal(of('::ffff:127.0.0.1', { 'x-forwarded-for': '203.0.113.9:5555' }), '203.0.113.9');
  assert.equal(of('127.0.0.1', { 'x-forwarded-for': '10.2.2.2, 10.1.1.1' }), '10.2.2.2');
});

test('no chain has more than 256 trusted hops: what is longer is a client’s own, and is not read to its end', () => {
  const chain = (hops: number): string => `1.2.3.4${',::1'.repeat(hops)}`;
  assert.equal(of('10.0.0.1', { 'x-forwarded-for': chain(255) }), '1.2.3.4');
  assert.equal(of('10.0.0.1', { 'x-forwarded-for': chain(256) }), 'unknown');
  // What stands in front of the first untrusted address is not read, however long.
  assert.equal(of('10.0.0.1', { 'x-forwarded-for': `${chain(8_000)},5.6.7.8` }), '5.6.7.8');
});

test('what a client wrote before the proxies’ own words does not matter, readable or not', () => {
  assert.equal(of('127.0.0.1', { 'x-forwarded-for': 'garbage, 203.0.113.9' }), '203.0.113.9');
  assert.equal(of('127.0.0.1', { 'x-forwarded-for': '127.0.0.1, unknown, 203.0.113.9, 10.0.0.1' }), '203.0.113.9');
  assert.equal(of('127.0.0.1', { forwarded: 'for="a, b;for=1.2.3.4";by=x, for=203.0.113.9' }), '203.0.113.9', 'quoted');
  assert.equal(of('127.0.0.1', { forwarded: 'for="a\\", for=1.2.3.4", , for="203.0.113\\.9"' }), '203.0.113.9', 'escaped');
  assert.equal(of('127.0.0.1', { forwarded: 'by="a,b";for=10.9.9.9, proto=http;FOR=203.0.113.9;by=10.0.0.1' }), '203.0.113.9');
});

test('a client that the proxies do not name is unknown: not the proxy, whose address an allow-list may hold', () => {
  assert.equal(of('127.0.0.1', { 'x-forwarded-for': '203.0.113.9, unknown' }), 'unknown');
  assert.equal(of('127.0.0.1', { forwarded: 'for=_hidden' }), 'unknown');
  assert.equal(of('127.0.0.1', { forwarded: 'proto=https' }), 'unknown');
  assert.equal(of('127.0.0.1', { 'x-forwarded-for': '010.1.1.1' }), 'unknown');
  assert.equal(of('127.0.0.1', { 'x-forwarded-for': ' , ' }), '127.0.0.1', 'nothing is said');
});

test('F20: Forwarded by its grammar: two names in one element, and what is no header at all, leave the client unknown', () => {
  for (const forwarded of [
    'for=203.0.113.9;for=10.0.0.1',
    'for=10.0.0.1;proto=https;FOR=203.0.113.9',
    'for="1.2.3.4, for=203.0.113.9',
    'for=[2001:db8::7]',
    'for = 203.0.113.9',
    'for=203.0.113.9 proto=http',
    'for=203.0.113.9;;=x',
    'for=""',
    `${'for=1.2.3.4,'.repeat(300)}for=203.0.113.9`,
  ])
    assert.equal(of('127.0.0.1', { forwarded }), 'unknown', forwarded.slice(0, 60));
  assert.equal(of('127.0.0.1', { forwarded: ' ; for=203.0.113.9 ; proto=http ;' }), '203.0.113.9');
  assert.equal(of('127.0.0.1', { forwarded: ' , ' }), '127.0.0.1', 'nothing is said');
  const started = performance.now();
  of('127.0.0.1', { forwarded: `for="${'\\"'.repeat(15_000)}` });
  of('127.0.0.1', { forwarded: 'x=1;'.repeat(8_000) });
  assert.ok(performance.now() - started < 500, 'a header of 32 KB is read at once');
});

test('two headers that contradict each other: one of them is the client’s own', () => {
  assert.equal(of('127.0.0.1', { forwarded: 'for=10.0.0.9', 'x-forwarded-for': '203.0.113.9' }), 'unknown');
  assert.equal(of('127.0.0.1', { forwarded: 'for="[2001:DB8::0:7]"', 'x-forwarded-for': '2001:db8::7' }), '2001:db8::7');
  assert.equal(of('127.0.0.1', { 'x-real-ip': '1.2.3.4', 'x-forwarded-for': '203.0.113.9' }), '203.0.113.9');
});

test('addresses in every spelling', () => {
  const spellings: readonly (readonly [string, string])[] = [
    ['203.0.113.9:80', '203.0.113.9'],
    ['[2001:db8::7]', '2001:db8::7'],
    ['[2001:db8::7]:443', '2001:db8::7'],
    ['2001:0DB8:0:0::7', '2001:db8::7'],
    ['::ffff:203.0.113.9', '203.0.113.9'],
    ['0:0:0:0:0:ffff:203.0.113.9', '203.0.113.9'],
    ['[::ffff:cb00:7109]:1', '203.0.113.9'],
    ['fe80::1%eth0', 'fe80::1'],
    ['[2001:db8::7]:x', 'unknown'],
    ['2001:db8::7:', 'unknown'],
    ['203.0.113.9:80:80', 'unknown'],
    ['203.0.113.9/32', 'unknown'],
  ];
  for (const [text, address] of spellings) assert.equal(of('127.0.0.1', { 'x-forwarded-for': text }), address, text);
  assert.equal(of('127.0.0.1', { forwarded: 'for="203.0.113.9:_port"' }), '203.0.113.9');
});

test('ranges: mapped addresses count as IPv4, malformed ones are told', () => {
  const problems: string[] = [];
  const list = ipRanges(['10.0.0.0/8', '2001:db8::/32', '10.0.0.0/33', 'x', '1.2.3.4/'], (index) => problems.push(String(index)));
  assert.deepEqual(problems, ['2', '3', '4']);
  assert.ok(inRanges(list, '::ffff:10.1.2.3'));
  assert.ok(inRanges(list, '::ffff:a01:203'));
  assert.ok(inRanges(list, '2001:db8::1'));
  assert.ok(!inRanges(list, '11.0.0.1'));
  assert.ok(!inRanges(list, 'nonsense'));
  const mapped = ipRanges(['::ffff:10.0.0.0/104', '::ffff:192.0.2.7']);
  assert.ok(inRanges(mapped, '10.200.0.1') && inRanges(mapped, '::ffff:10.200.0.1') && inRanges(mapped, '192.0.2.7'));
  assert.ok(!inRanges(mapped, '11.0.0.1'));
  const wide: string[] = [];
  ipRanges(['::ffff:10.0.0.0/95'], (_index, message) => wide.push(message));
  assert.equal(wide.length, 1, 'it holds more than IPv4');
});

test('one client address for allow-lists, rows and logs, whatever a stranger writes into headers', async (t) => {
  const upstream = await fakeUpstream(jsonAnswer(200, wholeMessage('fine')));
  t.after(() => upstream.close());
  const file = { channels: [channel(upstream.url)], models: MODELS };
  await using gateway = await testGateway({ ...file, trusted_proxies: ['127.0.0.1/32'] });
  gateway.store.addKey('sk-office', { ips: ['203.0.113.0/24', '2001:db8::/32'] });
  const from = async (headers: Record<string, string>): Promise<string> => {
    const response = await gateway.post('/v1/messages', ask(), { headers: { authorization: 'Bearer sk-office', ...headers } });
    if (response.status !== 200) assert.match(await response.text(), /not be used from this address/);
    return `${response.status} ${gateway.store.settled.at(-1)?.ip ?? ''}`;
  };
  assert.equal(await from({ 'x-forwarded-for': '203.0.113.7' }), '200 203.0.113.7');
  assert.equal(await from({ 'x-forwarded-for': '::ffff:203.0.113.8' }), '200 203.0.113.8');
  assert.equal(await from({ forwarded: 'for="[2001:db8::1]"' }), '200 2001:db8::1');
  assert.match(await from({ 'x-forwarded-for': '203.0.113.7, 198.51.100.1' }), /^403 /, 'the nearest one counts');
  assert.match(await from({}), /^403 /);
  gateway.configure(file);
  assert.match(await from({ 'x-forwarded-for': '203.0.113.7' }), /^403 /, 'nobody is trusted by default');
});
