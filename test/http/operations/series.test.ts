/**
 * Series that are kept by whoever counts say what prom-client's own says of the same values, as text and as what workers send.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { AggregatorRegistry, Counter, Gauge, Histogram, Registry } from 'prom-client';
import { kept, SeriesHistogram, tallies } from '../../../src/http/operations/series.ts';

const OPTIONS = { name: 'seconds', help: 'Some seconds.', buckets: [0.001, 0.5, 1, 60] };
const LABELS = ['channel', 'model'] as const;

const values = fc.array(
  fc.tuple(
    fc.constantFrom('chat', 'messages'),
    fc.constantFrom('one', 'two'),
    fc.oneof(fc.constantFrom(0, 0.001, 0.5, 60, 61), fc.double({ min: 0, max: 100, noNaN: true })),
  ),
  { maxLength: 40 },
);

test('they read as prom-client’s own do, at every scrape', async () => {
  await fc.assert(
    fc.asyncProperty(values, values, async (before, after) => {
      const [theirs, own] = [new Registry(), new Registry()];
      const names = { labelNames: LABELS, registers: [theirs] };
      const slow = {
        histogram: new Histogram({ ...OPTIONS, ...names }),
        counter: new Counter({ name: 'counts', help: 'Some counts.', ...names }),
        gauge: new Gauge({ name: 'levels', help: 'Some levels.', ...names }),
      };
      const histogram = new SeriesHistogram({ ...OPTIONS, labels: LABELS });
      own.registerMetric(histogram);
      const [counter, gauge] = [
        tallies({ registry: own, type: 'counter', name: 'counts', help: 'Some counts.', labels: LABELS }),
        tallies({ registry: own, type: 'gauge', name: 'levels', help: 'Some levels.', labels: LABELS }),
      ];
      const fast = kept((channel: string) =>
        kept((model: string) => {
          const labels = { channel, model };
          return { seconds: histogram.series(labels), count: counter(labels), level: gauge(labels) };
        }),
      );
      for (const observed of [before, after]) {
        for (const [channel, model, value] of observed) {
          slow.histogram.observe({ channel, model }, value);
          slow.counter.inc({ channel, model }, value);
          slow.gauge.dec({ channel, model }, value);
          const { seconds, count, level } = fast(channel)(model);
          seconds.add(value);
          count.value += value;
          level.value -= value;
        }
        assert.equal(await own.metrics(), await theirs.metrics());
        const [twice, expected] = await Promise.all(
          [own, theirs].map(async (registry) => {
            const sent = JSON.parse(JSON.stringify(await registry.getMetricsAsJSON()));
            return AggregatorRegistry.aggregate([sent, sent]).metrics();
          }),
        );
        assert.equal(twice, expected);
      }
    }),
    { numRuns: 100 },
  );
});
