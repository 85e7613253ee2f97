/** Laws of request encoders over the whole space: every feature of the canonical model, in any company. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { GatewayError } from '../../src/codecs/canonical/error.ts';
import { REQUEST_FEATURES, type RequestFeature } from '../../src/codecs/canonical/features.ts';
import { UPSTREAMS } from '../../src/codecs/registry.ts';
import { atOnce } from '../../src/codecs/steps.ts';
import { everyRequest } from '../support/arbitraries/every-request.ts';
import { refusalOf } from '../support/upstream-checks.ts';
import { ownerOf, targetOf } from '../support/wire.ts';
import { sized } from '../support/sampled.ts';

/** No encoder can name what it does not know. */
const UNNAMED: ReadonlySet<RequestFeature> = new Set(['unknown members']);
const CLIENTS = ['chat', 'responses', 'messages'] as const;

for (const upstream of UPSTREAMS) {
  const owner = ownerOf(upstream);
  const dialects = CLIENTS.filter((dialect) => dialect !== upstream.dialect);
  const requests = fc.oneof(...dialects.map((dialect) => everyRequest(dialect, owner)));

  test(`any request to a ${upstream.dialect} upstream is refused for what its table refuses, or is a legal body, each loss named`, () => {
    fc.assert(
      fc.property(requests, ({ request, features }) => {
        const held = [...features];
        const refused = held.filter((feature) => upstream.losses[feature].does === 'refuse');
        const encode = () => upstream.encodeRequest(request, targetOf(owner));
        if (refused.length > 0) {
          assert.throws(encode, (error) => error instanceof GatewayError && error.code === 'unsupported_conversion');
          return;
        }
        const { body, losses } = encode();
        assert.equal(refusalOf(upstream.dialect, body), undefined, body);
        assert.doesNotMatch(body, /FOREIGN/);
        assert.equal(atOnce(upstream.encodeInSteps(request, targetOf(owner))).body, body, 'the same bytes again, and in steps');
        const silent = held.filter((one) => upstream.losses[one].does === 'drop' && !losses.includes(one) && !UNNAMED.has(one));
        assert.deepEqual(silent, []);
      }),
      { numRuns: sized(60, 300) },
    );
  });
}

test('the arbitrary of requests holds every feature, and often enough', (t) => {
  const counts = new Map<RequestFeature, number>(REQUEST_FEATURES.map((feature) => [feature, 0]));
  const owner = { channelType: 'gemini' as const, scope: 's', model: 'm' };
  for (const { features } of fc.sample(everyRequest('chat', owner), { numRuns: 2000, seed: 7 })) {
    for (const feature of features) counts.set(feature, (counts.get(feature) ?? 0) + 1);
  }
  for (const [feature, count] of counts) t.diagnostic(`${String(count).padStart(5)} ${feature}`);
  const rare = [...counts].filter(([, count]) => count < 20);
  assert.deepEqual(rare, []);
});
