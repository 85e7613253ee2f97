/** How a Claude model takes effort where the operator does not say (semantics 6.7.4). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { factsByName } from '../../../src/http/config/thinking-by-name.ts';
import { fakeUpstream, jsonAnswer, wholeMessage } from '../../support/fake-upstream.ts';
import { channel, MODELS, testGateway } from '../../support/test-gateway.ts';

const BY_BUDGET = [
  'claude-3-opus-20240229',
  'claude-3-5-haiku-latest',
  'claude-3-7-sonnet-20250219',
  'claude-sonnet-4-20250514',
  'claude-opus-4@20250514',
  'claude-opus-4-1-20250805',
  'claude-sonnet-4-5-20250929',
  'claude-haiku-4-5',
  'anthropic/claude-opus-4.5',
  'us.anthropic.claude-3-5-sonnet-20241022-v2:0',
  'sonnet-4.5',
] as const;
const AFTER_4_6 = [
  'claude-opus-4-10',
  'claude-sonnet-5',
  'claude-haiku-5-20270101',
  'claude-5-opus',
  'claude-12-sonnet',
] as const;
const ADAPTIVE = [
  'claude-opus-4-6',
  'claude-sonnet-4.6',
  'claude-2.1',
  'claude-next',
  'claude-opus-20270101',
  'a-sonnet-4-poem',
  'kimi-k2',
] as const;

test('Claude up to 4.5 thinks by budget, whatever the order of the words; later and unknown models are adaptive', () => {
  const thinkingOf = (model: string) => factsByName({}, 'messages', model).thinking;
  for (const model of BY_BUDGET) assert.equal(thinkingOf(model), 'budget', model);
  for (const model of [...ADAPTIVE, ...AFTER_4_6]) assert.equal(thinkingOf(model), undefined, model);
});

test('Claude after 4.6 has a sampling of its own', () => {
  const isFixed = (model: string) => factsByName({}, 'messages', model).fixedSampling === true;
  assert.deepEqual([...BY_BUDGET, ...ADAPTIVE, ...AFTER_4_6].filter(isFixed), AFTER_4_6);
});

test('Claude 4.6 has no effort xhigh; those after it and unknown ones do, and to those before it no effort is said', () => {
  const hasNone = (model: string) => factsByName({}, 'messages', model).noXhighEffort === true;
  assert.deepEqual(ADAPTIVE.filter(hasNone), ['claude-opus-4-6', 'claude-sonnet-4.6']);
  assert.deepEqual([...AFTER_4_6, ...BY_BUDGET].filter(hasNone), []);
  const [model] = BY_BUDGET;
  assert.deepEqual(factsByName({ thinking: 'adaptive' }, 'messages', model), { thinking: 'adaptive', noXhighEffort: true });
});

test('what the operator says goes before the name, and other types of Channel have no such names', () => {
  const [model] = BY_BUDGET;
  assert.equal(factsByName({ thinking: 'adaptive' }, 'messages', model).thinking, 'adaptive');
  assert.deepEqual(factsByName({ maxThinkingBudget: 9 }, 'messages', model), { maxThinkingBudget: 9, thinking: 'budget' });
  for (const type of ['chat_completion', 'responses', 'gemini'] as const) assert.deepEqual(factsByName({}, type, model), {});
});

test('it is the upstream’s name that counts', async (t) => {
  const upstream = await fakeUpstream(jsonAnswer(200, wholeMessage('yes')));
  t.after(() => upstream.close());
  const thinkingOf = async (upstreamModel: string): Promise<unknown> => {
    await using gateway = await testGateway({
      channels: [{ ...channel(upstream.url), models: { m: upstreamModel } }],
      models: MODELS,
    });
    const body = { model: 'm', messages: [{ role: 'user', content: 'x' }], reasoning_effort: 'medium' };
    assert.equal((await gateway.post('/v1/chat/completions', body)).status, 200);
    return JSON.parse(upstream.requests.at(-1)?.body ?? '').thinking;
  };
  assert.deepEqual(await thinkingOf('claude-haiku-4-5'), { type: 'enabled', budget_tokens: 4096 });
  assert.deepEqual(await thinkingOf('claude-opus-4-6'), { type: 'adaptive' });
});

test('the budgets that a Gemini model takes are known by its name, where the operator does not say', () => {
  const before3 = { noMediaInResults: true, noFormatBesideTools: true };
  const flash = { ...before3, maxThinkingBudget: 24_576 };
  assert.deepEqual(factsByName({}, 'gemini', 'models/gemini-2.5-flash-preview-09-2025'), flash);
  assert.deepEqual(factsByName({}, 'gemini', 'gemini-2.5-flash-lite'), { minThinkingBudget: 512, ...flash });
  const pro = { minThinkingBudget: 128, maxThinkingBudget: 32_768 };
  assert.deepEqual(factsByName({}, 'gemini', 'gemini-2.5-pro'), { ...before3, ...pro });
  assert.deepEqual(factsByName({ maxThinkingBudget: 9 }, 'gemini', 'gemini-2.5-flash'), { ...before3, maxThinkingBudget: 9 });
  assert.deepEqual(factsByName({ thinking: 'level' }, 'gemini', 'gemini-2.5-flash'), { ...before3, thinking: 'level' });
  for (const name of ['gemini-3-flash', 'gemini-3.1-pro-preview', 'gemini-10-pro', 'my-model'])
    assert.deepEqual(factsByName({}, 'gemini', name), {});
  for (const name of ['gemini-2.0-flash', 'gemini-1.5-pro-002']) assert.deepEqual(factsByName({}, 'gemini', name), before3);
  assert.deepEqual(factsByName({}, 'messages', 'gemini-2.5-flash'), {});
});
