/** What the reports of one answer of Gemini's come to. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { UsageReports } from '../../../src/codecs/gemini/answer/usage.ts';

test('Google Cloud names the tier as a traffic type: on demand is the standard, priority and flex are themselves', () => {
  for (const [metadata, tier] of [
    [{ trafficType: 'ON_DEMAND' }, undefined],
    [{ trafficType: 'ON_DEMAND_PRIORITY' }, 'priority'],
    [{ trafficType: 'ON_DEMAND_FLEX' }, 'flex'],
    [{ trafficType: 'PROVISIONED_THROUGHPUT' }, 'provisioned_throughput'],
    [{ trafficType: 'TRAFFIC_TYPE_UNSPECIFIED' }, undefined],
    [{ serviceTier: 'priority', trafficType: 'ON_DEMAND' }, 'priority'],
    [{}, undefined],
  ] as const) {
    const reports = new UsageReports();
    reports.read({ promptTokenCount: 3, candidatesTokenCount: 2, ...metadata });
    assert.equal(reports.take()?.serviceTier, tier, JSON.stringify(metadata));
  }
});

test('a tier that was told once stays, and shares of a total are kept by their modality', () => {
  const reports = new UsageReports();
  reports.read({
    promptTokenCount: 30,
    trafficType: 'ON_DEMAND_PRIORITY',
    promptTokensDetails: [
      { modality: 'TEXT', tokenCount: 10 },
      { modality: 'IMAGE', tokenCount: 15 },
      { modality: 'AUDIO', tokenCount: 5 },
    ],
  });
  reports.read({
    promptTokenCount: 30,
    candidatesTokenCount: 7,
    candidatesTokensDetails: [{ modality: 'AUDIO', tokenCount: 7 }],
  });
  const usage = reports.take();
  assert.deepEqual(
    [usage?.serviceTier, usage?.input, usage?.output, usage?.imageInput, usage?.audioInput, usage?.audioOutput],
    ['priority', 30, 7, 15, 5, 7],
  );
});

test('what of a picture or sound came from a cache is in the cached tokens alone, not in the share of the rest', () => {
  const detail = (modality: string, tokenCount: number) => ({ modality, tokenCount });
  const prompt = [detail('TEXT', 1_000), detail('AUDIO', 10_000), detail('IMAGE', 500)];
  for (const [cached, details, input, audio, image] of [
    [10_000, [detail('AUDIO', 10_000)], 1_500, 0, 500],
    [1_000, [detail('TEXT', 1_000)], 10_500, 10_000, 500],
    [4_200, [detail('AUDIO', 4_000), detail('IMAGE', 200)], 7_300, 6_000, 300],
    [100, [detail('AUDIO', 20_000)], 11_400, 9_900, 500],
    [10_000, [], 1_500, 10_000, 500],
  ] as const) {
    const reports = new UsageReports();
    reports.read({ promptTokenCount: 11_500, candidatesTokenCount: 2, promptTokensDetails: prompt });
    reports.read({ promptTokenCount: 11_500, cachedContentTokenCount: cached, cacheTokensDetails: details });
    const usage = reports.take();
    assert.deepEqual(
      [usage?.cacheRead, usage?.input, usage?.audioInput, usage?.imageInput],
      [cached, input, audio, image],
      JSON.stringify(details),
    );
  }
});
