/**
 * Members of a request that change what the vendor charges, where the model has no price for that: flagged, or refused before
 * anything is sent.
 */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { type MoneyGateway, moneyGateway, type Owner, PRICE } from '../../support/money-gateway.ts';

const FULL = {
  ...PRICE,
  cache_write_30m: '6.25',
  cache_write_12h: '20',
  web_search: '10',
  service_tiers: { priority: { input: '10', output: '50' }, flex: { input: '2.5', output: '12.5' } },
  speeds: { fast: '6' },
  geos: { us: '1.1' },
};
const BARE = { input: '5', output: '25' };

const TYPES = { chat: 'chat_completion', responses: 'responses', messages: 'messages' } as const;

async function gatewayOf(t: TestContext, unpriced: string): Promise<{ gateway: MoneyGateway; owner: Owner }> {
  const gateway = await moneyGateway(t, {
    ledger: { unpriced },
    channels: Object.values(TYPES).map((type) => ({
      ...{ id: type, type, base_url: 'SIMULATOR', api_key: 'k' },
      models: { [type]: type, [`bare-${type}`]: type },
    })),
    models: Object.fromEntries(
      Object.values(TYPES).flatMap((type) => [
        [type, { price: FULL }],
        [`bare-${type}`, { price: BARE }],
      ]),
    ),
  });
  return { gateway, owner: await gateway.owner(10n ** 12n) };
}

const BODIES = {
  chat: { path: '/v1/chat/completions', body: { messages: [{ role: 'user', content: 'good morning' }] } },
  responses: { path: '/v1/responses', body: { input: 'good morning' } },
  messages: { path: '/v1/messages', body: { max_tokens: 50, messages: [{ role: 'user', content: 'good morning' }] } },
} as const;

async function asked(
  gateway: MoneyGateway,
  owner: Owner,
  dialect: keyof typeof BODIES,
  model: string,
  more: object,
): Promise<string> {
  gateway.simulator.enqueue({ reply: { pieces: [{ type: 'text', text: 'hello' }], usage: { input: 3, output: 1 } } });
  const before = gateway.simulator.requests.length;
  const { path, body } = BODIES[dialect];
  const response = await gateway.post(owner, path, { model, ...body, ...more });
  const text = await response.text();
  const sent = gateway.simulator.requests.length - before;
  if (response.status === 200) return `200 ${sent}`;
  const { error } = JSON.parse(text);
  assert.equal(sent, 0, 'nothing was sent');
  return `${response.status} ${error.message} ${error.param ?? ''}`.trim();
}

const CACHED = {
  messages: [{ role: 'user', content: [{ type: 'text', text: 'a', cache_control: { type: 'ephemeral', ttl: '1h' } }] }],
};

/** Member, and where a price is missing what the refusal says. */
const CASES = [
  ['chat', { service_tier: 'flex' }, 'service_tier "flex"', 'service_tier'],
  ['chat', { service_tier: 'fast' }, 'service_tier "fast"', 'service_tier'],
  ['chat', { prompt_cache_options: { ttl: '12h' } }, 'cache writes for "12h"', 'prompt_cache_options.ttl'],
  ['chat', { web_search_options: {} }, 'the tool web_search', 'web_search_options'],
  ['responses', { service_tier: 'priority' }, 'service_tier "priority"', 'service_tier'],
  ['responses', { prompt_cache_options: { ttl: '30m' } }, 'cache writes for "30m"', 'prompt_cache_options.ttl'],
  ['messages', { speed: 'fast' }, 'speed "fast"', 'speed'],
  ['messages', { inference_geo: 'us' }, 'inference_geo "us"', 'inference_geo'],
  ['messages', { cache_control: { type: 'ephemeral', ttl: '5m' } }, 'cache writes for "5m"', 'cache_control.ttl'],
  ['messages', CACHED, 'cache writes for "1h"', 'messages[0].content[0].cache_control.ttl'],
  ['messages', { fallbacks: [{ model: 'claude-unknown' }] }, 'the fallback model "claude-unknown"', 'fallbacks', 'always'],
  ['messages', { fallbacks: 'default' }, 'fallbacks "default"', 'fallbacks', 'always'],
  ['messages', { fallback_credit_token: 'tok' }, 'fallback_credit_token', 'fallback_credit_token', 'always'],
  ['chat', { plugins: [{ id: 'web', max_results: 10 }] }, 'plugins', 'plugins', 'always'],
  ['chat', { search_parameters: { mode: 'on' } }, 'search_parameters', 'search_parameters', 'always'],
  ['chat', { enable_search: true }, 'enable_search', 'enable_search', 'always'],
  ['responses', { provider: { order: ['dear'] } }, 'provider', 'provider', 'always'],
  ['messages', { preset: 'of-the-operator' }, 'preset', 'preset', 'always'],
  [
    'messages',
    { billing_policy: { type: 'billing_policy', bill_to: 'user_profile' } },
    'billing_policy',
    'billing_policy',
    'always',
  ],
] as const;

