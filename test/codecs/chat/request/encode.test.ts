import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { GatewayError } from '../../../../src/codecs/canonical/error.ts';
import type { Item, Media, Role } from '../../../../src/codecs/canonical/item.ts';
import type { JsonObject } from '../../../../src/codecs/canonical/json.ts';
import type { CanonicalRequest } from '../../../../src/codecs/canonical/request.ts';
import { chatUpstream } from '../../../../src/codecs/chat/index.ts';
import type { Target } from '../../../../src/codecs/codec.ts';
import { owner, plainRequest, target } from '../support.ts';

const foreign: CanonicalRequest = { ...plainRequest, dialect: 'messages', text: '{}', json: {}, stream: false, items: [] };
const bodyOf = (over: Partial<CanonicalRequest>, at: Partial<Target> = {}): JsonObject & { messages: JsonObject[] } =>
  JSON.parse(chatUpstream.encodeRequest({ ...foreign, ...over }, target(at)).body);
const messagesOf = (items: Item[], at: Partial<Target> = {}, over: Partial<CanonicalRequest> = {}) =>
  bodyOf({ ...over, items }, at).messages;

const text = (role: Role, value: string, turn = 0): Item => ({
  kind: 'text',
  role,
  text: value,
  citations: [],
  turn,
});
const call = (callId: string, input = '{}', turn = 0): Item => ({
  kind: 'toolCall',
  toolType: 'function',
  callId,
  tool: { name: 'f' },
  input,
  turn,
});
const result = (callId: string, value: string, isError = false, extra: Media[] = []): Item => ({
  kind: 'toolResult',
  toolType: 'function',
  callId,
  content: [{ kind: 'text', text: value }, ...extra.map((media) => ({ kind: 'media' as const, media }))],
  isError,
});
const image: Media = { type: 'image', source: { from: 'inline', mime: 'image/png', data: 'AAAA' } };
const imagePart = { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } };

