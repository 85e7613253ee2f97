import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { GatewayError } from '../../../../src/codecs/canonical/error.ts';
import type { CanonicalEvent, Step } from '../../../../src/codecs/canonical/event.ts';
import { fold } from '../../../../src/codecs/canonical/fold.ts';
import type { MediaSource, OutputItem } from '../../../../src/codecs/canonical/item.ts';
import type { JsonObject } from '../../../../src/codecs/canonical/json.ts';
import type { Outcome } from '../../../../src/codecs/canonical/outcome.ts';
import type { CanonicalRequest } from '../../../../src/codecs/canonical/request.ts';
import { chatClient, chatUpstream } from '../../../../src/codecs/chat/index.ts';
import type { Frame } from '../../../../src/codecs/codec.ts';
import { chunk, decode, decodeContext, encode, frame, owner, requestOf, responseContext, seal, target } from '../support.ts';

const user = { role: 'user', content: 'x' };
const asking = requestOf({ model: 'm', messages: [user], stream: true, stream_options: { include_usage: true } });
const end: CanonicalEvent = { type: 'response.end', outcome: { status: 'completed', stop: 'end' } };

/** The stream of finished items: start, end, without deltas. */
function stepsOf(items: readonly OutputItem[], outcome: Outcome = { status: 'completed', stop: 'end' }): Step[] {
  const events: CanonicalEvent[] = [{ type: 'response.start' }];
  for (const [index, item] of items.entries()) {
    const head =
      item.kind === 'toolCall'
        ? { kind: item.kind, toolType: item.toolType, callId: item.callId, tool: item.tool }
        : item.kind === 'text'
          ? { kind: item.kind, role: item.role, ...(item.phase === undefined ? {} : { phase: item.phase }) }
          : item.kind === 'native'
            ? { kind: item.kind, dialect: item.dialect }
            : { kind: item.kind };
    events.push({ type: 'item.start', index, head }, { type: 'item.end', index, item, status: 'completed' });
  }
  events.push({ type: 'usage.report', usage: { input: 1, cacheRead: 2, output: 3, reasoning: 1 } });
  events.push({ type: 'response.end', outcome });
  return events.map((event) => ({ events: [event] }));
}

/** Without the role, which the first has. */
const deltas = (frames: readonly string[]): JsonObject[] =>
  frames
    .filter((data) => data !== '[DONE]')
    .flatMap((data) => JSON.parse(data).choices)
    .map(({ delta: { role: _, ...delta }, finish_reason }) => (finish_reason === null ? delta : { finish_reason }));

const text = (value: string): OutputItem => ({ kind: 'text', role: 'assistant', text: value, citations: [] });
const call: OutputItem = {
  kind: 'toolCall',
  toolType: 'function',
  callId: 'a',
  tool: { name: 'f', namespace: 'ns' },
  input: '{"x":1}',
};

