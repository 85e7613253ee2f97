/** What an upstream answers takes memory by its values, not by its bytes: too many are refused before they are parsed. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { GatewayError } from '../../../src/codecs/canonical/error.ts';
import { MOST_ITEMS } from '../../../src/codecs/canonical/item-emitter.ts';
import { IMAGE_UPSTREAMS } from '../../../src/codecs/images/index.ts';
import { readJsonAnswer } from '../../../src/codecs/json/answer.ts';
import { parseInSteps, tryInSteps } from '../../../src/codecs/json/parse-in-steps.ts';
import { atOnce } from '../../../src/codecs/steps.ts';
import { CLIENTS, UPSTREAMS } from '../../../src/codecs/registry.ts';
import { httpRig } from '../../support/linear/http-rig.ts';
import { decodeContext, ownerOf } from '../../support/wire.ts';

const many = (count: number, value = '{}'): string => `[${`${value},`.repeat(count - 1)}${value}]`;
const wide = (count: number): string => `{${Array.from({ length: count }, (_, at) => `"m${at}":0`).join()}}`;
const isTooMuch = ({ code, blame, message }: GatewayError): boolean =>
  code === 'upstream_error' && blame === 'upstream' && /too many/.test(message);

/** An answer of each kind with something beside it that nobody reads, much of it. */
const READERS: Readonly<Record<string, (text: string) => unknown>> = {
  'of any text endpoint': (text) => atOnce(tryInSteps(text)),
  'of pictures and vectors': readJsonAnswer,
  ...Object.fromEntries(
    UPSTREAMS.map((codec) => [
      `of ${codec.dialect}`,
      (text: string) => codec.decodeResponse(text, decodeContext(ownerOf(codec))),
    ]),
  ),
};

for (const [name, read] of Object.entries(READERS)) {
  test(`an answer ${name} with far more lists and objects than words is refused`, () => {
    assert.throws(() => read(`{"x":${many(350_000)}}`), isTooMuch);
    assert.throws(() => read(`{"x":${many(350_000, '[[]]')}}`), isTooMuch);
  });
}

test('an object of an answer with more members than any has is refused; what a request has is bounded where it is received', () => {
  assert.throws(() => atOnce(tryInSteps(`{"x":[${wide(50_001)}]}`)), isTooMuch);
  assert.throws(() => atOnce(tryInSteps(wide(50_001))), isTooMuch);
  assert.throws(() => readJsonAnswer(wide(50_001)), isTooMuch);
  assert.throws(() => readJsonAnswer(`{"data":[{"b64_json":"AAAA"},${wide(50_001)}]}`), isTooMuch);
  assert.deepEqual(Object.keys(readJsonAnswer(wide(50_000))).length, 50_000);
  assert.notEqual(atOnce(tryInSteps(`{"x":[${wide(50_000)}]}`)), undefined);
  assert.notEqual(atOnce(parseInSteps(wide(50_001))), undefined);
  assert.notEqual(atOnce(parseInSteps(many(350_000))), undefined);
});

test('logprobs of a long answer, twenty for each token, are no more than an answer may have', () => {
  const token = '{"token":"a","logprob":-0.1,"bytes":[97]}';
  const tokens = many(20_000, `{"token":"a","logprob":-0.1,"bytes":[97],"top_logprobs":${many(20, token)}}`);
  assert.notEqual(atOnce(tryInSteps(`{"content":${tokens}}`)), undefined);
  assert.throws(() => atOnce(tryInSteps(`{"content":${tokens}`)) ?? assert.fail('no JSON'), /no JSON/);
});

