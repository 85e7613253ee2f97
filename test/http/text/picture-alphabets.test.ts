/** Pictures of text upstreams in the alphabet of URLs, or in lines: clients of other protocols read plain base64 alone. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fakeUpstream, jsonAnswer } from '../../support/fake-upstream.ts';
import { MODELS, testGateway } from '../../support/test-gateway.ts';

const PLAIN = 'iVBORw0KGgo+/w==';

function geminiAnswer(data: string): object {
  const content = { role: 'model', parts: [{ inlineData: { mimeType: 'image/png', data } }] };
  const usageMetadata = { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 };
  return { candidates: [{ content, finishReason: 'STOP', index: 0 }], usageMetadata };
}

function responsesAnswer(result: string): object {
  const output = [{ type: 'image_generation_call', id: 'ig_1', status: 'completed', result }];
  const usage = { input_tokens: 1, output_tokens: 1, total_tokens: 2 };
  return { id: 'resp_1', object: 'response', created_at: 1, status: 'completed', model: 'm', output, usage };
}

for (const [type, base, answer] of [
  ['gemini', '/v1beta', geminiAnswer],
  ['responses', '/v1', responsesAnswer],
] as const) {
  test(`a picture of ${type} in any alphabet of base64 reaches a chat client in the plain one`, async () => {
    for (const data of [PLAIN, PLAIN.replace('+', '-').replace('/', '_'), PLAIN.replace('0K', '0K\n ')]) {
      await using upstream = await fakeUpstream(jsonAnswer(200, answer(data)));
      const channels = [{ id: 'one', type, base_url: `${upstream.url}${base}`, api_key: 'sk-upstream', models: ['m'] }];
      await using gateway = await testGateway({ channels, models: MODELS });
      const response = await gateway.post('/v1/chat/completions', { model: 'm', messages: [{ role: 'user', content: 'draw' }] });
      assert.ok((await response.text()).includes(`data:image/png;base64,${PLAIN}"`), data);
    }
  });
}

test('a picture of gemini that is no base64 is no answer, and is not paid for', async () => {
  for (const data of ['', '###', 'not base64']) {
    await using upstream = await fakeUpstream(jsonAnswer(200, geminiAnswer(data === '' ? '' : `${data}!`)));
    const channels = [{ id: 'one', type: 'gemini', base_url: `${upstream.url}/v1beta`, api_key: 'sk-upstream', models: ['m'] }];
    await using gateway = await testGateway({ channels, models: MODELS });
    const response = await gateway.post('/v1/chat/completions', { model: 'm', messages: [{ role: 'user', content: 'draw' }] });
    assert.equal(response.status, 502, data);
    assert.equal(gateway.store.settled[0]?.charge, undefined, data);
  }
});
