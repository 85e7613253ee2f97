import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { GatewayError } from '../../../../src/codecs/canonical/error.ts';
import type { Item } from '../../../../src/codecs/canonical/item.ts';
import type { JsonObject } from '../../../../src/codecs/canonical/json.ts';
import type { Opaque } from '../../../../src/codecs/canonical/opaque.ts';
import { chatUpstream } from '../../../../src/codecs/chat/index.ts';
import { noRecordings, owner, requestOf, seal, target } from '../support.ts';

const user = { role: 'user', content: 'hi' };
const withMessages = (...messages: JsonObject[]) => requestOf({ model: 'm', messages: [user, ...messages] });
/** The items after the first user text, without paths and turns. */
const itemsOf = (...messages: JsonObject[]): unknown[] =>
  withMessages(...messages)
    .items.slice(1)
    .map(({ at: _at, turn: _turn, ...item }: Item) =>
      JSON.parse(JSON.stringify(item, (key, value) => (key === 'at' ? undefined : value))),
    );

describe('chat requests', () => {
  it('read every kind of user content', () => {
    const content = [
      { type: 'text', text: 'a', cache_control: { type: 'ephemeral' } },
      { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA', detail: 'low' } },
      { type: 'image_url', image_url: { url: 'https://a.test/x.png' } },
      { type: 'input_audio', input_audio: { data: 'AAAA', format: 'mp3' } },
      { type: 'file', file: { file_data: 'data:application/pdf;base64,AAAA', filename: 'x.pdf' } },
      { type: 'file', file: { file_data: 'AAAA', filename: 'x.csv' } },
      { type: 'file', file: { file_id: 'file-1' } },
      { type: 'video_url', video_url: { url: 'https://a.test/v' } },
      { type: 'input_video', video_url: { url: 'data:video/webm;base64,AAAA' } },
      { type: 'video_url', video_url: { frames: [] } },
    ];
    const facts = { role: 'user' };
    assert.deepEqual(itemsOf({ role: 'user', content }), [
      { kind: 'text', ...facts, text: 'a', citations: [], breakpoint: {} },
      {
        kind: 'media',
        ...facts,
        media: { type: 'image', source: { from: 'inline', mime: 'image/png', data: 'AAAA' }, detail: 'low' },
      },
      { kind: 'media', ...facts, media: { type: 'image', source: { from: 'url', url: 'https://a.test/x.png' } } },
      { kind: 'media', ...facts, media: { type: 'audio', source: { from: 'inline', mime: 'audio/mpeg', data: 'AAAA' } } },
      {
        kind: 'media',
        ...facts,
        media: { type: 'file', source: { from: 'inline', mime: 'application/pdf', data: 'AAAA' }, filename: 'x.pdf' },
      },
      {
        kind: 'media',
        ...facts,
        media: { type: 'file', source: { from: 'inline', mime: 'text/csv', data: 'AAAA' }, filename: 'x.csv' },
      },
      { kind: 'media', ...facts, media: { type: 'file', source: { from: 'reference', id: 'file-1' } } },
      { kind: 'media', ...facts, media: { type: 'video', source: { from: 'url', url: 'https://a.test/v' } } },
      { kind: 'media', ...facts, media: { type: 'video', source: { from: 'inline', mime: 'video/webm', data: 'AAAA' } } },
      { kind: 'native', ...facts, dialect: 'chat', body: content[9] },
    ]);
  });

  it('leave out a reasoning item whose envelope cannot be opened, its words included', () => {
    const words = { id: 'rs_1', format: 'openai-responses-v1', index: 0 };
    const reasoning_details = [
      { type: 'reasoning.summary', summary: 'HIDDEN', ...words },
      { type: 'reasoning.encrypted', data: 'mz2.!broken', ...words },
      { type: 'reasoning.summary', summary: 'kept', id: 'rs_2', index: 1 },
    ];
    const message = { role: 'assistant', content: 'a', reasoning: 'HIDDENkept', reasoning_details };
    const text = { kind: 'text', role: 'assistant', text: 'a', citations: [] };
    assert.deepEqual(itemsOf(message), [{ kind: 'reasoning', summary: ['kept'] }, text]);
    assert.deepEqual(itemsOf({ ...message, reasoning_details: reasoning_details.slice(0, 2) }), [text]);
  });

  it('read assistant turns, tool results and the custom toolType', () => {
    const calls = [
      { id: 'a', type: 'function', function: { name: 'f', arguments: '' } },
      { id: 'b', type: 'custom', custom: { name: 'p', input: 'x' } },
    ];
    assert.deepEqual(
      itemsOf(
        { role: 'assistant', content: null, reasoning_content: '', tool_calls: calls },
        { role: 'tool', tool_call_id: 'a', content: 'r' },
        { role: 'tool', tool_call_id: 'b', content: [{ type: 'text', text: 's' }] },
        { role: 'assistant', refusal: 'no' },
      ),
      [
        { kind: 'reasoning', raw: '' },
        { kind: 'toolCall', toolType: 'function', callId: 'a', tool: { name: 'f' }, input: '{}' },
        { kind: 'toolCall', toolType: 'custom', callId: 'b', tool: { name: 'p' }, input: 'x' },
        { kind: 'toolResult', toolType: 'function', callId: 'a', content: [{ kind: 'text', text: 'r' }], isError: false },
        { kind: 'toolResult', toolType: 'custom', callId: 'b', content: [{ kind: 'text', text: 's' }], isError: false },
        { kind: 'refusal', text: 'no' },
      ],
    );
  });

  it('read text parts in the spelling of responses, too: what a user says is never left out', () => {
    const content = [
      { type: 'text', text: 'a' },
      { type: 'input_text', text: 'b' },
    ];
    const result = { role: 'tool', tool_call_id: 'x', content: [{ type: 'output_text', text: 'r' }] };
    const facts = { role: 'user', citations: [] };
    assert.deepEqual(itemsOf({ role: 'user', content }, result), [
      { kind: 'text', text: 'a', ...facts },
      { kind: 'text', text: 'b', ...facts },
      { kind: 'toolResult', toolType: 'function', callId: 'x', content: [{ kind: 'text', text: 'r' }], isError: false },
    ]);
  });

  it('read a file id beside the type of its part (Mistral, DeepSeek): a private file, like any other', () => {
    const at = 'messages[1].content[0]';
    const { items } = withMessages({ role: 'user', content: [{ type: 'file', file_id: 'file-1' }] });
    const media = { type: 'file', source: { from: 'reference', id: 'file-1' }, at };
    assert.deepEqual(items.at(-1), { kind: 'media', role: 'user', media, at, turn: 1 });
  });

  it('read audio as a string and documents by their link (Mistral)', () => {
    const audio = (source: object) => ({ kind: 'media', role: 'user', media: { type: 'audio', source } });
    const inline = (mime: string, data: string) => audio({ from: 'inline', mime, data });
    const content = [
      { type: 'input_audio', input_audio: 'https://a.test/x.mp3' },
      { type: 'input_audio', input_audio: 'data:audio/flac;base64,AAAA' },
      { type: 'input_audio', input_audio: 'ZkxhQwAA' },
      { type: 'input_audio', input_audio: '//uQxAAA' },
      { type: 'document_url', document_url: 'https://a.test/x.pdf', document_name: 'y.pdf' },
    ];
    const source = { from: 'url', url: 'https://a.test/x.pdf' };
    assert.deepEqual(itemsOf({ role: 'user', content }), [
      audio({ from: 'url', url: 'https://a.test/x.mp3' }),
      inline('audio/flac', 'AAAA'),
      inline('audio/flac', 'ZkxhQwAA'),
      inline('audio/mpeg', '//uQxAAA'),
      { kind: 'media', role: 'user', media: { type: 'file', source, filename: 'y.pdf' } },
    ]);
    const empty = [{ type: 'input_audio', input_audio: '' }];
    assert.throws(() => itemsOf({ role: 'user', content: empty }), { code: 'invalid_request' });
  });

  it('read functions and calls without a type, and arguments that are an object, in their exact text (Mistral, Ollama)', () => {
    const { tools } = requestOf({ model: 'm', messages: [user], tools: [{ function: { name: 'f' } }] });
    assert.deepEqual(tools, [{ kind: 'function', tool: { name: 'f' }, at: 'tools[0].function' }]);
    assert.throws(() => requestOf({ model: 'm', messages: [user], tools: [{ name: 'f' }] }), {
      details: { param: 'tools[0].type' },
    });
    const text =
      '{"model":"m","messages":[{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f","arguments": {"n":1.0, "big":12345678901234567890} }}]}]}';
    const [call] = requestOf(JSON.parse(text), text).items;
    assert.equal(call?.kind === 'toolCall' && call.input, '{"n":1.0, "big":12345678901234567890}');
  });

  it('read the word any (Mistral) as a choice that requires a tool', () => {
    const tools = [{ type: 'function', function: { name: 'f' } }];
    const { toolChoice } = requestOf({ model: 'm', messages: [user], tools, tool_choice: 'any' });
    assert.deepEqual(toolChoice, { mode: 'required' });
  });

  it('read a tool that is declared twice as it was declared first (known failure T3)', () => {
    const tools = ['first', 'again'].map((description) => ({ type: 'function', function: { name: 'f', description } }));
    assert.deepEqual(requestOf({ model: 'm', messages: [user], tools }).tools, [
      { kind: 'function', tool: { name: 'f' }, description: 'first', at: 'tools[0].function' },
    ]);
  });

  it('read the object schema of a custom tool beside its name or on the tool itself', () => {
    const input_schema = { type: 'object' };
    const tools = [
      { type: 'custom', custom: { name: 'p', input_schema } },
      { type: 'custom', custom: { name: 'q' }, input_schema },
    ];
    assert.deepEqual(requestOf({ model: 'm', messages: [user], tools }).tools, [
      { kind: 'custom', tool: { name: 'p' }, inputSchema: input_schema, at: 'tools[0].custom' },
      { kind: 'custom', tool: { name: 'q' }, inputSchema: input_schema, at: 'tools[1]' },
    ]);
  });

  it('read a cache breakpoint on a part, a tool result or a whole message', () => {
    const cache_control = { type: 'ephemeral' };
    const part = { type: 'text', text: 'r', cache_control };
    const { items } = withMessages(
      { role: 'user', content: 'u', cache_control },
      {
        role: 'assistant',
        content: 'a',
        cache_control,
        tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } }],
      },
      { role: 'tool', tool_call_id: 'a', content: [part, { type: 'text', text: 's' }] },
      { role: 'tool', tool_call_id: 'a', content: 'r', cache_control: { type: 'ephemeral', ttl: '1h' } },
      { role: 'user', content: [], cache_control },
      { role: 'user', content: 'u', cache_control: null },
    );
    const marked = items.map(({ kind, breakpoint }) => [kind, breakpoint]);
    assert.deepEqual(marked.slice(1), [
      ['text', {}],
      ['text', undefined],
      ['toolCall', {}],
      ['toolResult', {}],
      ['toolResult', { ttl: '1h' }],
      ['text', undefined],
    ]);
  });

  it('read deprecated functions with ids of their own', () => {
    const request = requestOf({
      model: 'm',
      functions: [{ name: 'f', parameters: {} }],
      function_call: { name: 'f' },
      messages: [
        user,
        { role: 'assistant', content: null, function_call: { name: 'f', arguments: '{}' } },
        { role: 'function', name: 'f', content: '1' },
        { role: 'assistant', content: null, function_call: { name: 'f', arguments: '{}' } },
        { role: 'function', name: 'f', content: '2' },
      ],
    });
    assert.deepEqual(
      request.items.flatMap((item) => (item.kind === 'toolCall' || item.kind === 'toolResult' ? [item.callId] : [])),
      ['legacy_function:f', 'legacy_function:f', 'legacy_function:f:2', 'legacy_function:f:2'],
    );
    assert.equal(request.tools.length, 1);
    assert.deepEqual(request.toolChoice, { mode: 'tool', toolType: 'function', tool: { name: 'f' } });
  });

  it('read deprecated functions behind tools, where a request holds both lists', () => {
    const tool = { type: 'function', function: { name: 'g' } };
    for (const tools of [[tool], []]) {
      const request = requestOf({ model: 'm', messages: [user], functions: [{ name: 'f' }], tools });
      assert.deepEqual(
        request.tools.map((each) => each.at),
        [...tools.map(() => 'tools[0].function'), 'functions[0]'],
      );
    }
  });

  it('read a deprecated call beside an empty list of calls, and one without arguments', () => {
    const turns = [
      { function_call: { name: 'f', arguments: '{"a":1}' }, tool_calls: [] },
      { function_call: { name: 'f', arguments: '' }, tool_calls: null },
    ];
    const messages = turns.map((turn) => ({ role: 'assistant', content: 'x', ...turn }));
    const inputs = requestOf({ model: 'm', messages }).items.flatMap((item) => (item.kind === 'toolCall' ? [item.input] : []));
    assert.deepEqual(inputs, ['{"a":1}', '{}']);
  });

  it('take a seed of 64 bits, which the vendor allows', () => {
    const seeded = (seed: number) => requestOf({ model: 'm', messages: [user], seed }).seed;
    assert.equal(seeded(2 ** 62), 2 ** 62);
    assert.throws(() => seeded(1.5), { param: 'seed' });
  });

  it("read Mistral's word for a choice that requires a call", () => {
    const call = { type: 'function', function: { name: 'f' } };
    const { toolChoice } = requestOf({ model: 'm', messages: [user], tools: [call], tool_choice: 'any' });
    assert.deepEqual(toolChoice, { mode: 'required' });
  });

  it('read a choice without a type, as clients of Hugging Face write it; one of nothing is refused', () => {
    const tools = [{ type: 'function', function: { name: 'f' } }];
    const chosen = (choice: JsonObject) => requestOf({ model: 'm', messages: [user], tools, tool_choice: choice }).toolChoice;
    assert.deepEqual(chosen({ function: { name: 'f' } }), { mode: 'tool', toolType: 'function', tool: { name: 'f' } });
    const both = { type: 'custom', custom: { name: 'c' }, function: { name: 'f' } };
    assert.deepEqual(chosen(both), { mode: 'tool', toolType: 'custom', tool: { name: 'c' } }, 'the type decides');
    assert.throws(() => chosen({}), { param: 'tool_choice.type' });
    assert.throws(() => chosen({ function: {} }), { param: 'tool_choice.function.name' });
  });

  it('rejoin the two ends of one reasoning item, and a signature with its call', () => {
    const opaque: Opaque = { owner, value: 'DATA', itemId: 'rs_1' };
    const signature: Opaque = { owner: { ...owner, channelType: 'gemini' }, value: 'SIG' };
    const details = [
      { type: 'reasoning.summary', summary: 'S', id: 'rs_1', format: 'unknown', index: 0 },
      { type: 'reasoning.encrypted', data: seal(opaque), id: 'rs_1', format: 'unknown', index: 0 },
      { type: 'reasoning.encrypted', data: seal(signature), id: 'call_1', format: 'unknown', index: 1 },
    ];
    const call = { id: 'call_1', type: 'function', function: { name: 'f', arguments: '{}' } };
    assert.deepEqual(
      itemsOf({ role: 'assistant', content: 'x', reasoning: 'S', reasoning_details: details, tool_calls: [call] }),
      [
        { kind: 'reasoning', summary: ['S'], opaque: { ...opaque, sealed: seal(opaque) }, id: 'rs_1' },
        { kind: 'text', role: 'assistant', text: 'x', citations: [] },
        {
          kind: 'toolCall',
          toolType: 'function',
          callId: 'call_1',
          tool: { name: 'f' },
          input: '{}',
          opaque: { ...signature, sealed: seal(signature) },
        },
      ],
    );
  });

  it('read the summary of a payload in its own entry, as the official Python client puts the two together', () => {
    const opaque: Opaque = { owner: { ...owner, channelType: 'messages' }, value: 'SIG', itemId: 'rs_1' };
    const entry = { type: 'reasoning.encrypted', summary: 'why', id: 'rs_1rs_1', format: 'unknownunknown', index: 0 };
    const message = { role: 'assistant', content: 'a', reasoning: 'why', reasoning_details: [{ ...entry, data: seal(opaque) }] };
    const [item] = requestOf({ model: 'm', messages: [user, message] }).items.slice(1);
    assert.ok(item?.kind === 'reasoning');
    assert.deepEqual([item.summary, item.opaque?.value, item.id], [['why'], 'SIG', 'rs_1']);
    // Clients that keep entries by their index leave holes.
    const holed = { ...message, reasoning_details: [null, ...message.reasoning_details] };
    assert.deepEqual(requestOf({ model: 'm', messages: [user, holed] }).items[1], item);
  });

  it('read entries that come once for each part of their message as what they say once', () => {
    const opaque: Opaque = { owner: { ...owner, channelType: 'messages' }, value: 'SIG', itemId: 'rs_1' };
    const place = { id: 'rs_1', format: 'unknown', index: 0 };
    const said = (summary: string) => ({ type: 'reasoning.summary', summary, ...place });
    const sealed = { type: 'reasoning.encrypted', data: seal(opaque), ...place };
    const told = [said('ha'), said('ha'), sealed];
    // OpenRouter's provider for AI SDK 5: a whole answer, and a streamed one, whose first part kept its last entry alone.
    const reasoningOf = (...details: JsonObject[]) => {
      const message = { role: 'assistant', content: 'a', reasoning_details: details };
      const [, item] = requestOf({ model: 'm', messages: [user, message] }).items;
      assert.ok(item?.kind === 'reasoning');
      return [item.raw, item.summary, item.opaque?.value];
    };
    assert.deepEqual(reasoningOf(...told), [undefined, ['haha'], 'SIG']);
    assert.deepEqual(reasoningOf(...told, ...told, ...told), [undefined, ['haha'], 'SIG']);
    assert.deepEqual(reasoningOf(sealed, ...told, ...told), [undefined, ['haha'], 'SIG']);
    const signed = { type: 'reasoning.text', text: 'why', signature: 'vendor', format: 'anthropic-claude-v1', index: 0 };
    assert.deepEqual(reasoningOf(signed, signed), ['why', undefined, 'vendor']);
  });

  it('rejoin a signature with its text, which is a text of its own again', () => {
    const entry = (value: string, id: string): JsonObject => {
      const opaque: Opaque = { owner: { ...owner, channelType: 'gemini' }, value };
      return { type: 'reasoning.encrypted', data: seal(opaque), id, format: 'unknown', index: 0 };
    };
    const texts = (content: string | JsonObject[], ...details: JsonObject[]) => {
      const messages = [user, { role: 'assistant', content, reasoning_details: details }];
      const items = requestOf({ model: 'm', messages }).items.slice(1);
      return items.map((item) => (item.kind === 'text' ? [item.text, item.opaque?.value] : item.kind));
    };
    const [first, last] = [entry('A', 'text_signature_0_3'), entry('B', 'text_signature_5_8')];
    assert.deepEqual(texts('one\n\ntwo\n\nend', last, first), [
      ['one', 'A'],
      ['two', 'B'],
      ['\n\nend', undefined],
    ]);
    assert.deepEqual(texts('one', first), [['one', 'A']]);
    // Where the client changed the content, the last text takes the last signature.
    assert.deepEqual(texts('one two', first, last), [['one two', 'B']]);
    assert.deepEqual(
      texts(
        ['one', 'two'].map((text) => ({ type: 'text', text })),
        first,
      ),
      [
        ['one', undefined],
        ['two', 'A'],
      ],
    );
  });

  it('rejoin a signature with its image, wherever the client keeps its images', () => {
    const opaque: Opaque = { owner: { ...owner, channelType: 'gemini' }, value: 'SIG', form: 'inlineData' };
    const entry = { type: 'reasoning.encrypted', data: seal(opaque), id: 'image_signature_1', format: 'unknown', index: 0 };
    const image = (data: string): JsonObject => ({ type: 'image_url', image_url: { url: `data:image/png;base64,${data}` } });
    const images = [image('AAAA'), image('BBBB')];
    const places: JsonObject[] = [{ content: null, images }, { content: images }];
    for (const place of places) {
      const { items } = withMessages({ role: 'assistant', ...place, reasoning_details: [entry] });
      assert.deepEqual(
        items.flatMap((item) => (item.kind === 'media' ? [item.opaque?.value] : [])),
        [undefined, 'SIG'],
      );
      assert.ok(items.every(({ kind }) => kind !== 'reasoning'));
    }
  });

  it('keep configuration updates in place, empty content included', () => {
    const update = { role: 'system', content: '', configuration_update: { reasoning: { effort: 'low' } } };
    assert.deepEqual(itemsOf(update), [{ kind: 'native', dialect: 'chat', role: 'system', body: update }]);
  });

  it('read the effort that the last configuration update sets as the one of the request', () => {
    const update = (effort: string | number) => ({
      role: 'system',
      content: '',
      configuration_update: { reasoning: { effort } },
    });
    const effort = (...messages: JsonObject[]) =>
      requestOf({ model: 'm', messages: [user, ...messages], reasoning_effort: 'low' }).reasoning?.effort;
    assert.equal(effort(), 'low');
    assert.equal(effort(update('high'), update('none')), 'none');
    assert.equal(effort(update('max'), { role: 'system', content: '', configuration_update: {} }), 'max');
    assert.throws(() => effort(update(5)), { details: { param: 'messages[1].configuration_update.reasoning.effort' } });
  });

  it('read controls by their precedence', () => {
    const request = requestOf({
      model: 'm',
      messages: [user],
      max_tokens: 5,
      max_completion_tokens: 7,
      reasoning_effort: 'low',
      reasoning: { effort: 'high', max_tokens: 9, summary: 'auto' },
      stop: 'x',
      logprobs: true,
      top_logprobs: 3,
      n: 1,
      stream: true,
      stream_options: { include_usage: true },
      response_format: { type: 'json_schema', json_schema: { name: 's', schema: { type: 'object' }, strict: true } },
    });
    assert.equal(request.maxOutputTokens, 7);
    assert.deepEqual(request.reasoning, { effort: 'low', budget: 9, summary: 'auto' });
    assert.deepEqual(request.stop, ['x']);
    assert.deepEqual(request.logprobs, { top: 3 });
    assert.equal(request.includeUsage, true);
    assert.deepEqual(request.format, { type: 'json_schema', name: 's', schema: { type: 'object' }, strict: true });
  });

  const wrong: [string, JsonObject][] = [
    ['model', { messages: [user] }],
    ['messages', { model: 'm' }],
    ['messages', { model: 'm', messages: [] }],
    ['messages[0].role', { model: 'm', messages: [{ role: 'robot', content: '' }] }],
    ['messages[0].content', { model: 'm', messages: [{ role: 'user' }] }],
    [
      'messages[0].content[1].text',
      {
        model: 'm',
        messages: [
          {
            role: 'user',
            content: [
              { type: 'text', text: 'a' },
              { type: 'text', text: 5 },
            ],
          },
        ],
      },
    ],
    ['messages[0].content', { model: 'm', messages: [{ role: 'user', content: { type: 'text', text: 'x' } }] }],
    ['messages[0].tool_call_id', { model: 'm', messages: [{ role: 'tool', content: 'x' }] }],
    ['messages[0].tool_call_id', { model: 'm', messages: [{ role: 'tool', tool_call_id: '', content: 'x' }] }],
    [
      'messages[0].tool_calls[0].function.name',
      { model: 'm', messages: [{ role: 'assistant', tool_calls: [{ id: 'a', type: 'function', function: {} }] }] },
    ],
    [
      'messages[0].tool_calls[0].id',
      {
        model: 'm',
        messages: [{ role: 'assistant', tool_calls: [{ id: '', type: 'function', function: { name: 'f', arguments: '{}' } }] }],
      },
    ],
    [
      'messages[0].content[0].file',
      { model: 'm', messages: [{ role: 'user', content: [{ type: 'file', file: { filename: 'x' } }] }] },
    ],
    [
      'messages[0].reasoning_details',
      { model: 'm', messages: [{ role: 'assistant', content: 'x', reasoning_details: ['x'] }, user] },
    ],
    ['top_logprobs', { model: 'm', messages: [user], top_logprobs: 3 }],
    ['n', { model: 'm', messages: [user], n: 2 }],
    ['n', { model: 'm', messages: [user], n: '1' }],
    ['stream', { model: 'm', messages: [user], stream: 'yes' }],
    ['stop[1]', { model: 'm', messages: [user], stop: ['a', 1] }],
    ['tools[0].function.name', { model: 'm', messages: [user], tools: [{ type: 'function', function: {} }] }],
    ['tool_choice', { model: 'm', messages: [user], tool_choice: 'maybe' }],
    ['max_tokens', { model: 'm', messages: [user], max_tokens: 1.5 }],
    ['top_logprobs', { model: 'm', messages: [user], logprobs: true, top_logprobs: 21 }],
    ['response_format.json_schema', { model: 'm', messages: [user], response_format: { type: 'json_schema' } }],
  ];
  for (const [param, body] of wrong) {
    it(`refuse a wrong ${param}`, () => {
      assert.throws(
        () => requestOf(body),
        (error) => error instanceof GatewayError && error.status === 400 && error.param === param,
      );
    });
  }
});

