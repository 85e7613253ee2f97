import assert from 'node:assert/strict';
import test from 'node:test';
import type { Item, Media, ToolCallItem, ToolResultItem } from '../../../../src/codecs/canonical/item.ts';
import { isObject } from '../../../../src/codecs/canonical/json.ts';
import type { Opaque } from '../../../../src/codecs/canonical/opaque.ts';
import type { CanonicalRequest, Tool } from '../../../../src/codecs/canonical/request.ts';
import type { Target } from '../../../../src/codecs/codec.ts';
import { geminiUpstream } from '../../../../src/codecs/gemini/index.ts';
import { bodyOf, gatewayError, OWNER, requestOf, targetOf } from '../support.ts';
import { checkBody } from '../wire-rules.ts';

const user = (text: string): Item => ({ kind: 'text', role: 'user', text, citations: [] });
const model = (text: string, opaque?: Opaque): Item => ({
  kind: 'text',
  role: 'assistant',
  text,
  citations: [],
  ...(opaque === undefined ? {} : { opaque }),
});
const system = (text: string): Item => ({ kind: 'text', role: 'system', text, citations: [] });
const call = (callId: string, name: string, input: string, more: Partial<ToolCallItem> = {}): ToolCallItem => ({
  kind: 'toolCall',
  toolType: 'function',
  callId,
  tool: { name },
  input,
  at: 'messages[1].tool_calls[0]',
  ...more,
});
const result = (callId: string, text: string, more: Partial<ToolResultItem> = {}): ToolResultItem => ({
  kind: 'toolResult',
  toolType: 'function',
  callId,
  content: [{ kind: 'text', text }],
  isError: false,
  ...more,
});
const mine = (value: string, form?: string, itemId?: string): Opaque => ({
  owner: OWNER,
  value,
  ...(form === undefined ? {} : { form }),
  ...(itemId === undefined ? {} : { itemId }),
});
const other: Opaque = { owner: { ...OWNER, channelType: 'messages' }, value: 'FOREIGN' };
const SKIP = 'skip_thought_signature_validator';

function contents(items: readonly Item[], target: Partial<Target> = {}, more: Partial<CanonicalRequest> = {}): unknown {
  const request = requestOf({ items, ...more });
  const { body } = geminiUpstream.encodeRequest(request, targetOf(target));
  checkBody(body);
  return JSON.parse(body).contents;
}

function losses(members: Partial<CanonicalRequest>, target: Partial<Target> = {}): readonly string[] {
  return geminiUpstream.encodeRequest(requestOf(members), targetOf(target)).losses;
}

test('the path holds the model and the form of the call, the body neither', () => {
  const path = (name: string, stream: boolean): string =>
    geminiUpstream.encodeRequest(requestOf({ stream }), targetOf({ owner: { ...OWNER, model: name } })).path;
  assert.equal(path('gemini-x', false), '/models/gemini-x:generateContent');
  assert.equal(path('gemini-x', true), '/models/gemini-x:streamGenerateContent?alt=sse');
  assert.equal(path('models/gemini-x', false), '/models/gemini-x:generateContent');
  assert.equal(path('tunedModels/a b', false), '/tunedModels/a%20b:generateContent');
  assert.equal(path('publishers/google/models/x', true), '/publishers/google/models/x:streamGenerateContent?alt=sse');
  assert.equal(path('vendor/x?y', false), '/models/vendor%2Fx%3Fy:generateContent');
  assert.equal(path('models/../x', false), '/models/models%2F..%2Fx:generateContent');
});

test('G14: leading instructions go to systemInstruction, later ones stay in place as tagged text of the user', () => {
  const items: Item[] = [
    system('one'),
    { ...system('two'), role: 'developer' } as Item,
    user('a'),
    model('b'),
    system('three'),
    user('c'),
  ];
  const body = bodyOf({ items });
  assert.deepEqual(body['systemInstruction'], { parts: [{ text: 'one' }, { text: 'two' }] });
  assert.deepEqual(body['contents'], [
    { role: 'user', parts: [{ text: 'a' }] },
    { role: 'model', parts: [{ text: 'b' }] },
    { role: 'user', parts: [{ text: '<system_message>\nthree\n</system_message>' }, { text: 'c' }] },
  ]);
  assert.deepEqual(losses({ items }), ['system text', 'developer text', 'system text after the first turn']);
});

