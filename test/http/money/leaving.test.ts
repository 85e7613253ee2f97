/**
 * Who leaves one word before the usage report pays for the time, in every pair of dialects; who leaves before the first word pays
 * nothing.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { RequestLogRow } from '../../../src/store/request-log.ts';
import { CLIENTS, FORMS, type MoneyGateway, moneyGateway, type Owner, PRICE, sse } from '../../support/money-gateway.ts';

const FUNDS = 10n ** 12n;
const AWAY_MS = 700;
/** An answer of one word and then nothing, while its model thinks. */
const thinking = { reply: { pieces: [{ type: 'text', text: 'Good morning to you' } as const] }, pace: { ms: 1_500 } };

async function leave(
  gateway: MoneyGateway,
  owner: Owner,
  client: keyof typeof CLIENTS,
  model: string,
  more: object = {},
): Promise<RequestLogRow> {
  const controller = new AbortController();
  const { path, ask } = CLIENTS[client];
  const response = await gateway.post(owner, path, { ...ask(model, true), ...more }, { signal: controller.signal });
  assert.equal(response.status, 200);
  const reader = response.body?.getReader();
  let read = '';
  while (!read.includes('Good')) read += Buffer.from((await reader?.read())?.value ?? []).toString();
  await new Promise((resolve) => setTimeout(resolve, AWAY_MS));
  controller.abort();
  const [row] = await gateway.settled(owner, 1);
  assert.ok(row);
  assert.equal(row.clientGone, true);
  return row;
}

test('hidden reasoning is charged by its time, in every pair of dialects', async (t) => {
  const gateway = await moneyGateway(t);
  gateway.simulator.enqueue({ ...thinking, times: 1_000 });
  const pairs = (Object.keys(CLIENTS) as (keyof typeof CLIENTS)[]).flatMap((client) =>
    FORMS.map(({ name }) => [client, name] as const),
  );
  await Promise.all(
    pairs.map(async ([client, model]) => {
      const cap = client === 'messages' ? 50 : 131_072;
      const { usage, charge } = await leave(gateway, await gateway.owner(FUNDS), client, model);
      const output = (usage?.output ?? 0) + (usage?.reasoning ?? 0);
      // 50 tokens a second, from dispatch on.
      assert.ok(output >= Math.min(cap, (50 * AWAY_MS) / 1_000), `${client} over ${model}: ${output} tokens`);
      assert.ok(output <= cap, `${client} over ${model}: ${output} tokens`);
      assert.ok((charge?.total ?? 0n) >= BigInt(output) * 25_000n);
      assert.ok(charge?.flags.includes('estimated'));
    }),
  );
});

test('up to the cap of the request; by the text alone where the request or the model does not reason', async (t) => {
  const models = Object.fromEntries(
    FORMS.map(({ name, type }) => [name, { price: PRICE, ...(type === 'gemini' ? { reasoning: false } : {}) }]),
  );
  const gateway = await moneyGateway(t, { models });
  gateway.simulator.enqueue({ ...thinking, times: 1_000 });
  const outputOf = async (model: string, more: object): Promise<number> => {
    const { usage } = await leave(gateway, await gateway.owner(FUNDS), 'chat', model, more);
    return (usage?.output ?? 0) + (usage?.reasoning ?? 0);
  };
  assert.equal(await outputOf('chat_completion', { max_completion_tokens: 20 }), 20);
  assert.ok((await outputOf('chat_completion', { reasoning_effort: 'none' })) < 10);
  assert.ok((await outputOf('gemini', {})) < 10);
});

test('who leaves before the first word pays nothing', async (t) => {
  const gateway = await moneyGateway(t);
  gateway.simulator.enqueue({ ...thinking, pace: { firstMs: 4_000 } });
  const owner = await gateway.owner(FUNDS);
  const controller = new AbortController();
  const asked = gateway.post(owner, CLIENTS.chat.path, CLIENTS.chat.ask('messages', true), { signal: controller.signal });
  setTimeout(() => controller.abort(), AWAY_MS);
  await assert.rejects(asked);
  const [row] = await gateway.settled(owner, 1);
  assert.equal(row?.charge?.total ?? 0n, 0n);
});

