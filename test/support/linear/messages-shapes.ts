/** Literal streams of messages upstreams: much of one thing each. */
import type { StreamShape } from './answer-shapes.ts';
import { list } from './schema-shapes.ts';

const event = (type: string, members: object) => ({ type, ...members });
const messages = (name: string, events: (count: number) => readonly object[]): StreamShape => ({
  name,
  dialect: 'messages',
  events: (count) => [
    event('message_start', {
      message: {
        id: 'm',
        type: 'message',
        role: 'assistant',
        model: 'up',
        content: [],
        stop_reason: null,
        stop_sequence: null,
        usage: { input_tokens: 7, output_tokens: 1 },
      },
    }),
    ...events(count),
    event('message_delta', { delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens: 5 } }),
    event('message_stop', {}),
  ],
});
const start = (at: number, block: object) => event('content_block_start', { index: at, content_block: block });
const grow = (at: number, delta: object) => event('content_block_delta', { index: at, delta });
const stop = (at: number) => event('content_block_stop', { index: at });
const block = (at: number, opening: object, delta: object) => [start(at, opening), grow(at, delta), stop(at)];
const words = (at: number) => block(at, { type: 'text', text: '' }, { type: 'text_delta', text: `w${at} ` });
const use = (at: number) =>
  block(at, { type: 'tool_use', id: `t${at}`, name: 'f', input: {} }, { type: 'input_json_delta', partial_json: '{"a":1}' });
const thinking = (at: number) => [
  start(at, { type: 'thinking', thinking: '', signature: '' }),
  grow(at, { type: 'thinking_delta', thinking: 't' }),
  grow(at, { type: 'signature_delta', signature: `s${at}` }),
  stop(at),
];

export const MESSAGES: readonly StreamShape[] = [
  messages('blocks of all kinds in turn', (count) => list(count, (at) => [words, use, thinking][at % 3]?.(at) ?? []).flat()),
  messages('usage, a new member each', (count) => [
    ...words(0),
    ...list(count, (at) => event('message_delta', { delta: {}, usage: { output_tokens: 5, [`x_${at}`]: at } })),
  ]),
  messages('usage, a new member each, between blocks', (count) =>
    list(count, (at) => [
      ...words(at),
      event('message_delta', { delta: {}, usage: { output_tokens: at, server_tool_use: { [`x_${at}`]: 1 } } }),
    ]).flat(),
  ),
  messages('usage with iterations, again and again', (count) => {
    const each = Math.ceil(Math.sqrt(count));
    return [
      ...words(0),
      ...list(each, () =>
        event('message_delta', {
          delta: {},
          usage: { output_tokens: 5, iterations: list(each, () => ({ type: 'message', input_tokens: 1, output_tokens: 1 })) },
        }),
      ),
    ];
  }),
  messages('pings', (count) => list(count, () => event('ping', {}))),
  messages('citations', (count) => [
    start(0, { type: 'text', text: '' }),
    ...list(count, (at) => [
      grow(0, { type: 'text_delta', text: 'said ' }),
      grow(0, {
        type: 'citations_delta',
        citation: {
          type: 'web_search_result_location',
          cited_text: 'said',
          url: `https://e.example/${at}`,
          title: 't',
          encrypted_index: 'E',
        },
      }),
    ]).flat(),
    stop(0),
  ]),
  messages('arguments in pieces', (count) => [
    start(0, { type: 'tool_use', id: 't', name: 'f', input: {} }),
    ...list(count, (at) => grow(0, { type: 'input_json_delta', partial_json: at === 0 ? '{"a":[{}' : ',{}' })),
    grow(0, { type: 'input_json_delta', partial_json: ']}' }),
    stop(0),
  ]),
  messages('a signature in pieces', (count) => [
    start(0, { type: 'thinking', thinking: '', signature: '' }),
    ...list(count, () => grow(0, { type: 'signature_delta', signature: 'QUJD' })),
    stop(0),
    ...words(1),
  ]),
  messages('blocks of the vendor', (count) =>
    list(count, (at) => [
      ...block(
        2 * at,
        { type: 'server_tool_use', id: `s${at}`, name: 'web_search', input: {} },
        { type: 'input_json_delta', partial_json: '{"query":"q"}' },
      ),
      start(2 * at + 1, { type: 'web_search_tool_result', tool_use_id: `s${at}`, content: [] }),
      stop(2 * at + 1),
    ]).flat(),
  ),
  messages('redacted thinking', (count) =>
    list(count, (at) => [start(at, { type: 'redacted_thinking', data: `d${at}` }), stop(at)]).flat(),
  ),
  messages('events that nobody knows', (count) => list(count, (at) => event(`novelty_${at % 50}`, { [`x_${at}`]: at }))),
  messages('calls of a wrapper', (count) =>
    block(
      0,
      { type: 'tool_use', id: 't', name: 'parallel', input: {} },
      {
        type: 'input_json_delta',
        partial_json: JSON.stringify({ tool_uses: list(count, () => ({ recipient_name: 'functions.f', parameters: { a: 1 } })) }),
      },
    ),
  ),
];