test('instructions lead until a turn is written: what this protocol cannot say is none', () => {
  const update: Item = { kind: 'native', dialect: 'responses', body: { type: 'additional_tools', role: 'developer', tools: [] } };
  const body = bodyOf({
    items: [system('one'), update, { kind: 'reasoning', opaque: other }, user(''), system('two'), user('a')],
  });
  assert.deepEqual(body['systemInstruction'], { parts: [{ text: 'one' }, { text: 'two' }] });
  assert.deepEqual(body['contents'], [{ role: 'user', parts: [{ text: 'a' }] }]);
});

test('G9: a history that starts with the model, or that has no turn at all, gets a first turn of the user', () => {
  assert.deepEqual(contents([model('a'), user('b')]), [
    { role: 'user', parts: [{ text: ' ' }] },
    { role: 'model', parts: [{ text: 'a' }] },
    { role: 'user', parts: [{ text: 'b' }] },
  ]);
  assert.deepEqual(contents([system('only')]), [{ role: 'user', parts: [{ text: ' ' }] }]);
});

test('G7: results of one step stand in one content in the order of the calls, matched by id', () => {
  const items = [
    user('q'),
    call('c1', 'find', '{"a":1}', { opaque: mine('S1', 'functionCall', 'c1') }),
    call('c2', 'find', '{"a":2}'),
    result('c2', 'two'),
    result('c1', 'one'),
    user('go on'),
  ];
  assert.deepEqual(contents(items), [
    { role: 'user', parts: [{ text: 'q' }] },
    {
      role: 'model',
      parts: [
        { functionCall: { id: 'c1', name: 'find', args: { a: 1 } }, thoughtSignature: 'S1' },
        { functionCall: { id: 'c2', name: 'find', args: { a: 2 } } },
      ],
    },
    {
      role: 'user',
      parts: [
        { functionResponse: { id: 'c1', name: 'find', response: { output: 'one' } } },
        { functionResponse: { id: 'c2', name: 'find', response: { output: 'two' } } },
        { text: 'go on' },
      ],
    },
  ]);
});

test('the same id in two turns pairs with the nearest call, and the last of two results counts', () => {
  const items = [
    user('q'),
    call('c', 'f', '{}'),
    result('c', 'stale'),
    result('c', 'first'),
    call('c', 'f', '{"n":2}'),
    result('c', 'second'),
  ];
  const outputs = JSON.stringify(contents(items)).match(/"output":"(\w+)"/g);
  assert.deepEqual(outputs, ['"output":"first"', '"output":"second"']);
});

test('calls without a result and results without a call are left out and named', () => {
  const items = [user('q'), call('c1', 'f', '{}'), user('never mind'), result('c9', 'lost')];
  assert.deepEqual(contents(items), [{ role: 'user', parts: [{ text: 'q' }, { text: 'never mind' }] }]);
  assert.deepEqual(losses({ items }), ['function call without a result', 'tool result without a call']);
});

test('an error is said as error, and arguments keep their spelling', () => {
  const items = [user('q'), call('c', 'f', '{"b":1.0,"2":1e3,"1":{"__proto__":0}}'), result('c', 'no', { isError: true })];
  const { body } = geminiUpstream.encodeRequest(requestOf({ items }), targetOf());
  assert.ok(body.includes('"args":{"b":1.0,"2":1e3,"1":{"__proto__":0}}'));
  assert.ok(body.includes('"response":{"error":"no"}'));
});

