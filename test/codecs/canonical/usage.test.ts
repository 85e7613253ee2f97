import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  countOf,
  isPlaceholder,
  isPrice,
  mergeUsage,
  outputWith,
  totalCacheWrite,
  totalInput,
} from '../../../src/codecs/canonical/usage.ts';
import { billableUsage } from '../../../src/http/money/billable.ts';
import { encodeUsage, UsageReader } from '../../../src/codecs/messages/answer/usage.ts';
import { readUsage } from '../../../src/codecs/responses/answer/outcome.ts';
import { readTokenUsage, TokenUsageReports, writeTokenUsage } from '../../../src/codecs/answers/token-usage.ts';

test('a counter is a number or a numeric string; anything else is unknown, never negative and never a number out of nowhere', () => {
  for (const [value, count] of [
    [7, 7],
    ['7', 7],
    [' 7 ', 7],
    [0, 0],
  ] as const)
    assert.equal(countOf(value), count);
  for (const value of [
    -1,
    '-1',
    0.5,
    '10.5',
    2 ** 60,
    1_000_000_001,
    '1000000001',
    '',
    ' ',
    'seven',
    Number.NaN,
    Number.POSITIVE_INFINITY,
    '1e999',
    null,
    undefined,
    true,
    [],
    {},
  ])
    assert.equal(countOf(value), undefined, String(value));
});

test('every dialect reads counters that are spelled as strings', () => {
  assert.deepEqual(readTokenUsage({ prompt_tokens: '10', completion_tokens: '4' }), { input: 10, output: 4 });
  assert.deepEqual(readUsage({ usage: { input_tokens: '10', output_tokens: '4' } }), { input: 10, output: 4 });
  assert.deepEqual(new UsageReader().read({ input_tokens: '10', output_tokens: '4', cache_read_input_tokens: '3' }), {
    input: 10,
    cacheRead: 3,
    output: 4,
  });
});

test('zeros are no report, but calls of a metered tool are one', () => {
  assert.equal(isPlaceholder({ input: 0, output: 0, cacheRead: 0 }), true);
  assert.equal(isPlaceholder({ cacheWrite1h: 1 }), false);
  assert.equal(isPlaceholder({ meters: new Map([['web_search', 1]]) }), false);
  const output = [{ type: 'web_search_call', status: 'completed' }];
  assert.deepEqual(readUsage({ output, usage: { input_tokens: 0, output_tokens: 0 } })?.meters, new Map([['web_search', 1]]));
});

test('reasoning is a part of the output: a total says where it was counted, a greater reasoning only where no total does', () => {
  for (const [completion, reasoning, total, output] of [
    [26, 196, 513, { output: 222, reasoning: 196 }],
    [0, 196, undefined, { output: 196, reasoning: 196 }],
    [0, 196, 291, { output: 196, reasoning: 196 }],
    [26, 20, 317, { output: 26, reasoning: 20 }],
    [26, 20, 337, { output: 46, reasoning: 20 }],
    [26, 26, undefined, { output: 26, reasoning: 26 }],
    [1, 5, 292, { output: 1, reasoning: 1 }],
    // Estimated beside a count that is exact (Doubleword, some routers).
    [16, 19, 307, { output: 16, reasoning: 16 }],
    [16, 19, undefined, { output: 35, reasoning: 19 }],
  ] as const) {
    const chat = {
      prompt_tokens: 291,
      completion_tokens: completion,
      completion_tokens_details: { reasoning_tokens: reasoning },
    };
    const responses = { input_tokens: 291, output_tokens: completion, output_tokens_details: { reasoning_tokens: reasoning } };
    const sum = total === undefined ? {} : { total_tokens: total };
    assert.deepEqual(readTokenUsage({ ...chat, ...sum }), { input: 291, ...output });
    assert.deepEqual(readUsage({ usage: { ...responses, ...sum } }), { input: 291, ...output });
  }
});