describe('chat streams of other dialects', () => {
  it('begin with the role, end with one finish, the usage and [DONE]', () => {
    const frames = encode(stepsOf([text('Hi')]), responseContext({ request: asking }));
    const shell = '"id":"chatcmpl-gateway","object":"chat.completion.chunk","created":1700000000,"model":"m"';
    assert.deepEqual(frames, [
      `{${shell},"choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}],"usage":null}`,
      `{${shell},"choices":[{"index":0,"delta":{"content":"Hi"},"logprobs":null,"finish_reason":null}],"usage":null}`,
      `{${shell},"choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}],"usage":null}`,
      `{${shell},"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":3,"total_tokens":6,"prompt_tokens_details":{"cached_tokens":2,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":1,"audio_tokens":0}}}`,
      '[DONE]',
    ]);
    assert.equal(
      encode(stepsOf([text('Hi')])).some((data) => data.includes('usage')),
      false,
    );
  });

  it('count tool calls by their order and force the finish reason', () => {
    const custom: OutputItem = { kind: 'toolCall', toolType: 'custom', callId: 'b', tool: { name: 'p' }, input: 'raw' };
    assert.deepEqual(deltas(encode(stepsOf([text('Hi'), call, custom]))).slice(2), [
      { tool_calls: [{ index: 0, id: 'a', type: 'function', function: { name: 'f', arguments: '' } }] },
      { tool_calls: [{ index: 0, function: { arguments: '{"x":1}' } }] },
      { tool_calls: [{ index: 1, id: 'b', type: 'custom', custom: { name: 'p', input: '' } }] },
      { tool_calls: [{ index: 1, custom: { input: 'raw' } }] },
      { finish_reason: 'tool_calls' },
    ]);
  });

  it('say the three faces of reasoning apart', () => {
    const opaque = { owner, value: 'D', itemId: 'rs_1' };
    const item: OutputItem = { kind: 'reasoning', raw: 'R', summary: ['A', 'B'], opaque, id: 'rs_1' };
    const steps = stepsOf([item]);
    steps[1] = { events: [{ type: 'item.start', index: 0, head: { kind: 'reasoning', id: 'rs_1' } }] };
    const entry = { id: 'rs_1', format: 'unknown', index: 0 };
    assert.deepEqual(deltas(encode(steps)).slice(1, -1), [
      { reasoning_content: 'R' },
      { reasoning: 'A', reasoning_details: [{ type: 'reasoning.summary', summary: 'A', ...entry }] },
      { reasoning: '\n\nB', reasoning_details: [{ type: 'reasoning.summary', summary: '\n\nB', ...entry }] },
      { reasoning_details: [{ type: 'reasoning.encrypted', data: seal(opaque), ...entry }] },
    ]);
  });

  it('count the entries of reasoning from 0 without a hole, whole bodies too', () => {
    const thought = (id: string, face: object): OutputItem => ({ kind: 'reasoning', id, ...face });
    const items = [
      thought('rs_1', { raw: 'R' }),
      thought('rs_2', { summary: ['A'] }),
      thought('rs_3', { raw: 'S', summary: ['B'] }),
    ];
    const indices = (details: unknown): unknown[] => (details as JsonObject[]).map(({ id, index }) => [id, index]);
    const streamed = deltas(encode(stepsOf(items))).flatMap(({ reasoning_details: details }) => details ?? []);
    const whole = fold(stepsOf(items).flatMap(({ events }) => events));
    const { message } = JSON.parse(chatClient.encodeResponse(whole, undefined, responseContext())).choices[0];
    assert.deepEqual(indices(message.reasoning_details), [
      ['rs_2', 0],
      ['rs_3', 1],
    ]);
    assert.deepEqual(
      (streamed as JsonObject[]).map(({ index }) => index),
      [0, 1],
    );
  });

  it('tie a signature to its call, after the call is final', () => {
    const opaque = { owner: { ...owner, channelType: 'gemini' as const }, value: 'SIG' };
    const said = deltas(encode(stepsOf([{ ...call, opaque } as OutputItem])));
    assert.deepEqual(said.at(-2), {
      reasoning_details: [{ type: 'reasoning.encrypted', data: seal(opaque), id: 'a', format: 'unknown', index: 0 }],
    });
  });

  it('tie a signature to its image, by the number of the image', () => {
    const opaque = { owner: { ...owner, channelType: 'gemini' as const }, value: 'SIG', form: 'inlineData' };
    const source = { from: 'inline' as const, mime: 'image/png', data: 'AAAA' };
    const image: OutputItem = { kind: 'media', role: 'assistant', media: { type: 'image', source } };
    const said = deltas(encode(stepsOf([image, { ...image, opaque }])));
    assert.deepEqual(said.at(-2), {
      reasoning_details: [
        { type: 'reasoning.encrypted', data: seal(opaque), id: 'image_signature_1', format: 'unknown', index: 0 },
      ],
    });
  });

  it('part texts by what stands between them, and say nothing for one without words, in whole bodies too', () => {
    const phased: OutputItem = { kind: 'text', role: 'assistant', text: 'c', citations: [], phase: 'final_answer' };
    for (const [items, expected] of [
      [[text('a'), text('b'), call, text('c')], 'ab\n\nc'],
      [[text('a'), phased], 'a\n\nc'],
      [[text('a'), call, text('')], 'a'],
      [[text('a'), call, text(''), text('b')], 'a\n\nb'],
      [[text(''), call, text('b')], 'b'],
    ] as const) {
      const steps = stepsOf(items);
      assert.equal(
        deltas(encode(steps))
          .map(({ content = '' }) => content)
          .join(''),
        expected,
      );
      const whole = fold(steps.flatMap(({ events }) => events));
      assert.equal(
        JSON.parse(chatClient.encodeResponse(whole, undefined, responseContext())).choices[0].message.content,
        expected,
      );
    }
  });

  it('place citations in the whole content, in code points', () => {
    const cited: OutputItem = {
      kind: 'text',
      role: 'assistant',
      text: 'see',
      citations: [{ kind: 'url', url: 'https://a.test', start: 0, end: 3 }],
    };
    const said = deltas(encode(stepsOf([text('😀 '), cited])));
    assert.deepEqual(said.at(-2), {
      annotations: [{ type: 'url_citation', url_citation: { start_index: 2, end_index: 5, url: 'https://a.test', title: '' } }],
    });
  });

  it('say images as routers do, each under its index, and refuse what chat cannot say', () => {
    const image: OutputItem = {
      kind: 'media',
      role: 'assistant',
      media: { type: 'image', source: { from: 'inline', mime: 'image/png', data: 'AAAA' } },
    };
    const entry = { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } };
    assert.deepEqual(deltas(encode(stepsOf([image, image]))).slice(1, 3), [
      { images: [{ ...entry, index: 0 }] },
      { images: [{ ...entry, index: 1 }] },
    ]);
    const file: OutputItem = {
      kind: 'media',
      role: 'assistant',
      media: { type: 'file', source: { from: 'reference', id: 'f' } },
    };
    assert.throws(
      () => encode(stepsOf([file])),
      (error) => error instanceof GatewayError && error.code === 'response_not_representable',
    );
  });

  it('let texts and thoughts that a responses upstream says side by side speak one after the other', () => {
    const thought = (summary: string): OutputItem => ({ kind: 'reasoning', summary: [summary] });
    const items = [thought('one'), text('12.5 and'), call, thought('two'), text(' more')];
    const serial = stepsOf(items).flatMap(({ events }) => events);
    const starts = serial.filter(({ type }) => type === 'item.start');
    const says = (index: number, value: string): CanonicalEvent => {
      const isText = items[index]?.kind === 'text';
      return {
        type: 'item.delta',
        index,
        delta: isText ? { kind: 'text', text: value } : { kind: 'summary', part: 0, text: value },
      };
    };
    const pieces = [says(3, 't'), says(4, ' mo'), says(1, '12.'), says(0, 'on'), says(1, '5 '), says(3, 'w'), says(0, 'e')];
    const ends = [4, 3, 1, 2, 0].flatMap((at) => serial.filter((event) => event.type === 'item.end' && event.index === at));
    const steps = [{ type: 'response.start' } as const, ...starts, ...pieces, ...ends, end].map((event) => ({ events: [event] }));
    const context = responseContext({ owner: { ...owner, channelType: 'responses' } });
    const said = deltas(encode(steps, context));
    const joined = (name: string) => said.map((delta) => delta[name] ?? '').join('');
    assert.equal(joined('content'), '12.5 and\n\n more');
    assert.equal(joined('reasoning'), 'one\n\ntwo');
    const whole = deltas(encode(stepsOf(items)));
    assert.equal(whole.map((delta) => delta['content'] ?? '').join(''), '12.5 and\n\n more');
    const entries = said.flatMap((delta) => delta['reasoning_details'] ?? []) as JsonObject[];
    assert.deepEqual([...new Set(entries.map(({ index }) => index))], [0, 1]);
  });

  it('hold no text up behind one that stays open for its citations', () => {
    const head = { kind: 'text', role: 'assistant' } as const;
    const begun = ['a', 'b'].flatMap((said, index): CanonicalEvent[] => [
      { type: 'item.start', index, head },
      { type: 'item.delta', index, delta: { kind: 'text', text: said } },
    ]);
    const steps = [{ type: 'response.start' } as const, ...begun].map((event) => ({ events: [event] }));
    const frames = encode(steps);
    assert.match(frames.pop() ?? '', /"error"/);
    assert.deepEqual(deltas(frames), [{ content: '' }, { content: 'a' }, { content: 'b' }]);
  });

  it('say of what kind an error in the stream is, since no status does', () => {
    const typeFor = (status: number): unknown => {
      const error = new GatewayError('upstream_error', 'It failed.', { upstream: { status } });
      return JSON.parse(encode(stepsOf([text('Hi')], { status: 'failed', error })).at(-1) ?? '').error.type;
    };
    assert.deepEqual([400, 429, 529].map(typeFor), ['invalid_request_error', 'rate_limit_error', 'server_error']);
    assert.equal(typeFor(401), 'server_error', 'our credential is not what the client sent');
  });

  it('end a failure with an error frame and nothing after it', () => {
    const error = new GatewayError('upstream_error', 'It failed.');
    const frames = encode(stepsOf([text('Hi')], { status: 'failed', error }));
    assert.equal(frames.at(-1), '{"error":{"message":"It failed.","type":"server_error","param":null,"code":"upstream_error"}}');
    assert.equal(
      frames.some((data) => data === '[DONE]' || data.includes('"finish_reason":"')),
      false,
    );
    const encoder = chatClient.encodeEvents(responseContext());
    const out: Frame[] = [];
    encoder.fail(error, out);
    encoder.fail(error, out);
    encoder.push({ events: [end] }, out);
    assert.equal(out.length, 1);
  });

  const cut: [Outcome, string, string | undefined][] = [
    [{ status: 'incomplete', reason: 'max_output' }, 'length', undefined],
    [{ status: 'incomplete', reason: 'content_filter' }, 'content_filter', undefined],
    [{ status: 'incomplete', reason: 'pause', native: 'pause_turn' }, 'stop', 'pause_turn'],
    [{ status: 'incomplete', reason: 'compaction' }, 'stop', 'compaction'],
    [{ status: 'incomplete', reason: 'context_window' }, 'length', 'context_window'],
  ];
  for (const [outcome, finish, native] of cut) {
    it(`finish ${outcome.status === 'incomplete' ? outcome.reason : ''} as ${finish}`, () => {
      const [choice] = JSON.parse(encode(stepsOf([call], outcome)).at(-2) ?? '').choices;
      assert.deepEqual([choice.finish_reason, choice.native_finish_reason], [finish, native]);
    });
  }

  it('answer clients of deprecated functions in their spelling', () => {
    // Typed clients spell out what is absent.
    const request = requestOf({ model: 'm', messages: [user], functions: [{ name: 'f' }], tools: null });
    assert.deepEqual(deltas(encode(stepsOf([call]), responseContext({ request }))).slice(1), [
      { function_call: { name: 'f', arguments: '' } },
      { function_call: { arguments: '{"x":1}' } },
      { finish_reason: 'function_call' },
    ]);
    const whole = fold(stepsOf([call]).flatMap(({ events }) => events));
    const [choice] = JSON.parse(chatClient.encodeResponse(whole, undefined, responseContext({ request }))).choices;
    assert.deepEqual(choice.message.function_call, { name: 'f', arguments: '{"x":1}' });
    assert.deepEqual([choice.message.tool_calls, choice.finish_reason], [undefined, 'function_call']);
  });

  it('and whole answers refuse what a message has one place for, or none', () => {
    const legacy = responseContext({ request: requestOf({ model: 'm', messages: [user], functions: [{ name: 'f' }] }) });
    const media = (type: 'audio' | 'file' | 'image', source: MediaSource): OutputItem => ({
      kind: 'media',
      role: 'assistant',
      media: { type, source },
    });
    const sound = media('audio', { from: 'inline', mime: 'audio/wav', data: 'AAAA' });
    const words = media('file', { from: 'text', text: 'a' });
    const picture = media('image', { from: 'reference', id: 'file_1' });
    const linked = media('audio', { from: 'url', url: 'https://a.example/a.wav' });
    const refused = (error: unknown): boolean => error instanceof GatewayError && error.code === 'response_not_representable';
    for (const [items, context] of [
      [[call, { ...call, callId: 'b' } as OutputItem], legacy],
      [[sound, sound], responseContext()],
      [[words], responseContext()],
      [[picture], responseContext()],
      [[linked], responseContext()],
    ] as const) {
      const steps = stepsOf(items);
      assert.throws(() => encode(steps, context), refused);
      assert.throws(() => chatClient.encodeResponse(fold(steps.flatMap(({ events }) => events)), undefined, context), refused);
    }
  });
});

