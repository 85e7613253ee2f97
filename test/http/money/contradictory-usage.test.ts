/** Reports of usage that contradict themselves, or come twice: billed once, as they were reported, and flagged. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CLIENTS, FORMS, moneyGateway, PRICE, sse } from '../../support/money-gateway.ts';

const HELLO = [{ type: 'text', text: 'hello' }] as const;

test('more cached tokens than input: each count is billed as it was reported, and the row says so', async (t) => {
  const gateway = await moneyGateway(t);
  for (const { name: model, type } of FORMS) {
    if (type === 'messages') continue; // Its counts do not overlap, so they cannot contradict each other.
    for (const stream of [true, false]) {
      const owner = await gateway.owner(10n ** 12n);
      gateway.simulator.enqueue({ reply: { pieces: HELLO, usage: { input: 10, cached: 50, output: 4 } } });
      await (await gateway.post(owner, CLIENTS.chat.path, CLIENTS.chat.ask(model, stream))).text();
      const [row] = await gateway.settled(owner, 1);
      const { input, cachedInput, output } = row?.usage ?? {};
      assert.deepEqual([input, cachedInput, output, row?.charge?.flags], [undefined, 50, 4, ['contradictory_usage']], model);
      assert.equal(row?.charge?.total, 50n * 500n + 4n * 25_000n);
    }
  }
});

test('a report that comes twice is billed once', async (t) => {
  const gateway = await moneyGateway(t, {
    models: { chat_completion: { price: PRICE } },
    channels: [{ id: 'c', type: 'chat_completion', base_url: 'SIMULATOR', api_key: 'k', models: ['chat_completion'] }],
  });
  const owner = await gateway.owner(10n ** 12n);
  const chunk = (more: object) => ({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [], ...more });
  const report = chunk({ usage: { prompt_tokens: 11, completion_tokens: 4, total_tokens: 15 } });
  const body = sse(
    chunk({ choices: [{ index: 0, delta: { role: 'assistant', content: 'hello' }, finish_reason: null }] }),
    chunk({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }),
    report,
    report,
    '[DONE]',
  );
  gateway.simulator.enqueue({ raw: { headers: { 'content-type': 'text/event-stream' }, body } });
  await (await gateway.post(owner, CLIENTS.responses.path, CLIENTS.responses.ask('chat_completion', true))).text();
  const [row] = await gateway.settled(owner, 1);
  assert.deepEqual([row?.charge?.total, row?.charge?.flags], [11n * 5_000n + 4n * 25_000n, []]);
});
