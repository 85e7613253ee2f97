import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { CHANNEL_TYPES } from '../../src/codecs/canonical/dialect.ts';
import type { Opaque } from '../../src/codecs/canonical/opaque.ts';
import { createEnvelopes, type EnvelopeSecret } from '../../src/codecs/envelope.ts';

const secret = (id: number): EnvelopeSecret => ({ id, bytes: new Uint8Array(32).fill(id) });
const secretsOf = (...ids: number[]) => ({
  current: () => secret(ids.at(-1) ?? 1),
  byId: (id: number) => (ids.includes(id) ? secret(id) : undefined),
});
const envelopes = createEnvelopes(secretsOf(1));

const opaques: fc.Arbitrary<Opaque> = fc.record(
  {
    owner: fc.oneof(
      fc.record(
        { channelType: fc.constantFrom(...CHANNEL_TYPES), scope: fc.string(), model: fc.string() },
        { noNullPrototype: true },
      ),
      fc.record(
        { client: fc.constantFrom('chat' as const, 'messages' as const, 'responses' as const) },
        { noNullPrototype: true },
      ),
    ),
    value: fc
      .oneof(fc.string({ unit: 'binary' }), fc.string({ minLength: 2000, maxLength: 5000 }), fc.base64String())
      .filter((text) => text.isWellFormed() && !text.startsWith('mz2.')),
    itemId: fc.string(),
    form: fc.string(),
  },
  { requiredKeys: ['owner', 'value'], noNullPrototype: true },
);

test('what is sealed opens to the same, for its own account only', () => {
  fc.assert(
    fc.property(opaques, fc.string(), fc.string(), (opaque, account, other) => {
      const sealed = envelopes.seal(opaque, account);
      assert.match(sealed, /^mz2\.[A-Za-z0-9_-]+$/);
      assert.deepEqual(envelopes.opener(account)(sealed), { ...opaque, sealed });
      if (other !== account) assert.equal(envelopes.opener(other)(sealed), undefined);
    }),
  );
});

test('sealing is deterministic, and a sealed value is not sealed twice', () => {
  fc.assert(
    fc.property(opaques, fc.string(), (opaque, account) => {
      const sealed = envelopes.seal(opaque, account);
      assert.equal(envelopes.seal(opaque, account), sealed);
      assert.equal(envelopes.seal({ ...opaque, value: sealed }, account), sealed);
    }),
  );
});

test('an envelope of another gateway, or of another account, is a value like any other', () => {
  const above = createEnvelopes(secretsOf(2));
  fc.assert(
    fc.property(opaques, fc.string(), (opaque, account) => {
      for (const value of [above.seal(opaque, account), envelopes.seal(opaque, `${account}b`), 'mz2.', 'mz2.none']) {
        const sealed = envelopes.seal({ ...opaque, value }, account);
        assert.equal(envelopes.opener(account)(sealed)?.value, value);
      }
    }),
  );
});

test('V7: one changed, missing or added character opens to nothing', () => {
  fc.assert(
    fc.property(opaques, fc.nat(), fc.constantFrom('A', 'b', '_', '=', ' ', 'é'), (opaque, at, character) => {
      const sealed = envelopes.seal(opaque, 'a');
      const index = at % sealed.length;
      const changed = sealed.slice(0, index) + character + sealed.slice(index + 1);
      if (changed !== sealed) assert.equal(envelopes.opener('a')(changed), undefined);
      assert.equal(envelopes.opener('a')(sealed.slice(0, index)), undefined);
      assert.equal(envelopes.opener('a')(sealed.slice(0, index) + character + sealed.slice(index)), undefined);
    }),
  );
});

test('garbage never throws', () => {
  fc.assert(
    fc.property(fc.string(), fc.base64String(), (text, base64) => {
      assert.equal(envelopes.opener('a')(text), undefined);
      assert.equal(envelopes.opener('a')(`mz2.${text}`), undefined);
      assert.equal(envelopes.opener('a')(`mz2.AQE${base64}`), undefined);
    }),
  );
});

test('a rotated secret still opens, a removed one does not', () => {
  const opaque: Opaque = { owner: { channelType: 'messages', scope: 's', model: 'm' }, value: 'v' };
  const sealed = envelopes.seal(opaque, 'a');
  assert.equal(createEnvelopes(secretsOf(1, 2)).opener('a')(sealed)?.value, 'v');
  assert.equal(createEnvelopes(secretsOf(2)).opener('a')(sealed), undefined);
  assert.notEqual(createEnvelopes(secretsOf(1, 2)).seal(opaque, 'a'), sealed);
});

test('a long value is deflated', () => {
  const opaque: Opaque = { owner: { channelType: 'messages', scope: 's', model: 'm' }, value: 'abc'.repeat(10_000) };
  assert.ok(envelopes.seal(opaque, 'a').length < 1000);
});

test('what earlier versions sealed still opens: clients keep it for as long as they keep a conversation', () => {
  const kept = createEnvelopes({
    current: () => secret(1),
    byId: (id) => (id === 7 ? { id, bytes: new Uint8Array(32).fill(5) } : undefined),
  });
  const short =
    'mz2.AQeugldjrsjUSQW3wl_uR78vXgIrQphYkz6gYL5HSSrGyp9RYtLdJwaW9V6tFTYCMPWY_PTp8_wfrzeJYwVyr2fPNM-2Opz2KB9PdNRKCoAHDUAiF9TtjqE1VUlX2ZA';
  const deflated = 'mz2.AQd3rjLD4d0oA26IeVNiOsWq5hgxXTnMoGZdBuXzI7WVxlyEZBvIJQIQLXAxn_K3bhGUt2bw_9A84nPK7kliK9oFV9-i';
  const owner = { channelType: 'responses', scope: 'https://up.example', model: 'm' } as const;
  assert.deepEqual(kept.opener('acct_1')(short), { owner, value: 'short', itemId: 'rs_1', form: 'empty', sealed: short });
  const long = { owner: { client: 'chat' }, value: 'long '.repeat(300), sealed: deflated };
  assert.deepEqual(kept.opener('acct_1')(deflated), long);
  const sealing = createEnvelopes({ current: () => ({ id: 7, bytes: new Uint8Array(32).fill(5) }), byId: () => undefined });
  assert.equal(
    sealing.seal({ owner, value: 'short', itemId: 'rs_1', form: 'empty' }, 'acct_1'),
    short,
    'prompt caches outlive an update',
  );
  assert.equal(sealing.opener('acct_1')(short), undefined, 'a secret that is gone is no exception');
});

test('the envelopes of one request inflate to at most 64 MiB together, and are then 413; the next request begins anew', () => {
  const opaque: Opaque = { owner: { channelType: 'messages', scope: 's', model: 'm' }, value: 'a'.repeat(20 * 2 ** 20) };
  const sealed = envelopes.seal(opaque, 'a');
  assert.ok(sealed.length < 64 * 1024, 'a few bytes stand for many');
  const open = envelopes.opener('a');
  for (let time = 0; time < 3; time++) assert.equal(open(sealed)?.value.length, opaque.value.length);
  assert.throws(() => open(sealed), { code: 'request_too_large' });
  assert.throws(() => open(sealed), { code: 'request_too_large' });
  assert.equal(open('mz2.none'), undefined);
  assert.equal(envelopes.opener('a')(sealed)?.value.length, opaque.value.length);
});