test('thoughts that only the total counts are output (Gemini behind its compatible endpoint); beside details it decides nothing', () => {
  const report = { prompt_tokens: 9, completion_tokens: 1, total_tokens: 103 };
  assert.deepEqual(readTokenUsage(report), { input: 9, output: 94, reasoning: 93 });
  assert.deepEqual(readTokenUsage({ ...report, completion_tokens: 0 }), { input: 9, output: 94, reasoning: 94 });
  assert.deepEqual(readTokenUsage({ ...report, completion_tokens: 94 }), { input: 9, output: 94 });
  assert.deepEqual(readTokenUsage({ ...report, total_tokens: 0 }), { input: 9, output: 1 });
  // The total of an embedding, and caches that stand beside the prompt.
  assert.deepEqual(readTokenUsage({ prompt_tokens: 9, total_tokens: 103 }), { input: 9 });
  const cached = readTokenUsage({ ...report, prompt_tokens_details: { cached_tokens: 4 } });
  assert.deepEqual(cached, { input: 5, cacheRead: 4, output: 1 });
  assert.equal(readTokenUsage({ ...report, completion_tokens_details: { reasoning_tokens: 0 } })?.output, 1);

  const reports = new TokenUsageReports();
  reports.read(report);
  const last = { prompt_tokens: 9, completion_tokens: 3, total_tokens: 105 };
  assert.deepEqual(reports.read(last), { input: 9, output: 96, reasoning: 93 });
});

test('half a report of the output is what it says; a total without its prompt decides nothing', () => {
  const counted = { prompt: 10, completion: undefined, total: undefined };
  assert.deepEqual(outputWith(undefined, counted), {});
  assert.deepEqual(outputWith(5, counted), { reasoning: 5 });
  assert.deepEqual(outputWith(undefined, { ...counted, completion: 20 }), { output: 20 });
  assert.deepEqual(outputWith(0, { ...counted, completion: 20 }), { output: 20, reasoning: 0 });
  assert.deepEqual(outputWith(5, { prompt: undefined, completion: 20, total: 25 }), { output: 20, reasoning: 5 });
});

test('a later report wins field by field, and takes nothing back', () => {
  assert.deepEqual(mergeUsage(undefined, { input: 1 }), { input: 1 });
  assert.deepEqual(mergeUsage({ input: 1, cacheRead: 2 }, { input: 3, output: 4 }), { input: 3, cacheRead: 2, output: 4 });
});

test('the whole prompt is what was not cached, what was read and what was written, whatever of them is known', () => {
  const writes = { cacheWrite: 300, cacheWrite5m: 4_000, cacheWrite1h: 50_000, cacheWrite30m: 600_000, cacheWrite12h: 7_000_000 };
  const usage = { input: 1, cacheRead: 20, ...writes };
  assert.equal(totalInput(usage), 7_654_321);
  assert.equal(totalCacheWrite(usage), 7_654_300);
  assert.equal(totalInput({}), 0);
  for (const [name, count] of Object.entries(usage)) assert.equal(totalInput({ [name]: count }), count, name);
});

test('OpenAI reports cache writes by its own lifetimes, and clients of that form read them again', () => {
  const details = {
    cached_tokens: 100,
    cache_write_tokens: 60,
    cache_write_tokens_details: { ttl_12h_tokens: 20, ttl_30m_tokens: 40 },
  };
  const expected = { input: 40, cacheRead: 100, cacheWrite: 0, cacheWrite30m: 40, cacheWrite12h: 20, output: 5 };
  const chat = readTokenUsage({ prompt_tokens: 200, prompt_tokens_details: details, completion_tokens: 5, total_tokens: 205 });
  assert.deepEqual(chat, expected);
  const responses = readUsage({
    usage: { input_tokens: 200, input_tokens_details: details, output_tokens: 5, total_tokens: 205 },
  });
  assert.deepEqual(responses, expected);
  assert.deepEqual(billableUsage(expected), { input: 40, cachedInput: 100, cacheWrite30m: 40, cacheWrite12h: 20, output: 5 });
  assert.deepEqual(readTokenUsage(writeTokenUsage(expected)), { ...expected, reasoning: 0, audioInput: 0, audioOutput: 0 });
});

