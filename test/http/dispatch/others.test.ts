/** What one client's own request brings about at an upstream shuts nobody else out. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { fakeUpstream, jsonAnswer, wholeMessage } from '../../support/fake-upstream.ts';
import { ask, channel, MODELS, testGateway } from '../../support/test-gateway.ts';

const full = jsonAnswer(429, { error: { type: 'rate_limit_error', message: 'no' } }, { 'retry-after': '60' });
const CHAT = {
  ...{ id: 'c', object: 'chat.completion', created: 1, model: 'm' },
  choices: [{ index: 0, message: { role: 'assistant', content: 'hi' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
};

const APART = [
  ['messages', '/v1/messages', 'speed', 'fast', wholeMessage('hi')],
  ['chat_completion', '/v1/chat/completions', 'service_tier', 'flex', CHAT],
] as const;

for (const [type, path, member, tier, answer] of APART) {
  test(`a full tier that a client names (${member} ${tier}) leaves the model to all others`, async () => {
    let asked = 0;
    await using upstream = await fakeUpstream((request) => {
      asked++;
      return (request.body.includes(`"${tier}"`) ? full : jsonAnswer(200, answer))(request);
    });
    await using gateway = await testGateway({ channels: [channel(upstream.url, { type })], models: MODELS });
    const status = async (changes: object = {}) => (await gateway.post(path, ask(changes))).status;
    assert.equal(await status({ [member]: tier }), 502);
    assert.equal(await status({ [member]: tier }), 503, 'the tier itself waits');
    assert.equal(await status(), 200);
    assert.equal(asked, 2);
  });
}

/** What Google says, and what the client is told. */
const GOOGLE = [
  [400, 'FAILED_PRECONDITION', 'The File 5y6l7yja98jc is not in an ACTIVE state and usage is not allowed.', 400],
  [403, 'PERMISSION_DENIED', 'CachedContent not found (or permission denied)', 502],
  [404, 'NOT_FOUND', 'Not found: cached content metadata for 6116704758662168576.', 404],
] as const;

for (const [code, status, message, told] of GOOGLE) {
  test(`a client that names what Google has not, or not yet (${message}), shuts nobody out`, async () => {
    const answer = {
      candidates: [{ content: { role: 'model', parts: [{ text: 'hi' }] }, finishReason: 'STOP' }],
      usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 },
    };
    let refuses = true;
    await using upstream = await fakeUpstream((request) =>
      (refuses ? jsonAnswer(code, { error: { code, status, message } }) : jsonAnswer(200, answer))(request),
    );
    await using gateway = await testGateway({ channels: [channel(upstream.url, { type: 'gemini' })], models: MODELS });
    const post = () => gateway.post('/v1/messages', ask());
    assert.equal((await post()).status, told);
    refuses = false;
    assert.equal((await post()).status, 200);
  });
}

test('a request that is too long for an upstream, which cuts it off where others say 413, leaves the model to all others', async (t) => {
  const server = createServer((request, response) => {
    if (Number(request.headers['content-length']) > 1024 * 1024) request.socket.resetAndDestroy();
    else response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(wholeMessage('hi')));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  await using gateway = await testGateway({ channels: [channel(url)], models: MODELS });
  const post = async (length: number) =>
    (await gateway.post('/v1/messages', ask({ messages: [{ role: 'user', content: 'a'.repeat(length) }] }))).status;
  for (let count = 0; count < 6; count++) assert.equal(await post(1_500_000), 502);
  assert.equal(await post(10), 200);
  const charges = gateway.store.settled.slice(0, 6).map(({ charge }) => charge?.total ?? 0n);
  assert.deepEqual(charges, [0n, 0n, 0n, 0n, 0n, 0n], 'nothing was answered');
});

for (const [code, message] of [
  [403, 'The request was denied by a guardrail of the workspace.'],
  [404, 'Voice not found'],
] as const) {
  test(`a ${code} in words that nobody knows, where the model has just answered, shuts nobody out`, async () => {
    await using upstream = await fakeUpstream((request) =>
      (request.body.includes('evil') ? jsonAnswer(code, { error: { message } }) : jsonAnswer(200, wholeMessage('hi')))(request),
    );
    await using gateway = await testGateway({ channels: [channel(upstream.url)], models: MODELS });
    const post = async (content: string) =>
      (await gateway.post('/v1/messages', ask({ messages: [{ role: 'user', content }] }))).status;
    const told = [];
    for (const content of ['hi', 'evil', 'hi', 'evil', 'hi']) told.push(await post(content));
    assert.deepEqual(told, [200, 502, 200, 502, 200]);
  });
}
