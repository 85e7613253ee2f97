/** At which rates a pass of another model is billed, and what a charge is flagged with. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Usage } from '../../../src/codecs/canonical/usage.ts';
import { billOf, ratesOfUpstreamModel } from '../../../src/http/money/bill.ts';
import { chargeFor } from '../../../src/store/charge.ts';
import { channel, testConfig } from '../../support/test-gateway.ts';

const price = (input: string) => ({ price: { input, output: '2' } });
const config = testConfig({
  channels: [channel('http://127.0.0.1:1', { models: { mine: 'up-20260101', plain: 'up-plain' } })],
  models: { mine: price('1'), plain: price('3'), other: price('5'), 'dated-20260301': price('7') },
});
const [one] = config.channels;
assert.ok(one !== undefined);

test('the rates of a model that only the upstream named: by the Channel’s names, then by ours, with and without the day', () => {
  const ofChannel = ratesOfUpstreamModel(config, [one]);
  for (const [named, logical] of [
    ['up-20260101', 'mine'],
    ['up', 'mine'],
    ['up-20260909', 'mine'],
    ['up-plain', 'plain'],
    ['up-plain-20260101', 'plain'],
    ['other', 'other'],
    ['other-20260101', 'other'],
    ['dated-20260301', 'dated-20260301'],
  ] as const) {
    const rates = config.models.get(logical)?.rates;
    assert.ok(rates !== undefined);
    assert.equal(ofChannel(named), rates, named);
  }
  for (const named of ['', 'dated', 'up-2026', 'otherwise', 'upmutant']) assert.equal(ofChannel(named), undefined, named);
  assert.equal(ratesOfUpstreamModel(config, [])('up'), undefined, 'no Channel calls a model so');
});

test('a charge has the flags of the request, of the report and of an estimate behind its own', () => {
  const rates = config.models.get('mine')?.rates ?? assert.fail();
  const flagsOf = (usage: Usage, flags?: readonly string[]) =>
    billOf({ ...{ config, chargeFor, rates, channel: one, usage, attempts: [] }, ratesOf: () => rates, flags }).charge?.flags;
  assert.deepEqual(flagsOf({ input: 1, output: 1 }), []);
  assert.deepEqual(flagsOf({ input: 1, output: 1, serviceTier: 'odd', estimated: true }, ['asked']), [
    'unknown_service_tier',
    'asked',
    'estimated',
  ]);
});
