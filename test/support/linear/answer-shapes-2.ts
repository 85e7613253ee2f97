/** Literal streams and bodies of responses and messages upstreams, and bodies of the others: much of one thing each. */
import type { BodyShape, StreamShape } from './answer-shapes.ts';
import { list, record } from './schema-shapes.ts';

const usage = { input_tokens: 7, input_tokens_details: { cached_tokens: 0 }, output_tokens: 5, output_tokens_details: { reasoning_tokens: 0 }, total_tokens: 12 };
const answer = (output: readonly object[], members: object = {}) => ({ id: 'r', object: 'response', created_at: 1, model: 'up', status: 'completed', output, usage, ...members });
const event = (type: string, members: object) => ({ type, ...members });
const created = event('response.created', { response: answer([], { status: 'in_progress' }) });
const added = (at: number, item: object) => event('response.output_item.added', { output_index: at, item });
const done = (at: number, item: object) => event('response.output_item.done', { output_index: at, item });
const call = (at: number, members: object = {}) => ({ type: 'function_call', id: `fc_${at}`, call_id: `c${at}`, name: 'f', arguments: '{"a":1}', status: 'completed', ...members });
const part = (text: string, members: object = {}) => ({ type: 'output_text', text, annotations: [], ...members });
const message = (at: number, content: readonly object[]) => ({ type: 'message', id: `msg_${at}`, role: 'assistant', status: 'completed', content });
const thought = (at: number, summary: readonly string[]) => ({ type: 'reasoning', id: `rs_${at}`, summary: summary.map((text) => ({ type: 'summary_text', text })) });
const native = (at: number) => ({ type: 'web_search_call', id: `ws_${at}`, status: 'completed', action: { type: 'search', query: 'q' } });
const link = (at: number) => ({ type: 'url_citation', url: `https://e.example/${at}`, title: 't', start_index: 0, end_index: 1 });
const within = (at: number, members: object = {}) => ({ item_id: `msg_${at}`, output_index: at, content_index: 0, ...members });

const responses = (name: string, events: (count: number) => readonly object[], output?: (count: number) => readonly object[]): StreamShape => ({
  name,
  dialect: 'responses',
  events: (count) => [created, ...events(count), event('response.completed', { response: answer(output?.(count) ?? []) })],
});

const opened = (at: number) => [
  added(at, { ...message(at, []), status: 'in_progress' }),
  event('response.content_part.added', within(at, { part: part('') })),
];
const said = (at: number, text: string) => event('response.output_text.delta', within(at, { delta: text }));
const closed = (at: number, text: string, members: object = {}) => [
  event('response.output_text.done', within(at, { text })),
  event('response.content_part.done', within(at, { part: part(text, members) })),
  done(at, message(at, [part(text, members)])),
];
const calling = (at: number) => added(at, call(at, { arguments: '', status: 'in_progress' }));
const called = (at: number) => [
  event('response.function_call_arguments.done', { item_id: `fc_${at}`, output_index: at, arguments: '{"a":1}' }),
  done(at, call(at)),
];
const reversed = <T>(entries: readonly T[]): T[] => [...entries].reverse();