test('G18 T8: arguments may be nothing, null or a string that holds an object; anything else names the call', () => {
  const args = (input: string): unknown => {
    const [, turn] = contents([user('q'), call('c', 'f', input), result('c', 'r')]) as {
      parts: { functionCall: { args: unknown } }[];
    }[];
    return turn?.parts[0]?.functionCall.args;
  };
  assert.deepEqual(args(''), {});
  assert.deepEqual(args('null'), {});
  assert.deepEqual(args('"{\\"a\\":1}"'), { a: 1 });
  for (const bad of ['{"a":', '[1]', '"text"', '3']) {
    assert.throws(() => args(bad), gatewayError('unsupported_conversion', { param: 'messages[1].tool_calls[0]' }));
  }
});

test('G1: the first unsigned call of each step is marked as foreign, and stays so when the conversation goes on', () => {
  const step = (id: string, opaque?: Opaque): Item[] => [
    call(id, 'f', '{}', opaque === undefined ? {} : { opaque }),
    call(`${id}b`, 'f', '{}'),
    result(id, 'r'),
    result(`${id}b`, 'r'),
  ];
  const items = [user('q'), ...step('old'), user('next'), ...step('own', mine('S')), ...step('foreign', other)];
  const signatures = (contents(items) as { parts: { thoughtSignature?: string; functionCall?: unknown }[] }[]).flatMap(
    (content) => content.parts.filter((part) => part.functionCall !== undefined).map((part) => part.thoughtSignature),
  );
  assert.deepEqual(signatures, [SKIP, undefined, 'S', undefined, SKIP, undefined]);
});

test('G3 G4 S2: a value of another owner is never sent, and after a refusal none is', () => {
  const scoped: Opaque = { owner: { ...OWNER, scope: 'https://elsewhere.example' }, value: 'ELSEWHERE' };
  const raw: Opaque = { owner: { client: 'messages' }, value: 'RAW' };
  const thought: Item = { kind: 'reasoning', summary: ['HIDDEN'], opaque: raw };
  const items = [user('q'), model('a', scoped), thought, model('b', other), user('c')];
  const body = JSON.stringify(contents(items));
  assert.doesNotMatch(body, /ELSEWHERE|RAW|FOREIGN|thoughtSignature/);
  assert.doesNotMatch(body, /HIDDEN|"thought"/, 'the words of a dropped value go with it');
  assert.ok(losses({ items }).includes('reasoning: opaque of another owner'));

  const own = [user('q'), call('c', 'f', '{}', { opaque: mine('SECRET') }), result('c', 'r')];
  const thinking: Item = { kind: 'reasoning', summary: ['HIDDEN'], opaque: mine('SECRET', 'thought') };
  const second = JSON.stringify(contents([thinking, ...own], { without: new Set(['opaque'] as const) }));
  assert.doesNotMatch(second, /SECRET|HIDDEN/);
  assert.ok(second.includes(SKIP));
});

test('a signature returns to the piece of text that it came with', () => {
  const parts = (text: string, form: string): unknown =>
    (contents([user('q'), model(text, mine('S', form)), user('r')]) as { parts: unknown }[])[1]?.parts;
  assert.deepEqual(parts('whole', 'text'), [{ text: 'whole', thoughtSignature: 'S' }]);
  assert.deepEqual(parts('ab', 'text:2:2'), [{ text: 'ab' }, { text: '', thoughtSignature: 'S' }]);
  assert.deepEqual(parts('abc', 'text:1:2'), [{ text: 'a' }, { text: 'b', thoughtSignature: 'S' }, { text: 'c' }]);
  assert.deepEqual(parts('cut', 'text:1:9'), [{ text: 'cut', thoughtSignature: 'S' }]);
});

