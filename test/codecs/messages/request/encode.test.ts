import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../../../src/codecs/canonical/error.ts';
import type { Item, Media } from '../../../../src/codecs/canonical/item.ts';
import type { Opaque } from '../../../../src/codecs/canonical/opaque.ts';
import type { CanonicalRequest, Refusable, Tool } from '../../../../src/codecs/canonical/request.ts';
import type { ModelFacts, Target } from '../../../../src/codecs/codec.ts';
import { messagesUpstream } from '../../../../src/codecs/messages/index.ts';
import { canonical, encodeFor, owner, target } from '../support.ts';

const text = (role: 'system' | 'developer' | 'user' | 'assistant', said: string, more: object = {}): Item => ({
  kind: 'text',
  role,
  text: said,
  citations: [],
  ...more,
});
const call = (callId: string, input: string, more: object = {}): Item => ({
  kind: 'toolCall',
  toolType: 'function',
  callId,
  tool: { name: 'f' },
  input,
  at: `call ${callId}`,
  ...more,
});
const result = (callId: string, said: string, more: object = {}): Item => ({
  kind: 'toolResult',
  toolType: 'function',
  callId,
  content: [{ kind: 'text', text: said }],
  isError: false,
  ...more,
});
const tool: Tool = { kind: 'function', tool: { name: 'f' }, parameters: { type: 'object' }, at: 'tools[0]' };
const hi = [text('user', 'hi')];

function refused(parts: Partial<CanonicalRequest>, param: string, to: Partial<Target> = {}): void {
  assert.throws(
    () => encodeFor(parts, to),
    (error: unknown) =>
      error instanceof GatewayError &&
      error.code === 'unsupported_conversion' &&
      error.param === param &&
      /\S\.$/.test(error.message),
    param,
  );
}

test('white space that the vendor refuses is left out: alone in a turn or of the user, and at the very end', () => {
  const body = encodeFor({
    items: [
      text('system', ' \n'),
      text('user', 'x'),
      text('assistant', '\n\n'),
      call('a', '{}'),
      result('a', 'r'),
      text('user', ' '),
      text('assistant', 'y'),
      text('assistant', ' '),
      { kind: 'refusal', text: ' z\n' },
    ],
    tools: [tool],
  });
  assert.equal(body['system'], undefined);
  assert.deepEqual(body['messages'], [
    { role: 'user', content: [{ type: 'text', text: 'x' }] },
    { role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: 'f', input: {} }] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a', content: [{ type: 'text', text: 'r' }] }] },
    {
      role: 'assistant',
      content: [
        { type: 'text', text: 'y ' },
        { type: 'text', text: ' z' },
      ],
    },
  ]);
});

test('turns of one role between which nothing but white space stood are one', () => {
  const { messages } = encodeFor({ items: [text('user', 'a'), text('assistant', ' '), text('user', 'b')] });
  assert.deepEqual(messages, [
    {
      role: 'user',
      content: [
        { type: 'text', text: 'a' },
        { type: 'text', text: 'b' },
      ],
    },
  ]);
});

test('thinking that led to nothing goes: the vendor takes no assistant message that ends in it', () => {
  const thought = (value: string, form?: string): Item => ({
    kind: 'reasoning',
    summary: ['hm'],
    opaque: { owner, value, ...(form === undefined ? {} : { form }) },
  });
  const { messages } = encodeFor({
    items: [
      ...[text('user', 'a'), thought('sig 1'), thought('data', 'redacted'), text('user', 'b')],
      ...[thought('sig 2'), text('assistant', 'c'), thought('sig 3'), text('user', 'd')],
    ],
  });
  assert.deepEqual(messages, [
    {
      role: 'user',
      content: [
        { type: 'text', text: 'a' },
        { type: 'text', text: 'b' },
      ],
    },
    {
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: 'hm', signature: 'sig 2' },
        { type: 'text', text: 'c' },
      ],
    },
    { role: 'user', content: [{ type: 'text', text: 'd' }] },
  ]);
});

