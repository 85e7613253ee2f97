/** What an answer that ended badly has used: what its upstream reported, or what it had generated. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError, upstreamFault } from '../../../src/codecs/canonical/error.ts';
import { Fold, type Whole } from '../../../src/codecs/canonical/fold.ts';
import { asSent } from '../../../src/codecs/canonical/request.ts';
import type { Usage } from '../../../src/codecs/canonical/usage.ts';
import { clientGone } from '../../../src/http/errors.ts';
import type { StreamStart, WholeAnswer } from '../../../src/http/text/attempt.ts';
import { TextUsage } from '../../../src/http/text/text-usage.ts';
import { channel, MODELS, testConfig, testGateway } from '../../support/test-gateway.ts';
import { requestOf } from '../../support/wire.ts';

const file = { channels: [channel('http://127.0.0.1:1')], models: MODELS };
const running = await testGateway(file);
test.after(() => running[Symbol.asyncDispose]());
const { gateway } = running.running;
const model = testConfig(file).models.get('m') ?? assert.fail();
const request = asSent(requestOf('chat', { items: [{ kind: 'text', role: 'user', text: 'Good morning', citations: [] }] }));

const wholeOf = (outcome: Whole['outcome'], usage?: Usage): WholeAnswer => ({
  ...{ kind: 'whole', length: 1, native: undefined, losses: [], owner: { channelType: 'messages', scope: 's', model: 'u' } },
  whole: {
    items: [{ item: { kind: 'text', role: 'assistant', text: 'Good morning', citations: [] }, status: 'completed' }],
    outcome,
    ...(usage === undefined ? {} : { usage }),
  },
});
const usageOf = (answer: WholeAnswer, error?: GatewayError) => new TextUsage(gateway, request, model).ofWhole(answer, error);
const ENDED = { status: 'completed', stop: 'end' } as const;
const counted = { input: 2, output: 2, estimated: true };

test('an answer that its upstream failed, or broke, costs what it reported and is not counted, whoever else had left', async () => {
  const fault = upstreamFault('error_event', 'Oh.');
  const reported = { input: 7, output: 8 };
  for (const error of [fault, clientGone(), new GatewayError('response_not_representable', 'Oh.')]) {
    for (const status of ['failed', 'cancelled'] as const) {
      assert.equal(usageOf(wholeOf({ status, error: fault }), error), undefined, `${status}, ${error.code}`);
      assert.equal(usageOf(wholeOf({ status, error: fault }, reported), error), reported);
    }
  }
  assert.equal(usageOf(wholeOf(ENDED), fault), undefined);
});

test('an answer that could not be said, or that nobody waited for, was generated all the same: it is counted', async () => {
  for (const error of [undefined, clientGone(), new GatewayError('response_not_representable', 'Oh.')])
    assert.deepEqual(await usageOf(wholeOf(ENDED), error), counted, String(error?.code));
  assert.deepEqual(await usageOf(wholeOf(ENDED, { input: 7 }), clientGone()), { input: 7, output: 2, estimated: true });
});

/** A stream of a thought and a text, two tokens each, that reports its usage and has not ended. */
function streamOf(usage: Usage): StreamStart {
  const fold = new Fold();
  fold.push({ type: 'item.start', index: 0, head: { kind: 'reasoning' } });
  fold.push({ type: 'item.delta', index: 0, delta: { kind: 'raw', text: 'Good morning' } });
  fold.push({ type: 'usage.report', usage });
  fold.push({ type: 'item.start', index: 1, head: { kind: 'text', role: 'assistant' } });
  fold.push({ type: 'item.delta', index: 1, delta: { kind: 'text', text: 'Good morning' } });
  const unread = (): never => assert.fail('what was used is asked of the fold');
  const source = { fold, length: 1, ended: true, take: unread, ready: unread, pause: unread, resume: unread, cancel: unread };
  return {
    ...{ kind: 'stream', held: [], losses: [], mayStop: false, source },
    owner: { channelType: 'messages', scope: 's', model: 'u' },
  };
}

const EARLY: readonly (readonly [what: string, early: Usage, used: Usage])[] = [
  ['a placeholder', { input: 7, output: 1 }, { output: 4, reasoning: 2 }],
  ['more than was shown', { input: 7, output: 30, reasoning: 20 }, { output: 30, reasoning: 20 }],
  ['hidden reasoning alone, beside the text that was counted', { input: 7, reasoning: 20 }, { output: 22, reasoning: 20 }],
  ['less reasoning than was shown', { input: 7, reasoning: 1 }, { output: 4, reasoning: 2 }],
];
for (const [what, early, used] of EARLY)
  test(`a stream that the gateway ends is counted; what was reported before its end wins where it is more: ${what}`, async () => {
    const usage = await new TextUsage(gateway, request, model).ofStream(
      streamOf(early),
      new GatewayError('shutting_down', 'Oh.'),
    );
    assert.deepEqual(usage, { input: 7, ...used, estimated: true });
  });
