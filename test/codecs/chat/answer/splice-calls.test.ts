/** Answers of chat upstreams that leave something out, as the official client of the same dialect puts them together. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ChatCompletionStream } from 'openai/lib/ChatCompletionStream';
import type { JsonObject } from '../../../../src/codecs/canonical/json.ts';
import { fold } from '../../../../src/codecs/canonical/fold.ts';
import { chatClient, chatUpstream } from '../../../../src/codecs/chat/index.ts';
import type { Frame } from '../../../../src/codecs/codec.ts';
import { chunk, decode, decodeContext, encode, frame, responseContext } from '../support.ts';

/** What the official client makes of these chunks. */
async function read(frames: readonly Frame[]) {
  const lines = encode(decode(frames).steps).filter((data) => data !== '[DONE]');
  const body = new Blob([lines.join('\n')]).stream();
  const [choice] = (await ChatCompletionStream.fromReadableStream(body).finalChatCompletion()).choices;
  assert.ok(choice !== undefined);
  return choice;
}

const calls = (...entries: JsonObject[]): Frame => chunk({ role: 'assistant', tool_calls: entries });
const begun = (more: JsonObject, name: string, input: string): JsonObject => ({ ...more, function: { name, arguments: input } });
const piece = (more: JsonObject, input: string): JsonObject => ({ ...more, function: { arguments: input } });
const whole = (id: string, name: string, input: string) => ({ id, type: 'function', function: { name, arguments: input } });
const ended = (delta: JsonObject): Frame => chunk(delta, 'tool_calls');
const finish = ended({});