test('the signature that another gateway says behind a call or a text stays, though the message ends in it', () => {
  const sealed = (summary: readonly string[], value: string): Item => ({
    kind: 'reasoning',
    summary,
    opaque: { owner, value },
  });
  const { messages } = encodeFor({
    items: [
      ...[text('user', 'a'), text('assistant', 'b'), sealed([], 'mz2.text')],
      ...[text('user', 'c'), call('1', '{}'), sealed([], 'mz2.call'), result('1', 'r')],
      ...[sealed([], 'mz2.cut'), text('user', 'd'), text('assistant', 'e'), sealed(['hm'], 'mz2.cut'), text('user', 'f')],
    ],
    tools: [tool],
  });
  const said = messages as { role: string; content: { type: string; signature?: string }[] }[];
  assert.deepEqual(
    said.map(({ content }) => content.map(({ type, signature }) => signature ?? type)),
    [['text'], ['text', 'mz2.text'], ['text'], ['tool_use', 'mz2.call'], ['tool_result', 'text'], ['text'], ['text']],
  );
});

test('a request of empty text is refused at its path: the vendor takes no empty block', () => {
  refused({ items: [{ ...text('user', ''), at: 'prompt' }] }, 'prompt');
  refused({ dialect: 'responses', items: [] }, 'input');
  refused({ dialect: 'chat', items: [] }, 'messages');
});

test('system text is hoisted; what comes later stays in its place, marked', () => {
  const body = encodeFor({
    items: [text('system', 'A'), text('developer', 'B'), text('user', 'x'), text('assistant', 'y'), text('developer', 'C')],
  });
  assert.deepEqual(body['system'], [
    { type: 'text', text: 'A' },
    { type: 'text', text: 'B' },
  ]);
  assert.deepEqual(body['messages'], [
    { role: 'user', content: [{ type: 'text', text: 'x' }] },
    { role: 'assistant', content: [{ type: 'text', text: 'y' }] },
    { role: 'user', content: [{ type: 'text', text: '<system_message>\nC\n</system_message>' }] },
  ]);
});

test('results of one turn are together, first, and once', () => {
  const items = [
    text('user', 'go'),
    call('a', '{"n":1.0}'),
    call('b', ''),
    text('user', 'wait'),
    result('b', 'B'),
    result('a', 'old'),
    result('a', 'A'),
  ];
  const block = (id: string, said: string) => ({ type: 'tool_result', tool_use_id: id, content: [{ type: 'text', text: said }] });
  assert.deepEqual(encodeFor({ items })['messages'], [
    { role: 'user', content: [{ type: 'text', text: 'go' }] },
    {
      role: 'assistant',
      content: [
        { type: 'tool_use', id: 'a', name: 'f', input: { n: 1 } },
        { type: 'tool_use', id: 'b', name: 'f', input: {} },
      ],
    },
    { role: 'user', content: [block('b', 'B'), block('a', 'A'), { type: 'text', text: 'wait' }] },
  ]);
  assert.match(messagesUpstream.encodeRequest(canonical({ items }), target()).body, /"input":\{"n":1\.0\}/);
});

test('call ids that this wire refuses become others, the same on both sides', () => {
  const { messages } = encodeFor({ items: [...hi, call('fn:0|x', '{}'), result('fn:0|x', 'r')] }) as {
    messages: { content: Record<string, string>[] }[];
  };
  const id = messages[1]?.content[0]?.['id'];
  assert.match(id ?? '', /^[a-zA-Z0-9_-]{1,64}$/);
  assert.equal(messages[2]?.content[0]?.['tool_use_id'], id);
});

