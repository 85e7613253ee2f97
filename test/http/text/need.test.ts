/** Which Channels may serve a text request: those that can honour what only their own kind can. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fakeUpstream, jsonAnswer, wholeMessage } from '../../support/fake-upstream.ts';
import { refusablesIn } from '../../../src/http/text/need.ts';
import { channel, testConfig, testGateway } from '../../support/test-gateway.ts';
import { requestOf } from '../../support/wire.ts';

test('what an upstream may refuse of a request that it can do without: ids of items, cache breakpoints, reasoning', () => {
  const { channels } = testConfig({
    channels: [channel('http://127.0.0.1:1', { type: 'responses' })],
    models: { m: { price: { input: '1', output: '2' } } },
  });
  const refusable = (dialect: 'responses' | 'chat', changes: object): string[] =>
    [...refusablesIn(requestOf(dialect, changes), channels)].toSorted();
  const named = { json: { input: [{ type: 'message', role: 'user', content: 'hi' }, { id: 'msg_1' }] } };
  assert.deepEqual(refusable('responses', named), ['ids']);
  assert.deepEqual(refusable('chat', named), []);
  for (const input of [undefined, 'hi', [], [{ type: 'message' }, 'id', { id: 1 }]])
    assert.deepEqual(refusable('responses', { json: { input } }), [], JSON.stringify(input));
  const summary = { kind: 'reasoning', summary: ['so'] };
  assert.deepEqual(refusable('responses', { items: [summary] }), ['raw']);
  assert.deepEqual(refusable('responses', { items: [{ kind: 'reasoning', raw: 'so' }] }), ['raw']);
  assert.deepEqual(refusable('responses', { items: [{ kind: 'reasoning' }, { kind: 'text', role: 'user', text: 'hi' }] }), []);
});

const RESPONSE = {
  id: 'resp_1',
  object: 'response',
  status: 'completed',
  model: 'u',
  output: [
    { id: 'msg_1', type: 'message', role: 'assistant', status: 'completed', content: [{ type: 'output_text', text: 'hi' }] },
  ],
  usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 },
};
const PRICE = { price: { input: '1', output: '2' } };

const respond = (input: string) => ({ input });
const say = (content: string) => ({ max_tokens: 9, messages: [{ role: 'user', content }] });

/** What names something of one kind of upstream alone, and the same request without it. */
const BOUND = [
  ['responses', { conversation: 'conv_1' }, { conversation: null }],
  ['responses', { conversation: { id: 'conv_1' } }, {}],
  ['responses', { prompt: { id: 'pmpt_1' } }, { prompt: null }],
  ['messages', { compaction: { type: 'enabled' } }, { compaction: null }],
  ['messages', { max_tokens: 0 }, { max_tokens: 1 }],
] as const;

for (const [dialect, bound, free] of BOUND) {
  const [at = ''] = Object.keys(bound);
  const name = JSON.stringify(bound);
  test(`${name} goes to a ${dialect} Channel, whatever comes before it, and is a 400 where there is none`, async () => {
    await using messages = await fakeUpstream(jsonAnswer(200, wholeMessage('hi')));
    await using responses = await fakeUpstream(jsonAnswer(200, RESPONSE));
    const upstreams = { messages, responses };
    const other = dialect === 'messages' ? 'responses' : 'messages';
    await using gateway = await testGateway({
      channels: [
        channel(upstreams[other].url, { type: other, models: ['both', 'foreign'] }),
        channel(upstreams[dialect].url, { id: 'two', type: dialect, models: ['both'], priority: 1 }),
      ],
      models: { both: PRICE, foreign: PRICE },
    });
    const body = dialect === 'messages' ? say : respond;
    const ask = (words: string, changes: object) => gateway.post(`/v1/${dialect}`, { model: 'both', ...body(words), ...changes });
    const expectAsked = (own: number, others: number): void => {
      assert.deepEqual([upstreams[dialect].requests.length, upstreams[other].requests.length], [own, others]);
    };
    assert.equal((await ask('first', bound)).status, 200);
    expectAsked(1, 0);
    assert.deepEqual(JSON.parse(upstreams[dialect].requests[0]?.body ?? '')[at], Object.values(bound)[0]);
    const refused = await ask('second', { ...bound, model: 'foreign', stream: true });
    const { error } = (await refused.json()) as { error: { code: string; message: string; param?: string } };
    assert.deepEqual([refused.status, error.code], [400, 'unsupported_conversion']);
    assert.equal(error.message, `No upstream of the model foreign supports ${at}.`);
    if (dialect === 'responses') assert.equal(error.param, at);
    expectAsked(1, 0);
    assert.equal((await ask('third', free)).status, 200);
    expectAsked(1, 1);
  });
}
