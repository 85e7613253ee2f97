/** Literal streams of chat upstreams: much of one thing each. */
import type { StreamShape } from './answer-shapes.ts';
import { list, record } from './schema-shapes.ts';

const usage = { prompt_tokens: 7, completion_tokens: 5, total_tokens: 12 };
const chunk = (choice: object, rest: object = {}) => ({
  id: 'c',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'up',
  choices: [{ index: 0, delta: {}, finish_reason: null, ...choice }],
  ...rest,
});
const delta = (members: object) => chunk({ delta: members });
const piece = (at: number, members: object = {}) => ({ index: at, function: { arguments: '"x"' }, ...members });
const head = (at: number, members: object = {}) => ({
  index: at,
  id: `call_${at}`,
  type: 'function',
  function: { name: 'f', arguments: '' },
  ...members,
});
const chat = (name: string, events: (count: number) => readonly (object | string)[], finish = 'stop'): StreamShape => ({
  name,
  dialect: 'chat',
  events: (count) => [
    delta({ role: 'assistant', content: '' }),
    ...events(count),
    chunk({ finish_reason: finish }),
    chunk({}, { choices: [], usage }),
    '[DONE]',
  ],
});
/** Arguments of call `at`, opened and closed. */
const opened = (at: number, members: object = {}) => delta({ tool_calls: [head(at, members)] });
const filled = (at: number, value: string) => delta({ tool_calls: [{ index: at, function: { arguments: value } }] });
const link = (at: number) => ({
  type: 'url_citation',
  url_citation: { url: `https://e.example/${at}`, title: 't', start_index: 0, end_index: 1 },
});