test('an id that the calls of several turns share is another one in each, since the vendor takes none twice', () => {
  const turns = [call('call_0', '{"n":1}'), result('call_0', 'one'), call('call_0', '{"n":2}'), result('call_0', 'two')];
  const { messages } = encodeFor({ items: [...hi, ...turns] }) as { messages: { content: Record<string, string>[] }[] };
  const ids = messages.slice(1).map(({ content }) => content[0]?.['id'] ?? content[0]?.['tool_use_id']);
  assert.equal(ids[0], 'call_0');
  assert.equal(ids[1], 'call_0');
  assert.match(ids[2] ?? '', /^call_0_2_[0-9a-f]{12}$/);
  assert.equal(ids[3], ids[2]);
});

test('T8: nothing and null are no arguments', () => {
  for (const input of ['', ' ', 'null', ' null\n']) {
    const { body } = messagesUpstream.encodeRequest(canonical({ items: [...hi, call('a', input), result('a', 'r')] }), target());
    assert.match(body, /"name":"f","input":\{\}/, input);
  }
});

test('arguments that are no JSON object are refused by the path of their call', () => {
  for (const input of ['{"x', '[]', '"s"', 'nullx']) refused({ items: [...hi, call('a', input)] }, 'call a');
});

test('custom tools: object schema and JSON arguments, else refused or lowered', () => {
  const schema = { type: 'object', properties: {} };
  const custom = (more: object): Tool => ({ kind: 'custom', tool: { name: 'c' }, at: 'tools[0]', ...more });
  const called = (input: string) => call('a', input, { toolType: 'custom', tool: { name: 'c' } });
  const items = (input: string) => [...hi, called(input), result('a', 'r', { toolType: 'custom' })];
  const body = encodeFor({ tools: [custom({ inputSchema: schema })], items: items('{"x":1}') });
  assert.deepEqual(body['tools'], [{ name: 'c', input_schema: schema }]);
  refused({ tools: [custom({ inputSchema: schema })], items: items('free') }, 'call a');
  refused({ tools: [custom({ inputSchema: { type: 'array' } })], items: hi }, 'tools[0].input_schema');
  refused({ tools: [custom({})], items: hi }, 'tools[0]');
  const lowered = encodeFor({ tools: [custom({})], items: items('free') }, { options: { lowerCustomTools: true } });
  assert.match(JSON.stringify(lowered), /"input":\{"input":"free"\}/);
});

test('tool choice', () => {
  const choice = (parts: Partial<CanonicalRequest>) => encodeFor({ items: hi, tools: [tool], ...parts })['tool_choice'];
  assert.equal(choice({}), undefined);
  assert.deepEqual(choice({ toolChoice: { mode: 'required' } }), { type: 'any' });
  assert.deepEqual(choice({ toolChoice: { mode: 'tool', toolType: 'function', tool: { name: 'f' } } }), {
    type: 'tool',
    name: 'f',
  });
  assert.deepEqual(choice({ parallelToolCalls: false }), { type: 'auto', disable_parallel_tool_use: true });
  assert.deepEqual(choice({ parallelToolCalls: false, toolChoice: { mode: 'none' } }), { type: 'none' });
  assert.equal(choice({ parallelToolCalls: false, tools: [] }), undefined);
  refused({ items: hi, toolChoice: { mode: 'required' } }, 'tool_choice');
  refused(
    { items: hi, tools: [tool], toolChoice: { mode: 'native', dialect: 'responses', body: { type: 'web_search' } } },
    'tool_choice',
  );
  const native: Tool = { kind: 'native', dialect: 'responses', type: 'web_search', body: { type: 'web_search' }, at: 'tools[0]' };
  assert.equal(encodeFor({ items: hi, tools: [native] })['tools'], undefined);
  const allowed = { mode: 'allowed', require: true, tools: [{ name: 'g' }] } as const;
  const both = encodeFor({ items: hi, tools: [tool, { ...tool, tool: { name: 'g' } }], toolChoice: allowed });
  assert.deepEqual([both['tools'], both['tool_choice']], [[{ name: 'g', input_schema: { type: 'object' } }], { type: 'any' }]);
});

