/** Literal streams of responses upstreams: much of one thing each. */
import type { StreamShape } from './answer-shapes.ts';
import { list } from './schema-shapes.ts';

const usage = {
  input_tokens: 7,
  input_tokens_details: { cached_tokens: 0 },
  output_tokens: 5,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: 12,
};
export const answer = (output: readonly object[], members: object = {}) => ({
  id: 'r',
  object: 'response',
  created_at: 1,
  model: 'up',
  status: 'completed',
  output,
  usage,
  ...members,
});
const event = (type: string, members: object) => ({ type, ...members });
const created = event('response.created', { response: answer([], { status: 'in_progress' }) });
const added = (at: number, item: object) => event('response.output_item.added', { output_index: at, item });
const done = (at: number, item: object) => event('response.output_item.done', { output_index: at, item });
export const call = (at: number, members: object = {}) => ({
  type: 'function_call',
  id: `fc_${at}`,
  call_id: `c${at}`,
  name: 'f',
  arguments: '{"a":1}',
  status: 'completed',
  ...members,
});
export const part = (text: string, members: object = {}) => ({ type: 'output_text', text, annotations: [], ...members });
export const message = (at: number, content: readonly object[]) => ({
  type: 'message',
  id: `msg_${at}`,
  role: 'assistant',
  status: 'completed',
  content,
});
export const thought = (at: number, summary: readonly string[]) => ({
  type: 'reasoning',
  id: `rs_${at}`,
  summary: summary.map((text) => ({ type: 'summary_text', text })),
});
export const native = (at: number) => ({
  type: 'web_search_call',
  id: `ws_${at}`,
  status: 'completed',
  action: { type: 'search', query: 'q' },
});
export const link = (at: number) => ({
  type: 'url_citation',
  url: `https://e.example/${at}`,
  title: 't',
  start_index: 0,
  end_index: 1,
});
const within = (at: number, members: object = {}) => ({ item_id: `msg_${at}`, output_index: at, content_index: 0, ...members });

