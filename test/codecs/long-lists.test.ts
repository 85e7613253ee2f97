/**
 * Lists that are longer than the arguments that a call takes (some 126,000): of a client's parts, and of an answer's logprobs.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Item } from '../../src/codecs/canonical/item.ts';
import { isObject, type JsonObject, parseJson } from '../../src/codecs/canonical/json.ts';
import { fold } from '../../src/codecs/canonical/fold.ts';
import { CLIENTS, UPSTREAMS } from '../../src/codecs/registry.ts';
import { decodeContext, openForTests, ownerOf, requestOf, responseContext, targetOf } from '../support/wire.ts';
import { drawn } from '../support/sampled.ts';

const MANY = 130_000;
const list = <T>(entry: (index: number) => T): T[] => Array.from({ length: MANY }, (_, index) => entry(index));

const PARTS = list(() => ({ type: 'text', text: 'a' }));
const REQUESTS: Readonly<Record<string, JsonObject>> = {
  chat: {
    model: 'm',
    messages: [
      { role: 'user', content: PARTS },
      { role: 'assistant', content: PARTS },
    ],
  },
  messages: {
    model: 'm',
    max_tokens: 9,
    messages: [
      { role: 'user', content: PARTS },
      { role: 'assistant', content: PARTS },
    ],
  },
  responses: {
    model: 'm',
    input: [
      { role: 'user', content: list(() => ({ type: 'input_text', text: 'a' })) },
      { role: 'assistant', content: list(() => ({ type: 'output_text', text: 'a' })) },
    ],
  },
};

for (const [dialect, json] of drawn(Object.entries(REQUESTS), 1, 'requests')) {
  test(`a ${dialect} message of ${MANY} parts is read, and written for any upstream`, () => {
    const client = CLIENTS.find((codec) => codec.dialect === dialect) ?? assert.fail();
    const request = client.decodeRequest(JSON.stringify(json), json, { open: openForTests });
    assert.ok(request.items.length >= MANY);
    for (const upstream of drawn(UPSTREAMS, 1, dialect)) upstream.encodeRequest(request, targetOf(ownerOf(upstream)));
  });
}

test('a text of megabytes, said and as the result of a call, reaches every upstream as it is, in steps', () => {
  const [said, result] = ['said "水" \ud800 \\', 'result 😀\n'].map((words) => words.repeat(200_000));
  const call = { id: 'call_1', type: 'function', function: { name: 'f', arguments: '{}' } };
  const json: JsonObject = {
    model: 'm',
    messages: [
      { role: 'user', content: said ?? '' },
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'tool', tool_call_id: 'call_1', content: result ?? '' },
    ],
  };
  const client = CLIENTS.find(({ dialect }) => dialect === 'chat') ?? assert.fail();
  const request = client.decodeRequest(JSON.stringify(json), json, { open: openForTests });
  for (const upstream of UPSTREAMS) {
    const steps = upstream.encodeInSteps(request, targetOf(ownerOf(upstream)));
    for (let step = steps.next(), taken = 0; ; step = steps.next(), taken += 1) {
      if (step.done !== true) continue;
      const body = String(step.value.body);
      for (const text of [said, result]) assert.ok(body.includes(JSON.stringify(text)), upstream.channelType);
      assert.ok(taken > 4, `${upstream.channelType}: ${taken} steps`);
      break;
    }
  }
});

const LOGPROBS = list(() => ({ token: 'a', logprob: -1, bytes: [97], top_logprobs: [] }));
const TEXT = 'a'.repeat(MANY);
const ANSWERS: Readonly<Record<string, JsonObject>> = {
  chat: {
    id: 'c',
    object: 'chat.completion',
    choices: [
      { index: 0, message: { role: 'assistant', content: TEXT }, logprobs: { content: LOGPROBS }, finish_reason: 'stop' },
    ],
  },
  responses: {
    id: 'r',
    status: 'completed',
    output: [
      {
        type: 'message',
        id: 'msg_1',
        role: 'assistant',
        status: 'completed',
        content: [{ type: 'output_text', text: TEXT, annotations: [], logprobs: LOGPROBS }],
      },
    ],
  },
  gemini: {
    candidates: [
      {
        index: 0,
        content: { role: 'model', parts: [{ text: TEXT }] },
        finishReason: 'STOP',
        logprobsResult: { chosenCandidates: list(() => ({ token: 'a', logProbability: -1 })) },
      },
    ],
  },
};

for (const [dialect, body] of drawn(Object.entries(ANSWERS), 1, 'answers')) {
  test(`a ${dialect} answer of ${MANY} scored tokens reaches any client that can say them, whole and streamed`, () => {
    const upstream = UPSTREAMS.find((codec) => codec.dialect === dialect) ?? assert.fail();
    const asked = requestOf('chat', { logprobs: { top: 0 } });
    const owner = ownerOf(upstream);
    const { events } = upstream.decodeResponse(JSON.stringify(body), decodeContext(owner, { request: asked }));
    const whole = fold(events);
    const [first] = whole.items;
    assert.ok(first?.item.kind === 'text' && first.item.logprobs?.length === MANY);
    const able = CLIENTS.filter(({ dialect: name }) => name === 'chat' || name === 'responses');
    for (const client of drawn(able, 1, dialect)) {
      const context = responseContext(client, owner, { request: asked });
      const said = parseJson(client.encodeResponse(whole, undefined, context));
      assert.ok(isObject(said) && JSON.stringify(said).split('"logprob":-1').length === MANY + 1);
      const frames: { readonly data: string }[] = [];
      const encoder = client.encodeEvents(responseContext(client, owner, { request: asked }));
      encoder.push({ events }, frames as never);
      assert.ok(
        frames.some(({ data }) => data.split('"logprob":-1').length === MANY + 1),
        client.dialect,
      );
    }
  });
}

test(`a turn of ${MANY} texts and results is written for any upstream`, () => {
  const calls = list(
    (index): Item => ({ kind: 'toolCall', toolType: 'function', callId: `c${index}`, tool: { name: 'f' }, input: '{}', turn: 1 }),
  );
  const results = list(
    (index): Item => ({
      kind: 'toolResult',
      toolType: 'function',
      callId: `c${index}`,
      content: [{ kind: 'text', text: 'r' }],
      isError: false,
      turn: index + 2,
    }),
  );
  const text = (index: number): Item => ({ kind: 'text', role: 'user', text: 'a', citations: [], turn: index + 2 });
  const texts = list(text);
  for (const upstream of drawn(UPSTREAMS, 1, 'turn')) {
    // In its own protocol a request is sent as it came.
    const asked = upstream.dialect === 'chat' ? 'messages' : 'chat';
    const written = (items: readonly Item[], word: RegExp): number => {
      const { body } = upstream.encodeRequest(requestOf(asked, { items }), targetOf(ownerOf(upstream)));
      return body.match(word)?.length ?? 0;
    };
    assert.equal(written(texts, /"a"/g), MANY, upstream.dialect);
    assert.equal(written([...calls, ...results], /"r"/g), MANY, upstream.dialect);
  }
});