test('namespaced tools get unique names that come back', () => {
  const named = (namespace: string): Tool => ({ ...tool, tool: { name: 'run', namespace } });
  const { body, toolNames } = messagesUpstream.encodeRequest(canonical({ items: hi, tools: [named('a'), named('b')] }), target());
  const names = JSON.parse(body).tools.map((one: { name: string }) => one.name);
  assert.equal(new Set(names).size, 2);
  assert.deepEqual(
    names.map((name: string) => toolNames.fromWire(name)),
    [
      { name: 'run', namespace: 'a' },
      { name: 'run', namespace: 'b' },
    ],
  );
});

test('reasoning control', () => {
  const control = (
    reasoning: CanonicalRequest['reasoning'],
    parts: Partial<CanonicalRequest> = {},
    facts: Target['facts'] = {},
  ) => {
    const body = encodeFor({ items: hi, ...(reasoning === undefined ? {} : { reasoning }), ...parts }, { facts });
    return [body['thinking'], body['output_config']];
  };
  const budget = { thinking: 'budget' } as const;
  assert.deepEqual(control(undefined), [undefined, undefined]);
  assert.deepEqual(control({ summary: 'auto' }), [undefined, undefined]);
  assert.deepEqual(control({ effort: 'none' }), [{ type: 'disabled' }, undefined]);
  assert.deepEqual(control({ effort: 'minimal' }), [{ type: 'adaptive' }, undefined]);
  assert.deepEqual(control({ effort: 'xhigh', summary: 'auto' }), [
    { type: 'adaptive', display: 'summarized' },
    { effort: 'xhigh' },
  ]);
  assert.deepEqual(control({ budget: 9000 }), [{ type: 'adaptive' }, { effort: 'high' }]);
  // Claude up to 4.6 has no `xhigh`, whether the client says it or its budget stands for it.
  const upTo46 = { noXhighEffort: true } as const;
  for (const reasoning of [{ effort: 'xhigh' }, { budget: 20_000 }])
    assert.deepEqual(control(reasoning, {}, upTo46), [{ type: 'adaptive' }, { effort: 'high' }]);
  assert.deepEqual(control({ effort: 'max' }, {}, upTo46), [{ type: 'adaptive' }, { effort: 'max' }]);
  assert.deepEqual(control({ effort: 'high' }, {}, budget), [{ type: 'enabled', budget_tokens: 16384 }, undefined]);
  assert.deepEqual(control({ effort: 'high' }, { maxOutputTokens: 2000 }, budget), [
    { type: 'enabled', budget_tokens: 1999 },
    undefined,
  ]);
  assert.deepEqual(control({ effort: 'high' }, { maxOutputTokens: 1000 }, budget), [{ type: 'disabled' }, undefined]);
  const begun = { items: [...hi, text('assistant', 'Once')] };
  assert.deepEqual(control({ effort: 'high' }, begun, budget), [{ type: 'disabled' }, undefined]);
  assert.deepEqual(control({ budget: 20000 }, {}, { ...budget, maxThinkingBudget: 8000 }), [
    { type: 'enabled', budget_tokens: 8000 },
    undefined,
  ]);
  assert.deepEqual(control({ effort: 'low' }, { tools: [tool], toolChoice: { mode: 'required' } }), [
    undefined,
    { effort: 'low' },
  ]);
});

test('caps, sampling, format, user', () => {
  const body = encodeFor({
    items: hi,
    maxOutputTokens: 5,
    temperature: 1.5,
    topK: 3,
    stop: ['x'],
    user: 'u',
    seed: 1,
    stream: true,
    format: { type: 'json_schema', name: 'n', strict: true, schema: { type: 'object', properties: {} } },
  });
  assert.deepEqual(body, {
    model: 'up-model',
    max_tokens: 5,
    messages: [{ role: 'user', content: [{ type: 'text', text: 'hi' }] }],
    temperature: 1,
    top_k: 3,
    stop_sequences: ['x'],
    output_config: { format: { type: 'json_schema', schema: { type: 'object', properties: {}, additionalProperties: false } } },
    metadata: { user_id: 'u' },
    stream: true,
  });
  assert.equal(encodeFor({ items: hi })['max_tokens'], 128000);
});