test('a signature that a client kept in a reasoning item finds its part again', () => {
  const items: Item[] = [
    user('q'),
    { kind: 'reasoning', summary: ['hm'], opaque: mine('T', 'thought') },
    model('text'),
    { kind: 'reasoning', opaque: mine('A', 'text') },
    call('c1', 'f', '{}'),
    { kind: 'reasoning', opaque: mine('B', 'functionCall', 'c1') },
    call('c2', 'f', '{}'),
    result('c1', '1'),
    result('c2', '2'),
    { kind: 'reasoning', opaque: mine('E', 'empty') },
  ];
  const [, said, , last] = contents(items) as { parts: unknown[] }[];
  assert.deepEqual(said?.parts, [
    { text: 'hm', thought: true, thoughtSignature: 'T' },
    { text: 'text', thoughtSignature: 'A' },
    { functionCall: { id: 'c1', name: 'f', args: {} }, thoughtSignature: 'B' },
    { functionCall: { id: 'c2', name: 'f', args: {} } },
  ]);
  assert.deepEqual(last?.parts, [{ text: '', thoughtSignature: 'E' }]);
});

test('G13: reasoning in history is thought, never text; raw reasoning stays behind', () => {
  const items: Item[] = [user('q'), { kind: 'reasoning', raw: 'RAW', summary: ['one', 'two'] }, model('a'), user('b')];
  const body = JSON.stringify(contents(items));
  assert.ok(body.includes('{"text":"one\\n\\ntwo","thought":true}'));
  assert.doesNotMatch(body, /RAW/);
  assert.deepEqual(losses({ items }), ['reasoning: raw text in history', 'reasoning: summary in history']);
});

test('G10: media of a tool result are nested in its response', () => {
  const image: Media = { type: 'image', source: { from: 'inline', mime: 'image/png', data: 'iVBORw0KGgo=' } };
  const items = [
    user('q'),
    call('c', 'shot', '{}'),
    result('c', '', {
      content: [
        { kind: 'text', text: 'here' },
        { kind: 'media', media: image },
      ],
    }),
  ];
  const [, , answer] = contents(items) as { parts: unknown[] }[];
  assert.deepEqual(answer?.parts, [
    {
      functionResponse: {
        id: 'c',
        name: 'shot',
        response: { output: 'here' },
        parts: [{ inlineData: { mimeType: 'image/png', data: 'iVBORw0KGgo=' } }],
      },
    },
  ]);
});

test('G10: media that a response cannot hold stand behind the responses, labelled with the call', () => {
  const media = (mime: string): Media => ({ type: 'file', source: { from: 'inline', mime, data: 'AAAA' } });
  const given = (callId: string, ...mimes: string[]): ToolResultItem =>
    result(callId, 'here', {
      content: [{ kind: 'text', text: 'here' }, ...mimes.map((mime) => ({ kind: 'media', media: media(mime) }) as const)],
    });
  const items = [
    user('q'),
    call('c', 'shot', '{}'),
    call('d', 'hear', '{}'),
    given('c', 'image/png', 'image/gif'),
    given('d', 'audio/wav'),
    user('go'),
  ];
  const partsOf = (facts: Target['facts']): unknown[] => {
    const { contents } = bodyOf({ items }, { facts });
    const content = Array.isArray(contents) ? contents[2] : undefined;
    assert.ok(isObject(content) && Array.isArray(content['parts']));
    return content['parts'];
  };
  const response = (id: string, name: string, parts?: unknown[]): object => ({
    functionResponse: { id, name, response: { output: 'here' }, ...(parts === undefined ? {} : { parts }) },
  });
  const part = (mimeType: string): object => ({ inlineData: { mimeType, data: 'AAAA' } });
  const label = (id: string): object => ({ text: `Result of tool call ${id}:` });
  assert.deepEqual(partsOf({}), [
    response('c', 'shot', [part('image/png')]),
    response('d', 'hear'),
    label('c'),
    part('image/gif'),
    label('d'),
    part('audio/wav'),
    { text: 'go' },
  ]);
  assert.deepEqual(partsOf({ noMediaInResults: true }), [
    response('c', 'shot'),
    response('d', 'hear'),
    label('c'),
    part('image/png'),
    part('image/gif'),
    label('d'),
    part('audio/wav'),
    { text: 'go' },
  ]);
});

