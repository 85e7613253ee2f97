/** What an upstream does by itself before it dies: a tool with effects is not run a second time by another Channel. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type FakeAnswer, fakeUpstream, openStream } from '../../support/fake-upstream.ts';
import { ask, channel, MODELS, testGateway } from '../../support/test-gateway.ts';

const RESPONSE = { id: 'resp_1', object: 'response', status: 'in_progress', output: [], model: 'm', created_at: 1 };
const sse = (type: string, more: object): string => `event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`;

/** A responses upstream that begins a tool of its own and dies; `words`: it says that it has failed. */
function dying(type: string, words: boolean): FakeAnswer {
  const item = { type, id: 'x_1', name: 'pay', server_label: 'bank', arguments: '', status: 'in_progress' };
  const failed = { ...RESPONSE, status: 'failed', error: { code: 'server_error', message: 'gone' } };
  return ({ socket }) => {
    const stream = openStream(socket);
    stream.raw(
      sse('response.created', { sequence_number: 0, response: RESPONSE }) +
        sse('response.output_item.added', { sequence_number: 1, output_index: 0, item }) +
        (words ? sse('response.failed', { sequence_number: 2, response: failed }) : ''),
    );
    if (words) stream.end();
    else setTimeout(() => socket.destroy(), 20);
  };
}

const CLIENTS = [
  { path: '/v1/responses', body: { model: 'm', input: 'hi', stream: true } },
  { path: '/v1/messages', body: ask({ stream: true, stop_sequences: ['never'] }) },
  { path: '/v1/chat/completions', body: ask({ stream: true }) },
];

for (const { path, body } of CLIENTS) {
  for (const words of [false, true]) {
    for (const [type, times] of [
      ['mcp_call', 1],
      ['shell_call', 1],
      ['code_interpreter_call', 1],
      ['web_search_call', 2],
      ['mcp_list_tools', 2],
    ] as const) {
      test(`${path}: ${type} of an upstream that ${words ? 'fails' : 'is cut off'} is asked for ${times === 1 ? 'once' : 'again'}`, async () => {
        await using upstream = await fakeUpstream(dying(type, words));
        const channels = ['a', 'b'].map((id) => channel(upstream.url, { id, type: 'responses' }));
        await using gateway = await testGateway({ models: MODELS, channels });
        const answer = await gateway.post(path, body);
        const text = await answer.text();
        assert.equal(upstream.requests.length, times, text);
        assert.equal(answer.status, times === 1 ? 200 : 502, text);
        assert.match(text, /"error":\{/, 'never a success');
        assert.doesNotMatch(text, /response\.completed|message_stop|\[DONE\]/);
      });
    }
  }
}
