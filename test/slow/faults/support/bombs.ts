/**
 * Request bodies that are small to write and expensive to read: many of one thing, one thing that is long, things inside things.
 * Each is a legal shape of its dialect, or nearly, so that it gets past the first check.
 */
import type { Dialect } from '../../../../src/codecs/canonical/dialect.ts';

export interface Bomb {
  readonly name: string;
  readonly dialect: Dialect;
  readonly body: object;
}

const many = <T>(count: number, make: (index: number) => T): T[] => Array.from({ length: count }, (_, index) => make(index));

/** A JSON text nested `depth` deep: objects, or arrays inside one object. */
export function nested(depth: number, kind: 'object' | 'array' = 'object'): string {
  return kind === 'object' ? `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}` : `{"a":${'['.repeat(depth)}${']'.repeat(depth)}}`;
}

/** `count` elements where it counts elements, about `count * 30` characters where it counts text. */
export function requestBombs(count: number): Bomb[] {
  const long = 'a'.repeat(count * 30);
  const escapes = '\\"'.repeat(count * 10);
  const percents = `data:,${'%41a'.repeat(count * 8)}`;
  const spaces = `data:image/png;${' '.repeat(count * 10)};base64,AAAA`;
  const semicolons = `data:image/png${';'.repeat(count * 10)}base64,AAAA`;
  const schema = { type: 'object', properties: Object.fromEntries(many(count, (n) => [`p${n}`, { type: 'string' }])) };
  const refs = {
    type: 'object',
    $defs: Object.fromEntries(
      many(Math.min(count, 2000), (n) => [`d${n}`, { anyOf: [{ $ref: `#/$defs/d${n + 1}` }, { $ref: `#/$defs/d${n + 1}` }] }]),
    ),
    properties: { a: { $ref: '#/$defs/d0' } },
  };
  const toolNames = many(count, (n) => `tool name ${n} ${'x'.repeat(70)}`);
  const chat = (name: string, body: object): Bomb => ({ name, dialect: 'chat', body: { model: 'm', ...body } });
  const messages = (name: string, body: object): Bomb => ({
    name,
    dialect: 'messages',
    body: { model: 'm', max_tokens: 9, ...body },
  });
  const responses = (name: string, body: object): Bomb => ({ name, dialect: 'responses', body: { model: 'm', ...body } });
  const user = (content: unknown) => [{ role: 'user', content }];
  const callsThenResults = many(count, (n) => ({ id: `call_${n}`, type: 'function', function: { name: 'f', arguments: '{}' } }));
  const deep = nested(count);
  const deepArray = nested(count, 'array');

  return [
    chat('many messages', { messages: many(count, (n) => ({ role: n % 2 === 0 ? 'user' : 'assistant', content: 'x' })) }),
    chat('many system messages', { messages: [...many(count, () => ({ role: 'system', content: 'x' })), ...user('x')] }),
    chat('many parts', { messages: user(many(count, () => ({ type: 'text', text: 'x' }))) }),
    chat('many images', {
      messages: user(many(count, () => ({ type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } }))),
    }),
    chat('many calls and results', {
      messages: [
        ...user('x'),
        { role: 'assistant', content: null, tool_calls: callsThenResults },
        ...callsThenResults.map(({ id }) => ({ role: 'tool', tool_call_id: id, content: 'x' })),
      ],
    }),
    chat('many calls in turn', {
      messages: [
        ...user('x'),
        ...callsThenResults.flatMap((call) => [
          { role: 'assistant', content: null, tool_calls: [call] },
          { role: 'tool', tool_call_id: call.id, content: 'x' },
        ]),
      ],
    }),
    chat('many tools', {
      messages: user('x'),
      tools: many(count, (n) => ({ type: 'function', function: { name: `t${n}`, parameters: { type: 'object' } } })),
    }),
    chat('many long tool names that collide', {
      messages: user('x'),
      tools: toolNames.map((name) => ({ type: 'function', function: { name, parameters: { type: 'object' } } })),
    }),
    chat('wide schema', { messages: user('x'), tools: [{ type: 'function', function: { name: 'f', parameters: schema } }] }),
    chat('doubling references', {
      messages: user('x'),
      tools: [{ type: 'function', function: { name: 'f', parameters: refs } }],
    }),
    chat('doubling references in the format', {
      messages: user('x'),
      response_format: { type: 'json_schema', json_schema: { name: 'f', schema: refs } },
    }),
    chat('deep arguments', {
      messages: [
        ...user('x'),
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: deep } }],
        },
        { role: 'tool', tool_call_id: 'c', content: deep },
      ],
    }),
    chat('deep arrays in arguments', {
      messages: [
        ...user('x'),
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: deepArray } }],
        },
        { role: 'tool', tool_call_id: 'c', content: 'x' },
      ],
    }),
    chat('long arguments', {
      messages: [
        ...user('x'),
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: JSON.stringify({ a: long + escapes }) } }],
        },
        { role: 'tool', tool_call_id: 'c', content: long },
      ],
    }),
    chat('arguments that are no JSON', {
      messages: [
        ...user('x'),
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: escapes } }],
        },
        { role: 'tool', tool_call_id: 'c', content: escapes },
      ],
    }),
    chat('long text', { messages: user(long) }),
    chat('many reasoning details', {
      messages: [
        ...user('x'),
        {
          role: 'assistant',
          content: 'x',
          reasoning_details: many(count, (n) => ({ type: 'reasoning.text', text: 'x', index: n, id: `r${n}` })),
        },
      ],
    }),
    chat('percent data URI', { messages: user([{ type: 'image_url', image_url: { url: percents } }]) }),
    chat('spaces in a data URI', { messages: user([{ type: 'image_url', image_url: { url: spaces } }]) }),
    chat('semicolons in a data URI', { messages: user([{ type: 'image_url', image_url: { url: semicolons } }]) }),
    chat('file with a long name', {
      messages: user([{ type: 'file', file: { filename: `${'?#.'.repeat(count * 10)}`, file_data: percents } }]),
    }),
    chat('long stop list', { messages: user('x'), stop: many(count, (n) => `s${n}`) }),
    chat('many metadata keys', { messages: user('x'), metadata: Object.fromEntries(many(count, (n) => [`k${n}`, 'v'])) }),
    messages('many messages', { messages: many(count, (n) => ({ role: n % 2 === 0 ? 'user' : 'assistant', content: 'x' })) }),
    messages('many blocks', { messages: user(many(count, () => ({ type: 'text', text: 'x' }))) }),
    messages('many system blocks', { system: many(count, () => ({ type: 'text', text: 'x' })), messages: user('x') }),
    messages('many thinking blocks', {
      messages: [
        ...user('x'),
        { role: 'assistant', content: many(count, () => ({ type: 'thinking', thinking: 'x', signature: 'c2ln' })) },
        ...user('y'),
      ],
    }),
    messages('many tool uses', {
      messages: [
        ...user('x'),
        { role: 'assistant', content: many(count, (n) => ({ type: 'tool_use', id: `t${n}`, name: 'f', input: {} })) },
        ...user(many(count, (n) => ({ type: 'tool_result', tool_use_id: `t${n}`, content: 'x' }))),
      ],
    }),
    messages('many tools', { messages: user('x'), tools: toolNames.map((name) => ({ name, input_schema: { type: 'object' } })) }),
    messages('wide schema', { messages: user('x'), tools: [{ name: 'f', input_schema: schema }] }),
    messages('percent document', {
      messages: user([{ type: 'document', source: { type: 'text', media_type: 'text/plain', data: long } }]),
    }),
    responses('many items', { input: many(count, () => ({ role: 'user', content: 'x' })) }),
    responses('many parts', { input: user(many(count, () => ({ type: 'input_text', text: 'x' }))) }),
    responses('many calls', {
      input: [
        ...user('x'),
        ...many(count, (n) => ({ type: 'function_call', call_id: `c${n}`, name: 'f', arguments: '{}' })),
        ...many(count, (n) => ({ type: 'function_call_output', call_id: `c${n}`, output: 'x' })),
      ],
    }),
    responses('deep arguments', {
      input: [
        ...user('x'),
        { type: 'function_call', call_id: 'c', name: 'f', arguments: deep },
        { type: 'function_call_output', call_id: 'c', output: deep },
      ],
    }),
    responses('custom call with a long input', {
      input: [
        ...user('x'),
        { type: 'custom_tool_call', call_id: 'c', name: 'f', input: escapes },
        { type: 'custom_tool_call_output', call_id: 'c', output: escapes },
      ],
      tools: [{ type: 'custom', name: 'f' }],
    }),
    responses('many reasoning items', {
      input: [
        ...user('x'),
        ...many(count, (n) => ({ type: 'reasoning', id: `rs_${n}`, summary: [{ type: 'summary_text', text: 'x' }] })),
      ],
    }),
    responses('many envelopes', {
      input: [
        ...user('x'),
        ...many(count, (n) => ({ type: 'reasoning', id: `rs_${n}`, summary: [], encrypted_content: `mz2.${n}AAAA` })),
      ],
    }),
    responses('many summary parts', {
      input: [...user('x'), { type: 'reasoning', id: 'rs', summary: many(count, () => ({ type: 'summary_text', text: 'x' })) }],
    }),
    responses('many tools', {
      input: 'x',
      tools: toolNames.map((name) => ({ type: 'function', name, parameters: { type: 'object' } })),
    }),
    responses('namespaces of tools', {
      input: 'x',
      tools: [
        {
          type: 'namespace',
          name: 'n',
          tools: many(count, (n) => ({ type: 'function', name: `t${n}`, parameters: { type: 'object' } })),
        },
      ],
    }),
    responses('wide schema in the format', { input: 'x', text: { format: { type: 'json_schema', name: 'f', schema } } }),
    responses('file of escapes', {
      input: user([{ type: 'input_file', filename: 'a.txt', file_data: percents }]),
    }),
  ];
}
