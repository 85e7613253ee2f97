/** Every client dialect over every upstream dialect, through real sockets and the simulator. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually, testGateway } from '../support/test-gateway.ts';
import { formsConfig, startVendors, upstreamForms } from '../support/upstream-forms.ts';

const simulator = await startVendors();
test.after(() => simulator.close());

const FORMS = upstreamForms(import.meta.filename);

interface Client {
  readonly path: string;
  ask(model: string, stream: boolean): object;
  /** A good ending of its stream. */
  readonly ending: RegExp;
  readonly whole: RegExp;
}

const CLIENTS: Record<string, Client> = {
  chat: {
    path: '/v1/chat/completions',
    ask: (model, stream) => ({ model, stream, messages: [{ role: 'user', content: 'hi' }] }),
    ending: /"finish_reason":"stop"[\s\S]*data: \[DONE\]\n\n$/,
    whole: /"object": ?"chat\.completion"/,
  },
  completions: {
    path: '/v1/completions',
    ask: (model, stream) => ({ model, stream, prompt: 'hi' }),
    ending: /"finish_reason":"stop"[\s\S]*data: \[DONE\]\n\n$/,
    whole: /"object": ?"text_completion"/,
  },
  responses: {
    path: '/v1/responses',
    ask: (model, stream) => ({ model, stream, input: 'hi' }),
    ending: /event: response\.completed\ndata: .*\n\n$/,
    whole: /"id": ?"resp_mizu_[0-9a-f]{32}"/,
  },
  messages: {
    path: '/v1/messages',
    ask: (model, stream) => ({ model, stream, max_tokens: 50, messages: [{ role: 'user', content: 'hi' }] }),
    ending: /event: message_stop\ndata: .*\n\n$/,
    whole: /"type": ?"message"/,
  },
};

const config = formsConfig(FORMS, simulator.url);

for (const [name, client] of Object.entries(CLIENTS)) {
  for (const { name: model, type } of FORMS) {
    for (const stream of [false, true]) {
      test(`${name} over ${model}, ${stream ? 'stream' : 'whole'}`, async () => {
        simulator.enqueue({
          reply: { pieces: [{ type: 'text', text: 'Good morning to you' }], usage: { input: 11, output: 4 } },
        });
        await using gateway = await testGateway(config);
        const response = await gateway.post(client.path, client.ask(model, stream));
        const text = await response.text();
        assert.equal(response.status, 200, text);
        assert.match(text, stream ? client.ending : client.whole);
        assert.match(text.replace(/"\}[\s\S]*?"(text|content|delta)":"/g, ''), /Good|morning/);
        await eventually(() => gateway.store.settled.length === 1, 'settlement');
        const [entry] = gateway.store.settled;
        assert.equal(entry?.status, 'success');
        assert.equal(entry?.usage?.input, 11);
        assert.equal(entry?.usage?.output, 4);
        assert.equal(entry?.channelType, type);
      });
    }
  }
}
