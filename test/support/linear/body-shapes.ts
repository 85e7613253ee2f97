/** Literal bodies of whole answers: much of one thing each. */
import type { BodyShape } from './answer-shapes.ts';
import { answer, call, link, longId, message, native, part, thought } from './responses-shapes.ts';
import { list, record } from './schema-shapes.ts';

const chatCall = (at: number) => ({ id: `c${at}`, type: 'function', function: { name: 'f', arguments: '{"a":1}' } });
const chatBody = (
  name: string,
  said: (count: number) => object,
  finish = 'stop',
  rest: (count: number) => object = () => ({}),
): BodyShape => ({
  name,
  dialect: 'chat',
  body: (count) => ({
    id: 'c',
    object: 'chat.completion',
    created: 1,
    model: 'up',
    choices: [{ index: 0, message: { role: 'assistant', content: null, ...said(count) }, finish_reason: finish }],
    usage: { prompt_tokens: 7, completion_tokens: 5, total_tokens: 12 },
    ...rest(count),
  }),
});
const whole = (dialect: BodyShape['dialect'], name: string, body: (count: number) => object): BodyShape => ({
  name,
  dialect,
  body,
});
const messagesBody = (
  name: string,
  content: (count: number) => readonly object[],
  members: (count: number) => object = () => ({}),
): BodyShape =>
  whole('messages', name, (count) => ({
    id: 'm',
    type: 'message',
    role: 'assistant',
    model: 'up',
    content: content(count),
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage: { input_tokens: 7, output_tokens: 5, ...members(count) },
  }));

export const BODIES: readonly BodyShape[] = [
  chatBody('calls with arguments', (count) => ({ tool_calls: list(count, chatCall) }), 'tool_calls'),
  chatBody(
    'calls without ids',
    (count) => ({ tool_calls: list(count, () => ({ type: 'function', function: { name: 'f', arguments: '' } })) }),
    'tool_calls',
  ),
  chatBody('calls of one id', (count) => ({ tool_calls: list(count, () => chatCall(0)) }), 'tool_calls'),
  chatBody('reasoning details', (count) => ({
    content: 'x',
    reasoning_details: list(count, (at) => ({ type: 'reasoning.text', text: 'x', index: at, id: `r${at}` })),
  })),
  chatBody('encrypted reasoning details', (count) => ({
    content: 'x',
    reasoning_details: list(count, (at) => ({ type: 'reasoning.encrypted', data: `d${at}`, index: at, id: `r${at}` })),
  })),
  chatBody(
    'signed calls',
    (count) => ({
      tool_calls: list(count, chatCall),
      reasoning_details: list(count, (at) => ({ type: 'reasoning.encrypted', data: `d${at}`, id: `c${at}`, index: at })),
    }),
    'tool_calls',
  ),
  chatBody('annotations', (count) => ({
    content: 'said '.repeat(count),
    annotations: list(count, (at) => ({
      type: 'url_citation',
      url_citation: { url: `https://e.example/${at}`, title: 't', start_index: at, end_index: at + 2 },
    })),
  })),
  chatBody('blocks of content', (count) => ({
    content: list(count, (at) =>
      at % 2 === 0 ? { type: 'text', text: 'x' } : { type: 'thinking', thinking: [{ type: 'text', text: 't' }] },
    ),
  })),
  chatBody('pictures', (count) => ({
    images: list(count, () => ({ type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } })),
  })),
  chatBody(
    'usage with many members',
    () => ({ content: 'x' }),
    'stop',
    (count) => ({
      usage: {
        prompt_tokens: 7,
        completion_tokens: 5,
        ...record(count, 'x_', (at) => at),
        ...record(count, 'cost_', (at) => at),
      },
    }),
  ),
  chatBody(
    'members that nobody knows',
    (count) => ({ content: 'x', ...record(count, 'x_', (at) => at) }),
    'stop',
    (count) => record(count, 'x_', (at) => at),
  ),
  whole('responses', 'items of all kinds', (count) =>
    answer(list(count, (at) => [message(at, [part('x')]), call(at), thought(at, ['t']), native(at)][at % 4] ?? native(at))),
  ),
  whole('responses', 'items of one id', (count) => answer(list(count, (at) => ({ ...message(0, [part(`w${at}`)]) })))),
  whole('responses', 'parts and annotations', (count) =>
    answer([
      message(
        0,
        list(count, (at) => part('x', { annotations: [link(at)] })),
      ),
    ]),
  ),
  whole('responses', 'parts under a long id', (count) =>
    answer([
      {
        ...message(
          0,
          list(count, () => part('x')),
        ),
        id: longId(count),
      },
    ]),
  ),
  whole('responses', 'tools that it repeats', (count) =>
    answer([message(0, [part('x')])], {
      tools: list(count, (at) => ({ type: 'function', name: `f${at}`, parameters: {} })),
      metadata: record(count, 'x_', () => 'v'),
    }),
  ),
  messagesBody('blocks of all kinds', (count) =>
    list(
      count,
      (at) =>
        [
          { type: 'text', text: 'x' },
          { type: 'tool_use', id: `t${at}`, name: 'f', input: { a: 1 } },
          { type: 'thinking', thinking: 't', signature: 's' },
          { type: 'server_tool_use', id: `s${at}`, name: 'web_search', input: {} },
        ][at % 4] ?? {},
    ),
  ),
  messagesBody('citations', (count) => [
    {
      type: 'text',
      text: 'x',
      citations: list(count, (at) => ({
        type: 'web_search_result_location',
        cited_text: 'x',
        url: `https://e.example/${at}`,
        title: 't',
        encrypted_index: 'E',
      })),
    },
  ]),
  messagesBody(
    'iterations',
    () => [{ type: 'text', text: 'x' }],
    (count) => ({
      iterations: list(count, () => ({ type: 'message', input_tokens: 1, output_tokens: 1 })),
      ...record(count, 'x_', (at) => at),
    }),
  ),
  whole('gemini', 'parts of all kinds', (count) => ({
    candidates: [
      {
        index: 0,
        content: {
          role: 'model',
          parts: list(
            count,
            (at) =>
              [
                { text: 'x' },
                { text: 't', thought: true, thoughtSignature: 'QUJD' },
                { functionCall: { name: 'f', args: { a: at } } },
                { executableCode: { code: 'x' } },
              ][at % 4] ?? {},
          ),
        },
        finishReason: 'STOP',
      },
    ],
    usageMetadata: {
      promptTokenCount: 7,
      candidatesTokenCount: 5,
      totalTokenCount: 12,
      promptTokensDetails: list(count, () => ({ modality: 'TEXT', tokenCount: 1 })),
    },
  })),
];