describe('chat streams of a chat upstream', () => {
  const finish =
    '{"id":"u","created":1,"choices":[{"index":0,"delta":{},"finish_reason":"stop","x":1.0}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2,"cost":0.10}}';

  it('keep every byte but id, model and usage', () => {
    const data =
      '{"z":1.50,"id":"u" ,"object":"chat.completion.chunk","created":1,"model":"up","choices":[{"index":0,"delta":{"role":"assistant","content":"\\u0041","new":{}},"finish_reason":null}],"obfuscation":"k"}';
    const { steps } = decode([frame(data), frame(finish), frame('[DONE]')]);
    assert.deepEqual(encode(steps), [
      data.replace('"u"', '"chatcmpl-gateway"').replace('"up"', '"m"'),
      '{"id":"chatcmpl-gateway","created":1,"choices":[{"index":0,"delta":{},"finish_reason":"stop","x":1.0}],"model":"m",' +
        '"object":"chat.completion.chunk"}',
      '[DONE]',
    ]);
  });

  it('say in every chunk what it is and since when the answer is made, in the finish and the usage too (Moonshot leaves it out)', () => {
    const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
    const choice = (delta: object, reason: string | null) => ({ choices: [{ index: 0, delta, finish_reason: reason }] });
    for (const [given, created] of [
      [{ created: 7 }, 7],
      [{}, 1_700_000_000],
      [{ object: null, created: null }, 1_700_000_000],
    ] as const) {
      const chunks = [{ ...choice({ content: 'a' }, null), ...given }, choice({ content: 'b' }, null), { choices: [] }];
      const { steps } = decode([...chunks, { ...choice({}, 'stop'), usage }, { choices: [], usage }].map((one) => frame(one)));
      const said = encode(steps, responseContext({ request: asking }));
      assert.deepEqual(
        said.slice(0, -1).map((data) => [JSON.parse(data).object, JSON.parse(data).created]),
        Array.from({ length: 5 }, () => ['chat.completion.chunk', created]),
      );
    }
  });

  it('say that usage is still to come to those who asked for it alone: strict clients refuse the null', () => {
    const pieces = ['a', 'b', 'c'].map((content) => chunk({ content }, null, { usage: null }));
    const { steps } = decode([...pieces, chunk({}, 'stop', { usage: null })]);
    const nulls = (frames: readonly string[]) => frames.map((data) => data.includes('"usage":null'));
    assert.deepEqual(nulls(encode(steps)), [false, false, false, false, false]);
    assert.deepEqual(nulls(encode(steps, responseContext({ request: asking }))), [true, true, true, true, false]);
  });

  it('have the counters of usage under their own names, as numbers, and the others as they came', () => {
    const end = {
      id: 'u',
      created: 1,
      choices: [{ index: 0, delta: {}, finish_reason: 'stop' }],
      usage: { prompt_tokens: '3', output_tokens: 2, output_tokens_details: { reasoning_tokens: '1' } },
    };
    const { steps } = decode([chunk({ content: 'hi' }), frame(end), frame('[DONE]')]);
    const usage = JSON.parse(encode(steps, responseContext({ request: asking })).at(-2) ?? '').usage;
    assert.deepEqual(usage, {
      prompt_tokens: 3,
      output_tokens: 2,
      output_tokens_details: { reasoning_tokens: '1' },
      completion_tokens: 2,
      total_tokens: 5,
    });
  });

  it('keep the upstream’s own word for the end, also behind calls: only conversions say tool_calls for it', () => {
    const call = { tool_calls: [{ index: 0, id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } }] };
    const { steps } = decode([chunk(call), chunk({}, 'stop')]);
    assert.match(encode(steps).at(-2) ?? '', /"finish_reason":"stop"/);
    const converted = encode(steps.map(({ events }) => ({ events })));
    assert.match(converted.at(-2) ?? '', /"finish_reason":"tool_calls"/);
  });

  it('merge repeated finish chunks and give usage a chunk of its own, without the price of a router', () => {
    const { steps } = decode([chunk({ content: 'a' }), chunk({}, 'stop'), frame(finish)]);
    const frames = encode(steps, responseContext({ request: asking }));
    assert.deepEqual(
      frames.slice(2).map((data) => data.replaceAll('"id":"chatcmpl-gateway",', '')),
      [
        '{"created":1,"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2},"model":"m","object":"chat.completion.chunk"}',
        '[DONE]',
      ],
    );
    assert.equal(frames.filter((data) => data.includes('"finish_reason":"stop"')).length, 1);
  });

  it('give the usage beside what is no choice of the answer a chunk of its own, too', () => {
    const usage = { prompt_tokens: 2, completion_tokens: 1, total_tokens: 3 };
    for (const other of [null, { index: 1, delta: {}, finish_reason: 'stop' }]) {
      const { steps } = decode([chunk({ content: 'a' }), chunk({}, 'stop'), frame({ created: 1, choices: [other], usage })]);
      const counted = encode(steps, responseContext({ request: asking })).at(-2);
      assert.deepEqual(JSON.parse(counted ?? ''), {
        created: 1,
        choices: [],
        usage,
        id: 'chatcmpl-gateway',
        model: 'm',
        object: 'chat.completion.chunk',
      });
    }
  });

  it('give usage that came without choices a chunk of its own, too (Cloudflare; servers in Go say null)', () => {
    const usage = { prompt_tokens: 2, completion_tokens: 1, total_tokens: 3 };
    for (const none of [{}, { choices: null }]) {
      const counted = { id: 'u', created: 1, model: 'up', ...none, usage };
      const { steps } = decode([chunk({ content: 'a' }), frame(counted), chunk({}, 'stop')]);
      const said = encode(steps, responseContext({ request: asking }));
      assert.deepEqual(deltas(said), [{ content: 'a' }, { finish_reason: 'stop' }]);
      assert.deepEqual(JSON.parse(said.at(-2) ?? ''), {
        id: 'chatcmpl-gateway',
        object: 'chat.completion.chunk',
        created: 1,
        model: 'm',
        choices: [],
        usage,
      });
      assert.equal(encode(steps).length, 3);
    }
  });

  it('never take zeros for the usage that was said before them', () => {
    const usage = { prompt_tokens: 2, completion_tokens: 1, total_tokens: 3 };
    const zeros = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 };
    const { steps } = decode([
      chunk({ content: 'a' }, 'stop'),
      ...[usage, zeros, {}].map((said) => frame({ created: 1, choices: [], usage: said })),
    ]);
    const counted = encode(steps, responseContext({ request: asking })).at(-2) ?? '';
    assert.deepEqual(JSON.parse(counted).usage, usage);
    assert.equal(encode(steps).length, 2);
  });

  it('show the logical model, and never the upstream’s id, on events without choices', () => {
    const note = '{"id":"u","object":"status","model":"up","x":1.0}';
    const { steps } = decode([frame(note), chunk({ content: 'a' }), frame('{"x":1}'), chunk({}, 'stop')]);
    assert.deepEqual(
      encode(steps).filter((data) => data.includes('"x"')),
      ['{"id":"chatcmpl-gateway","object":"status","model":"m","x":1.0}', '{"x":1}'],
    );
  });

  it('give what calls itself a chunk the list of choices that official clients go through', () => {
    const bare = { id: 'u', object: 'chat.completion.chunk', created: 1, model: 'up', service_tier: 'default' };
    const { steps } = decode([chunk({ content: 'a' }), frame(bare), frame(bare), chunk({}, 'stop')]);
    const own = { ...bare, id: 'chatcmpl-gateway', model: 'm', choices: [] };
    const [, first, second] = encode(steps);
    assert.deepEqual([JSON.parse(first ?? ''), JSON.parse(second ?? '')], [own, own]);
  });

  it('give every choice the delta that official clients read (Azure’s late filter results have none)', () => {
    const choice = (more: JsonObject) => frame({ choices: [{ index: 0, finish_reason: null, ...more }] });
    const { steps } = decode([
      chunk({ content: 'a' }),
      choice({ content_filter_offsets: { end_offset: 1 } }),
      choice({ delta: null }),
      choice({ finish_reason: 'stop' }),
    ]);
    assert.deepEqual(deltas(encode(steps)), [{ content: 'a' }, {}, {}, { finish_reason: 'stop' }]);
    assert.deepEqual(
      encode(steps).flatMap((data) => (data === '[DONE]' ? [] : JSON.parse(data).choices[0].delta)),
      [{ role: 'assistant', content: 'a' }, {}, {}, {}],
    );
  });

  it('give the usage of the choice that finishes a chunk of its own, too (Moonshot)', () => {
    const usage = { prompt_tokens: 2, completion_tokens: 1, total_tokens: 3, cached_tokens: 1 };
    const last = { created: 1, choices: [{ index: 0, delta: {}, finish_reason: 'stop', usage }] };
    const { steps } = decode([chunk({ content: 'a' }), frame(last)]);
    const [, , counted, done] = encode(steps, responseContext({ request: asking }));
    const own = { created: 1, choices: [], usage, id: 'chatcmpl-gateway', model: 'm', object: 'chat.completion.chunk' };
    assert.deepEqual([JSON.parse(counted ?? ''), done], [own, '[DONE]']);
  });

  it('count usage in the numbers that typed clients read, whatever names or types the upstream gives them', () => {
    const given = { input_tokens: '7', output_tokens: 2, prompt_tokens_details: { cached_tokens: 3 } };
    const counted = { ...given, prompt_tokens: 7, completion_tokens: 2, total_tokens: 9 };
    const { steps } = decode([chunk({ content: 'a' }), chunk({}, 'stop'), frame({ choices: [], usage: given })]);
    const streamed = encode(steps, responseContext({ request: asking })).at(-2) ?? '';
    assert.deepEqual(JSON.parse(streamed).usage, counted);
    const choices = [{ index: 0, message: { role: 'assistant', content: 'a' }, finish_reason: 'stop' }];
    const body = JSON.stringify({ choices, usage: { prompt_tokens: '7', completion_tokens: 2 } });
    const step = chatUpstream.decodeResponse(body, decodeContext());
    const whole = JSON.parse(chatClient.encodeResponse(fold(step.events), step.native, responseContext()));
    assert.deepEqual(whole.usage, { prompt_tokens: 7, completion_tokens: 2, total_tokens: 9 });
  });

  it('keep what a filter says after the end, which overrides a good one (Azure)', () => {
    const verdict = (more: JsonObject) =>
      frame({ id: '', created: 0, model: '', choices: [{ index: 0, content_filter_results: {}, ...more }] });
    const { steps, order } = decode([
      chunk({ content: 'a' }),
      chunk({ content: 'b' }, 'stop'),
      verdict({ delta: {}, finish_reason: null, content_filter_offsets: { end_offset: 1 } }),
      verdict({ delta: {}, finish_reason: 'content_filter' }),
      chunk({}, 'stop'),
    ]);
    const filtered = { finish_reason: 'content_filter' };
    assert.deepEqual(deltas(encode(steps)), [{ content: 'a' }, {}, { content: 'b' }, filtered]);
    assert.match(encode(steps)[1] ?? '', /"content_filter_offsets"/);
    const end = steps.flatMap(({ events }) => events).at(-1);
    assert.ok(order.ended && end?.type === 'response.end' && end.outcome.status === 'incomplete');
    assert.equal(end.outcome.reason, 'content_filter');
  });

  it('seal the payloads of reasoning details', () => {
    const entry = { type: 'reasoning.text', signature: 'SIG', format: 'anthropic-claude-v1', index: 0 };
    const { steps, order } = decode([chunk({ reasoning_details: [entry] }), chunk({ content: 'a' }), chunk({}, 'stop')]);
    const [first] = deltas(encode(steps));
    const item = order.fold.whole({ status: 'completed', stop: 'end' }).items[0]?.item;
    assert.ok(item?.kind === 'reasoning' && item.opaque !== undefined);
    assert.deepEqual(first, { reasoning_details: [{ ...entry, signature: seal(item.opaque) }] });
  });

  it('keep the words that a signature vouches for with it', () => {
    const members = { type: 'reasoning.text', format: 'anthropic-claude-v1', index: 0 };
    const said = [{ text: 'a ' }, { text: 'b' }, { signature: 'SIG' }].map((more) =>
      chunk({ reasoning_details: [{ ...members, ...more }] }),
    );
    const { order } = decode([...said, chunk({ content: 'x' }), chunk({}, 'stop')]);
    const item = order.fold.whole({ status: 'completed', stop: 'end' }).items[0]?.item;
    assert.ok(item?.kind === 'reasoning' && item.raw === 'a b');
    assert.deepEqual(JSON.parse(item.opaque?.form ?? ''), { ...members, text: 'a b' });
  });

  it('seal the fragments of a scalar payload once, as one value', () => {
    const { steps, order } = decode([
      chunk({ reasoning_content: 'r', reasoning_opaque: 'AB' }),
      chunk({ content: 'a' }),
      chunk({ reasoning_opaque: 'CD' }),
      chunk({}, 'stop'),
    ]);
    const item = order.fold.whole({ status: 'completed', stop: 'end' }).items[0]?.item;
    assert.ok(item?.kind === 'reasoning' && item.raw === 'r' && item.opaque?.value === 'ABCD');
    assert.deepEqual(deltas(encode(steps)), [
      { reasoning_content: 'r' },
      { content: 'a' },
      {},
      { reasoning_opaque: seal(item.opaque) },
      { finish_reason: 'stop' },
    ]);
    const request = requestOf({
      model: 'm',
      messages: [user, { role: 'assistant', content: 'a', reasoning_content: 'r', reasoning_opaque: seal(item.opaque) }],
    });
    const body = JSON.parse(chatUpstream.encodeRequest(request, target()).body);
    assert.equal(body.messages[1].reasoning_opaque, 'ABCD');
    const again: CanonicalRequest = { ...request, dialect: 'messages' };
    assert.equal(JSON.parse(chatUpstream.encodeRequest(again, target()).body).messages[1].reasoning_opaque, 'ABCD');
  });

  it('drop pings and other candidates', () => {
    const steps = decode([
      frame({ type: 'ping' }),
      frame({ choices: [{ index: 1, delta: { content: 'no' } }] }),
      frame({
        choices: [
          { index: 1, delta: { content: 'no' }, finish_reason: null },
          { index: 0, delta: { content: 'a' }, finish_reason: null },
          { index: 2, delta: { content: 'no' }, finish_reason: null },
        ],
      }),
      chunk({ content: 'b' }),
      chunk({}, 'stop'),
    ]).steps;
    assert.deepEqual(deltas(encode(steps)), [{ content: 'a' }, { content: 'b' }, { finish_reason: 'stop' }]);
  });

  it('keep the usage that came with another candidate (Mistral)', () => {
    const usage = { prompt_tokens: 20, completion_tokens: 8, total_tokens: 28 };
    const { steps } = decode([
      chunk({ content: 'a' }, 'stop'),
      frame({ choices: [{ index: 1, delta: { content: 'no' } }], usage }),
    ]);
    const said = encode(steps, responseContext({ request: asking })).flatMap((data) =>
      data === '[DONE]' ? [] : [JSON.parse(data)],
    );
    assert.deepEqual(deltas(encode(steps)), [{ finish_reason: 'stop' }]);
    assert.deepEqual([said.at(-1).choices, said.at(-1).usage], [[], usage]);
  });

  it('break off with an error frame', () => {
    const encoder = chatClient.encodeEvents(responseContext());
    const out: Frame[] = [];
    for (const step of decode([chunk({ content: 'a' }), chunk({}, 'stop')]).steps.slice(0, 2)) encoder.push(step, out);
    encoder.end(out);
    assert.deepEqual([out.length, JSON.parse(out.at(-1)?.data ?? '').error.code], [2, 'upstream_error']);
  });

  it('never show the text of an upstream error unsanitised', () => {
    const { steps } = decode([frame({ error: { message: 'see https://secret.test/x key sk-abcdefghijkl', code: 400 } })]);
    assert.doesNotMatch(encode(steps).join(), /secret|abcdefgh/);
  });
});

