/** `temperature` beside `top_p`, at models that take one of them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fakeUpstream, jsonAnswer, wholeMessage } from '../../support/fake-upstream.ts';
import { channel, MODELS, testGateway } from '../../support/test-gateway.ts';

const MESSAGE = '`temperature` and `top_p` cannot both be specified for this model. Please use only one.';

/** A vendor of the kind, and the samplings that it was asked for. */
async function vendor() {
  const asked: unknown[] = [];
  const upstream = await fakeUpstream((request) => {
    const { temperature, top_p } = JSON.parse(request.body);
    asked.push([temperature, top_p]);
    const error = { type: 'invalid_request_error', message: MESSAGE };
    const isBoth = temperature !== undefined && top_p !== undefined;
    (isBoth ? jsonAnswer(400, { type: 'error', error }) : jsonAnswer(200, wholeMessage('fine')))(request);
  });
  return { asked, url: upstream.url, [Symbol.asyncDispose]: () => upstream.close() };
}

const USER = [{ role: 'user', content: 'hi' }];
const BOTH = { temperature: 0.3, top_p: 0.9 };

for (const [path, body] of Object.entries({
  '/v1/chat/completions': { model: 'm', messages: USER, ...BOTH },
  '/v1/responses': { model: 'm', input: 'hi', ...BOTH },
})) {
  test(`${path}: both are said, and one where the model refuses that; later from the start`, async () => {
    await using upstream = await vendor();
    await using gateway = await testGateway({ channels: [channel(upstream.url)], models: MODELS });
    for (let turn = 0; turn < 2; turn += 1) assert.equal((await gateway.post(path, body)).status, 200);
    assert.deepEqual(upstream.asked, [
      [0.3, 0.9],
      [0.3, undefined],
      [0.3, undefined],
    ]);
  });
}

test('a messages client that says both is told what its vendor says, at once', async () => {
  await using upstream = await vendor();
  await using gateway = await testGateway({ channels: [channel(upstream.url)], models: MODELS });
  const refused = await gateway.post('/v1/messages', { model: 'm', messages: USER, max_tokens: 9, ...BOTH });
  assert.equal(refused.status, 400);
  assert.match(await refused.text(), /cannot both be specified/);
  assert.deepEqual(upstream.asked, [[0.3, 0.9]]);
});
