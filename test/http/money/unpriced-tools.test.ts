/**
 * Server tools whose calls the price has no rate for: forwarded and flagged, refused where a call is forced or the operator wants
 * it so.
 */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { type MoneyGateway, moneyGateway, type Owner, PRICE } from '../../support/money-gateway.ts';

const SEARCH = { type: 'web_search' };
const FUNCTION = { type: 'function', name: 'add', parameters: { type: 'object', properties: {} } };
const request = (model: string, more: object) => ({ model, input: 'what is new', tools: [SEARCH], ...more });
const messages = (model: string, more: object) => ({
  model,
  max_tokens: 50,
  messages: [{ role: 'user', content: 'what is new' }],
  tools: [{ type: 'web_search_20250305', name: 'web_search' }],
  ...more,
});

async function gatewayOf(t: TestContext, ledger: object = {}): Promise<{ gateway: MoneyGateway; owner: Owner }> {
  const types = ['responses', 'messages'];
  const gateway = await moneyGateway(t, {
    ledger,
    channels: types.map((type) => ({ id: type, type, base_url: 'SIMULATOR', api_key: 'k', models: [type, `priced-${type}`] })),
    models: Object.fromEntries(
      types.flatMap((type) => [
        [type, { price: PRICE }],
        [`priced-${type}`, { price: { ...PRICE, web_search: '10' } }],
      ]),
    ),
  });
  return { gateway, owner: await gateway.owner(10n ** 12n) };
}

async function asked(gateway: MoneyGateway, owner: Owner, path: string, body: object): Promise<string> {
  gateway.simulator.enqueue({ reply: { pieces: [{ type: 'text', text: 'nothing' }], usage: { input: 3, output: 1 } } });
  const before = gateway.simulator.requests.length;
  const response = await gateway.post(owner, path, body);
  const { error } = JSON.parse(await response.text());
  assert.equal(gateway.simulator.requests.length - before, response.status === 200 ? 1 : 0);
  return error === undefined || error === null ? '200' : `${response.status} ${error.code} ${error.param}`;
}

test('a tool that may be used is forwarded; one that is forced is refused, unless its meter has a price', async (t) => {
  const { gateway, owner } = await gatewayOf(t);
  const refused = '403 model_pricing_required tools[0]';
  for (const [model, body, said] of [
    ['responses', {}, '200'],
    ['responses', { tool_choice: 'required', tools: [SEARCH, FUNCTION] }, '200'],
    ['responses', { tool_choice: 'required' }, refused],
    ['responses', { tool_choice: SEARCH }, refused],
    ['priced-responses', { tool_choice: SEARCH }, '200'],
    ['responses', { tool_choice: { type: 'function', name: 'add' }, tools: [SEARCH, FUNCTION] }, '200'],
    ['responses', { tool_choice: 'auto', tools: [FUNCTION] }, '200'],
  ] as const) {
    assert.equal(await asked(gateway, owner, '/v1/responses', request(model, body)), said, JSON.stringify([model, body]));
  }
  const forced = { tool_choice: { type: 'tool', name: 'web_search' } };
  assert.equal(await asked(gateway, owner, '/v1/messages', messages('messages', {})), '200');
  assert.match(await asked(gateway, owner, '/v1/messages', messages('messages', forced)), /^403 model_pricing_required/);
  assert.equal(await asked(gateway, owner, '/v1/messages', messages('priced-messages', forced)), '200');
});

test('with unpriced_tools "refuse" none reaches an upstream that would run it; one of another dialect does not have it', async (t) => {
  const { gateway, owner } = await gatewayOf(t, { unpriced_tools: 'refuse' });
  assert.equal(await asked(gateway, owner, '/v1/responses', request('responses', {})), '403 model_pricing_required tools[0]');
  assert.equal(await asked(gateway, owner, '/v1/responses', request('priced-responses', {})), '200');
  assert.equal(await asked(gateway, owner, '/v1/responses', request('messages', {})), '200');
  assert.equal(await asked(gateway, owner, '/v1/responses', request('responses', { tools: [FUNCTION] })), '200');
  await gateway.store.settlements.flush();
  assert.equal(gateway.store.admission.reserved(owner.key.id), 0n);
});