describe('whole chat bodies', () => {
  it('say what the folded stream says', () => {
    const opaque = { owner, value: 'D' };
    const items: OutputItem[] = [
      { kind: 'reasoning', raw: 'R', summary: ['A', 'B'], opaque, id: 'rs_1' },
      text('one'),
      text(' two'),
      call,
      text('three'),
    ];
    const whole = fold(stepsOf(items).flatMap(({ events }) => events));
    const { choices, usage, ...rest } = JSON.parse(chatClient.encodeResponse(whole, undefined, responseContext()));
    assert.ok(!('system_fingerprint' in rest), 'the vendor has a text there, or nothing');
    assert.deepEqual(choices[0].message, {
      role: 'assistant',
      content: 'one two\n\nthree',
      refusal: null,
      reasoning_content: 'R',
      reasoning: 'A\n\nB',
      reasoning_details: [
        { type: 'reasoning.summary', summary: 'A\n\nB', id: 'rs_1', format: 'unknown', index: 0 },
        { type: 'reasoning.encrypted', data: seal(opaque), id: 'rs_1', format: 'unknown', index: 0 },
      ],
      tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: '{"x":1}' } }],
    });
    assert.equal(choices[0].finish_reason, 'tool_calls');
    assert.equal(usage.total_tokens, 6);
    const streamed = deltas(encode(stepsOf(items)));
    for (const key of ['content', 'reasoning', 'reasoning_content']) {
      assert.equal(streamed.map((delta) => delta[key] ?? '').join(''), choices[0].message[key]);
    }
  });

  it('part the thoughts of several items where clients show them, as streams do, and leave the details as they are', () => {
    const thought = (id: string, ...summary: string[]): OutputItem => ({ kind: 'reasoning', id, summary });
    const items = [thought('rs_1', 'A'), text('one'), thought('rs_2', ''), thought('rs_3', 'B', 'C')];
    const whole = fold(stepsOf(items).flatMap(({ events }) => events));
    const { message } = JSON.parse(chatClient.encodeResponse(whole, undefined, responseContext())).choices[0];
    assert.equal(message.reasoning, 'A\n\nB\n\nC');
    assert.deepEqual(
      message.reasoning_details.map(({ summary }: JsonObject) => summary),
      ['A', 'B\n\nC'],
    );
    const streamed = deltas(encode(stepsOf(items)));
    assert.equal(streamed.map(({ reasoning }) => reasoning ?? '').join(''), message.reasoning);
    const pieces = streamed.flatMap(({ reasoning_details: details }) => (details as JsonObject[] | undefined) ?? []);
    assert.equal(pieces.map(({ summary }) => summary).join('|'), 'A|B|\n\nC');
  });

  it('write logprobs that come behind their text once, with no text, and never before those of an earlier one', () => {
    const scored = (...tokens: string[]) => tokens.map((token, at) => ({ token, logprob: -at }));
    const streamed = (events: readonly CanonicalEvent[]) =>
      encode([{ events: [{ type: 'response.start' }, ...events, end] }])
        .filter((data) => data !== '[DONE]')
        .flatMap((data) => JSON.parse(data).choices)
        .filter(({ logprobs }) => logprobs !== null)
        .map(({ delta, logprobs }) => [delta.content, ...logprobs.content.map(({ token }: JsonObject) => token)]);
    const start = (index: number): CanonicalEvent => ({ type: 'item.start', index, head: { kind: 'text', role: 'assistant' } });
    const say = (index: number, text: string, logprobs?: object[]): CanonicalEvent =>
      ({
        type: 'item.delta',
        index,
        delta: { kind: 'text', text, ...(logprobs === undefined ? {} : { logprobs }) },
      }) as CanonicalEvent;
    const stop = (index: number, text: string, logprobs: object[]): CanonicalEvent =>
      ({
        type: 'item.end',
        index,
        item: { kind: 'text', role: 'assistant', text, citations: [], logprobs },
        status: 'completed',
      }) as CanonicalEvent;
    const ab = scored('a', 'b');
    assert.deepEqual(streamed([start(0), say(0, 'ab'), stop(0, 'ab', ab)]), [['', 'a', 'b']]);
    assert.deepEqual(streamed([start(0), say(0, 'a', ab.slice(0, 1)), say(0, 'b'), stop(0, 'ab', ab)]), [
      ['a', 'a'],
      ['', 'b'],
    ]);
    assert.deepEqual(streamed([start(0), say(0, 'ab', ab), stop(0, 'ab', ab)]), [['ab', 'a', 'b']]);
    assert.deepEqual(streamed([start(0), say(0, 'ab'), stop(0, 'ab', scored('x'))]), []);
    const two = [start(0), say(0, 'ab'), start(1), say(1, 'c', scored('c')), stop(0, 'ab', ab), stop(1, 'c', scored('c'))];
    assert.deepEqual(streamed(two), [['c', 'c']]);
  });

  it('keep the logprobs of every text that has them, as streams do, though the content parts two texts', () => {
    const scored = (value: string, phase: string): OutputItem => ({
      ...{ kind: 'text', role: 'assistant', text: value, citations: [], phase },
      logprobs: [{ token: value, logprob: -0.5 }],
    });
    const steps = stepsOf([scored('one', 'commentary'), scored('two', 'final_answer'), call, text('three')]);
    const whole = fold(steps.flatMap(({ events }) => events));
    const [choice] = JSON.parse(chatClient.encodeResponse(whole, undefined, responseContext())).choices;
    const streamed = encode(steps).flatMap((data) => (data === '[DONE]' ? [] : JSON.parse(data).choices));
    assert.equal(choice.message.content, 'one\n\ntwo\n\nthree');
    assert.deepEqual(
      choice.logprobs.content,
      streamed.flatMap(({ logprobs }) => logprobs?.content ?? []),
    );
    assert.deepEqual(
      choice.logprobs.content.map(({ token }: JsonObject) => token),
      ['one', 'two'],
    );
  });

  it('are put together from choices without an index (Copilot), or with one index, never from candidates', () => {
    const call = (id: string) => ({ id, type: 'function', function: { name: 'f', arguments: '{}' } });
    const said = (message: JsonObject) => ({ finish_reason: 'tool_calls', message: { role: 'assistant', ...message } });
    const choices = [said({ content: 'I will' }), said({ tool_calls: [call('a')] }), said({ tool_calls: [call('b')] })];
    const body = JSON.stringify({ id: 'u', created: 1, model: 'up', choices });
    const step = chatUpstream.decodeResponse(body, decodeContext());
    const [only, ...others] = JSON.parse(chatClient.encodeResponse(fold(step.events), step.native, responseContext())).choices;
    assert.deepEqual([only.message.content, only.message.tool_calls, others], ['I will', [call('a'), call('b')], []]);
    const alike = choices.map((choice) => ({ index: 0, ...choice }));
    const joined = chatUpstream.decodeResponse(JSON.stringify({ ...JSON.parse(body), choices: alike }), decodeContext());
    assert.deepEqual(joined.events, step.events);
    const numbered = choices.map((choice, index) => ({ index, ...choice }));
    const first = chatUpstream.decodeResponse(JSON.stringify({ ...JSON.parse(body), choices: numbered }), decodeContext());
    assert.equal(fold(first.events).items.length, 1);
    const candidates = [said({ content: 'one' }), said({ content: 'two' })];
    const answer = chatUpstream.decodeResponse(JSON.stringify({ ...JSON.parse(body), choices: candidates }), decodeContext());
    assert.deepEqual(
      fold(answer.events).items.map(({ item }) => (item.kind === 'text' ? item.text : item.kind)),
      ['one'],
    );
  });

  it('have the envelope that typed clients read, where their upstream leaves it out', () => {
    const choices = [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'Hi' } }];
    for (const members of [{}, { object: '', created: null }]) {
      const step = chatUpstream.decodeResponse(JSON.stringify({ choices, ...members }), decodeContext());
      const context = responseContext();
      const body = JSON.parse(chatClient.encodeResponse(fold(step.events), step.native, context));
      assert.deepEqual([body.object, body.created, body.choices], ['chat.completion', context.createdAt, choices]);
    }
  });

  it('have their text spelled where the upstream answers in JSON with the value itself (Cloudflare)', () => {
    const content = { title: 'a "b"', pages: 2 };
    const body = { created: 1, choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content } }] };
    const step = chatUpstream.decodeResponse(JSON.stringify(body), decodeContext());
    const whole = fold(step.events);
    for (const native of [step.native, undefined]) {
      const { choices } = JSON.parse(chatClient.encodeResponse(whole, native, responseContext()));
      assert.equal(choices[0].message.content, JSON.stringify(content));
    }
  });

  it('say the finish reason that their upstream is known to leave out, as the stream does', () => {
    const options = { acceptDoneWithoutFinish: true };
    const calls = [{ id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } }];
    for (const [message, reason] of [
      [{ content: 'Hi' }, 'stop'],
      [{ content: null, tool_calls: calls }, 'tool_calls'],
    ] as const) {
      const choice = { index: 0, message: { role: 'assistant', ...message } };
      const step = chatUpstream.decodeResponse(JSON.stringify({ choices: [choice] }), decodeContext({ options }));
      const { choices } = JSON.parse(chatClient.encodeResponse(fold(step.events), step.native, responseContext()));
      assert.deepEqual(choices, [{ ...choice, finish_reason: reason }]);
      const { steps } = decode([chunk(message), frame('[DONE]')], decodeContext({ options }));
      assert.deepEqual(deltas(encode(steps)).at(-1), { finish_reason: reason });
    }
  });

  it('end with all that was held back where their upstream is known to leave out the finish', () => {
    const call = { index: 0, id: 'a', type: 'function', function: { name: 'f', arguments: '' } };
    const { steps, order } = decode(
      [chunk({ reasoning_opaque: 'AB' }), chunk({ tool_calls: [call] }), frame('[DONE]')],
      decodeContext({ options: { acceptDoneWithoutFinish: true } }),
    );
    const [reasoning] = order.fold.whole({ status: 'completed', stop: 'toolUse' }).items;
    assert.ok(reasoning?.item.kind === 'reasoning' && reasoning.item.opaque !== undefined);
    const chunks = encode(steps).flatMap((data) => (data === '[DONE]' ? [] : [JSON.parse(data).choices[0]]));
    assert.deepEqual(
      chunks.slice(-3).map(({ delta, finish_reason: reason }) => reason ?? delta),
      [
        { tool_calls: [{ index: 0, function: { arguments: '{}' } }] },
        { reasoning_opaque: seal(reasoning.item.opaque) },
        'tool_calls',
      ],
    );
  });

  it('are undecodable, failed or truncated, never a success, where something is missing', () => {
    const context = {
      owner,
      request: asking,
      toolNames: { toWire: String, fromWire: (name: string) => ({ name }) },
      options: {},
      mint: String,
    };
    const reasonOf = (body: string) => {
      try {
        const last = chatUpstream.decodeResponse(body, context).events.at(-1);
        return last?.type === 'response.end' ? last.outcome.status : 'no end';
      } catch (error) {
        return error instanceof GatewayError ? error.details.reason : String(error);
      }
    };
    assert.equal(reasonOf('<html>'), 'undecodable');
    assert.equal(reasonOf('[]'), 'undecodable');
    assert.equal(reasonOf('{"choices":[]}'), 'undecodable');
    assert.equal(reasonOf('{"choices":[{"message":{"content":""}}]}'), 'truncated');
    assert.equal(reasonOf('{"choices":[{"message":{"content":null,"reasoning_content":"Hm"}}]}'), 'truncated');
    assert.equal(reasonOf('{"choices":[{"message":{"content":"a"},"finish_reason":"error"}]}'), 'failed');
    assert.equal(reasonOf('{"error":{"message":"x"}}'), 'failed');
    assert.equal(reasonOf('{"choices":[{"finish_reason":"content_filter"}]}'), 'incomplete');
    assert.equal(reasonOf('{"choices":[{"text":"Hi","finish_reason":"stop"}]}'), 'malformed_event');
    assert.equal(reasonOf('{"choices":[{"text":"","message":{"content":"Hi"},"finish_reason":"stop"}]}'), 'completed');
  });
});