test('a JSON format beside functions is an instruction to models that refuse both, and named', () => {
  const facts = { noFormatBesideTools: true };
  const schema = { type: 'object', properties: { a: { type: 'string' } } };
  const tools: Tool[] = [
    { kind: 'function', tool: { name: 'f' }, parameters: { type: 'object', properties: {} }, at: 'tools[0]' },
  ];
  const items = [system('s'), user('q')];
  for (const [format, feature, text] of [
    [
      { type: 'json_object' },
      'format: json object',
      'Answer with one JSON object and nothing else: no other text, no code fence.',
    ],
    [
      { type: 'json_schema', schema },
      'format: json schema',
      `Answer with JSON that fits this JSON Schema, and nothing else: no other text, no code fence.\n${JSON.stringify(schema)}`,
    ],
  ] as const) {
    const asked = { items, tools, format };
    const body = bodyOf(asked, { facts });
    assert.deepEqual(body['systemInstruction'], { parts: [{ text: 's' }, { text }] });
    assert.equal(body['generationConfig'], undefined);
    const { losses } = geminiUpstream.encodeRequest(requestOf(asked), targetOf({ facts }));
    assert.ok(losses.includes(feature), feature);
    for (const other of [bodyOf(asked), bodyOf({ ...asked, tools: [] }, { facts })]) {
      assert.deepEqual(other['systemInstruction'], { parts: [{ text: 's' }] });
      assert.equal((other['generationConfig'] as { responseMimeType?: string }).responseMimeType, 'application/json');
    }
  }
});

test('media have a real type, or the request names where it is missing', () => {
  const at = 'messages[0].content[0]';
  const media = (type: Media['type'], source: Media['source'], filename?: string): unknown => {
    const item: Item = {
      kind: 'media',
      role: 'user',
      media: { type, source, at, ...(filename === undefined ? {} : { filename }) },
    };
    return (contents([item]) as { parts: unknown[] }[])[0]?.parts[0];
  };
  const refused = gatewayError('unsupported_conversion', { param: at });
  assert.deepEqual(media('image', { from: 'inline', mime: 'image/webp', data: 'AA==' }), {
    inlineData: { mimeType: 'image/webp', data: 'AA==' },
  });
  assert.deepEqual(media('file', { from: 'inline', mime: 'application/octet-stream', data: 'AA==' }, 'a.pdf'), {
    inlineData: { mimeType: 'application/pdf', data: 'AA==' },
  });
  assert.deepEqual(media('image', { from: 'url', url: 'https://a.example/b/c.JPG?size=1' }), {
    fileData: { mimeType: 'image/jpeg', fileUri: 'https://a.example/b/c.JPG?size=1' },
  });
  assert.deepEqual(media('image', { from: 'url', url: 'data:image/gif;base64,R0lGOD' }), {
    inlineData: { mimeType: 'image/gif', data: 'R0lGOD' },
  });
  assert.deepEqual(media('image', { from: 'url', url: 'data:image/jpg;base64,/9j/' }), {
    inlineData: { mimeType: 'image/jpeg', data: '/9j/' },
  });
  assert.deepEqual(media('audio', { from: 'inline', mime: 'audio/wav', data: 'AA==' }), {
    inlineData: { mimeType: 'audio/wav', data: 'AA==' },
  });
  assert.deepEqual(media('image', { from: 'inline', mime: 'image/png;charset=utf-8', data: 'AA==' }), {
    inlineData: { mimeType: 'image/png', data: 'AA==' },
  });
  assert.deepEqual(media('audio', { from: 'inline', mime: 'audio/l16;rate=24000', data: 'AA==' }), {
    inlineData: { mimeType: 'audio/l16;rate=24000', data: 'AA==' },
  });
  assert.deepEqual(media('file', { from: 'inline', mime: 'text/plain;charset=iso-8859-1', data: '6Q==' }), {
    inlineData: { mimeType: 'text/plain', data: Buffer.from('é').toString('base64') },
  });
  const uri = 'https://generative.example/v1beta/files/abc-1';
  assert.deepEqual(media('file', { from: 'reference', id: uri }), { fileData: { fileUri: uri } });
  assert.deepEqual(media('file', { from: 'text', text: 'plain' }), { text: 'plain' });
  assert.throws(() => media('image', { from: 'url', url: 'https://a.example/picture' }), refused);
  assert.throws(() => media('image', { from: 'inline', mime: 'image/*', data: 'AA==' }), refused);
  assert.throws(() => media('file', { from: 'reference', id: 'file-abc' }), refused);
});