const RESPONSES: readonly StreamShape[] = [
  responses('calls that end in reverse', (count) => [...list(count, calling), ...list(count, (at) => called(count - 1 - at)).flat()], (count) => list(count, (at) => call(at))),
  responses('texts that end in reverse', (count) => [...list(count, opened).flat(), ...list(count, (at) => said(at, 'x')), ...list(count, (at) => closed(count - 1 - at, 'x')).flat()], (count) => list(count, (at) => message(at, [part('x')]))),
  responses('a terminal in reverse', (count) => list(count, (at) => [calling(at), ...called(at)]).flat(), (count) => reversed(list(count, (at) => call(at)))),
  responses('a terminal in reverse with other ids', (count) => list(count, (at) => [...opened(at), said(at, `w${at}`), ...closed(at, `w${at}`)]).flat(), (count) => reversed(list(count, (at) => ({ ...message(at, [part(`w${at}`)]), id: `other_${at}` })))),
  responses('a terminal with other call ids', (count) => list(count, (at) => [calling(at), ...called(at)]).flat(), (count) => list(count, (at) => call(at, { id: `o${at}`, call_id: `o${at}` }))),
  responses('a terminal with calls of other ids, shifted', (count) => [...list(count, (at) => [calling(at), ...called(at)]).flat()], (count) => [native(0), ...list(count, (at) => call(at))]),
  responses('a terminal that repeats one text', (count) => list(count, (at) => [...opened(at), said(at, 'x'), ...closed(at, 'x')]).flat(), (count) => list(count, (at) => ({ ...message(at, [part('x')]), id: `other_${at}` }))),
  responses('items that only the terminal has', () => [], (count) => list(count, (at) => [message(at, [part('x')]), call(at), thought(at, ['t']), native(at)][at % 4] ?? native(at))),
  responses('items that only the terminal has, beside streamed ones', (count) => list(count, (at) => [calling(at), ...called(at)]).flat(), (count) => [...list(count, (at) => native(at)), ...list(count, (at) => call(at))]),
  responses('items in reverse without indices', (count) => list(count, (at) => [{ type: 'response.output_item.added', item: call(at, { arguments: '' }) }, { type: 'response.output_item.done', item: call(at) }]).flat(), (count) => reversed(list(count, (at) => call(at)))),
  responses('items of one index', (count) => list(count, (at) => [added(0, call(at, { arguments: '' })), done(0, call(at))]).flat(), (count) => list(count, (at) => call(at))),
  responses('items without ids', (count) => list(count, (at) => [added(at, call(at, { id: undefined, arguments: '' })), ...called(at)]).flat(), (count) => list(count, (at) => call(at, { id: undefined }))),
  responses('a message of many parts', (count) => [
    added(0, { ...message(0, []), status: 'in_progress' }),
    ...list(count, (at) => [
      event('response.content_part.added', within(0, { content_index: at, part: part('') })),
      event('response.output_text.delta', within(0, { content_index: at, delta: 'x' })),
      event('response.output_text.done', within(0, { content_index: at, text: 'x' })),
      event('response.content_part.done', within(0, { content_index: at, part: part('x') })),
    ]).flat(),
    done(0, message(0, list(count, () => part('x')))),
  ], (count) => [message(0, list(count, () => part('x')))]),
  responses('a message of many parts side by side', (count) => [
    added(0, { ...message(0, []), status: 'in_progress' }),
    ...list(count, (at) => event('response.content_part.added', within(0, { content_index: at, part: part('') }))),
    ...list(count, (at) => event('response.output_text.delta', within(0, { content_index: at, delta: 'x' }))),
    ...list(count, (at) => event('response.output_text.delta', within(0, { content_index: count - 1 - at, delta: 'y' }))),
    done(0, message(0, list(count, () => part('xy')))),
  ], (count) => [message(0, list(count, () => part('xy')))]),
  responses('a thought of many parts', (count) => [
    added(0, { ...thought(0, []), status: 'in_progress' }),
    ...list(count, (at) => [
      event('response.reasoning_summary_part.added', { item_id: 'rs_0', output_index: 0, summary_index: at, part: { type: 'summary_text', text: '' } }),
      event('response.reasoning_summary_text.delta', { item_id: 'rs_0', output_index: 0, summary_index: at, delta: 'x' }),
      event('response.reasoning_summary_text.done', { item_id: 'rs_0', output_index: 0, summary_index: at, text: 'x' }),
      event('response.reasoning_summary_part.done', { item_id: 'rs_0', output_index: 0, summary_index: at, part: { type: 'summary_text', text: 'x' } }),
    ]).flat(),
    done(0, thought(0, list(count, () => 'x'))),
  ], (count) => [thought(0, list(count, () => 'x'))]),
  responses('a thought of many empty parts', (count) => [
    added(0, { ...thought(0, []), status: 'in_progress' }),
    ...list(count, (at) => event('response.reasoning_summary_part.added', { item_id: 'rs_0', output_index: 0, summary_index: at, part: { type: 'summary_text', text: '' } })),
    ...list(count, (at) => event('response.reasoning_summary_text.delta', { item_id: 'rs_0', output_index: 0, summary_index: at, delta: '' })),
    done(0, thought(0, list(count, () => ''))),
  ], (count) => [thought(0, list(count, () => ''))]),
  responses('a thought of many raw parts', (count) => [
    added(0, { type: 'reasoning', id: 'rs_0', summary: [], content: [], status: 'in_progress' }),
    ...list(count, (at) => event('response.reasoning_text.delta', { item_id: 'rs_0', output_index: 0, content_index: at, delta: at % 2 === 0 ? '' : 'x' })),
    done(0, { type: 'reasoning', id: 'rs_0', summary: [], content: [] }),
  ], () => [{ type: 'reasoning', id: 'rs_0', summary: [], content: [] }]),
  responses('annotations', (count) => [
    ...opened(0),
    said(0, 'said'),
    ...list(count, (at) => event('response.output_text.annotation.added', within(0, { annotation_index: at, annotation: link(at) }))),
    ...closed(0, 'said', { annotations: list(count, link) }),
  ], (count) => [message(0, [part('said', { annotations: list(count, link) })])]),
  responses('a text without dones', (count) => [...opened(0), ...list(count, () => said(0, 'said ')), done(0, message(0, []))], () => [message(0, [])]),
  responses('a text whose end is empty, and all of it in between', (count) => [...opened(0), ...list(count, () => said(0, 'said ')), ...closed(0, '')], () => []),
  responses('arguments in pieces', (count) => [
    calling(0),
    ...list(count, (at) => event('response.function_call_arguments.delta', { item_id: 'fc_0', output_index: 0, delta: at === 0 ? '{"a":[0' : ',1' })),
    done(0, call(0, { arguments: `{"a":[0${',1'.repeat(count - 1)}` + ']}' })),
  ], (count) => [call(0, { arguments: `{"a":[0${',1'.repeat(count - 1)}` + ']}' })]),
  responses('events that nobody knows', (count) => list(count, (at) => event(`response.novelty_${at % 50}`, { [`x_${at}`]: { y: at } }))),
  responses('progress with a usage each', (count) => list(count, (at) => event('response.in_progress', { response: { id: 'r', status: 'in_progress', usage: { ...usage, [`x_${at}`]: at } } }))),
  responses('items of the vendor', (count) => list(count, (at) => [added(at, native(at)), event('response.web_search_call.searching', { item_id: `ws_${at}`, output_index: at }), done(at, native(at))]).flat(), (count) => list(count, native)),
  responses('pictures in pieces', (count) => [
    added(0, { type: 'image_generation_call', id: 'ig', status: 'in_progress' }),
    ...list(count, (at) => event('response.image_generation_call.partial_image', { item_id: 'ig', output_index: 0, partial_image_index: at, partial_image_b64: 'AAAA' })),
    done(0, { type: 'image_generation_call', id: 'ig', status: 'completed', result: 'AAAA' }),
  ], () => [{ type: 'image_generation_call', id: 'ig', status: 'completed', result: 'AAAA' }]),
  responses('pictures that are loose', (count) => list(count, (at) => event('response.image_generation_call.completed', { item_id: `ig_${at}`, result: 'AAAA' }))),
  responses('audio in pieces', (count) => list(count, () => event('response.output_audio.delta', { delta: 'QUJD' }))),
  responses('calls and texts side by side', (count) => [
    ...list(count, (at) => (at % 2 === 0 ? opened(at) : [calling(at)])).flat(),
    ...list(count, (at) => (at % 2 === 0 ? [said(at, 'x')] : [])).flat(),
    ...list(count, (at) => (at % 2 === 0 ? closed(at, 'x') : called(at))).flat(),
  ], (count) => list(count, (at) => (at % 2 === 0 ? message(at, [part('x')]) : call(at)))),
];