test('a tier that was named before any usage is charged, too', async (t) => {
  const price = { ...PRICE, service_tiers: { priority: { input: '10', output: '50' } } };
  const gateway = await moneyGateway(t, { models: Object.fromEntries(FORMS.map(({ name }) => [name, { price }])) });
  const owner = await gateway.owner(FUNDS);
  const chunk = (delta: object) => ({
    ...{ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'x', service_tier: 'priority' },
    choices: [{ index: 0, delta, finish_reason: null }],
  });
  const body = sse(chunk({ role: 'assistant', content: 'Good' }));
  gateway.simulator.enqueue({
    raw: { headers: { 'content-type': 'text/event-stream' }, chunks: [body, `${': wait\n'.repeat(10)}`, body] },
    pace: { ms: 4_000 },
  });
  const row = await leave(gateway, owner, 'chat', 'chat_completion', {});
  assert.equal(row.usage?.serviceTier, 'priority');
  assert.ok((row.charge?.total ?? 0n) >= 30n * 50_000n);
});

/** More than any vendor takes; the upstreams of two dialects are sent none of them, or some. */
const STOPS = ['#1#', '#2#', '#3#', '#4#', '#5#', '#6#', '#END#'];
const WITH_STOPS = {
  chat: { stop: STOPS },
  completions: { stop: STOPS },
  messages: { stop_sequences: STOPS, max_tokens: 10_000 },
};

test('hidden reasoning ahead of a stop sequence at which the gateway ends the answer is charged by its time', async (t) => {
  const gateway = await moneyGateway(t);
  const pairs = (Object.keys(WITH_STOPS) as (keyof typeof WITH_STOPS)[]).flatMap((client) =>
    FORMS.map(({ name }) => [client, name] as const),
  );
  gateway.simulator.enqueue({
    ...{ pace: { firstMs: AWAY_MS, ms: 20, cut: 'event' }, strict: false, times: pairs.length },
    reply: {
      pieces: [{ type: 'text', text: `Good morning. #END# ${'more '.repeat(100)}` }],
      usage: { input: 5, output: 9_000, reasoning: 8_900 },
    },
  });
  await Promise.all(
    pairs.map(async ([client, model]) => {
      const owner = await gateway.owner(FUNDS);
      const { path, ask } = CLIENTS[client];
      const response = await gateway.post(owner, path, { ...ask(model, true), ...WITH_STOPS[client] });
      assert.match(await response.text(), /Good/);
      const [row] = await gateway.settled(owner, 1);
      assert.equal(row?.status, 'success');
      const output = (row.usage?.output ?? 0) + (row.usage?.reasoning ?? 0);
      assert.ok(output >= (50 * AWAY_MS) / 1_000, `${client} over ${model}: ${output} tokens`);
    }),
  );
});

test('a picture that was asked about is counted at its own price where nothing reported the input, and not beside a report', async (t) => {
  const gateway = await moneyGateway(t);
  gateway.simulator.enqueue({ ...thinking, times: 2 });
  const picture = { type: 'image_url', image_url: { url: 'data:image/png;base64,aGk=' } };
  const more = { messages: [{ role: 'user', content: [{ type: 'text', text: 'hi' }, picture] }] };
  const usageOf = async (model: string) => (await leave(gateway, await gateway.owner(FUNDS), 'chat', model, more)).usage;
  assert.equal((await usageOf('chat_completion'))?.imageInput, 1_000);
  // Its stream begins with the input.
  const reported = await usageOf('messages');
  assert.ok((reported?.input ?? 0) > 0);
  assert.equal(reported?.imageInput, undefined);
});
