/** Reasoning efforts between the dialects (semantics 6.7): words, budgets, and what the model's facts decide. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { convert } from '../failures/through.ts';

const EFFORTS = ['minimal', 'minimum', 'low', 'medium', 'high', 'xhigh', 'max'] as const;
const BUDGETS = { minimal: 1024, minimum: 1024, low: 1024, medium: 4096, high: 16384, xhigh: 32000, max: 32000 } as const;
const user = { role: 'user', content: 'x' };
const asking = (effort: string) =>
  [
    ['responses', { input: 'x', reasoning: { effort } }],
    ['chat', { messages: [user], reasoning_effort: effort }],
  ] as const;

for (const thinking of ['adaptive', undefined] as const) {
  test(`an effort for a messages model that thinks ${thinking ?? 'as its facts leave open'}: adaptive, the word beside it`, () => {
    for (const effort of EFFORTS) {
      for (const [client, body] of asking(effort)) {
        const sent = convert(client, 'messages', body, { facts: thinking === undefined ? {} : { thinking } });
        assert.deepEqual(sent.thinking, { type: 'adaptive' }, effort);
        // Less than low has no word there.
        assert.equal(sent.output_config?.effort, effort.startsWith('min') ? undefined : effort, effort);
      }
    }
  });
}

test('an effort for a messages model that thinks by budget', () => {
  for (const effort of EFFORTS) {
    for (const [client, body] of asking(effort)) {
      const sent = convert(client, 'messages', body, { facts: { thinking: 'budget' } });
      assert.deepEqual(sent.thinking, { type: 'enabled', budget_tokens: BUDGETS[effort] }, effort);
      assert.equal(sent.output_config, undefined);
    }
  }
});

test('a generated budget stays within the model and below the output cap, and gives way where that leaves no room', () => {
  const budget = (cap: number, facts: object = {}): unknown =>
    convert(
      'responses',
      'messages',
      { input: 'x', max_output_tokens: cap, reasoning: { effort: 'high' } },
      {
        facts: { thinking: 'budget', ...facts },
      },
    ).thinking;
  assert.deepEqual(budget(5000), { type: 'enabled', budget_tokens: 4999 });
  assert.deepEqual(budget(1025), { type: 'enabled', budget_tokens: 1024 });
  assert.deepEqual(budget(1024), { type: 'disabled' });
  assert.deepEqual(budget(64_000, { maxThinkingBudget: 8000 }), { type: 'enabled', budget_tokens: 8000 });
  assert.deepEqual(budget(64_000, { minThinkingBudget: 20_000 }), { type: 'enabled', budget_tokens: 20_000 });
  assert.deepEqual(budget(20_001, { minThinkingBudget: 20_000 }), { type: 'enabled', budget_tokens: 20_000 });
  assert.deepEqual(budget(20_000, { minThinkingBudget: 20_000 }), { type: 'disabled' });
});

test('thinking of a messages client as an effort; its own effort wins over a budget', () => {
  const effort = (thinking: object, more: object = {}) =>
    (['chat', 'responses'] as const).map((upstream) => {
      const sent = convert('messages', upstream, { max_tokens: 9, messages: [user], thinking, ...more });
      return upstream === 'chat' ? sent.reasoning_effort : sent.reasoning?.effort;
    });
  const both = (word: string | undefined) => [word, word];
  assert.deepEqual(effort({ type: 'disabled' }), both('none'));
  assert.deepEqual(effort({ type: 'adaptive' }), both(undefined));
  assert.deepEqual(effort({ type: 'adaptive' }, { output_config: { effort: 'max' } }), both('max'));
  for (const [budget, word] of [
    [1, 'low'],
    [1024, 'low'],
    [1025, 'medium'],
    [4096, 'medium'],
    [4097, 'high'],
    [16384, 'high'],
    [16385, 'xhigh'],
  ] as const) {
    assert.deepEqual(effort({ type: 'enabled', budget_tokens: budget }), both(word), String(budget));
    assert.deepEqual(effort({ type: 'enabled', budget_tokens: budget }, { output_config: { effort: 'low' } }), both('low'));
  }
});

test('chat: thinking, the switch of other vendors, is asked last; an effort wins over every budget', () => {
  const sent = (upstream: 'messages' | 'responses' | 'gemini', asked: object, facts: object = {}) => {
    const { thinking, output_config, reasoning, generationConfig } = convert(
      'chat',
      upstream,
      { messages: [user], ...asked },
      { facts },
    );
    return output_config?.effort ?? thinking ?? reasoning?.effort ?? generationConfig?.thinkingConfig;
  };
  const off = { thinking: { type: 'disabled' } };
  assert.deepEqual(sent('messages', off), { type: 'disabled' });
  assert.deepEqual(sent('responses', off), 'none');
  assert.deepEqual(sent('gemini', off), { thinkingBudget: 0 });
  assert.deepEqual(sent('responses', { ...off, reasoning_effort: 'low' }), 'low');
  assert.deepEqual(sent('responses', { ...off, reasoning: { effort: 'low' } }), 'low');
  for (const on of [{ thinking: { type: 'enabled' } }, { thinking: { type: 'adaptive' } }, { reasoning: { enabled: true } }]) {
    assert.deepEqual(sent('messages', on), { type: 'adaptive' });
    assert.deepEqual(sent('messages', on, { thinking: 'budget' }), { type: 'enabled', budget_tokens: 4096 });
    for (const upstream of ['responses', 'gemini'] as const) assert.deepEqual(sent(upstream, on), undefined);
    assert.deepEqual(sent('messages', { ...on, reasoning_effort: 'none' }), { type: 'disabled' });
  }
  const budget = { thinking: { type: 'enabled', budget_tokens: 3000 } };
  assert.deepEqual(sent('gemini', budget), { thinkingBudget: 3000 });
  assert.deepEqual(sent('messages', budget, { thinking: 'budget' }), { type: 'enabled', budget_tokens: 3000 });
  for (const tokens of [-1, 0.5, 'many', null]) {
    assert.deepEqual(sent('messages', { thinking: { type: 'enabled', budget_tokens: tokens } }), { type: 'adaptive' });
  }
  for (const more of [budget, { reasoning: { max_tokens: 3000 } }]) {
    const both = { ...more, reasoning_effort: 'high' };
    assert.deepEqual(sent('messages', both, { thinking: 'budget' }), { type: 'enabled', budget_tokens: 16384 });
  }
});

test('minimum is another word for minimal', () => {
  assert.equal(convert('chat', 'responses', { messages: [user], reasoning_effort: 'minimum' }).reasoning.effort, 'minimal');
  assert.equal(convert('responses', 'chat', { input: 'x', reasoning: { effort: 'minimum' } }).reasoning_effort, 'minimal');
});

test('a readable summary is asked for where the client asked for one, and nowhere else', () => {
  const asked = convert('responses', 'messages', { input: 'x', reasoning: { effort: 'high', summary: 'detailed' } });
  assert.deepEqual(asked.thinking, { type: 'adaptive', display: 'summarized' });
  const shown = { max_tokens: 9, messages: [user], thinking: { type: 'adaptive', display: 'summarized' } };
  assert.equal(convert('messages', 'responses', shown).reasoning.summary, 'auto');
  const omitted = { ...shown, thinking: { type: 'adaptive', display: 'omitted' } };
  assert.equal(convert('messages', 'responses', omitted).reasoning, undefined);
});

test('thinking that was generated gives way to a tool that the client requires', () => {
  const tools = [{ type: 'function', name: 'f', parameters: { type: 'object', properties: {} } }];
  const sent = convert('responses', 'messages', { input: 'x', tools, tool_choice: 'required', reasoning: { effort: 'high' } });
  assert.deepEqual([sent.thinking, sent.tool_choice], [undefined, { type: 'any' }]);
});

test('a model that thinks by budget answers results without thinking where the thinking before their calls is lost', () => {
  const budget = { facts: { thinking: 'budget' } } as const;
  const input = (...behind: object[]) => [
    user,
    { type: 'function_call', call_id: 'a', name: 'f', arguments: '{}' },
    { type: 'function_call_output', call_id: 'a', output: 'r' },
    ...behind,
  ];
  const asked = (items: object[]) => convert('responses', 'messages', { input: items, reasoning: { effort: 'high' } }, budget);
  assert.deepEqual(asked(input()).thinking, { type: 'disabled' });
  const done = input({ role: 'assistant', content: 'done' }, { role: 'user', content: 'next' });
  assert.deepEqual(asked(done).thinking, { type: 'enabled', budget_tokens: 16384 });

  const messages = (signature: string) => [
    user,
    {
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: 't', signature },
        { type: 'tool_use', id: 'a', name: 'f', input: {} },
      ],
    },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a', content: 'r' }] },
  ];
  const thinking = { type: 'enabled', budget_tokens: 2048 };
  const kept = (signature: string, facts: object) =>
    convert('messages', 'messages', { max_tokens: 4096, messages: messages(signature), thinking }, { facts }).thinking;
  assert.deepEqual(kept('of the vendor', { thinking: 'budget' }), thinking);
  assert.deepEqual(kept('mz2.broken', { thinking: 'budget' }), { type: 'disabled' });
  assert.deepEqual(kept('mz2.broken', {}), thinking, 'newer models do not ask for it');
});

test('configuration updates in a history: the last effort and format count at upstreams of other protocols', () => {
  const update = (effort: string | null) => ({ role: 'system', content: '', configuration_update: { reasoning: { effort } } });
  const messages = [user, update('high'), user, update('low'), user, update(null)];
  assert.deepEqual(convert('chat', 'responses', { messages, reasoning_effort: 'max' }).reasoning, { effort: 'low' });
  assert.deepEqual(convert('chat', 'messages', { messages }).output_config, { effort: 'low' });
  assert.equal(convert('chat', 'chat', { messages, reasoning_effort: 'max' }).reasoning_effort, 'max');

  const item = (reasoning: object, more: object = {}) => ({ type: 'configuration_update', reasoning, ...more });
  const format = { type: 'json_schema', name: 'n', schema: { type: 'object' } };
  const input = [item({ effort: 'high' }, { text: { format } }), user, item({ effort: 'none' }), user];
  const sent = convert('responses', 'chat', { input, reasoning: { effort: 'max' }, text: { verbosity: 'low' } });
  assert.equal(sent.reasoning_effort, 'none');
  assert.equal(sent.response_format.json_schema.name, 'n');
  assert.equal(sent.verbosity, 'low');
  assert.deepEqual(convert('responses', 'responses', { input, reasoning: { effort: 'max' } }).reasoning, { effort: 'max' });
});