const responses = (
  name: string,
  events: (count: number) => readonly object[],
  output?: (count: number) => readonly object[],
): StreamShape => ({
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

/** As long as so many deltas together. */
export const longId = (count: number): string => 'i'.repeat(16 * count);

export const RESPONSES: readonly StreamShape[] = [
  responses('pieces that leave out the long id of their item', (count) => [
    added(0, { ...message(0, []), id: longId(count), status: 'in_progress' }),
    event('response.content_part.added', { output_index: 0, content_index: 0, part: part('') }),
    ...list(count, () => event('response.output_text.delta', { output_index: 0, content_index: 0, delta: 'x' })),
    ...closed(0, 'x'.repeat(count)).map((last) => ({ ...last, item_id: undefined })),
  ]),
  responses(
    'calls that end in reverse',
    (count) => [...list(count, calling), ...list(count, (at) => called(count - 1 - at)).flat()],
    (count) => list(count, (at) => call(at)),
  ),
  responses(
    'texts that end in reverse',
    (count) => [
      ...list(count, opened).flat(),
      ...list(count, (at) => said(at, 'x')),
      ...list(count, (at) => closed(count - 1 - at, 'x')).flat(),
    ],
    (count) => list(count, (at) => message(at, [part('x')])),
  ),
  responses(
    'a terminal in reverse',
    (count) => list(count, (at) => [calling(at), ...called(at)]).flat(),
    (count) => reversed(list(count, (at) => call(at))),
  ),
  responses(
    'a terminal in reverse with other ids',
    (count) => list(count, (at) => [...opened(at), said(at, `w${at}`), ...closed(at, `w${at}`)]).flat(),
    (count) => reversed(list(count, (at) => ({ ...message(at, [part(`w${at}`)]), id: `other_${at}` }))),
  ),
  responses(
    'a terminal with texts under other ids, far behind',
    (count) => list(count, (at) => [...opened(at), said(at, `w${at}`), ...closed(at, `w${at}`)]).flat(),
    (count) => [
      ...list(count, native),
      ...reversed(list(count, (at) => ({ ...message(at, [part(`w${at}`)]), id: `other_${at}` }))),
    ],
  ),
  responses(
    'a terminal with other call ids',
    (count) => list(count, (at) => [calling(at), ...called(at)]).flat(),
    (count) => list(count, (at) => call(at, { id: `o${at}`, call_id: `o${at}` })),
  ),
  responses(
    'a terminal with calls of other ids, shifted',
    (count) => [...list(count, (at) => [calling(at), ...called(at)]).flat()],
    (count) => [native(0), ...list(count, (at) => call(at))],
  ),
  responses(
    'a terminal that repeats one text',
    (count) => list(count, (at) => [...opened(at), said(at, 'x'), ...closed(at, 'x')]).flat(),
    (count) => list(count, (at) => ({ ...message(at, [part('x')]), id: `other_${at}` })),
  ),
  responses(
    'items that only the terminal has',
    () => [],
    (count) => list(count, (at) => [message(at, [part('x')]), call(at), thought(at, ['t']), native(at)][at % 4] ?? native(at)),
  ),
  responses(
    'items that only the terminal has, beside streamed ones',
    (count) => list(count, (at) => [calling(at), ...called(at)]).flat(),
    (count) => [...list(count, (at) => native(at)), ...list(count, (at) => call(at))],
  ),
  responses(
    'items in reverse without indices',
    (count) =>
      list(count, (at) => [
        { type: 'response.output_item.added', item: call(at, { arguments: '' }) },
        { type: 'response.output_item.done', item: call(at) },
      ]).flat(),
    (count) => reversed(list(count, (at) => call(at))),
  ),
  responses(
    'items of one index',
    (count) => list(count, (at) => [added(0, call(at, { arguments: '' })), done(0, call(at))]).flat(),
    (count) => list(count, (at) => call(at)),
  ),
  responses(
    'items without ids',
    (count) => list(count, (at) => [added(at, call(at, { id: undefined, arguments: '' })), ...called(at)]).flat(),
    (count) => list(count, (at) => call(at, { id: undefined })),
  ),
  responses(
    'a message of many parts',
    (count) => [
      added(0, { ...message(0, []), status: 'in_progress' }),
      ...list(count, (at) => [
        event('response.content_part.added', within(0, { content_index: at, part: part('') })),
        event('response.output_text.delta', within(0, { content_index: at, delta: 'x' })),
        event('response.output_text.done', within(0, { content_index: at, text: 'x' })),
        event('response.content_part.done', within(0, { content_index: at, part: part('x') })),
      ]).flat(),
      done(
        0,
        message(
          0,
          list(count, () => part('x')),
        ),
      ),
    ],
    (count) => [
      message(
        0,
        list(count, () => part('x')),
      ),
    ],
  ),
  responses(
    'a message of many parts side by side',
    (count) => [
      added(0, { ...message(0, []), status: 'in_progress' }),
      ...list(count, (at) => event('response.content_part.added', within(0, { content_index: at, part: part('') }))),
      ...list(count, (at) => event('response.output_text.delta', within(0, { content_index: at, delta: 'x' }))),
      ...list(count, (at) => event('response.output_text.delta', within(0, { content_index: count - 1 - at, delta: 'y' }))),
      done(
        0,
        message(
          0,
          list(count, () => part('xy')),
        ),
      ),
    ],
    (count) => [
      message(
        0,
        list(count, () => part('xy')),
      ),
    ],
  ),
  responses(
    'a thought of many parts, told part by part',
    (count) => [
      added(0, { ...thought(0, []), status: 'in_progress' }),
      ...list(count, (at) => [
        event('response.reasoning_summary_part.added', {
          item_id: 'rs_0',
          output_index: 0,
          summary_index: at,
          part: { type: 'summary_text', text: '' },
        }),
        event('response.reasoning_summary_text.delta', { item_id: 'rs_0', output_index: 0, summary_index: at, delta: 'x' }),
        event('response.reasoning_summary_text.done', { item_id: 'rs_0', output_index: 0, summary_index: at, text: 'x' }),
        event('response.reasoning_summary_part.done', {
          item_id: 'rs_0',
          output_index: 0,
          summary_index: at,
          part: { type: 'summary_text', text: 'x' },
        }),
      ]).flat(),
      done(
        0,
        thought(
          0,
          list(count, () => 'x'),
        ),
      ),
    ],
    (count) => [
      thought(
        0,
        list(count, () => 'x'),
      ),
    ],
  ),
  responses(
    'a thought of many empty parts',
    (count) => [
      added(0, { ...thought(0, []), status: 'in_progress' }),
      ...list(count, (at) =>
        event('response.reasoning_summary_part.added', {
          item_id: 'rs_0',
          output_index: 0,
          summary_index: at,
          part: { type: 'summary_text', text: '' },
        }),
      ),
      ...list(count, (at) =>
        event('response.reasoning_summary_text.delta', { item_id: 'rs_0', output_index: 0, summary_index: at, delta: '' }),
      ),
      done(
        0,
        thought(
          0,
          list(count, () => ''),
        ),
      ),
    ],
    (count) => [
      thought(
        0,
        list(count, () => ''),
      ),
    ],
  ),
  responses(
    'a thought of many raw parts',
    (count) => [
      added(0, { type: 'reasoning', id: 'rs_0', summary: [], content: [], status: 'in_progress' }),
      ...list(count, (at) =>
        event('response.reasoning_text.delta', {
          item_id: 'rs_0',
          output_index: 0,
          content_index: at,
          delta: at % 2 === 0 ? '' : 'x',
        }),
      ),
      done(0, { type: 'reasoning', id: 'rs_0', summary: [], content: [] }),
    ],
    () => [{ type: 'reasoning', id: 'rs_0', summary: [], content: [] }],
  ),
  responses(
    'a thought of many raw parts, the first ones empty',
    (count) => [
      added(0, { type: 'reasoning', id: 'rs_0', summary: [], content: [], status: 'in_progress' }),
      ...list(2 * count, (at) =>
        event('response.reasoning_text.delta', {
          item_id: 'rs_0',
          output_index: 0,
          content_index: at,
          delta: at < count ? '' : 'x',
        }),
      ),
      done(0, { type: 'reasoning', id: 'rs_0', summary: [], content: [] }),
    ],
    () => [],
  ),
  responses(
    'annotations',
    (count) => [
      ...opened(0),
      said(0, 'said'),
      ...list(count, (at) =>
        event('response.output_text.annotation.added', within(0, { annotation_index: at, annotation: link(at) })),
      ),
      ...closed(0, 'said', { annotations: list(count, link) }),
    ],
    (count) => [message(0, [part('said', { annotations: list(count, link) })])],
  ),
  responses(
    'a text without dones',
    (count) => [...opened(0), ...list(count, () => said(0, 'said ')), done(0, message(0, []))],
    () => [message(0, [])],
  ),
  responses(
    'a text whose end is empty, and all of it in between',
    (count) => [...opened(0), ...list(count, () => said(0, 'said ')), ...closed(0, '')],
    () => [],
  ),
  responses(
    'arguments in pieces',
    (count) => [
      calling(0),
      ...list(count, (at) =>
        event('response.function_call_arguments.delta', { item_id: 'fc_0', output_index: 0, delta: at === 0 ? '{"a":[0' : ',1' }),
      ),
      done(0, call(0, { arguments: `{"a":[0${',1'.repeat(count - 1)}]}` })),
    ],
    (count) => [call(0, { arguments: `{"a":[0${',1'.repeat(count - 1)}]}` })],
  ),
  responses('events that nobody knows', (count) =>
    list(count, (at) => event(`response.novelty_${at % 50}`, { [`x_${at}`]: { y: at } })),
  ),
  responses('progress with a usage each', (count) =>
    list(count, (at) =>
      event('response.in_progress', { response: { id: 'r', status: 'in_progress', usage: { ...usage, [`x_${at}`]: at } } }),
    ),
  ),
  responses(
    'items of the vendor',
    (count) =>
      list(count, (at) => [
        added(at, native(at)),
        event('response.web_search_call.searching', { item_id: `ws_${at}`, output_index: at }),
        done(at, native(at)),
      ]).flat(),
    (count) => list(count, native),
  ),
  responses(
    'pictures in pieces',
    (count) => [
      added(0, { type: 'image_generation_call', id: 'ig', status: 'in_progress' }),
      ...list(count, (at) =>
        event('response.image_generation_call.partial_image', {
          item_id: 'ig',
          output_index: 0,
          partial_image_index: at,
          partial_image_b64: 'AAAA',
        }),
      ),
      done(0, { type: 'image_generation_call', id: 'ig', status: 'completed', result: 'AAAA' }),
    ],
    () => [{ type: 'image_generation_call', id: 'ig', status: 'completed', result: 'AAAA' }],
  ),
  responses('pictures that are loose', (count) =>
    list(count, (at) => event('response.image_generation_call.completed', { item_id: `ig_${at}`, result: 'AAAA' })),
  ),
  responses('audio in pieces', (count) => list(count, () => event('response.output_audio.delta', { delta: 'QUJD' }))),
  responses(
    'calls and texts side by side',
    (count) => [
      ...list(count, (at) => (at % 2 === 0 ? opened(at) : [calling(at)])).flat(),
      ...list(count, (at) => (at % 2 === 0 ? [said(at, 'x')] : [])).flat(),
      ...list(count, (at) => (at % 2 === 0 ? closed(at, 'x') : called(at))).flat(),
    ],
    (count) => list(count, (at) => (at % 2 === 0 ? message(at, [part('x')]) : call(at))),
  ),
];