describe('requests of other dialects for a chat upstream', () => {
  it('keep neighbouring messages apart and texts of one message together', () => {
    assert.deepEqual(messagesOf([text('system', 's'), text('user', 'a', 1), text('user', 'b', 2), text('user', 'c', 2)]), [
      { role: 'system', content: 's' },
      { role: 'user', content: 'a' },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'b' },
          { type: 'text', text: 'c' },
        ],
      },
    ]);
  });

  it('hold text and calls of one turn in one assistant message', () => {
    const calls = [{ id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } }];
    assert.deepEqual(messagesOf([call('a'), text('assistant', 'after')]), [
      { role: 'assistant', content: 'after', tool_calls: calls },
    ]);
    assert.deepEqual(messagesOf([text('assistant', ''), call('a')]), [{ role: 'assistant', content: null, tool_calls: calls }]);
    assert.deepEqual(messagesOf([text('assistant', 'x', 1), text('assistant', 'y', 2)]).length, 2);
  });

  it('join texts around something else as an answer does, and never put a message between a call and its result', () => {
    const calls = [{ id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } }];
    const around = (turn: number) => [text('assistant', 'x', 1), call('a', '{}', turn), text('assistant', 'y', turn)];
    for (const turn of [1, 2]) {
      assert.deepEqual(messagesOf([...around(turn), result('a', 'r')]), [
        { role: 'assistant', content: 'x\n\ny', tool_calls: calls },
        { role: 'tool', tool_call_id: 'a', content: 'r' },
      ]);
    }
    assert.deepEqual(messagesOf([text('assistant', 'x', 1), text('assistant', 'y', 1)]), [{ role: 'assistant', content: 'xy' }]);
    const search: Item = { kind: 'native', dialect: 'messages', body: { type: 'server_tool_use' }, role: 'assistant', turn: 1 };
    assert.deepEqual(messagesOf([text('assistant', 'x', 1), search, text('assistant', ''), text('assistant', 'y', 1)]), [
      { role: 'assistant', content: 'x\n\ny' },
    ]);
  });

  it('put images of tool results after the last tool message, and mark errors', () => {
    const items = [call('a'), call('b'), result('a', 'boom', true, [image]), result('b', 'ok'), text('user', 'next', 5)];
    assert.deepEqual(messagesOf(items).slice(1), [
      { role: 'tool', tool_call_id: 'a', content: 'Error: boom' },
      { role: 'tool', tool_call_id: 'b', content: 'ok' },
      { role: 'user', content: [{ type: 'text', text: 'Result of tool call a:' }, imagePart] },
      { role: 'user', content: 'next' },
    ]);
  });

  it('put media of system messages, which hold text only, into a user message in their place', () => {
    const media: Item = { kind: 'media', role: 'developer', media: { ...image, at: 'input[0]' }, turn: 0 };
    const said = (value: string): Item => ({ kind: 'text', role: 'developer', text: value, citations: [], turn: 0 });
    assert.deepEqual(messagesOf([said('look'), media, said('more'), text('user', 'hi', 1)]), [
      { role: 'developer', content: 'look' },
      { role: 'user', content: [imagePart] },
      { role: 'developer', content: 'more' },
      { role: 'user', content: 'hi' },
    ]);
  });

  it('name what a tool message cannot hold of a result', () => {
    const answer: Item = {
      kind: 'toolResult',
      toolType: 'function',
      callId: 'a',
      content: [
        { kind: 'native', dialect: 'messages', body: { type: 'tool_reference', tool_name: 'g' } },
        { kind: 'media', media: { type: 'file', source: { from: 'text', text: 'doc' }, filename: 'a.txt' } },
      ],
      isError: false,
    };
    const { body, losses } = chatUpstream.encodeRequest({ ...foreign, items: [call('a'), answer] }, target());
    assert.deepEqual(JSON.parse(body).messages[1], { role: 'tool', tool_call_id: 'a', content: 'a.txt\n\ndoc' });
    assert.deepEqual(losses, ['file: text', 'native item']);
  });

  it('leave empty texts of a result out', () => {
    const said = (...texts: string[]): Item => ({
      kind: 'toolResult',
      toolType: 'function',
      callId: 'a',
      content: texts.map((value) => ({ kind: 'text', text: value })),
      isError: false,
    });
    const contentOf = (answer: Item) => messagesOf([call('a'), answer])[1]?.['content'];
    assert.deepEqual([contentOf(said('x', '')), contentOf(said('', ''))], ['x', '']);
  });

  it('send one result for a call: the last payload at the first position', () => {
    assert.deepEqual(messagesOf([call('a'), result('a', 'old'), result('a', 'new')]).slice(1), [
      { role: 'tool', tool_call_id: 'a', content: 'new' },
    ]);
  });

  it('replay opaque values of this owner only, as their vendor spelled them', () => {
    const form = '{"type":"reasoning.text","format":"anthropic-claude-v1","index":0}';
    const mine: Item = { kind: 'reasoning', summary: ['T'], opaque: { owner, value: 'SIG', form } };
    const entry = { type: 'reasoning.text', text: 'T', signature: 'SIG', format: 'anthropic-claude-v1', index: 0 };
    assert.deepEqual(messagesOf([mine, text('assistant', 'x')])[0]?.['reasoning_details'], [entry]);
    // A client of another protocol brought the value back alone: the words that it vouches for are in it.
    const signed = '{"type":"reasoning.text","format":"anthropic-claude-v1","index":0,"text":"T"}';
    const alone: Item = { kind: 'reasoning', opaque: { owner, value: 'SIG', form: signed } };
    assert.deepEqual(messagesOf([alone, text('assistant', 'x')])[0]?.['reasoning_details'], [entry]);
    assert.deepEqual(
      messagesOf([mine, text('assistant', 'x')], { without: new Set(['opaque'] as const) })[0]?.['reasoning_details'],
      undefined,
    );
    const other: Item = { kind: 'reasoning', raw: 'T', opaque: { owner: { ...owner, scope: 'elsewhere' }, value: 'SIG' } };
    const options = { replayReasoningContent: true };
    assert.deepEqual(messagesOf([other, text('assistant', 'x')], { options }), [{ role: 'assistant', content: 'x' }]);
    const pair: Item = {
      kind: 'reasoning',
      summary: ['S'],
      opaque: {
        owner,
        value: 'D',
        itemId: 'rs_1',
        form: '{"type":"reasoning.encrypted","id":"rs_1","format":"openai-responses-v1","index":0}',
      },
    };
    assert.deepEqual(messagesOf([pair, text('assistant', 'x')])[0]?.['reasoning_details'], [
      { type: 'reasoning.summary', summary: 'S', format: 'openai-responses-v1', index: 0 },
      { type: 'reasoning.encrypted', data: 'D', id: 'rs_1', format: 'openai-responses-v1', index: 0 },
    ]);
    // Raw words stand in the detail that vouches for them, and else beside it.
    const { summary: _, ...sealed } = pair;
    for (const [item, details, content] of [
      [{ ...mine, summary: ['S'], raw: 'T' }, [entry], undefined],
      [
        { ...sealed, raw: 'R' },
        [{ type: 'reasoning.encrypted', data: 'D', id: 'rs_1', format: 'openai-responses-v1', index: 0 }],
        'R',
      ],
    ] as const) {
      const [message] = messagesOf([item, text('assistant', 'x')], { options });
      assert.deepEqual([message?.['reasoning_details'], message?.['reasoning_content']], [details, content]);
    }
  });

  it('replay raw reasoning only where the Channel asks for it', () => {
    const raw: Item = { kind: 'reasoning', raw: 'why' };
    assert.deepEqual(
      messagesOf([raw, call('a')], { options: { replayReasoningContent: true } })[0]?.['reasoning_content'],
      'why',
    );
    assert.deepEqual(messagesOf([raw, call('a')])[0]?.['reasoning_content'], undefined);
  });

  it('have an empty reasoning in turns with calls of another model, where the Channel refuses such turns without one', () => {
    const options = { replayReasoningContent: true };
    const turns = [call('a'), result('a', 'r'), text('assistant', 'done', 1)];
    const reasoned = (at: Partial<Target>) => messagesOf(turns, at).map((message) => message['reasoning_content']);
    assert.deepEqual(reasoned({ options }), ['', undefined, undefined]);
    assert.deepEqual(reasoned({}), [undefined, undefined, undefined]);
  });

  it('declare tools, choices and formats in the nested spelling', () => {
    const body = bodyOf({
      tools: [
        { kind: 'function', tool: { name: 'f' }, parameters: { type: 'object', properties: {} }, strict: true, at: 'tools[0]' },
        { kind: 'custom', tool: { name: 'p' }, format: { type: 'grammar', syntax: 'lark', definition: 'x' }, at: 'tools[1]' },
        { kind: 'native', dialect: 'messages', type: 'web_search_20250305', body: {}, at: 'tools[2]' },
      ],
      toolChoice: { mode: 'allowed', require: true, tools: [{ name: 'f' }, { name: 'p' }] },
      parallelToolCalls: false,
      format: { type: 'json_schema', schema: { type: 'object' } },
      maxOutputTokens: 9,
      reasoning: { effort: 'none' },
    });
    assert.deepEqual(body['tools'], [
      {
        type: 'function',
        function: {
          name: 'f',
          parameters: { type: 'object', properties: {}, required: [], additionalProperties: false },
          strict: true,
        },
      },
      { type: 'custom', custom: { name: 'p', format: { type: 'grammar', grammar: { syntax: 'lark', definition: 'x' } } } },
    ]);
    assert.deepEqual(body['tool_choice'], {
      type: 'allowed_tools',
      allowed_tools: {
        mode: 'required',
        tools: [
          { type: 'function', function: { name: 'f' } },
          { type: 'custom', custom: { name: 'p' } },
        ],
      },
    });
    assert.equal(body['parallel_tool_calls'], false);
    assert.deepEqual(body['response_format'], {
      type: 'json_schema',
      json_schema: { name: 'response', schema: { type: 'object' } },
    });
    const named = { name: 'n', description: 'd', schema: { type: 'object' }, strict: false };
    assert.deepEqual(bodyOf({ format: { type: 'json_schema', ...named } })['response_format'], {
      type: 'json_schema',
      json_schema: named,
    });
    assert.equal(body['max_completion_tokens'], 9);
    assert.equal(body['reasoning_effort'], 'none');
    assert.equal(body['thinking'], undefined);
    assert.equal(bodyOf({ maxOutputTokens: 9 }, { options: { legacyOutputCap: true } })['max_tokens'], 9);
  });

  it('write calls without arguments with empty ones, whatever declared their tool', () => {
    const tool = { kind: 'custom' as const, tool: { name: 'f' }, inputSchema: { type: 'object' }, at: 'tools[0]' };
    const custom = { ...call('b', ''), toolType: 'custom' } as Item;
    const { messages } = bodyOf({ tools: [tool], items: [call('a', ' '), custom, result('a', 'x'), result('b', 'y')] }) as {
      messages: { tool_calls?: { function: { arguments: string } }[] }[];
    };
    assert.deepEqual(
      messages[0]?.tool_calls?.map((one) => one.function.arguments),
      ['{}', '{}'],
    );
  });

  it("make messages of the developer the system's where the upstream knows no such role", () => {
    const items = [text('developer', 'be brief'), text('user', 'x'), text('developer', 'and kind')];
    const roles = (over: Parameters<typeof bodyOf>[1]) => bodyOf({ items }, over)['messages'];
    assert.deepEqual(roles({ options: { developerAsSystem: true } }), [
      { role: 'system', content: 'be brief' },
      { role: 'user', content: 'x' },
      { role: 'system', content: 'and kind' },
    ]);
    assert.deepEqual(roles({ options: {} }), [
      { role: 'developer', content: 'be brief' },
      { role: 'user', content: 'x' },
      { role: 'developer', content: 'and kind' },
    ]);
  });

  it('say a plain text format as it was said', () => {
    assert.deepEqual(bodyOf({ items: [text('user', 'x')], format: { type: 'text' } })['response_format'], { type: 'text' });
  });

  it('give namespaced tools unique names and take them back', () => {
    const tool = (namespace: string) => ({ kind: 'function' as const, tool: { name: 'get', namespace }, at: 'tools' });
    const { body, toolNames } = chatUpstream.encodeRequest({ ...foreign, tools: [tool('a'), tool('b')] }, target());
    const names: string[] = JSON.parse(body).tools.map((one: { function: { name: string } }) => one.function.name);
    assert.equal(new Set(names).size, 2);
    assert.deepEqual(
      names.map((name) => toolNames.fromWire(name).namespace),
      ['a', 'b'],
    );
  });

  it('leave out choices and flags where no tool is left', () => {
    const body = bodyOf({ toolChoice: { mode: 'auto' }, parallelToolCalls: true });
    assert.deepEqual([body['tool_choice'], body['parallel_tool_calls'], body['tools']], [undefined, undefined, undefined]);
  });

  const refused: [string, Partial<CanonicalRequest>][] = [
    [
      'm[0]',
      {
        items: [
          { kind: 'media', role: 'user', media: { type: 'file', source: { from: 'url', url: 'https://a.test' }, at: 'm[0]' } },
        ],
      },
    ],
    [
      'm[1]',
      {
        items: [
          {
            kind: 'media',
            role: 'user',
            media: { type: 'audio', source: { from: 'inline', mime: 'audio/flac', data: '' }, at: 'm[1]' },
          },
        ],
      },
    ],
    [
      'm[2]',
      { items: [{ kind: 'media', role: 'user', media: { type: 'image', source: { from: 'reference', id: 'f' }, at: 'm[2]' } }] },
    ],
    ['tool_choice', { toolChoice: { mode: 'native', dialect: 'responses', body: {} } }],
  ];
  for (const [param, over] of refused) {
    it(`refuse ${param}`, () => {
      assert.throws(
        () => bodyOf(over),
        (error) => error instanceof GatewayError && error.code === 'unsupported_conversion' && error.param === param,
      );
    });
  }
});
