/**
 * Pictures inside conversations: each client dialect keeps what an upstream drew, or says that it cannot. Never a success without
 * it.
 */
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { type Simulator, startSimulator } from '../../../src/simulator/simulator.ts';
import { type TestGateway, testGateway } from '../../support/test-gateway.ts';
import { png, readSse } from './studio.ts';

const DATA = png(8, 8).toString('base64');
const UPSTREAMS = { chat: 'chat_completion', responses: 'responses', gemini: 'gemini' } as const;

let sim: Simulator;
let gateway: TestGateway;
before(async () => {
  sim = await startSimulator();
  gateway = await testGateway({
    health: { failures: 1000 },
    channels: Object.entries(UPSTREAMS).map(([id, type]) => ({ id, type, base_url: sim.url, api_key: 'k', models: [id] })),
    models: Object.fromEntries(Object.keys(UPSTREAMS).map((id) => [id, { price: { input: '1', output: '2' } }])),
  });
});
after(async () => {
  await gateway[Symbol.asyncDispose]();
  await sim.close();
});
afterEach(() => sim.reset());

const CLIENTS = {
  chat: { path: '/v1/chat/completions', body: { messages: [{ role: 'user', content: 'draw' }] } },
  responses: { path: '/v1/responses', body: { input: 'draw' } },
  messages: { path: '/v1/messages', body: { max_tokens: 100, messages: [{ role: 'user', content: 'draw' }] } },
  completions: { path: '/v1/completions', body: { prompt: 'draw' } },
} as const;

for (const upstream of Object.keys(UPSTREAMS)) {
  for (const [client, { path, body }] of Object.entries(CLIENTS)) {
    for (const stream of [false, true]) {
      const keeps = client === 'chat' || client === 'responses';
      test(`${client} from ${upstream}, ${stream ? 'streamed' : 'whole'}: ${keeps ? 'kept' : 'refused'}`, async () => {
        sim.enqueue({ reply: { pieces: [{ type: 'image', data: DATA, mimeType: 'image/png' }] } });
        const response = await gateway.post(path, { model: upstream, stream, ...body });
        const text = await response.text();
        if (keeps) {
          assert.equal(response.status, 200, text);
          assert.ok(text.includes(DATA), text.slice(0, 2000));
          return;
        }
        assert.ok(!text.includes(DATA));
        if (response.status === 200) {
          assert.equal(stream, true, text);
          const { events } = readSse(text);
          assert.match(events.at(-1)?.data ?? '', /"error"/, text);
          assert.doesNotMatch(text, /message_stop|\[DONE\]|"finish_reason":"stop"/);
        } else {
          assert.equal(response.status, 502, text);
          assert.match(text, /response_not_representable/);
        }
      });
    }
  }
}
