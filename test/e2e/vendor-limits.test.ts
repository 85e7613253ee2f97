/** What one vendor takes and the next refuses, asked through the gateway: each simulator judges as strictly as its vendor. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type TestGateway, testGateway } from '../support/test-gateway.ts';
import { formsConfig, startVendors, upstreamForms } from '../support/upstream-forms.ts';

const simulator = await startVendors({ pace: { cut: 'packet' } });
test.after(() => simulator.close());
test.beforeEach(() => simulator.reset());

const FORMS = upstreamForms(import.meta.filename);
const CONFIG = formsConfig(FORMS, simulator.url);

async function good(gateway: TestGateway, path: string, body: object): Promise<Record<string, unknown>> {
  for (const stream of [false, true]) {
    const answer = await gateway.post(path, { ...body, stream });
    const text = await answer.text();
    assert.equal(answer.status, 200, text);
    assert.doesNotMatch(text, /"error":\{|event: error/);
  }
  return JSON.parse(simulator.requests.at(-1)?.text ?? '{}');
}

const CALL = { id: 'call_1', type: 'function', function: { name: 'look', arguments: '{"at":"sky"}' } };
const HISTORY = [
  { role: 'user', content: 'what colour?' },
  { role: 'assistant', content: null, tool_calls: [CALL] },
  { role: 'tool', tool_call_id: 'call_1', content: 'blue' },
  { role: 'user', content: 'thanks, now sum up' },
];
const INPUT = [
  { role: 'user', content: 'what colour?' },
  { type: 'function_call', call_id: 'call_1', name: 'look', arguments: '{"at":"sky"}' },
  { type: 'function_call_output', call_id: 'call_1', output: 'blue' },
  { role: 'user', content: 'thanks, now sum up' },
];

for (const { name: model, type } of FORMS) {
  test(`a handoff to an agent without tools goes on over ${model}: its history has calls, its request no tools`, async () => {
    await using gateway = await testGateway(CONFIG);
    for (const [path, body] of [
      ['/v1/chat/completions', { model, messages: HISTORY }],
      ['/v1/responses', { model, input: INPUT }],
    ] as const) {
      const sent = await good(gateway, path, body);
      if (type !== 'messages') continue;
      assert.deepEqual(sent['tool_choice'], { type: 'none' });
      const open = { type: 'object', properties: {}, additionalProperties: true };
      assert.deepEqual(sent['tools'], [{ name: 'look', input_schema: open }]);
    }
  });

  test(`white space, temperatures, stops, small caps and an answer that begins go over ${model}`, async () => {
    await using gateway = await testGateway(CONFIG);
    const messages = [
      { role: 'system', content: ' \n' },
      { role: 'assistant', content: 'Hello, what may I do?' },
      { role: 'user', content: 'say' },
      { role: 'assistant', content: ' \n' },
      { role: 'user', content: 'more' },
    ];
    const sent = await good(gateway, '/v1/chat/completions', {
      model,
      messages,
      temperature: 1.7,
      stop: ['\n\n', 'END'],
      max_completion_tokens: 3,
    });
    if (type === 'messages') assert.deepEqual([sent['temperature'], sent['stop_sequences']], [1, ['END']]);
  });

  test(`formats and strict tools as the SDKs of other vendors write them go over ${model}`, async () => {
    await using gateway = await testGateway(CONFIG);
    const schema = {
      type: 'object',
      properties: { age: { type: 'integer', minimum: 0 }, mail: { type: ['string', 'null'], maxLength: 9 } },
      required: ['age', 'mail'],
    };
    const open = { type: 'object', properties: { any: {}, map: { type: 'object', additionalProperties: { type: 'string' } } } };
    for (const one of [schema, open]) {
      const sent = await good(gateway, '/v1/responses', {
        model,
        input: 'parse',
        text: { format: { type: 'json_schema', name: 'n', schema: one } },
        // Who asks OpenAI for a strict function closes its objects.
        tools: [
          {
            type: 'function',
            name: 'f',
            ...(one === schema ? { parameters: { ...one, additionalProperties: false }, strict: true } : { parameters: one }),
          },
        ],
      });
      if (type !== 'messages') continue;
      const format = (sent['output_config'] as { format?: { schema: object } } | undefined)?.format;
      if (one === schema) assert.match(JSON.stringify(format?.schema), /\{minimum: 0\}/);
      else assert.match(JSON.stringify(sent['system']), /fits this JSON Schema/);
    }
    const json = { model, messages: [{ role: 'user', content: 'JSON please' }], response_format: { type: 'json_object' } };
    const sent = await good(gateway, '/v1/chat/completions', json);
    if (type === 'messages') assert.match(JSON.stringify(sent['system']), /one JSON object/);
  });
}

test('strict tools of a messages client: strict at OpenAI where every member is required, else without it', async () => {
  await using gateway = await testGateway(CONFIG);
  const tool = (required: string[]) => ({
    name: 'f',
    strict: true,
    input_schema: { type: 'object', properties: { a: { type: 'string' } }, required, additionalProperties: false },
  });
  for (const { name: model } of FORMS.filter(({ type }) => type === 'chat_completion' || type === 'responses')) {
    for (const [required, strict] of [
      [['a'], true],
      [[], undefined],
    ] as const) {
      const body = { model, max_tokens: 50, messages: [{ role: 'user', content: 'x' }], tools: [tool([...required])] };
      const sent = await good(gateway, '/v1/messages', body);
      const [first] = sent['tools'] as { strict?: boolean; function?: { strict?: boolean } }[];
      assert.equal(first?.function === undefined ? first?.strict : first.function.strict, strict);
    }
  }
});

test('messages to messages: call ids of other upstreams and white space are made what the vendor takes', async () => {
  await using gateway = await testGateway(CONFIG);
  const call = (id: string) => ({ type: 'tool_use', id, name: 'look', input: {} });
  const result = (id: string) => ({
    type: 'tool_result',
    tool_use_id: id,
    content: [
      { type: 'text', text: ' ' },
      { type: 'text', text: 'r' },
    ],
  });
  const long = 'x'.repeat(200);
  const sent = await good(gateway, '/v1/messages', {
    model: 'messages',
    max_tokens: 50,
    tools: [{ name: 'look', input_schema: { type: 'object' } }],
    messages: [
      { role: 'user', content: 'x' },
      { role: 'assistant', content: [{ type: 'text', text: '\n' }, call('functions.look:0'), call(long)] },
      { role: 'user', content: [result('functions.look:0'), result(long)] },
      { role: 'assistant', content: [call('functions.look:0')] },
      { role: 'user', content: [result('functions.look:0')] },
    ],
  });
  const blocks = (sent['messages'] as { content: string | { type: string; id?: string; tool_use_id?: string }[] }[]).flatMap(
    ({ content }) => (typeof content === 'string' ? [] : content),
  );
  const ids = blocks.flatMap(({ id }) => id ?? []);
  assert.equal(new Set(ids).size, 3);
  for (const id of ids) assert.match(id, /^[a-zA-Z0-9_-]{1,64}$/);
  assert.deepEqual(
    blocks.flatMap(({ tool_use_id: id }) => id ?? []),
    ids,
  );
  assert.ok(!blocks.some(({ type }) => type === 'text'));
});

for (const { name: model, type } of FORMS) {
  test(`a compaction that nobody can read is refused at its path, over ${model}`, async () => {
    await using gateway = await testGateway(formsConfig(FORMS, simulator.url, () => ({ compaction: 'summary' })));
    const user = { role: 'user', content: 'x' };
    const compacted = await gateway.post('/v1/responses/compact', { model, input: [user, { role: 'assistant', content: 'y' }] });
    const { output }: { output: { type: string; encrypted_content: string }[] } = JSON.parse(await compacted.text());
    const item = output.at(-1);
    assert.ok(item?.type === 'compaction');
    const sealed = item.encrypted_content;
    const refusal = async (more: object) => {
      const input = [user, { type: 'compaction', ...more }, user];
      const answer = await gateway.post('/v1/responses', { model, input });
      const { error }: { error?: { param: string } } = JSON.parse(await answer.text());
      return [answer.status, error?.param];
    };
    assert.deepEqual(await refusal({ encrypted_content: sealed }), [200, undefined]);
    for (const encrypted_content of [`${sealed.slice(0, -6)}AAAAAA`, sealed.slice(0, 40), 'mz2.', `mz2.${'A'.repeat(200)}`])
      assert.deepEqual(await refusal({ encrypted_content }), [400, 'input[1]'], encrypted_content);
    assert.deepEqual(await refusal({}), [400, 'input[1].encrypted_content']);
    if (type === 'responses') return;
    assert.deepEqual(await refusal({ encrypted_content: null }), [400, 'input[1].encrypted_content']);
    assert.deepEqual(await refusal({ id: 'cmp_1' }), [400, 'input[1].id']);
    assert.deepEqual(await refusal({ encrypted_content: 'gAAAAAB' }), [400, 'input[1]']);
  });
}

test('an end user with a long name is one that every vendor takes', async () => {
  await using gateway = await testGateway(CONFIG);
  const named = (model: string) => ({ model, messages: [{ role: 'user', content: 'x' }], user: 'u'.repeat(300) });
  const sent = await good(gateway, '/v1/chat/completions', named('messages'));
  const again = await good(gateway, '/v1/chat/completions', named('messages'));
  const { user_id: id } = sent['metadata'] as { user_id: string };
  assert.equal(id.length, 256);
  assert.deepEqual(again['metadata'], sent['metadata']);
});

test('messages to messages: a blank turn that is left out leaves two turns of the user, which the vendor reads as one', async () => {
  await using gateway = await testGateway(CONFIG);
  const messages = ['x', ' ', 'y'].map((content, index) => ({ role: index === 1 ? 'assistant' : 'user', content }));
  const sent = await good(gateway, '/v1/messages', { model: 'messages', max_tokens: 50, messages });
  assert.equal((sent['messages'] as unknown[]).length, 2);
});

test('responses to responses: ids of items that another vendor of the protocol gave are left out once they are refused', async () => {
  await using gateway = await testGateway(CONFIG);
  const text = (value: string) => [{ type: 'output_text', text: value, annotations: [] }];
  const long = `msg_${'x'.repeat(200)}`;
  for (const { name: model } of FORMS.filter(({ type }) => type === 'responses')) {
    for (const id of [long, 'not-one-of-this-vendor']) {
      const input = [
        { role: 'user', content: 'x' },
        { type: 'message', id, role: 'assistant', content: text('a') },
        { type: 'function_call', id: 'fc_1', call_id: 'call_1', name: 'look', arguments: '{}' },
        { type: 'function_call_output', call_id: 'call_1', output: 'blue' },
      ];
      const before = simulator.requests.length;
      const sent = await good(gateway, '/v1/responses', { model, input, store: false, extra: 1.5 });
      assert.equal(simulator.requests.length - before, 4, 'each was asked again once');
      assert.deepEqual(
        sent['input'],
        input.map(({ id: _id, ...rest }: { id?: string }) => rest),
      );
      assert.deepEqual([sent['store'], sent['extra']], [false, 1.5]);
    }
    // One whose id the vendor takes is sent as it came; a reference is refused as it is.
    const ours = [
      { type: 'message', id: 'msg_1', role: 'assistant', content: text('a') },
      { role: 'user', content: 'x' },
    ];
    const before = simulator.requests.length;
    assert.deepEqual((await good(gateway, '/v1/responses', { model, input: ours }))['input'], ours);
    assert.equal(simulator.requests.length - before, 2);
    const answer = await gateway.post('/v1/responses', { model, input: ['x', { type: 'item_reference', id: long }] });
    assert.notEqual(answer.status, 200, await answer.text());
  }
});