test('G8 G12: tools are declared under legal unique names with lowered parameters; none are left out', () => {
  const tool = (name: string, parameters?: object): Tool => ({
    kind: 'function',
    tool: { name },
    at: 'tools[0]',
    ...(parameters === undefined ? {} : { parameters: parameters as never }),
  });
  const tools = [
    tool('mcp/files@read', { properties: { path: { type: 'string', minLength: 1 } }, required: ['path'] }),
    tool('mcp_files_read'),
    tool('1st', { type: 'object', properties: {}, additionalProperties: false }),
  ];
  const encoded = geminiUpstream.encodeRequest(requestOf({ tools }), targetOf());
  checkBody(encoded.body);
  const [{ functionDeclarations: declared }] = JSON.parse(encoded.body).tools;
  assert.deepEqual(declared[0].parametersJsonSchema, {
    type: 'object',
    properties: { path: { type: 'string' } },
    required: ['path'],
  });
  assert.deepEqual(declared[1], { name: 'mcp_files_read' });
  assert.deepEqual(declared[2], { name: '_1st' });
  for (const [index, one] of tools.entries()) {
    assert.deepEqual(encoded.toolNames.fromWire(declared[index].name), 'tool' in one ? one.tool : undefined);
  }
  assert.throws(
    () => bodyOf({ tools: [tool('bad', { type: 'string' })] }),
    gatewayError('unsupported_conversion', { param: 'tools[0].parameters' }),
  );
});

test('T1 T2: a freeform custom tool is refused, or lowered to one string where the Channel says so', () => {
  const tools: Tool[] = [{ kind: 'custom', tool: { name: 'patch' }, at: 'tools[0]' }];
  assert.throws(() => bodyOf({ tools }), gatewayError('unsupported_conversion', { param: 'tools[0]' }));
  const items = [user('q'), call('c', 'patch', '*** Begin', { toolType: 'custom' }), result('c', 'ok', { toolType: 'custom' })];
  const encoded = geminiUpstream.encodeRequest(requestOf({ tools, items }), targetOf({ options: { lowerCustomTools: true } }));
  checkBody(encoded.body);
  const body = JSON.parse(encoded.body);
  assert.deepEqual(body.tools[0].functionDeclarations[0].parametersJsonSchema.required, ['input']);
  assert.deepEqual(body.contents[1].parts[0].functionCall.args, { input: '*** Begin' });
});

test('a freeform custom tool that the choice leaves out is not declared, and refuses nothing', () => {
  const tools: Tool[] = [
    { kind: 'function', tool: { name: 'f' }, at: 'tools[0]' },
    { kind: 'custom', tool: { name: 'patch' }, at: 'tools[1]' },
  ];
  for (const require of [true, false]) {
    const toolChoice = { mode: 'allowed', require, tools: [{ name: 'f' }] } as const;
    assert.deepEqual(bodyOf({ tools, toolChoice })['tools'], [{ functionDeclarations: [{ name: 'f' }] }]);
    const chosen = { ...toolChoice, tools: [{ name: 'patch' }] };
    assert.throws(() => bodyOf({ tools, toolChoice: chosen }), gatewayError('unsupported_conversion', { param: 'tools[1]' }));
  }
});