describe('calls of a chat stream, for the official client', () => {
  const f = whole('a', 'f', '{"x":1}');
  const g = whole('b', 'g', '{"y":2}');
  const streams: [string, Frame[]][] = [
    ['without index and type, whole (Mistral)', [calls(begun({ id: 'a' }, 'f', '{"x":1}'), begun({ id: 'b' }, 'g', '{"y":2}'))]],
    [
      'beside entries that are null',
      [
        chunk({ role: 'assistant', tool_calls: [null, { index: 0, ...begun({ id: 'a' }, 'f', '{"x":1}') }] }),
        chunk({ tool_calls: [null] }),
        chunk({ tool_calls: [{ index: 1, ...begun({ id: 'b' }, 'g', '{"y":2}') }, null] }),
      ],
    ],
    [
      'without index, in pieces',
      [
        calls(begun({ id: 'a' }, 'f', '{"x"')),
        calls(piece({ id: '' }, ':1}')),
        calls(begun({ id: 'b' }, 'g', '')),
        calls(piece({}, '{"y":2}')),
      ],
    ],
    [
      'with indices from 1 (Anthropic’s compatible endpoint)',
      [
        calls({ index: 1, ...whole('a', 'f', '') }),
        ...['{"x"', ':', '1', '}'].map((text) => calls(piece({ index: 1 }, text))),
        calls({ index: 2, ...whole('b', 'g', '{"y":2}') }),
      ],
    ],
    [
      'under one index',
      [
        calls({ index: 0, ...whole('a', 'f', '') }),
        ...['{"x"', ':', '1', '}'].map((text) => calls(piece({ index: 0 }, text))),
        calls({ index: 0, ...whole('b', 'g', '') }),
        ...['{"y"', ':', '2', '}'].map((text) => calls(piece({ index: 0 }, text))),
      ],
    ],
    [
      'each with a finish of its own (Together)',
      [
        calls({ index: 0, ...whole('a', 'f', '{"x"') }),
        ended({ tool_calls: [piece({ index: 0 }, ':1}')] }),
        calls({ index: 1, ...whole('b', 'g', '') }),
        ended({ tool_calls: [piece({ index: 1 }, '{"y":2}')] }),
      ],
    ],
    [
      'each whole, with a finish of its own',
      [
        ended({ tool_calls: [{ index: 0, ...whole('a', 'f', '{"x":1}') }] }),
        ended({ tool_calls: [{ index: 1, ...whole('b', 'g', '{"y":2}') }] }),
      ],
    ],
    [
      'the first without its name until the second has begun (M6)',
      [
        calls({ index: 0, ...whole('a', '', '') }),
        calls({ index: 1, ...whole('b', 'g', '') }),
        calls(piece({ index: 1 }, '{"y":2}')),
        calls(begun({ index: 0 }, 'f', '{"x"')),
        calls(piece({ index: 0 }, ':1}')),
      ],
    ],
    [
      'in one chunk, of which one has no name yet',
      [
        calls({ index: 0, ...whole('a', '', '') }, { index: 1, ...whole('b', 'g', '{"y"') }),
        calls(piece({ index: 1 }, ':2}')),
        calls(begun({ index: 0 }, 'f', '{"x":1}')),
      ],
    ],
    [
      'interleaved, in one chunk',
      [
        calls({ index: 3, ...whole('a', 'f', '') }, { index: 5, ...whole('b', 'g', '') }),
        calls(piece({ index: 5 }, '{"y"'), piece({ index: 3 }, '{"x":')),
        calls(piece({ index: 3 }, '1}'), piece({ index: 5 }, ':2}')),
      ],
    ],
  ];
  for (const [name, frames] of streams) {
    it(name, async () => {
      const { message, finish_reason } = await read([...frames, finish]);
      assert.deepEqual([message.tool_calls, finish_reason], [[f, g], 'tool_calls']);
    });
  }

  it('without ids, or without their list (TGI), with ids of the gateway', async () => {
    const bare = await read([calls(begun({ index: 0 }, 'f', '{"x"')), calls(piece({ index: 0 }, ':1}')), finish]);
    const alone = await read([chunk({ tool_calls: begun({ index: 0 }, 'f', '{"x":1}') }), finish]);
    for (const { message } of [bare, alone]) {
      const [call, ...others] = message.tool_calls ?? [];
      assert.match(call?.id ?? '', /^call_/);
      assert.deepEqual([call, others], [{ ...f, id: call?.id }, []]);
    }
  });

  it('with arguments that are an object (Ollama)', async () => {
    const { message } = await read([calls({ id: 'a', index: 0, function: { name: 'f', arguments: { x: 1 } } }), finish]);
    assert.deepEqual(message.tool_calls, [f]);
  });

  it('without arguments, which are those of a function without parameters, also where the finish chunk says the calls', async () => {
    const bare = (index: number, id: string, name: string) => ({ index, ...whole(id, name, '') });
    const answers = [
      [calls(bare(0, 'a', 'f')), calls(piece({ index: 0 }, '')), calls(bare(1, 'b', 'g')), finish],
      [calls(bare(0, 'a', 'f')), ended({ tool_calls: [bare(1, 'b', 'g')] })],
    ];
    for (const frames of answers) {
      const { message, finish_reason } = await read(frames);
      assert.deepEqual([message.tool_calls, finish_reason], [[whole('a', 'f', '{}'), whole('b', 'g', '{}')], 'tool_calls']);
    }
    const cut = await read([calls(bare(0, 'a', 'f')), chunk({}, 'length')]);
    assert.deepEqual(cut.message.tool_calls, [whole('a', 'f', '')], 'a limit leaves arguments as they are');
  });

  it('without arguments in front of calls whose finish stands in their own chunk (Mistral, one call a chunk)', async () => {
    const none = begun({ id: 'a' }, 'f', '{}');
    for (const [input, index] of [['{"y":2}'], ['{}'], ['{"y":2}', 1]] as const) {
      const last = { ...begun({ id: 'b' }, 'g', input), ...(index === undefined ? {} : { index }) };
      const { message } = await read([calls(index === undefined ? none : { ...none, index: 0 }), ended({ tool_calls: [last] })]);
      assert.deepEqual(message.tool_calls, [whole('a', 'f', '{}'), whole('b', 'g', input)], input);
    }
    const [begin, rest] = [calls({ index: 0, ...whole('a', 'f', '{}') }, { index: 1, ...whole('b', 'g', '{"y"') }), ':2}'];
    const continued = await read([begin, ended({ tool_calls: [piece({ index: 1 }, rest)] })]);
    assert.deepEqual(continued.message.tool_calls, [whole('a', 'f', '{}'), g]);
  });

  it('without arguments, once, where the finish chunk has a whole message beside its delta', () => {
    const message = { role: 'assistant', content: '' };
    for (const tool_calls of [undefined, [whole('a', 'f', '{}')]]) {
      const end = { delta: {}, finish_reason: 'tool_calls', message: { ...message, ...(tool_calls && { tool_calls }) } };
      const chunks = decode([
        calls({ index: 0, ...whole('a', 'f', '{}') }),
        frame({ created: 1, choices: [{ index: 0, ...end }] }),
      ]);
      const inputs = encode(chunks.steps)
        .flatMap((data) => (data === '[DONE]' ? [] : JSON.parse(data).choices))
        .flatMap(({ delta }) => delta.tool_calls ?? [])
        .map((entry) => entry.function.arguments);
      assert.deepEqual(inputs, ['{}']);
    }
  });

  it('with arguments that are null, which are none (Groq); null inside an object stays', async () => {
    const none = [whole('a', 'f', '{}'), whole('b', 'g', '{}')];
    const begin = calls({ index: 0, ...whole('a', 'f', 'null') }, { index: 1, ...whole('b', 'g', '') });
    const apart = await read([begin, calls(piece({ index: 1 }, 'null')), finish]);
    assert.deepEqual(apart.message.tool_calls, none);
    const together = await read([
      ended({ tool_calls: none.map((call, index) => ({ index, ...call, function: { ...call.function, arguments: 'null' } })) }),
    ]);
    assert.deepEqual(together.message.tool_calls, none);
    const inside = await read([
      calls({ index: 0, ...whole('a', 'f', '{"x":') }),
      calls(piece({ index: 0 }, 'null')),
      calls(piece({ index: 0 }, '}')),
      finish,
    ]);
    assert.deepEqual(inside.message.tool_calls, [whole('a', 'f', '{"x":null}')]);
  });

  it('untouched where nothing is missing', () => {
    const data =
      '{"id":"u","object":"chat.completion.chunk","created":1,"model":"up","choices":[{"index":0,"delta":{"role":"assistant","tool_calls":[{"index":0,"id":"a","type":"function","new":1.0,"function":{"name":"f","arguments":""}}]}}]}';
    const [first] = encode(decode([frame(data), calls(piece({ index: 0 }, '{}')), finish]).steps);
    assert.equal(first, data.replace('"u"', '"chatcmpl-gateway"').replace('"up"', '"m"'));
  });
});

