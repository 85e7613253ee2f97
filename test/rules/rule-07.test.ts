/** Rule 7: URL citations between chat and responses, positions that cannot be said, logprobs tied to their text. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { convert, created, delta, DONE, finish, messageItem, terminal, through, wholeThrough } from '../failures/through.ts';

const TEXT = '👩‍👩‍👧 cites A';
const length = [...TEXT].length;
const chatAnnotation = {
  type: 'url_citation',
  url_citation: { start_index: length - 1, end_index: length, url: 'https://example.com/a', title: 'A' },
};
const annotation = { type: 'url_citation', start_index: length - 1, end_index: length, url: 'https://example.com/a', title: 'A' };

test('rule 7: a URL citation of chat is one of responses, position kept, live and whole', () => {
  const { body, events } = through('chat', 'responses', [
    delta({ content: TEXT }),
    delta({ annotations: [chatAnnotation] }),
    finish('stop'),
    DONE,
  ]);
  assert.deepEqual({ ...annotation }, { ...body.output[0].content[0].annotations[0] });
  assert.equal(events.filter(({ type }) => type === 'response.output_text.annotation.added').length, 1);
});

const call = { index: 0, id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } };
const cited = (...before: object[]): object[] => [
  ...before,
  delta({ content: TEXT }),
  delta({ tool_calls: [call] }),
  delta({ annotations: [chatAnnotation] }),
];

test('rule 7: a citation that comes with the last chunk finds its text where one must be expected, whatever was said since', () => {
  const early = { ...chatAnnotation, url_citation: { ...chatAnnotation.url_citation, start_index: 0, end_index: 1 } };
  const promised = through('chat', 'responses', [...cited(delta({ annotations: [early] })), finish('tool_calls'), DONE]);
  assert.equal(promised.body.output[0].content[0].annotations.length, 2);
  const listed = through('chat', 'responses', [
    ...cited({ citations: ['https://example.com/b'], choices: [] }),
    finish('tool_calls'),
    DONE,
  ]);
  assert.equal(listed.body.output[0].content[0].annotations.length, 1);
  const searched = through('chat', 'responses', [...cited(), finish('tool_calls'), DONE], { upstreamModel: 'up-model:online' });
  assert.equal(searched.body.output[0].content[0].annotations.length, 1);
  for (const { body, events } of [promised, listed, searched]) {
    const annotations = events.filter(({ type }) => type === 'response.output_text.annotation.added');
    assert.equal(annotations.length, body.output[0].content[0].annotations.length);
  }
});

test('rule 7: a citation that comes when its text was closed for a tool call stays in its own protocol, and in whole answers', () => {
  const chunks = [...cited(), finish('tool_calls'), DONE];
  const { body, events } = through('chat', 'responses', chunks);
  assert.deepEqual(body.output[0].content[0].annotations, []);
  assert.deepEqual(events.at(-1).response.output[0].content[0].annotations, []);
  assert.match(through('chat', 'chat', chunks).text, /"url":"https:\/\/example\.com\/a"/);
  const unstreamed = through('chat', 'responses', chunks, { request: { stream: false } });
  assert.equal(unstreamed.body.output[0].content[0].annotations.length, 1);
  const message = { role: 'assistant', content: TEXT, tool_calls: [call], annotations: [chatAnnotation] };
  const whole = wholeThrough('chat', 'responses', { id: 'x', choices: [{ index: 0, message, finish_reason: 'tool_calls' }] });
  assert.equal(whole.output[0].content[0].annotations.length, 1);
});

test('rule 7: a citation finds the text that is still said, though an earlier one was closed', () => {
  const later = { ...chatAnnotation.url_citation, start_index: length, end_index: length + 2 };
  const { body } = through('chat', 'responses', [
    delta({ content: TEXT }),
    delta({ tool_calls: [call] }),
    delta({ content: 'more' }),
    delta({ annotations: [chatAnnotation, { type: 'url_citation', url_citation: later }] }),
    finish('tool_calls'),
    DONE,
  ]);
  assert.deepEqual(
    body.output.map(({ content }: { content?: { annotations: object[] }[] }) => content?.[0]?.annotations),
    [[], undefined, [{ ...annotation, start_index: 0, end_index: 2 }]],
  );
});

test('rule 7: a URL citation of responses is one of chat', () => {
  const events = messageItem(0, 'msg_1', TEXT).map(
    (event) =>
      JSON.parse(JSON.stringify(event).replaceAll('"annotations":[]', `"annotations":[${JSON.stringify(annotation)}]`)) as object,
  );
  const { body } = through('responses', 'chat', [created(), ...events, terminal('completed', [])]);
  assert.deepEqual(body.choices[0].message.annotations, [chatAnnotation]);
});

test('rule 7: a citation without a position stays in its protocol: none is invented for responses', () => {
  const bare = { type: 'url_citation', url_citation: { start_index: 0, end_index: 0, url: 'https://example.com/a', title: 'A' } };
  const events = [delta({ content: TEXT }), delta({ annotations: [bare] }), finish('stop'), DONE];
  assert.deepEqual(through('chat', 'responses', events).body.output[0].content[0].annotations, []);
  assert.match(through('chat', 'chat', events).text, /"url":"https:\/\/example\.com\/a"/);
});

const logprobs = (token: string): object => ({
  content: [{ token, logprob: -0.5, bytes: [...Buffer.from(token)], top_logprobs: [] }],
  refusal: null,
});

test('rule 7: logprobs ride on the frame of their token, and are dropped where they do not match the text', () => {
  const chunk = (content: string, token: string): object => {
    const made = delta({ content }) as { choices: readonly object[] };
    return { ...made, choices: [{ ...made.choices[0], logprobs: logprobs(token) }] };
  };
  const request = { logprobs: { top: 0 } };
  const fits = through('chat', 'responses', [chunk('a', 'a'), chunk('b', 'b'), finish('stop'), DONE], { request });
  assert.deepEqual(
    fits.events.filter(({ type }) => type === 'response.output_text.delta').map(({ logprobs: [first] }) => first.token),
    ['a', 'b'],
  );
  assert.equal(fits.body.output[0].content[0].logprobs.length, 2);
  const changed = through('chat', 'responses', [chunk('a', 'a'), chunk('B', 'b'), finish('stop'), DONE], { request });
  assert.deepEqual(changed.body.output[0].content[0].logprobs, []);
});

test('rule 7: asking for logprobs is converted', () => {
  const out = convert('chat', 'responses', { messages: [{ role: 'user', content: 'x' }], logprobs: true, top_logprobs: 3 });
  assert.deepEqual([out.top_logprobs, out.include], [3, ['message.output_text.logprobs']]);
});