test('a custom call whose tool is not declared any more goes by its arguments, as on messages', () => {
  const toolType = { toolType: 'custom' } as const;
  const history = (input: string) => contents([user('q'), call('c', 'patch', input, toolType), result('c', 'ok', toolType)]);
  const sent = (args: object) => [
    { role: 'user', parts: [{ text: 'q' }] },
    { role: 'model', parts: [{ functionCall: { id: 'c', name: 'patch', args }, thoughtSignature: SKIP }] },
    { role: 'user', parts: [{ functionResponse: { id: 'c', name: 'patch', response: { output: 'ok' } } }] },
  ];
  assert.deepEqual(history('{"a":1}'), sent({ a: 1 }));
  assert.deepEqual(history(''), sent({}));
  const refused = gatewayError('unsupported_conversion', { param: 'messages[1].tool_calls[0]' });
  assert.throws(() => history('*** Begin'), refused);
});

test('a request of nothing but what only another protocol can read is refused', () => {
  const unread: Item = { kind: 'native', dialect: 'chat', role: 'user', body: { type: 'odd' }, at: 'messages[0].content[0]' };
  const refused = gatewayError('unsupported_conversion', { param: 'messages[0].content[0]' });
  assert.throws(() => contents([unread]), refused);
  assert.deepEqual(contents([unread, user('q')]), [{ role: 'user', parts: [{ text: 'q' }] }]);
  assert.deepEqual(contents([system('s'), unread]), [{ role: 'user', parts: [{ text: ' ' }] }]);
});

test('tool_choice', () => {
  const tools: Tool[] = ['a', 'b'].map((name, index) => ({ kind: 'function', tool: { name }, at: `tools[${index}]` }));
  const config = (toolChoice: CanonicalRequest['toolChoice']): unknown => {
    const encoded = geminiUpstream.encodeRequest(
      requestOf({ tools, ...(toolChoice === undefined ? {} : { toolChoice }) }),
      targetOf(),
    );
    checkBody(encoded.body);
    const body = JSON.parse(encoded.body);
    return [body.toolConfig?.functionCallingConfig, body.tools[0].functionDeclarations.length];
  };
  assert.deepEqual(config(undefined), [undefined, 2]);
  assert.deepEqual(config({ mode: 'auto' }), [{ mode: 'AUTO' }, 2]);
  assert.deepEqual(config({ mode: 'none' }), [{ mode: 'NONE' }, 2]);
  assert.deepEqual(config({ mode: 'required' }), [{ mode: 'ANY' }, 2]);
  assert.deepEqual(config({ mode: 'tool', toolType: 'function', tool: { name: 'b' } }), [
    { mode: 'ANY', allowedFunctionNames: ['b'] },
    2,
  ]);
  assert.deepEqual(config({ mode: 'allowed', require: true, tools: [{ name: 'a' }, { name: 'gone' }] }), [
    { mode: 'ANY', allowedFunctionNames: ['a'] },
    2,
  ]);
  assert.deepEqual(config({ mode: 'allowed', require: false, tools: [{ name: 'a' }] }), [{ mode: 'AUTO' }, 1]);
  const refused = gatewayError('unsupported_conversion', { param: 'tool_choice' });
  assert.throws(() => config({ mode: 'tool', toolType: 'function', tool: { name: 'gone' } }), refused);
  assert.throws(() => config({ mode: 'native', dialect: 'responses', body: { type: 'web_search' } }), refused);
  const native: Tool[] = [{ kind: 'native', dialect: 'responses', type: 'web_search', body: {}, at: 'tools[0]' }];
  assert.throws(() => bodyOf({ tools: native, toolChoice: { mode: 'required' } }), refused);
  assert.throws(() => bodyOf({ toolChoice: { mode: 'tool', toolType: 'function', tool: { name: 'gone' } } }), refused);
  assert.throws(() => bodyOf({ toolChoice: { mode: 'allowed', require: true, tools: [{ name: 'gone' }] } }), refused);
  assert.deepEqual(losses({ tools: native }), ['native tool']);
  assert.equal(bodyOf({ tools: native })['tools'], undefined);
});