test('with ledger.unpriced "refuse" a member without a price is refused in the client’s own words, and one with a price is sent', async (t) => {
  const { gateway, owner } = await gatewayOf(t, 'refuse');
  for (const [dialect, more, what, param, always] of CASES) {
    const type = TYPES[dialect];
    const said = `403 The model bare-${type} has no price for ${what}. ${param}`;
    assert.equal(await asked(gateway, owner, dialect, `bare-${type}`, more), said, JSON.stringify(more));
    const priced = await asked(gateway, owner, dialect, type, more);
    if (always === undefined) assert.equal(priced, '200 1', JSON.stringify(more));
    else assert.match(priced, /^403 /, JSON.stringify(more));
  }
  await gateway.store.settlements.flush();
  assert.equal(gateway.store.admission.reserved(owner.key.id), 0n);
});

test('a member is refused where one Channel of the model would charge for it, beside others that know no such member', async (t) => {
  const gateway = await moneyGateway(t, {
    ledger: { unpriced: 'refuse' },
    channels: [TYPES.chat, TYPES.messages].map((type) => ({
      ...{ id: type, type, base_url: 'SIMULATOR', api_key: 'k', models: { both: type } },
    })),
    models: { both: { price: BARE } },
  });
  const owner = await gateway.owner(10n ** 12n);
  assert.match(await asked(gateway, owner, 'chat', 'both', { service_tier: 'flex' }), /^403 .*service_tier "flex"/);
  assert.match(await asked(gateway, owner, 'messages', 'both', { speed: 'fast' }), /^403 .*speed "fast"/);
  assert.equal(await asked(gateway, owner, 'responses', 'both', { service_tier: 'flex' }), '200 1');
});

test('a compaction asks for such a member as its conversation does', async (t) => {
  const { gateway, owner } = await gatewayOf(t, 'refuse');
  const compact = (model: string) =>
    gateway.post(owner, '/v1/responses/compact', { model, input: 'good morning', service_tier: 'priority' });
  const refused = await compact('bare-responses');
  assert.equal(refused.status, 403);
  const { error } = JSON.parse(await refused.text());
  assert.equal(error.message, 'The model bare-responses has no price for service_tier "priority".');
  assert.equal(error.param, 'service_tier');
  assert.equal(gateway.simulator.requests.length, 0, 'nothing was sent');
  assert.equal((await compact('responses')).status, 200);
});

test('a refusal repeats a hundred characters of what a client wrote, and no more', async (t) => {
  const { gateway, owner } = await gatewayOf(t, 'refuse');
  const refused = (service_tier: string) => asked(gateway, owner, 'chat', 'bare-chat_completion', { service_tier });
  // Two of them are the quotation marks.
  const whole = 'x'.repeat(98);
  assert.ok((await refused(whole)).includes(` service_tier "${whole}". `));
  assert.ok((await refused(`${whole}x`)).includes(` service_tier "${whole}x…. `));
});