describe('chat requests spliced for a chat upstream', () => {
  const spliced = (body: JsonObject, over = {}) => chatUpstream.encodeRequest(requestOf(body), target(over)).body;

  it('rename messages of the developer where the upstream knows no such role, and nothing else', () => {
    const body = {
      model: 'm',
      messages: [
        { role: 'developer', content: 'be  brief', x: 1 },
        { role: 'user', content: 'developer' },
      ],
    };
    const wanted = JSON.stringify({ ...body, model: 'up-model' });
    assert.equal(spliced(body), wanted);
    assert.equal(
      spliced(body, { options: { developerAsSystem: true } }),
      wanted.replace('"role":"developer"', '"role":"system"'),
    );
  });

  it('change the model and nothing else', () => {
    const text = '{ "messages":[{"role":"user","content":"\\u0041"}],"x":1.0,"9":1,"1":2, "model" : "m" }';
    const request = { ...requestOf(JSON.parse(text)), text };
    assert.equal(chatUpstream.encodeRequest(request, target()).body, text.replace('"m"', '"up-model"'));
  });

  it('leave out what a model thought, in every spelling, once the upstream has refused it', () => {
    const turn = { role: 'assistant', content: 'a' };
    const thought = {
      ...turn,
      reasoning_content: 'x',
      reasoning: 'x',
      reasoning_details: [{ type: 'reasoning.text', text: 'x' }],
    };
    const body = { model: 'm', messages: [user, thought, user] };
    assert.deepEqual(JSON.parse(spliced(body)).messages, body.messages);
    assert.deepEqual(JSON.parse(spliced(body, { without: new Set(['raw'] as const) })).messages, [user, turn, user]);
    const wanting = { without: new Set(['raw'] as const), options: { replayReasoningContent: true } };
    assert.deepEqual(JSON.parse(spliced(body, wanting)).messages, [user, { ...turn, reasoning_content: 'x' }, user]);
  });

  it('force the usage of streams and drop what chooses upstreams', () => {
    const body = {
      model: 'm',
      messages: [user],
      stream: true,
      models: ['x'],
      fallbacks: [],
      api_base: 'http://x',
      base_url: 'http://y',
      user_config: {},
    };
    assert.equal(
      spliced(body),
      '{"model":"up-model","messages":[{"role":"user","content":"hi"}],"stream":true,"stream_options":{"include_usage":true}}',
    );
    assert.deepEqual(
      JSON.parse(spliced({ ...body, stream_options: { include_usage: false, include_obfuscation: true } })).stream_options,
      {
        include_usage: true,
        include_obfuscation: true,
      },
    );
    for (const stream_options of ['x', true, [], null, { include_usage: 'yes' }]) {
      assert.deepEqual(JSON.parse(spliced({ ...body, stream_options })).stream_options, { include_usage: true });
      assert.equal(requestOf({ model: 'm', messages: [user], stream: true, stream_options }).includeUsage, false);
    }
  });

  it('say effort none in a native reasoning object and nowhere else', () => {
    const json = JSON.parse(
      spliced({ model: 'm', messages: [user], reasoning_effort: 'none', reasoning: { max_tokens: 5, exclude: true } }),
    );
    assert.deepEqual([json.reasoning, json.reasoning_effort], [{ effort: 'none', exclude: true }, undefined]);
    assert.equal(JSON.parse(spliced({ model: 'm', messages: [user], reasoning_effort: 'none' })).reasoning_effort, 'none');
  });

  it('give turns with calls an empty reasoning, where the Channel refuses them without any', () => {
    const tool_calls = [{ id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } }];
    const turns = [
      ...[user, { role: 'assistant', content: null, tool_calls }, { role: 'tool', tool_call_id: 'a', content: 'r' }],
      ...[
        { role: 'assistant', content: null, reasoning_content: 'why', tool_calls },
        { role: 'assistant', content: 'done' },
      ],
      { role: 'assistant', content: null, reasoning_content: null, tool_calls },
    ];
    const body = { model: 'm', messages: turns };
    const sent = JSON.parse(spliced(body, { options: { replayReasoningContent: true } })).messages as JsonObject[];
    const reasoning = [undefined, '', undefined, 'why', undefined, ''];
    assert.deepEqual(
      sent,
      turns.map((turn, at) => (reasoning[at] === undefined ? turn : { ...turn, reasoning_content: reasoning[at] })),
    );
    assert.deepEqual(JSON.parse(spliced(body)).messages, turns);
  });

  const mine: Opaque = { owner, value: 'RAW', form: '{"type":"reasoning.text","format":"anthropic-claude-v1","index":0}' };
  const other: Opaque = { owner: { ...owner, scope: 'https://other.test' }, value: 'FOREIGN' };
  const history = (details: JsonObject[]) => ({
    model: 'm',
    messages: [user, { role: 'assistant', content: 'a', reasoning: 'T', reasoning_details: details }, user],
  });
  const details = (body: JsonObject, over = {}) => JSON.parse(spliced(body, over)).messages[1];

  it('open envelopes of this owner in place', () => {
    const entry = { type: 'reasoning.text', text: 'T', format: 'anthropic-claude-v1', index: 0, signature: seal(mine), extra: 1 };
    assert.deepEqual(details(history([entry])).reasoning_details, [{ ...entry, signature: 'RAW' }]);
    assert.deepEqual(details(history([{ ...entry, signature: 'vendor' }])).reasoning_details, [
      { ...entry, signature: 'vendor' },
    ]);
  });

  it('remove the reasoning of another owner, of a broken envelope, and all of it on the retry without', () => {
    const summary = { type: 'reasoning.summary', summary: 'T', format: 'x', index: 0 };
    const sealed = { type: 'reasoning.encrypted', data: seal(other), format: 'x', index: 0 };
    const kept = { type: 'reasoning.text', text: 'plain', index: 1 };
    assert.deepEqual(details(history([summary, sealed])), { role: 'assistant', content: 'a' });
    assert.deepEqual(details(history([summary, sealed, kept])).reasoning_details, [kept]);
    assert.deepEqual(details(history([{ ...sealed, data: 'mz2.broken' }])), { role: 'assistant', content: 'a' });
    const entry = { type: 'reasoning.text', text: 'T', index: 0, signature: seal(mine) };
    assert.deepEqual(details(history([entry]), { without: new Set(['opaque'] as const) }), { role: 'assistant', content: 'a' });
  });

  it('remove a summary that the gateway said of another protocol’s answer, where no value goes with it', () => {
    const summary = { type: 'reasoning.summary', summary: 'T', id: 'rs_1', format: 'unknown', index: 0 };
    const vendors = { type: 'reasoning.summary', summary: 'T', format: 'openai-responses-v1', index: 1 };
    const sealed = { type: 'reasoning.encrypted', data: 'gAAA', id: 'rs_1', format: 'unknown', index: 0 };
    assert.deepEqual(details(history([summary])), { role: 'assistant', content: 'a' });
    assert.deepEqual(details(history([summary, vendors])).reasoning_details, [vendors]);
    assert.deepEqual(details(history([summary, sealed])).reasoning_details, [summary, sealed]);
  });
});

describe('chat requests of real clients', { skip: noRecordings }, () => {
  for (const file of ['openai-sdk', 'langchain', 'vercel-ai', 'pi-chat', 'opencode-chat', 'openai-agents']) {
    it(file, () => {
      const path = join(process.env['MIZU_FIXTURES'] ?? '', 'client-requests', `${file}.jsonl`);
      for (const text of readFileSync(path, 'utf8').split('\n')) {
        if (text === '') continue;
        const { url, body } = JSON.parse(text);
        if (typeof url !== 'string' || !url.startsWith('/v1/chat/completions')) continue;
        const request = requestOf(body);
        const upstream = JSON.parse(chatUpstream.encodeRequest(request, target()).body);
        const { stream_options: _sent, ...sent } = upstream;
        const { stream_options: _given, ...given } = body;
        assert.deepEqual(sent, { ...given, model: 'up-model' });
      }
    });
  }
});