describe('errors of chat upstreams', () => {
  const answer = (status: number, text: string, headers = {}) => chatUpstream.decodeError({ status, headers, text });
  it('are read in every shape', () => {
    const shapes: [string, string | undefined, string | undefined][] = [
      ['{"error":{"message":"m","type":"t","code":404}}', '404', 't'],
      ['{"detail":"Invalid"}', undefined, undefined],
      ['{"object":"error","message":"m","type":"t","code":"c"}', 'c', 't'],
      ['{"error":"text","code":"c"}', 'c', undefined],
      ['[{"error":{"code":400,"message":"m"}}]', '400', undefined],
      ['{"error":{"message":"m","metadata":{"provider_code":"p","error_type":"e"}}}', 'p', 'e'],
      ['not json', undefined, undefined],
      ['', undefined, undefined],
    ];
    for (const [text, code, type] of shapes) {
      const { upstream } = answer(400, text).details;
      assert.deepEqual([upstream?.code, upstream?.type, upstream?.status, upstream?.text], [code, type, 400, text]);
    }
  });
  it('carry how long to wait', () => {
    assert.equal(answer(429, '', { 'retry-after': '2' }).details.retryAfterMs, 2000);
    const headers = { date: 'Sat, 21 Nov 2026 10:00:00 GMT', 'retry-after': 'Sat, 21 Nov 2026 10:00:05 GMT' };
    assert.equal(answer(429, '', headers).details.retryAfterMs, 5000);
  });
});