test('messages: the speed and the region that were served are billed, whichever report names them', () => {
  const reader = new UsageReader();
  reader.read({ input_tokens: 10, output_tokens: 1, speed: 'fast', inference_geo: 'us', service_tier: 'standard' });
  const usage = reader.read({ output_tokens: 7, speed: null });
  assert.deepEqual(usage, { input: 10, output: 7, serviceTier: 'standard', speed: 'fast', geo: 'us' });
  assert.deepEqual(billableUsage(usage ?? {}), { input: 10, output: 7, serviceTier: 'standard', speed: 'fast', geo: 'us' });
  const { speed, inference_geo } = encodeUsage(usage);
  assert.deepEqual([speed, inference_geo], ['fast', 'us']);
});

test('any figure that is no zero is a report', () => {
  const pass = { type: 'compaction', input: 0, cacheRead: 0, cacheWrite: 0, output: 0 };
  for (const usage of [{ input: 1 }, { output: 1 }, { reasoning: 1 }, { images: 1 }, { extra: [pass] }])
    assert.equal(isPlaceholder(usage), false, JSON.stringify(usage));
  assert.equal(isPlaceholder({}), true);
  assert.equal(isPlaceholder({ meters: new Map(), extra: [], images: 0 }), true);
});

test('prices of routers are members named cost', () => {
  assert.deepEqual(['cost', 'cost_details', 'cost_in_usd_ticks', 'costs', 'total_cost', 'accost', 'a_cost_'].filter(isPrice), [
    'cost',
    'cost_details',
    'cost_in_usd_ticks',
  ]);
});

test('tokens of orchestration stand beside the totals (Sakana): billed in addition, and no pass that messages clients know', () => {
  const input = { cached_tokens: 20, orchestration_input_tokens: 40, orchestration_input_cached_tokens: 10 };
  const output = { reasoning_tokens: 0, orchestration_output_tokens: 25 };
  const extra = [{ type: 'orchestration', input: 30, cacheRead: 10, cacheWrite: 0, output: 25 }];
  const wanted = { input: 100, cacheRead: 20, output: 80, reasoning: 0, extra };
  const responses = readUsage({
    usage: {
      input_tokens: 120,
      input_tokens_details: input,
      output_tokens: 80,
      output_tokens_details: output,
      total_tokens: 265,
    },
  });
  assert.deepEqual(responses, wanted);
  const chat = readTokenUsage({
    ...{ prompt_tokens: 120, prompt_tokens_details: input, completion_tokens: 80, completion_tokens_details: output },
    total_tokens: 265,
  });
  assert.deepEqual(chat, wanted);
  assert.deepEqual(billableUsage(wanted), { input: 130, cachedInput: 30, output: 105 });
  assert.equal('iterations' in encodeUsage(wanted), false);
  const none = { orchestration_input_tokens: 0, orchestration_input_cached_tokens: 0 };
  assert.deepEqual(readUsage({ usage: { input_tokens: 1, input_tokens_details: none, output_tokens: 2 } }), {
    input: 1,
    output: 2,
  });
});

test('a report whose counts of the input are all zero counts the output alone; one that is not replaces them all', () => {
  const begun = { input_tokens: 10, cache_read_input_tokens: 2 };
  const zeros = { input_tokens: 0, cache_read_input_tokens: 0, cache_creation_input_tokens: 0 };
  for (const [report, expected] of [
    [{}, { input: 10, cacheRead: 2 }],
    [{ cache_creation_input_tokens: 5 }, { input: 0, cacheRead: 0, cacheWrite: 5 }],
    [{ cache_read_input_tokens: 5 }, { input: 0, cacheRead: 5, cacheWrite: 0 }],
    [{ cache_creation: { ephemeral_5m_input_tokens: 4 } }, { input: 0, cacheRead: 0, cacheWrite5m: 4 }],
  ] as const) {
    const reader = new UsageReader();
    reader.read(begun);
    const { input, cacheRead, ...usage } = reader.read({ ...zeros, ...report, output_tokens: 3 }) ?? {};
    assert.deepEqual({ input, cacheRead }, { input: expected.input, cacheRead: expected.cacheRead }, JSON.stringify(report));
    assert.equal(usage.output, 3);
    if ('cacheWrite' in expected) assert.equal(usage.cacheWrite, expected.cacheWrite);
    if ('cacheWrite5m' in expected) assert.equal(usage.cacheWrite5m, expected.cacheWrite5m);
  }
});