const calls = <T>(count: number, call: (at: number) => T): T[] => Array.from({ length: count }, (_, at) => call(at));
/** Whole answers of so many calls. */
const CALLS: Readonly<Record<string, (count: number) => object>> = {
  chat: (count) => {
    const tool_calls = calls(count, (at) => ({ id: `c${at}`, type: 'function', function: { name: 'f', arguments: '{}' } }));
    return { choices: [{ index: 0, message: { role: 'assistant', tool_calls }, finish_reason: 'tool_calls' }] };
  },
  responses: (count) => ({
    status: 'completed',
    output: calls(count, (at) => ({ type: 'function_call', id: `fc_${at}`, call_id: `c${at}`, name: 'f', arguments: '{}' })),
  }),
  messages: (count) => ({
    content: calls(count, (at) => ({ type: 'tool_use', id: `t${at}`, name: 'f', input: {} })),
    stop_reason: 'tool_use',
    usage: { input_tokens: 1, output_tokens: 1 },
  }),
  gemini: (count) => ({
    candidates: [{ content: { parts: calls(count, () => ({ functionCall: { name: 'f', args: {} } })) }, finishReason: 'STOP' }],
  }),
};

for (const codec of UPSTREAMS) {
  test(`an answer of ${codec.dialect} with more items than any has is refused`, () => {
    const read = (count: number) =>
      codec.decodeResponse(JSON.stringify(CALLS[codec.dialect]?.(count)), decodeContext(ownerOf(codec)));
    assert.equal(read(MOST_ITEMS).events.filter(({ type }) => type === 'item.start').length, MOST_ITEMS);
    assert.throws(() => read(MOST_ITEMS + 1), /more than 32768 items/);
  });
}

test('an event of a picture has the bounds of a whole answer', () => {
  const stage = IMAGE_UPSTREAMS.get('openai_image')?.decodeEvents();
  const event = `{"type":"image_generation.completed","b64_json":"AAAA","x":${many(350_000)}}`;
  assert.throws(() => stage?.push({ event: undefined, data: event }, []), isTooMuch);
});

const CHAT = { id: 'c', object: 'chat.completion', created: 1, model: 'up' };
const USAGE = { prompt_tokens: 7, completion_tokens: 5, total_tokens: 12 };
const stuffed = (value: object): string => `${JSON.stringify(value).slice(0, -1)},"x":${many(400_000)}}`;

for (const { dialect } of CLIENTS.filter((client) => client.dialect !== 'completions')) {
  const path = { chat: '/v1/chat/completions', responses: '/v1/responses', messages: '/v1/messages' }[dialect as 'chat'];
  const said = dialect === 'responses' ? { input: 'x' } : { messages: [{ role: 'user', content: 'x' }] };
  const ask = { model: 'm', max_tokens: 9, ...said, ...(dialect === 'responses' ? { max_tokens: undefined } : {}) };

  test(`too much of a whole answer is a failure to a ${dialect} client, and of a stream its end`, async (t) => {
    const choice = { index: 0, message: { role: 'assistant', content: 'said' }, finish_reason: 'stop' };
    const whole = stuffed({ ...CHAT, choices: [choice], usage: USAGE });
    const rig = await httpRig('chat_completion', { type: 'application/json', pieces: [whole] });
    t.after(() => rig.close());
    const text = await rig.ask({ path, body: JSON.stringify(ask), status: 502 });
    assert.match(text, /too many lists and objects/);

    const chunk = (delta: object, finish: string | null = null): object => ({
      ...{ ...CHAT, object: 'chat.completion.chunk' },
      choices: [{ index: 0, delta, finish_reason: finish }],
    });
    const events = [
      JSON.stringify(chunk({ content: 'said' })),
      stuffed(chunk({ content: 'more' })),
      JSON.stringify(chunk({}, 'stop')),
    ];
    const pieces = [...events.map((data) => `data: ${data}\n\n`), 'data: [DONE]\n\n'];
    const streamed = await httpRig('chat_completion', { type: 'text/event-stream', pieces });
    t.after(() => streamed.close());
    const frames = await streamed.ask({ path, body: JSON.stringify({ ...ask, stream: true }) });
    assert.match(frames, /said/);
    assert.match(frames, /too many lists and objects/);
    assert.doesNotMatch(frames, /more|\[DONE\]|response\.completed|message_stop/);
  });
}
