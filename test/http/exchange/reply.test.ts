/** The head of a whole answer, whatever its size. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fakeUpstream, jsonAnswer, sayMessages, wholeMessage } from '../../support/fake-upstream.ts';
import { ask, channel, MODELS, testGateway } from '../../support/test-gateway.ts';

test('whole answers and refusals are JSON by their head, large ones too, and streams are events', async () => {
  await using upstream = await fakeUpstream(jsonAnswer(200, wholeMessage('hi')));
  await using gateway = await testGateway({ channels: [channel(upstream.url)], models: MODELS });
  const headOf = async (changes: object): Promise<(number | string | null)[]> => {
    const response = await gateway.post('/v1/messages', ask(changes));
    const size = Buffer.byteLength(await response.text());
    const isItsSize = response.headers.get('content-length') === String(size);
    return [response.status, response.headers.get('content-type'), isItsSize ? 'its size' : null];
  };
  assert.deepEqual(await headOf({}), [200, 'application/json; charset=utf-8', 'its size']);
  assert.deepEqual(await headOf({ model: 'unknown' }), [404, 'application/json; charset=utf-8', 'its size']);
  upstream.answer = jsonAnswer(200, wholeMessage('ä'.repeat(2_000_000)));
  assert.deepEqual(await headOf({}), [200, 'application/json; charset=utf-8', 'its size']);
  upstream.answer = sayMessages('hi');
  assert.deepEqual((await headOf({ stream: true })).slice(0, 2), [200, 'text/event-stream; charset=utf-8']);
});