const messages = (name: string, events: (count: number) => readonly object[]): StreamShape => ({
  name,
  dialect: 'messages',
  events: (count) => [
    event('message_start', { message: { id: 'm', type: 'message', role: 'assistant', model: 'up', content: [], stop_reason: null, stop_sequence: null, usage: { input_tokens: 7, output_tokens: 1 } } }),
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
const use = (at: number) => block(at, { type: 'tool_use', id: `t${at}`, name: 'f', input: {} }, { type: 'input_json_delta', partial_json: '{"a":1}' });
const thinking = (at: number) => [start(at, { type: 'thinking', thinking: '', signature: '' }), grow(at, { type: 'thinking_delta', thinking: 't' }), grow(at, { type: 'signature_delta', signature: `s${at}` }), stop(at)];

const MESSAGES: readonly StreamShape[] = [
  messages('blocks of all kinds in turn', (count) => list(count, (at) => [words, use, thinking][at % 3]?.(at) ?? []).flat()),
  messages('usage, a new member each', (count) => [...words(0), ...list(count, (at) => event('message_delta', { delta: {}, usage: { output_tokens: 5, [`x_${at}`]: at } }))]),
  messages('usage, a new member each, between blocks', (count) => list(count, (at) => [...words(at), event('message_delta', { delta: {}, usage: { output_tokens: at, server_tool_use: { [`x_${at}`]: 1 } } })]).flat()),
  messages('usage with iterations, again and again', (count) => {
    const each = Math.ceil(Math.sqrt(count));
    return [...words(0), ...list(each, () => event('message_delta', { delta: {}, usage: { output_tokens: 5, iterations: list(each, () => ({ type: 'message', input_tokens: 1, output_tokens: 1 })) } }))];
  }),
  messages('pings', (count) => list(count, () => event('ping', {}))),
  messages('citations', (count) => [
    start(0, { type: 'text', text: '' }),
    ...list(count, (at) => [
      grow(0, { type: 'text_delta', text: 'said ' }),
      grow(0, { type: 'citations_delta', citation: { type: 'web_search_result_location', cited_text: 'said', url: `https://e.example/${at}`, title: 't', encrypted_index: 'E' } }),
    ]).flat(),
    stop(0),
  ]),
  messages('arguments in pieces', (count) => [start(0, { type: 'tool_use', id: 't', name: 'f', input: {} }), ...list(count, (at) => grow(0, { type: 'input_json_delta', partial_json: at === 0 ? '{"a":[{}' : ',{}' })), grow(0, { type: 'input_json_delta', partial_json: ']}' }), stop(0)]),
  messages('a signature in pieces', (count) => [start(0, { type: 'thinking', thinking: '', signature: '' }), ...list(count, () => grow(0, { type: 'signature_delta', signature: 'QUJD' })), stop(0), ...words(1)]),
  messages('blocks of the vendor', (count) => list(count, (at) => [
    ...block(2 * at, { type: 'server_tool_use', id: `s${at}`, name: 'web_search', input: {} }, { type: 'input_json_delta', partial_json: '{"query":"q"}' }),
    start(2 * at + 1, { type: 'web_search_tool_result', tool_use_id: `s${at}`, content: [] }),
    stop(2 * at + 1),
  ]).flat()),
  messages('redacted thinking', (count) => list(count, (at) => [start(at, { type: 'redacted_thinking', data: `d${at}` }), stop(at)]).flat()),
  messages('events that nobody knows', (count) => list(count, (at) => event(`novelty_${at % 50}`, { [`x_${at}`]: at }))),
  messages('calls of a wrapper', (count) => block(0, { type: 'tool_use', id: 't', name: 'parallel', input: {} }, { type: 'input_json_delta', partial_json: JSON.stringify({ tool_uses: list(count, () => ({ recipient_name: 'functions.f', parameters: { a: 1 } })) }) })),
];

const chatCall = (at: number) => ({ id: `c${at}`, type: 'function', function: { name: 'f', arguments: '{"a":1}' } });
const chatBody = (name: string, said: (count: number) => object, finish = 'stop', rest: (count: number) => object = () => ({})): BodyShape => ({
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
const whole = (dialect: BodyShape['dialect'], name: string, body: (count: number) => object): BodyShape => ({ name, dialect, body });
const messagesBody = (name: string, content: (count: number) => readonly object[], members: (count: number) => object = () => ({})): BodyShape =>
  whole('messages', name, (count) => ({ id: 'm', type: 'message', role: 'assistant', model: 'up', content: content(count), stop_reason: 'end_turn', stop_sequence: null, usage: { input_tokens: 7, output_tokens: 5, ...members(count) } }));

export const BODIES: readonly BodyShape[] = [
  chatBody('calls', (count) => ({ tool_calls: list(count, chatCall) }), 'tool_calls'),
  chatBody('calls without ids', (count) => ({ tool_calls: list(count, () => ({ type: 'function', function: { name: 'f', arguments: '' } })) }), 'tool_calls'),
  chatBody('calls of one id', (count) => ({ tool_calls: list(count, () => chatCall(0)) }), 'tool_calls'),
  chatBody('reasoning details', (count) => ({ content: 'x', reasoning_details: list(count, (at) => ({ type: 'reasoning.text', text: 'x', index: at, id: `r${at}` })) })),
  chatBody('encrypted reasoning details', (count) => ({ content: 'x', reasoning_details: list(count, (at) => ({ type: 'reasoning.encrypted', data: `d${at}`, index: at, id: `r${at}` })) })),
  chatBody('signed calls', (count) => ({ tool_calls: list(count, chatCall), reasoning_details: list(count, (at) => ({ type: 'reasoning.encrypted', data: `d${at}`, id: `c${at}`, index: at })) }), 'tool_calls'),
  chatBody('annotations', (count) => ({ content: 'said '.repeat(count), annotations: list(count, (at) => ({ type: 'url_citation', url_citation: { url: `https://e.example/${at}`, title: 't', start_index: at, end_index: at + 2 } })) })),
  chatBody('blocks of content', (count) => ({ content: list(count, (at) => (at % 2 === 0 ? { type: 'text', text: 'x' } : { type: 'thinking', thinking: [{ type: 'text', text: 't' }] })) })),
  chatBody('pictures', (count) => ({ images: list(count, () => ({ type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } })) })),
  chatBody('usage with many members', () => ({ content: 'x' }), 'stop', (count) => ({ usage: { prompt_tokens: 7, completion_tokens: 5, ...record(count, 'x_', (at) => at), ...record(count, 'cost_', (at) => at) } })),
  chatBody('members that nobody knows', (count) => ({ content: 'x', ...record(count, 'x_', (at) => at) }), 'stop', (count) => record(count, 'x_', (at) => at)),
  whole('responses', 'items of all kinds', (count) => answer(list(count, (at) => [message(at, [part('x')]), call(at), thought(at, ['t']), native(at)][at % 4] ?? native(at)))),
  whole('responses', 'items of one id', (count) => answer(list(count, (at) => ({ ...message(0, [part(`w${at}`)]) })))),
  whole('responses', 'parts and annotations', (count) => answer([message(0, list(count, (at) => part('x', { annotations: [link(at)] })))])),
  whole('responses', 'tools that it repeats', (count) => answer([message(0, [part('x')])], { tools: list(count, (at) => ({ type: 'function', name: `f${at}`, parameters: {} })), metadata: record(count, 'x_', () => 'v') })),
  messagesBody('blocks of all kinds', (count) => list(count, (at) => [{ type: 'text', text: 'x' }, { type: 'tool_use', id: `t${at}`, name: 'f', input: { a: 1 } }, { type: 'thinking', thinking: 't', signature: 's' }, { type: 'server_tool_use', id: `s${at}`, name: 'web_search', input: {} }][at % 4] ?? {})),
  messagesBody('citations', (count) => [{ type: 'text', text: 'x', citations: list(count, (at) => ({ type: 'web_search_result_location', cited_text: 'x', url: `https://e.example/${at}`, title: 't', encrypted_index: 'E' })) }]),
  messagesBody('iterations', () => [{ type: 'text', text: 'x' }], (count) => ({ iterations: list(count, () => ({ type: 'message', input_tokens: 1, output_tokens: 1 })), ...record(count, 'x_', (at) => at) })),
  whole('gemini', 'parts of all kinds', (count) => ({
    candidates: [{ index: 0, content: { role: 'model', parts: list(count, (at) => [{ text: 'x' }, { text: 't', thought: true, thoughtSignature: 'QUJD' }, { functionCall: { name: 'f', args: { a: at } } }, { executableCode: { code: 'x' } }][at % 4] ?? {}) }, finishReason: 'STOP' }],
    usageMetadata: { promptTokenCount: 7, candidatesTokenCount: 5, totalTokenCount: 12, promptTokensDetails: list(count, () => ({ modality: 'TEXT', tokenCount: 1 })) },
  })),
];

export const RESPONSES_AND_MESSAGES_STREAMS: readonly StreamShape[] = [...RESPONSES, ...MESSAGES];
