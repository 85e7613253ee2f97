/** Rules 10, 12 and 13: the faces of reasoning, its identity, and when a signature is said. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  block,
  callDelta,
  convert,
  created,
  delta,
  DONE,
  finish,
  type Json,
  messageEnd,
  messageStart,
  say,
  terminal,
  through,
} from '../failures/through.ts';

const reasoning = {
  id: 'rs_1',
  type: 'reasoning',
  summary: [{ type: 'summary_text', text: 'short' }],
  content: [{ type: 'reasoning_text', text: 'raw' }],
  encrypted_content: 'ENC',
};
const fromResponses = [
  created(),
  { type: 'response.output_item.added', output_index: 0, item: { id: 'rs_1', type: 'reasoning', summary: [] } },
  { type: 'response.output_item.done', output_index: 0, item: reasoning },
  terminal('completed', []),
];

test('rule 10: raw, summary and opaque are three faces and are never mixed', () => {
  const item = through('responses', 'responses', fromResponses).whole?.items[0]?.item as Json;
  assert.deepEqual([item.raw, item.summary, item.opaque.value], ['raw', ['short'], 'ENC']);
  const message = through('responses', 'chat', fromResponses).body.choices[0].message;
  assert.equal(message.reasoning_content, 'raw');
  assert.equal(message.reasoning, 'short');
  assert.deepEqual(
    message.reasoning_details.map(({ type }: Json) => type),
    ['reasoning.summary', 'reasoning.encrypted'],
  );
});

test('rule 10: the three faces that a chat client was told go back as one item', () => {
  const message = through('responses', 'chat', fromResponses).body.choices[0].message;
  const messages = [
    { role: 'user', content: 'x' },
    { ...message, content: 'y' },
    { role: 'user', content: 'z' },
  ];
  const sent = convert('chat', 'responses', { messages }).input.filter(({ type }: Json) => type === 'reasoning');
  assert.deepEqual(sent, [reasoning]);
});

test('rule 10: raw text that was removed is not rebuilt from the summary', () => {
  const input = [
    { role: 'user', content: 'x' },
    { ...reasoning, content: [] },
    { role: 'assistant', content: 'y' },
    { role: 'user', content: 'z' },
  ];
  const out = convert('responses', 'chat', { input }, { options: { replayReasoningContent: true } });
  assert.doesNotMatch(JSON.stringify(out), /reasoning_content":"short/);
});

test('rule 10: an envelope that cannot be opened takes the words of its item along, whoever is asked next', () => {
  const words = { type: 'summary_text', text: 'HIDDEN' };
  const asked = {
    chat: {
      messages: [
        { role: 'user', content: 'x' },
        {
          role: 'assistant',
          content: 'y',
          reasoning: 'HIDDEN',
          reasoning_details: [
            { type: 'reasoning.summary', summary: 'HIDDEN', id: 'rs_1', index: 0 },
            { type: 'reasoning.encrypted', data: 'mz2.broken', id: 'rs_1', index: 0 },
          ],
        },
        { role: 'user', content: 'z' },
      ],
    },
    responses: {
      input: [
        { role: 'user', content: 'x' },
        { type: 'reasoning', id: 'rs_1', summary: [words], encrypted_content: 'mz2.broken' },
        { role: 'assistant', content: 'y' },
        { role: 'user', content: 'z' },
      ],
    },
    messages: {
      max_tokens: 9,
      messages: [
        { role: 'user', content: 'x' },
        {
          role: 'assistant',
          content: [
            { type: 'thinking', thinking: 'HIDDEN', signature: 'mz2.broken' },
            { type: 'text', text: 'y' },
          ],
        },
        { role: 'user', content: 'z' },
      ],
    },
  } as const;
  for (const client of ['chat', 'responses', 'messages'] as const) {
    for (const upstream of ['chat', 'responses', 'messages', 'gemini'] as const) {
      const out = JSON.stringify(convert(client, upstream, asked[client]));
      assert.doesNotMatch(out, /HIDDEN|mz2\./, `${client} to ${upstream}`);
    }
  }
});

test('rule 10: thinking of messages is the summary, its signature the opaque face', () => {
  const { body } = through('messages', 'responses', [
    messageStart(),
    ...block(
      0,
      { type: 'thinking', thinking: '', signature: '' },
      { type: 'thinking_delta', thinking: 'hm' },
      { type: 'signature_delta', signature: 'SIG' },
    ),
    ...block(1, { type: 'text', text: '' }, say('x')),
    ...messageEnd('end_turn'),
  ]);
  assert.deepEqual(body.output[0].summary, [{ type: 'summary_text', text: 'hm' }]);
  assert.equal(body.output[0].content, undefined);
  assert.match(body.output[0].encrypted_content, /^mz2\./);
});

const detail = (members: object): object => ({ type: 'reasoning.text', format: 'anthropic-claude-v1', ...members });

test('rule 12: fragments of one identity are one node; a final snapshot adds only what was not said', () => {
  const snapshot = { role: 'assistant', content: 'x', reasoning_details: [detail({ index: 0, text: 'abc', signature: 'SIG' })] };
  const last = { id: 'c1', choices: [{ index: 0, delta: {}, message: snapshot, finish_reason: 'stop' }] };
  const { events, whole } = through('chat', 'messages', [
    delta({ reasoning_details: [detail({ index: 0, text: 'a' })] }),
    delta({ reasoning_details: [detail({ index: 0, text: 'b' })] }),
    delta({ content: 'x' }),
    last,
    DONE,
  ]);
  const said = events.map(({ delta: piece }) => piece?.thinking ?? '').join('');
  assert.equal(said, 'abc');
  const items = whole?.items.flatMap(({ item }) => (item.kind === 'reasoning' ? [item] : [])) ?? [];
  assert.deepEqual([items.length, items[0]?.raw, items[0]?.opaque?.value], [1, 'abc', 'SIG']);
});

test('rule 12: separate details stay separate', () => {
  const { whole } = through('chat', 'chat', [
    delta({
      reasoning_details: [detail({ index: 0, text: 'a', signature: 'S0' }), detail({ index: 1, text: 'b', signature: 'S1' })],
    }),
    delta({ content: 'x' }),
    finish('stop'),
    DONE,
  ]);
  const values = whole?.items.flatMap(({ item }) => (item.kind === 'reasoning' ? [[item.raw, item.opaque?.value]] : []));
  assert.deepEqual(values, [
    ['a', 'S0'],
    ['b', 'S1'],
  ]);
});

test('rule 13: arguments stream live; the envelope of their signature follows the finished call, whole and once', () => {
  const events = [
    callDelta(0, 'a', 'f', '{"x":'),
    callDelta(0, undefined, undefined, '1}'),
    delta({ reasoning_details: [{ type: 'reasoning.encrypted', data: 'SIG', id: 'a', format: 'google-gemini-v1', index: 0 }] }),
    finish('tool_calls'),
    DONE,
  ];
  for (const [client, done] of [
    ['messages', 'content_block_stop'],
    ['responses', 'response.function_call_arguments.done'],
  ] as const) {
    const heard = through('chat', client, events);
    const frames = heard.frames.map(({ data }) => data);
    const sealed = frames.findIndex((data) => data.includes('mz2.'));
    assert.ok(sealed > heard.names.indexOf(done), `${client}: the envelope came before the call was final`);
    const values = new Set(heard.text.match(/mz2\.[\w-]+/g));
    assert.equal(values.size, 1);
    const live = frames.filter((data) => /input_json_delta|arguments\.delta/.test(data));
    assert.equal(live.length, 2);
  }
});
