/** The histogram by route says what prom-client's own says of the same values, as text and as what workers send. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { AggregatorRegistry, Histogram, Registry } from 'prom-client';
import { RouteHistogram } from '../../../src/http/operations/route-histogram.ts';

const OPTIONS = { name: 'seconds', help: 'Some seconds.', buckets: [0.001, 0.5, 1, 60] };

const values = fc.array(
  fc.tuple(
    fc.constantFrom('chat', 'messages'),
    fc.oneof(fc.constantFrom(0, 0.001, 0.5, 60, 61), fc.double({ min: 0, max: 100, noNaN: true })),
  ),
  { maxLength: 40 },
);

test('it reads as prom-client’s own does', async () => {
  await fc.assert(
    fc.asyncProperty(values, async (observed) => {
      const theirs = new Registry();
      const own = new Registry();
      const slow = new Histogram({ ...OPTIONS, labelNames: ['route'], registers: [theirs] });
      const fast = new RouteHistogram(OPTIONS);
      own.registerMetric(fast);
      for (const [route, seconds] of observed) {
        slow.observe({ route }, seconds);
        fast.add(route, seconds);
      }
      assert.equal(await own.metrics(), await theirs.metrics());
      const [twice, expected] = await Promise.all(
        [own, theirs].map(async (registry) => {
          const sent = JSON.parse(JSON.stringify(await registry.getMetricsAsJSON()));
          return AggregatorRegistry.aggregate([sent, sent]).metrics();
        }),
      );
      assert.equal(twice, expected);
    }),
    { numRuns: 100 },
  );
});