describe('other members that the official client needs', () => {
  it('are the role of a stream, once, and the index of its choice', async () => {
    const frames = [{ content: 'a' }, { content: 'b' }, {}].map((delta, at, all) =>
      frame({ created: 1, choices: [{ delta, finish_reason: at === all.length - 1 ? 'stop' : null }] }),
    );
    const { message } = await read(frames);
    assert.deepEqual([message.role, message.content], ['assistant', 'ab']);
    const said = encode(decode(frames).steps);
    assert.deepEqual(
      said.map((data) => data.includes('"role"')),
      [true, false, false, false],
    );
    const verdict = frame({ created: 1, choices: [{ index: 0, finish_reason: 'content_filter' }] });
    assert.equal((await read([verdict])).message.role, 'assistant');
  });

  it('are those of whole answers, too', () => {
    const answer = (choice: JsonObject): JsonObject => {
      const text = JSON.stringify({
        id: 'u',
        created: 1,
        model: 'up',
        choices: [choice],
        usage: { prompt_tokens: 1, completion_tokens: '2', cost: 0.1 },
      });
      const { events, native } = chatUpstream.decodeResponse(text, decodeContext());
      const body = JSON.parse(chatClient.encodeResponse(fold(events), native, responseContext()));
      assert.deepEqual(body.usage, { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 });
      return body.choices[0];
    };
    assert.deepEqual(answer({ finish_reason: 'content_filter', content_filter_results: {} }), {
      finish_reason: 'content_filter',
      content_filter_results: {},
      index: 0,
      message: { role: 'assistant', content: null, refusal: null },
    });
    const tool_calls = [
      begun({ id: 'a' }, 'f', '{}'),
      { function: { name: 'g', arguments: { y: 2 } } },
      begun({ id: 'c' }, 'h', ''),
      null,
      { id: 'd', function: { name: 'h', arguments: null } },
      begun({ id: 'e' }, 'h', 'null'),
      null,
    ];
    const { message } = answer({ index: 0, finish_reason: 'tool_calls', message: { content: '', tool_calls } });
    const made = (message as { tool_calls: { id: string }[] }).tool_calls[1]?.id ?? '';
    assert.match(made, /^call_/);
    assert.deepEqual(message, {
      role: 'assistant',
      content: '',
      tool_calls: [
        whole('a', 'f', '{}'),
        whole(made, 'g', '{"y":2}'),
        whole('c', 'h', '{}'),
        whole('d', 'h', '{}'),
        whole('e', 'h', '{}'),
      ],
    });
    const cut = answer({ index: 0, finish_reason: 'length', message: { content: null, tool_calls: [whole('a', 'f', '')] } });
    assert.deepEqual((cut['message'] as JsonObject)['tool_calls'], [whole('a', 'f', '')]);
  });
});