test('sampling gives way to the thinking that was asked for, where the vendor takes only its own', () => {
  const sampling = (parts: Partial<CanonicalRequest>, facts: ModelFacts = {}, without: readonly Refusable[] = []) => {
    const request = canonical({ items: hi, ...parts });
    const { body, losses } = messagesUpstream.encodeRequest(request, target({ facts, without: new Set(without) }));
    const { temperature, top_p, top_k } = JSON.parse(body);
    return [temperature, top_p, top_k, losses.filter((feature) => /temperature|top_k/.test(feature))];
  };
  const asked = { temperature: 0.2, topP: 0.5, topK: 3 };
  const lost = [undefined, undefined, undefined, ['temperature, top_p', 'top_k']];
  assert.deepEqual(sampling({ ...asked, reasoning: { effort: 'high' } }), lost);
  assert.deepEqual(sampling({ ...asked, reasoning: { effort: 'high' } }, { thinking: 'budget' }), lost);
  assert.deepEqual(sampling({ ...asked, reasoning: { effort: 'none' } }), [0.2, 0.5, 3, []]);
  assert.deepEqual(sampling(asked), [0.2, 0.5, 3, []]);
  assert.deepEqual(sampling({ temperature: 1, topP: 0.95, reasoning: { effort: 'high' } }), [1, 0.95, undefined, []]);
  const forced = { tools: [tool], toolChoice: { mode: 'required' } } as const;
  assert.deepEqual(sampling({ ...asked, ...forced, reasoning: { effort: 'high' } }), [0.2, 0.5, 3, []]);
  // Models after Claude 4.6 refuse the rest, thinking or not.
  assert.deepEqual(sampling(asked, { fixedSampling: true }), lost);
  assert.deepEqual(sampling({ temperature: 1, topP: 0.99 }, { fixedSampling: true }), [1, 0.99, undefined, []]);
  // An upstream that has refused both together gets one: what is as the vendor has it goes, else top_p.
  const one = (parts: Partial<CanonicalRequest>, facts?: ModelFacts) => sampling(parts, facts, ['both_samplings']);
  assert.deepEqual(one(asked), [0.2, undefined, 3, ['temperature, top_p']]);
  assert.deepEqual(one({ temperature: 1.7, topP: 0.5 }), [undefined, 0.5, undefined, ['temperature, top_p']]);
  assert.deepEqual(one({ temperature: 1, topP: 0.5 }), [undefined, 0.5, undefined, []]);
  assert.deepEqual(one({ temperature: 0.2, topP: 1 }), [0.2, undefined, undefined, []]);
  assert.deepEqual(one({ temperature: 0.2 }), [0.2, undefined, undefined, []]);
  assert.deepEqual(one({ topP: 0.2 }), [undefined, 0.2, undefined, []]);
  const thinks = { temperature: 1, topP: 0.95, reasoning: { effort: 'high' } };
  assert.deepEqual(one(thinks), [undefined, 0.95, undefined, []]);
  assert.deepEqual(one({ temperature: 1, topP: 0.99 }, { fixedSampling: true }), [undefined, 0.99, undefined, []]);
});