test('G15: sampling, limits, stop, logprobs and formats', () => {
  const schema = { type: 'object', properties: { a: { const: 1 } } };
  const body = bodyOf({
    temperature: 0.5,
    topP: 0.9,
    topK: 40,
    maxOutputTokens: 100,
    stop: ['END'],
    presencePenalty: 0.1,
    frequencyPenalty: 0.2,
    seed: 7,
    logprobs: { top: 20 },
    format: { type: 'json_schema', name: 'n', schema },
    modalities: ['text', 'image'],
  });
  assert.deepEqual(body['generationConfig'], {
    temperature: 0.5,
    topP: 0.9,
    topK: 40,
    maxOutputTokens: 100,
    stopSequences: ['END'],
    presencePenalty: 0.1,
    frequencyPenalty: 0.2,
    seed: 7,
    responseLogprobs: true,
    logprobs: 20,
    responseMimeType: 'application/json',
    responseJsonSchema: { type: 'object', properties: { a: { enum: [1] } } },
    responseModalities: ['TEXT', 'IMAGE'],
  });
  assert.equal(bodyOf({})['generationConfig'], undefined);
  assert.deepEqual(bodyOf({ logprobs: { top: 0 }, format: { type: 'json_object' } })['generationConfig'], {
    responseLogprobs: true,
    responseMimeType: 'application/json',
  });
  assert.throws(() => bodyOf({ logprobs: { top: 21 } }), gatewayError('invalid_request', { param: 'top_logprobs' }));
});

test('a seed is cut to the 32 bits that the protocol takes, always alike', () => {
  for (const [seed, sent] of [
    [-5, -5],
    [2 ** 31 - 1, 2 ** 31 - 1],
    [2 ** 32 + 7, 7],
  ] as const) {
    assert.deepEqual(bodyOf({ seed })['generationConfig'], { seed: sent });
  }
});

test('thinking: none is a budget of 0, efforts by what the model takes, thoughts only when asked for', () => {
  const thinking = (reasoning: CanonicalRequest['reasoning'], facts: Target['facts'] = {}): unknown => {
    const config = bodyOf(reasoning === undefined ? {} : { reasoning }, { facts })['generationConfig'];
    return config === undefined ? undefined : (config as { thinkingConfig?: unknown }).thinkingConfig;
  };
  assert.equal(thinking(undefined), undefined);
  assert.equal(thinking({ adaptive: true }), undefined);
  assert.deepEqual(thinking({ effort: 'none', summary: 'auto' }), { thinkingBudget: 0 });
  assert.deepEqual(thinking({ effort: 'none' }, { thinking: 'level', minThinkingBudget: 128 }), { thinkingBudget: 0 });
  const budgets = ['minimal', 'low', 'medium', 'high', 'xhigh', 'max'].map((effort) => thinking({ effort }));
  assert.deepEqual(
    budgets,
    [512, 1024, 8192, 24_576, 32_768, 32_768].map((thinkingBudget) => ({ thinkingBudget })),
  );
  const facts = { minThinkingBudget: 128, maxThinkingBudget: 24_576 };
  assert.deepEqual(thinking({ effort: 'minimal' }, facts), { thinkingBudget: 128 });
  assert.deepEqual(thinking({ effort: 'max' }, facts), { thinkingBudget: 24_576 });
  assert.deepEqual(thinking({ budget: 64 }, facts), { thinkingBudget: 128 });
  assert.deepEqual(thinking({ effort: 'low', summary: 'auto' }, { thinking: 'level' }), {
    thinkingLevel: 'low',
    includeThoughts: true,
  });
  assert.deepEqual(thinking({ effort: 'max' }, { thinking: 'level' }), { thinkingLevel: 'high' });
  assert.deepEqual(thinking({ budget: 2000 }, { thinking: 'level' }), { thinkingLevel: 'medium' });
  assert.deepEqual(thinking({ summary: 'auto' }), { includeThoughts: true });
  assert.throws(() => thinking({ effort: 'huge' }), gatewayError('unsupported_conversion', { param: 'reasoning_effort' }));
});

test('a member that only another protocol can honour is refused', () => {
  const members = { boundTo: { dialect: 'responses', at: 'prompt' } } as const;
  assert.throws(() => bodyOf(members), gatewayError('unsupported_conversion', { param: 'prompt' }));
});