test('what costs the standard price needs none, nor does what never reaches an upstream', async (t) => {
  const { gateway, owner } = await gatewayOf(t, 'refuse');
  for (const [dialect, model, more] of [
    ['chat', 'bare-chat_completion', { service_tier: 'auto' }],
    ['chat', 'bare-chat_completion', { plugins: [], provider: {}, preset: null, enable_search: false }],
    ['chat', 'bare-chat_completion', { service_tier: 'default', web_search_options: null }],
    ['messages', 'bare-messages', { speed: 'standard', inference_geo: 'global', service_tier: 'standard_only' }],
    [
      'messages',
      'bare-messages',
      { cache_control: { type: 'ephemeral' }, billing_policy: { type: 'billing_policy', bill_to: 'self' } },
    ],
    ['messages', 'bare-chat_completion', { speed: 'fast' }],
    ['messages', 'bare-messages', { fallbacks: [{ model: 'chat_completion' }] }],
  ] as const)
    assert.equal(await asked(gateway, owner, dialect, model, more), '200 1', JSON.stringify(more));
});

test('by default all of it is sent; the charge says what the answer served, and what no answer tells', async (t) => {
  const { gateway, owner } = await gatewayOf(t, 'flag');
  for (const [dialect, more] of CASES)
    assert.equal(await asked(gateway, owner, dialect, `bare-${TYPES[dialect]}`, more), '200 1');
  const rows = await gateway.settled(owner, CASES.length);
  assert.deepEqual(
    rows.flatMap(({ charge }) => charge?.flags ?? []),
    [
      'unseen:web_search_options',
      ...['plugins', 'search_parameters', 'enable_search', 'provider', 'preset'].map((name) => `unseen:${name}`),
      'unseen:billing_policy',
    ],
  );
});

test('an upstream’s own fallback and its passes are charged at their models’ prices; a redeemed credit is flagged', async (t) => {
  const gateway = await moneyGateway(t, {
    channels: [
      { id: 'm', type: 'messages', base_url: 'SIMULATOR', api_key: 'k', models: { big: 'claude-big', small: 'claude-small' } },
    ],
    models: { big: { price: BARE }, small: { price: { input: '1', output: '5' } } },
  });
  const owner = await gateway.owner(10n ** 12n);
  const iteration = (type: string, model: string | null, input: number) => ({
    ...{ type, model, input_tokens: input, output_tokens: 0, cache_read_input_tokens: 0, cache_creation_input_tokens: 0 },
  });
  const extra = {
    iterations: [
      iteration('message', 'claude-big', 900),
      iteration('compaction', null, 1000),
      iteration('advisor_message', 'claude-big', 2000),
      iteration('fallback_message', 'claude-small-20260101', 3),
      iteration('ponder_message', 'claude-small', 5),
    ],
    fallback_credit: { status: { type: 'redeemed' } },
  };
  gateway.simulator.enqueue({ reply: { pieces: [{ type: 'text', text: 'hello' }], usage: { input: 3, output: 2, extra } } });
  const { path, body } = BODIES.messages;
  const response = await gateway.post(owner, path, { model: 'big', ...body });
  const { usage } = JSON.parse(await response.text());
  assert.deepEqual(usage.iterations, extra.iterations, 'the client reads all of it');
  const [row] = await gateway.settled(owner, 1);
  assert.deepEqual(
    row?.charge?.lines.map(({ item, quantity, rate, model }) => [item, quantity, rate / 1_000_000_000n, model]),
    [
      ['input', 1003, 1n, 'claude-small-20260101'],
      ['output', 2, 5n, 'claude-small-20260101'],
      ['input', 2000, 5n, 'claude-big'],
    ],
  );
  assert.deepEqual(row?.charge?.flags, ['fallback_credit', 'unpriced_pass:ponder_message']);
});