export const CHAT: readonly StreamShape[] = [
  chat('usage in every chunk, a new member each', (count) =>
    list(count, (at) => chunk({ delta: { content: 'x' } }, { usage: { ...usage, [`x_${at}`]: at } })),
  ),
  chat('usage in every chunk, a new detail each', (count) =>
    list(count, (at) =>
      chunk({}, { choices: [], usage: { ...usage, completion_tokens_details: { reasoning_tokens: 1, [`x_${at}`]: at } } }),
    ),
  ),
  chat('usage in every chunk, after a wide one', (count) => [
    chunk({}, { choices: [], usage: { ...usage, ...record(count, 'x_', (at) => at) } }),
    ...list(count, (at) => chunk({}, { choices: [], usage: { ...usage, completion_tokens: at } })),
  ]),
  chat('usage in every chunk, a deep new detail each', (count) =>
    list(count, (at) => chunk({}, { choices: [], usage: { ...usage, prompt_tokens_details: { a: { [`x_${at}`]: at } } } })),
  ),
  chat('chunks of another shape each', (count) =>
    list(count, (at) => ({ ...delta({ content: `w${at}` }), [`x_${at}`]: { [`y_${at}`]: [at] } })),
  ),
  chat('chunks without choices', (count) => list(count, (at) => ({ ...chunk({}), choices: [], [`x_${at % 7}`]: at }))),
  chat('content and reasoning in turn', (count) =>
    list(count, (at) => delta(at % 2 === 0 ? { content: `word ${at} ` } : { reasoning_content: `thought ${at} ` })),
  ),
  chat('content, refusal and calls in turn', (count) =>
    list(count, (at) =>
      at % 3 === 0
        ? delta({ content: 'text ' })
        : at % 3 === 1
          ? delta({ refusal: 'no ' })
          : delta({ tool_calls: [head(at, { function: { name: 'f', arguments: '{}' } })] }),
    ),
  ),
  chat(
    'calls that begin in reverse',
    (count) => list(count, (at) => delta({ tool_calls: [head(count - 1 - at, { function: { name: 'f', arguments: '{}' } })] })),
    'tool_calls',
  ),
  chat(
    'calls side by side, one piece each in reverse',
    (count) => [
      ...list(count, (at) => opened(at)),
      ...list(count, (at) => filled(count - 1 - at, '{"a":')),
      ...list(count, (at) => filled(at, '1}')),
    ],
    'tool_calls',
  ),
  chat(
    'all calls in every chunk',
    (count) => {
      const calls = Math.ceil(Math.sqrt(count));
      return [
        delta({ tool_calls: list(calls, (at) => head(at)) }),
        ...list(calls, () => delta({ tool_calls: list(calls, (at) => piece(at)) })),
      ];
    },
    'tool_calls',
  ),
  chat(
    'calls without indices',
    (count) =>
      list(count, (at) =>
        delta({ tool_calls: [{ id: `call_${at}`, type: 'function', function: { name: 'f', arguments: '{"a":1}' } }] }),
      ),
    'tool_calls',
  ),
  chat(
    'calls without ids and indices',
    (count) => list(count, () => delta({ tool_calls: [{ type: 'function', function: { name: 'f', arguments: '{"a":1}' } }] })),
    'tool_calls',
  ),
  chat(
    'calls of one index',
    (count) =>
      list(count, (at) => delta({ tool_calls: [head(0, { id: `call_${at}`, function: { name: 'f', arguments: '{}' } })] })),
    'tool_calls',
  ),
  chat(
    'calls whose names come in pieces',
    (count) => [
      ...list(count, (at) => opened(at, { function: { name: 'get_', arguments: '' } })),
      ...list(count, (at) => delta({ tool_calls: [{ index: at, function: { name: 'more', arguments: '{}' } }] })),
    ],
    'tool_calls',
  ),
  chat(
    'a call whose name comes in many pieces',
    (count) => [opened(0), ...list(count, () => delta({ tool_calls: [{ index: 0, function: { name: 'f' } }] }))],
    'tool_calls',
  ),
  chat(
    'arguments in pieces that repeat the id and the name',
    (count) => [
      opened(0),
      ...list(count, (at) =>
        delta({ tool_calls: [head(0, { function: { name: 'f', arguments: at === 0 ? '{"a":[0' : ',1' } })] }),
      ),
      filled(0, ']}'),
    ],
    'tool_calls',
  ),
  chat(
    'arguments in pieces that end in braces',
    (count) => [opened(0), ...list(count, (at) => filled(0, at === 0 ? '{"a":[{}' : ',{}')), filled(0, ']}')],
    'tool_calls',
  ),
  chat('arguments that are whole and go on', (count) => [opened(0), ...list(count, () => filled(0, '{}'))], 'tool_calls'),
  chat(
    'arguments that begin again',
    (count) => [opened(0), filled(0, '{"a":"'), ...list(count, (at) => filled(0, `${at} \\n é`)), filled(0, '"}')],
    'tool_calls',
  ),
  chat(
    'arguments in pieces with other ids, braces within a text',
    (count) => [
      opened(0),
      filled(0, '{"a":"'),
      ...list(count, (at) => delta({ tool_calls: [head(0, { id: `other_${at}`, function: { name: 'f', arguments: '{}' } })] })),
      filled(0, '"}'),
    ],
    'tool_calls',
  ),
  chat(
    'arguments in pieces without ids, braces within a text',
    (count) => [
      opened(0),
      filled(0, '{"a":"'),
      ...list(count, () => delta({ tool_calls: [{ index: 0, function: { name: 'f', arguments: '{}' } }] })),
      filled(0, '"}'),
    ],
    'tool_calls',
  ),
  chat('signed reasoning that repeats', (count) => [
    delta({ reasoning_details: [{ type: 'reasoning.text', text: 'thought '.repeat(count), index: 0, signature: 's' }] }),
    delta({ content: 'x' }),
    ...list(count, () => delta({ reasoning_details: [{ type: 'reasoning.text', text: 'x', index: 0, signature: 's' }] })),
  ]),
  chat('reasoning details, one index each', (count) =>
    list(count, (at) => delta({ reasoning_details: [{ type: 'reasoning.text', text: 'x', index: at, id: `r${at}` }] })),
  ),
  chat('reasoning details of one index', (count) =>
    list(count, () => delta({ reasoning_details: [{ type: 'reasoning.text', text: 'x', index: 0 }] })),
  ),
  chat('reasoning details, indices in turn', (count) =>
    list(count, (at) => delta({ reasoning_details: [{ type: 'reasoning.summary', summary: 'x', index: at % 40 }] })),
  ),
  chat('encrypted reasoning details', (count) =>
    list(count, (at) => delta({ reasoning_details: [{ type: 'reasoning.encrypted', data: `d${at}`, index: at, id: `r${at}` }] })),
  ),
  chat('encrypted reasoning in pieces', (count) =>
    list(count, () => delta({ reasoning_details: [{ type: 'reasoning.encrypted', data: 'QUJD', index: 0 }] })),
  ),
  chat('encrypted reasoning in many scalars', (count) =>
    list(count, () => delta({ reasoning_opaque: 'QUJD', reasoning_text: 'x' })),
  ),
  chat(
    'signed calls',
    (count) =>
      list(count, (at) =>
        delta({
          tool_calls: [
            head(at, { function: { name: 'f', arguments: '{}' }, extra_content: { google: { thought_signature: `s${at}` } } }),
          ],
        }),
      ),
    'tool_calls',
  ),
  chat('a citation in each piece', (count) => list(count, (at) => delta({ content: 'said ', annotations: [link(at)] }))),
  chat('citations of what was said long ago', (count) => [
    ...list(count, () => delta({ content: 'said ' })),
    ...list(count, (at) => delta({ annotations: [link(at)] })),
  ]),
  chat('all citations in one chunk', (count) => [
    delta({ content: 'é said '.repeat(count) }),
    delta({ annotations: list(count, (at) => link(at)) }),
  ]),
  chat('citations between texts and thoughts', (count) =>
    list(count, (at) =>
      at % 2 === 0 ? delta({ content: 'said ', annotations: [link(at)] }) : delta({ reasoning_content: 'x' }),
    ),
  ),
  chat('citations of sources beside each chunk', (count) =>
    list(count, (at) => ({ ...delta({ content: 'x' }), citations: [`https://e.example/${at}`] })),
  ),
  chat('logprobs', (count) =>
    list(count, () =>
      chunk({
        delta: { content: 'a' },
        logprobs: {
          content: [{ token: 'a', logprob: -1, bytes: [97], top_logprobs: [{ token: 'a', logprob: -1, bytes: [97] }] }],
        },
      }),
    ),
  ),
  chat('logprobs without their text', (count) =>
    list(count, () => chunk({ delta: { content: '' }, logprobs: { content: [{ token: 'a', logprob: -1 }] } })),
  ),
  chat('logprobs that spell something else', (count) =>
    list(count, () => chunk({ delta: { content: 'a' }, logprobs: { content: [{ token: 'b', logprob: -1 }] } })),
  ),
  chat('content as blocks', (count) => list(count, (at) => delta({ content: [{ type: 'text', text: `x${at}` }] }))),
  chat('thinking as blocks', (count) =>
    list(count, () => delta({ content: [{ type: 'thinking', thinking: [{ type: 'text', text: 'x' }] }] })),
  ),
  chat('pictures', (count) =>
    list(count, (at) => delta({ images: [{ type: 'image_url', image_url: { url: `data:image/png;base64,AAAA${1000 + at}` } }] })),
  ),
  chat('audio in pieces', (count) => list(count, () => delta({ audio: { id: 'a', data: 'QUJD', transcript: 'x' } }))),
  chat('other choices', (count) => [
    { ...chunk({}), choices: list(count, (at) => ({ index: at, delta: { content: 'x' }, finish_reason: null })) },
  ]),
  chat('finish reasons', (count) => list(count, () => chunk({ finish_reason: 'stop' }))),
  chat('a whole message at the end', (count) => [
    ...list(count, () => delta({ content: 'said ' })),
    chunk({ delta: {}, message: { role: 'assistant', content: 'said '.repeat(count) } }),
  ]),
  chat('whole messages again and again, empty', (count) =>
    list(count, () => chunk({ delta: { content: 'x' }, message: { role: 'assistant', content: '' } })),
  ),
  chat(
    'calls, and all of them again in a message',
    (count) => [
      ...list(count, (at) => delta({ tool_calls: [head(at, { function: { name: 'f', arguments: '{}' } })] })),
      chunk({
        delta: {},
        message: {
          role: 'assistant',
          content: null,
          tool_calls: list(count, (at) => head(count - 1 - at, { function: { name: 'f', arguments: '{}' } })),
        },
      }),
    ],
    'tool_calls',
  ),
  chat(
    'calls of a wrapper',
    (count) => [
      delta({
        tool_calls: [
          head(0, {
            function: {
              name: 'multi_tool_use.parallel',
              arguments: JSON.stringify({
                tool_uses: list(count, () => ({ recipient_name: 'functions.f', parameters: { a: 1 } })),
              }),
            },
          }),
        ],
      }),
    ],
    'tool_calls',
  ),
  chat(
    'many wrappers',
    (count) =>
      list(count, (at) =>
        delta({
          tool_calls: [
            head(at, { function: { name: 'parallel', arguments: '{"tool_uses":[{"recipient_name":"f","parameters":{}}]}' } }),
          ],
        }),
      ),
    'tool_calls',
  ),
  chat(
    'an old function call in pieces',
    (count) => [
      delta({ function_call: { name: 'f', arguments: '{"a":"' } }),
      ...list(count, () => delta({ function_call: { arguments: 'x' } })),
      delta({ function_call: { arguments: '"}' } }),
    ],
    'function_call',
  ),
  chat(
    'freeform calls in pieces of escapes',
    (count) => [
      opened(0, { function: { name: 'patch', arguments: '{"input":"' } }),
      ...list(count, () => filled(0, '\\n\\u00e9x')),
      filled(0, '"}'),
    ],
    'tool_calls',
  ),
  chat(
    'freeform calls in pieces of backslashes',
    (count) => [
      opened(0, { function: { name: 'patch', arguments: '{"input":"' } }),
      ...list(count, () => filled(0, '\\')),
      ...list(count % 2, () => filled(0, '\\')),
      filled(0, '"}'),
    ],
    'tool_calls',
  ),
  chat(
    'freeform calls that are no object',
    (count) => [opened(0, { function: { name: 'patch', arguments: '' } }), ...list(count, () => filled(0, '{ "'))],
    'tool_calls',
  ),
  chat(
    'a freeform call with space behind its only name',
    (count) => [opened(0, { function: { name: 'patch', arguments: `{"input"${' '.repeat(4 * count)}x` } })],
    'tool_calls',
  ),
];
