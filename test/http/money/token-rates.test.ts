/** How fast a model generates, and what is charged by it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asSent } from '../../../src/codecs/canonical/request.ts';
import { mayReason, TokenRates, withTime } from '../../../src/http/money/token-rates.ts';
import { MODELS, testConfig } from '../../support/test-gateway.ts';
import { requestOf } from '../../support/wire.ts';

const modelOf = (more: object = {}) => {
  const [m] = [testConfig({ models: { m: { ...MODELS.m, ...more } } }).models.get('m')];
  assert.ok(m);
  return m;
};
const request = (more: Parameters<typeof requestOf>[1] = {}) => asSent(requestOf('chat', more));

test('a rate begins at 50 tokens a second, follows what is settled, and ignores samples under a second', () => {
  const rates = new TokenRates();
  assert.equal(rates.of('c', 'm'), 50);
  rates.learn('c', 'm', 100_000, 999);
  rates.learn('c', 'm', 0, 5_000);
  assert.equal(rates.of('c', 'm'), 50);
  for (let n = 0; n < 100; n++) rates.learn('c', 'm', 400, 2_000);
  assert.ok(Math.abs(rates.of('c', 'm') - 200) < 1);
  rates.learn('c', 'm', 1_000_000, 1_000);
  assert.ok(rates.of('c', 'm') < 200 + 100_000, 'one exchange is a tenth');
  assert.equal(rates.of('d', 'm'), 50, 'another Channel has a rate of its own');
});

test('answers of a few words, which wait for longer than they take, hardly move the rate', () => {
  const rates = new TokenRates();
  for (let n = 0; n < 100; n++) rates.learn('c', 'm', 2, 1_000);
  assert.ok(rates.of('c', 'm') > 45, `${rates.of('c', 'm')}: who then leaves an answer would get its reasoning for a tenth`);
  for (let n = 0; n < 100; n++) rates.learn('c', 'm', 256, 64_000);
  assert.ok(rates.of('c', 'm') < 5, 'a model that is slow is learnt as before');
});

test('the larger of what was counted and what the time holds, up to the cap; what is on top is reasoning', () => {
  const counted = { input: 10, output: 2, estimated: true };
  const time = { rate: 50, ms: 20_000 };
  assert.deepEqual(withTime(counted, time, request(), modelOf()), { input: 10, output: 1_000, reasoning: 998, estimated: true });
  assert.equal(withTime(counted, time, request({ maxOutputTokens: 300 }), modelOf()).output, 300);
  assert.equal(withTime(counted, time, request(), modelOf({ max_output_tokens: 200 })).output, 200);
  assert.equal(withTime(counted, { rate: 50, ms: 10 ** 9 }, request(), modelOf()).output, 131_072);
  for (const output of [1_000, 5_000])
    assert.deepEqual(withTime({ ...counted, output }, time, request(), modelOf()), { ...counted, output });
});

test('every text model may reason, unless the request or the configuration says no', () => {
  assert.equal(mayReason(request(), modelOf()), true);
  assert.equal(mayReason(request({ reasoning: { effort: 'low' } }), modelOf()), true);
  assert.equal(mayReason(request({ reasoning: { effort: 'none' } }), modelOf()), false);
  assert.equal(mayReason(request(), modelOf({ reasoning: false })), false);
});