test('media', () => {
  const block = (media: Omit<Media, 'at'>) => {
    const item: Item = { kind: 'media', role: 'user', media: { ...media, at: 'here' } };
    const { messages } = encodeFor({ items: [item] }) as { messages: { content: unknown[] }[] };
    return messages[0]?.content[0];
  };
  const base64 = Buffer.from('é').toString('base64');
  assert.deepEqual(
    block({ type: 'file', filename: 'a.pdf', source: { from: 'inline', mime: 'application/pdf', data: 'JVBE' } }),
    {
      type: 'document',
      source: { type: 'base64', media_type: 'application/pdf', data: 'JVBE' },
      title: 'a.pdf',
    },
  );
  assert.deepEqual(block({ type: 'file', source: { from: 'inline', mime: 'text/plain', data: base64 } }), {
    type: 'document',
    source: { type: 'text', media_type: 'text/plain', data: 'é' },
  });
  const pdf = { from: 'inline', mime: 'application/octet-stream', data: 'JVBERi0xLjQ=' } as const;
  assert.deepEqual(block({ type: 'file', source: pdf }), {
    type: 'document',
    source: { type: 'base64', media_type: 'application/pdf', data: pdf.data },
  });
  assert.deepEqual(block({ type: 'image', source: { from: 'url', url: 'data:image/webp;base64,UklG' } }), {
    type: 'image',
    source: { type: 'base64', media_type: 'image/webp', data: 'UklG' },
  });
  assert.deepEqual(block({ type: 'file', source: { from: 'reference', id: 'file_1' } }), {
    type: 'document',
    source: { type: 'file', file_id: 'file_1' },
  });
  const refusedMedia = (media: Omit<Media, 'at'>) =>
    refused({ items: [{ kind: 'media', role: 'user', media: { ...media, at: 'here' } }] }, 'here');
  refusedMedia({ type: 'audio', source: { from: 'inline', mime: 'audio/wav', data: '' } });
  const latin = Buffer.from([0x61, 0xe9]).toString('base64');
  refusedMedia({ type: 'file', source: { from: 'inline', mime: 'text/csv', data: latin } });
});

test('what the assistant made stands behind a label that names it, since its own content holds neither', () => {
  const made = (type: Media['type'], mime: string): Item => ({
    kind: 'media',
    role: 'assistant',
    media: { type, source: { from: 'inline', mime, data: 'eHk=' } },
  });
  const { messages } = encodeFor({ items: [...hi, made('image', 'image/png'), made('file', 'application/pdf')] });
  assert.deepEqual(
    (messages as { content: { type: string; text?: string }[] }[]).flatMap(({ content }) =>
      content.map(({ type, text: said }) => said ?? type),
    ),
    ['hi', '[Image made by the assistant]', 'image', '[File made by the assistant]', 'document'],
  );
});

test('only opaque reasoning of this owner is replayed', () => {
  const reasoning = (opaque?: Opaque): Item => ({
    kind: 'reasoning',
    summary: ['t'],
    ...(opaque === undefined ? {} : { opaque }),
  });
  const items = [
    ...hi,
    reasoning({ owner, value: 'sig' }),
    reasoning({ owner, value: 'D', form: 'redacted' }),
    reasoning({ owner: { ...owner, channelType: 'responses' }, value: 'no' }),
    reasoning({ owner: { client: 'responses' }, value: 'no' }),
    reasoning(),
    text('assistant', 'x'),
  ];
  const said = (to: Partial<Target>) => (encodeFor({ items }, to) as { messages: { content: unknown[] }[] }).messages[1]?.content;
  assert.deepEqual(said({}), [
    { type: 'thinking', thinking: 't', signature: 'sig' },
    { type: 'redacted_thinking', data: 'D' },
    { type: 'text', text: 'x' },
  ]);
  assert.deepEqual(said({ without: new Set(['opaque'] as const) }), [{ type: 'text', text: 'x' }]);
});

test('at most four cache breakpoints, the latest ones', () => {
  const breakpoint = {};
  const items = ['a', 'b', 'c', 'd', 'e'].map((said) => text('user', said, { breakpoint }));
  const { messages } = encodeFor({ items }) as { messages: { content: object[] }[] };
  assert.deepEqual(
    messages[0]?.content.map((block) => 'cache_control' in block),
    [false, true, true, true, true],
  );
});
