/** What is written of refusals, and when a key that causes them is not looked at any more. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RefusalRates } from '../../../src/http/exchange/refusal-rates.ts';
import { createFakeClock } from '../../support/fake-clock.ts';
import { ask, channel, MODELS, testGateway } from '../../support/test-gateway.ts';

test('ten a second are written, then one a minute with the number of the others; a quiet minute ends it', () => {
  const clock = createFakeClock();
  const rates = new RefusalRates(clock);
  const burst = (count: number): (number | undefined)[] =>
    Array.from({ length: count }, () => rates.count('k')).filter((one) => one !== undefined);
  assert.deepEqual(burst(10), Array(10).fill(0));
  assert.deepEqual(burst(20), []);
  let written: (number | undefined)[] = [];
  for (let second = 0; second < 180; second++) {
    clock.advance(1_000);
    written = [...written, ...burst(15)];
  }
  assert.equal(written.length, 3);
  // 20 of the first second, 15 a second of a minute but the one that is written.
  assert.deepEqual(written, [20 + 59 * 15, 15 * 60 - 1, 15 * 60 - 1]);
  assert.deepEqual([rates.count('other')], [0], 'other keys are written');
  clock.advance(61_000);
  assert.equal(burst(10).length, 10);
  clock.advance(61_000);
  rates.count('third');
  assert.equal(rates.size, 1, 'who has been quiet is forgotten');
});

test('a key that falls quiet has its last refusals written after a minute, or at the end of the process, with their number', () => {
  const clock = createFakeClock();
  const rates = new RefusalRates(clock);
  const written: string[] = [];
  const refuse = (key: string): void => {
    if (rates.count(key) === undefined) rates.keep(key, (others) => written.push(`${key} and ${others}`));
  };
  for (let n = 0; n < 25; n++) refuse('a');
  clock.advance(59_000);
  assert.deepEqual(written, []);
  clock.advance(1_000);
  assert.deepEqual(written, ['a and 14']);
  clock.advance(600_000);
  assert.equal(written.length, 1, 'once');
  assert.equal(clock.pending, 0, 'nothing is waited for');
  for (let n = 0; n < 12; n++) refuse('b');
  clock.advance(30_000);
  for (let n = 0; n < 11; n++) refuse('c');
  clock.advance(30_000);
  assert.deepEqual(written.slice(1), ['b and 1']);
  rates.flush();
  assert.deepEqual(written.slice(2), ['c and 0']);
  assert.equal(clock.pending, 0);
  // The timer of the first is armed anew for the second, which fell quiet later.
  for (const key of ['d', 'e']) {
    for (let n = 0; n < 12; n++) refuse(key);
    clock.advance(20_000);
  }
  clock.advance(20_000);
  assert.deepEqual(written.slice(3), ['d and 1']);
  clock.advance(20_000);
  assert.deepEqual(written.slice(4), ['e and 1']);
});

test('a hundred refusals in a second are 429 up to the end of that second, and not at it', () => {
  const clock = createFakeClock();
  const rates = new RefusalRates(clock);
  for (let n = 0; n < 100; n++) {
    rates.check('k');
    rates.count('k');
  }
  clock.advance(999);
  assert.throws(() => rates.check('k'), { code: 'rate_limit_exceeded' });
  clock.advance(1);
  rates.check('k');
});

test('nine a second for an hour are all written, and none is 429', () => {
  const clock = createFakeClock();
  const rates = new RefusalRates(clock);
  for (let second = 0; second < 3_600; second++) {
    for (let n = 0; n < 9; n++) {
      rates.check('k');
      assert.equal(rates.count('k'), 0);
    }
    clock.advance(1_000);
  }
});

test('above a hundred in a second the key is 429 until the second is over, and answers of the first hundred keep their status', async () => {
  const clock = createFakeClock();
  const file = { channels: [channel('http://127.0.0.1:9')], models: MODELS };
  await using gateway = await testGateway(file, { clock, level: 'info' });
  const statuses: number[] = [];
  for (let n = 0; n < 105; n++) {
    const answer = await gateway.post('/v1/messages', ask({ model: 'unknown' }));
    statuses.push(answer.status);
    const said = await answer.text();
    if (answer.status === 429) {
      assert.match(said, /rate_limit_error.*too many refusals/);
      assert.equal(answer.headers.get('retry-after'), '1');
    }
  }
  assert.deepEqual(new Set(statuses.slice(0, 100)), new Set([404]));
  assert.deepEqual(new Set(statuses.slice(100)), new Set([429]));
  const rows = gateway.store.settled.length;
  assert.equal(rows, 10, 'rows of the log');
  assert.equal(gateway.logLines.filter((line) => line.includes('"msg":"refused"')).length, 10, 'lines of the log');
  gateway.store.addKey('sk-mizu-other');
  const other = await gateway.post('/v1/messages', ask({ model: 'unknown' }), {
    headers: { authorization: 'Bearer sk-mizu-other' },
  });
  assert.equal(other.status, 404, 'another key notices nothing');
  await other.text();
  clock.advance(1_001);
  const after = await gateway.post('/v1/messages', ask({ model: 'unknown' }));
  assert.equal(after.status, 404);
  await after.text();
  clock.advance(60_000);
  const last = gateway.store.settled.at(-1);
  assert.match(last?.errorText ?? '', /90 refusals before this one have no row/, 'though the key asks no more');
  const metrics = await gateway.running.gateway.metrics.registry.metrics();
  assert.match(metrics, /mizu_refusals_unwritten_total 91/);
});
