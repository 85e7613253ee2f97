import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { GatewayError } from '../../../src/codecs/canonical/error.ts';
import type { CanonicalEvent, ItemHead } from '../../../src/codecs/canonical/event.ts';
import { fold } from '../../../src/codecs/canonical/fold.ts';
import type { OutputItem } from '../../../src/codecs/canonical/item.ts';
import type { JsonObject } from '../../../src/codecs/canonical/json.ts';
import type { Outcome } from '../../../src/codecs/canonical/outcome.ts';
import type { Frame, ResponseContext } from '../../../src/codecs/codec.ts';
import { chatUpstream } from '../../../src/codecs/chat/index.ts';
import { inOrder } from '../../support/wire.ts';
import { completionsClient } from '../../../src/codecs/completions/index.ts';
import type { ClientState } from '../../../src/codecs/completions/lifecycle.ts';
import { afterCompletionsFrame } from '../../support/client-order/completions.ts';

const requestOf = (body: JsonObject) => completionsClient.decodeRequest(JSON.stringify(body), body, { open: () => undefined });

const contextOf = (body: JsonObject): ResponseContext => ({
  responseId: 'cmpl-1',
  model: 'm',
  createdAt: 7,
  request: requestOf(body),
  owner: { channelType: 'messages', scope: 's', model: 'up' },
  seal: () => 'mz2.x',
  mint: (prefix) => `${prefix}0`,
});

function eventsOf(items: readonly OutputItem[], outcome: Outcome = { status: 'completed', stop: 'end' }): CanonicalEvent[] {
  const events: CanonicalEvent[] = [{ type: 'response.start' }];
  for (const [index, item] of items.entries()) {
    const head: ItemHead =
      item.kind === 'toolCall'
        ? { kind: 'toolCall', toolType: item.toolType, callId: item.callId, tool: item.tool }
        : item.kind === 'native'
          ? { kind: 'native', dialect: item.dialect }
          : item.kind === 'text'
            ? { kind: 'text', role: 'assistant', ...(item.phase === undefined ? {} : { phase: item.phase }) }
            : { kind: item.kind };
    events.push({ type: 'item.start', index, head });
    if (item.kind === 'text') events.push({ type: 'item.delta', index, delta: { kind: 'text', text: item.text.slice(0, 2) } });
    events.push({ type: 'item.end', index, item, status: 'completed' });
  }
  events.push({ type: 'usage.report', usage: { input: 2, output: 3 } }, { type: 'response.end', outcome });
  return events;
}

function stream(events: readonly CanonicalEvent[], body: JsonObject = { model: 'm', prompt: 'p', stream: true }): string[] {
  const encoder = completionsClient.encodeEvents(contextOf(body));
  const out: Frame[] = [];
  for (const step of inOrder(events.map((event) => ({ events: [event] })))) encoder.push(step, out);
  let state: ClientState = 'open';
  for (const { data } of out) state = afterCompletionsFrame(state, data);
  assert.match(state, /ended|failed/);
  return out.map(({ data }) => data);
}

const text = (value: string): OutputItem => ({ kind: 'text', role: 'assistant', text: value, citations: [] });
const call: OutputItem = { kind: 'toolCall', toolType: 'function', callId: 'a', tool: { name: 'f' }, input: '{}' };

describe('legacy completions requests', () => {
  it('reach a chat upstream with every control that both have', () => {
    const controls = { temperature: 0.5, top_p: 0.25, seed: 4, presence_penalty: 0.1, frequency_penalty: 0.2, user: 'u' };
    const body = { model: 'm', prompt: 'hi', max_tokens: 9, stop: ['x'], logit_bias: { '5': -100 }, ...controls };
    const owner = { channelType: 'chat_completion' as const, scope: 's', model: 'up' };
    const target = { owner, options: {}, facts: {}, without: new Set<never>() };
    assert.deepEqual(JSON.parse(chatUpstream.encodeRequest(requestOf(body), target).body), {
      model: 'up',
      messages: [{ role: 'user', content: 'hi' }],
      max_completion_tokens: 9,
      stop: ['x'],
      logit_bias: { '5': -100 },
      ...controls,
    });
  });

  it('are one user message also where the prompt is empty', () => {
    const owner = { channelType: 'chat_completion' as const, scope: 's', model: 'up' };
    const target = { owner, options: {}, facts: {}, without: new Set<never>() };
    const { body } = chatUpstream.encodeRequest(requestOf({ model: 'm', prompt: '' }), target);
    assert.deepEqual(JSON.parse(body), { model: 'up', messages: [{ role: 'user', content: '' }] });
  });

  it('are one user text', () => {
    for (const prompt of ['hi', ['hi']]) {
      const request = requestOf({ model: 'm', prompt, n: 1, stop: ['\n'], max_tokens: 5, logprobs: null, suffix: null });
      assert.equal(request.items.length, 1);
      const [item] = request.items;
      assert.ok(item?.kind === 'text' && item.role === 'user' && item.text === 'hi');
      assert.equal(request.maxOutputTokens, 5);
    }
  });
  const wrong: [string, string, JsonObject][] = [
    ['prompt', 'invalid_request', {}],
    ['prompt', 'invalid_request', { prompt: [] }],
    ['prompt', 'invalid_request', { prompt: ['a', 'b'] }],
    ['prompt', 'invalid_request', { prompt: [1, 2] }],
    ['prompt', 'invalid_request', { prompt: [[1]] }],
    ['n', 'invalid_request', { prompt: 'a', n: 2 }],
    ['suffix', 'unsupported_parameter', { prompt: 'a', suffix: '' }],
    ['echo', 'unsupported_parameter', { prompt: 'a', echo: false }],
    ['best_of', 'unsupported_parameter', { prompt: 'a', best_of: 1 }],
    ['logprobs', 'unsupported_parameter', { prompt: 'a', logprobs: 0 }],
  ];
  for (const [param, code, body] of wrong) {
    it(`refuse ${JSON.stringify(body)}`, () => {
      assert.throws(
        () => requestOf({ model: 'm', ...body }),
        (error) => error instanceof GatewayError && error.status === 400 && error.code === code && error.param === param,
      );
    });
  }
});

describe('legacy completions answers', () => {
  it('stream text, one finish and [DONE]; usage only where asked', () => {
    const events = eventsOf([{ kind: 'reasoning', raw: 'why' }, text('Hello')]);
    const shell = '"id":"cmpl-1","object":"text_completion","created":7,"model":"m"';
    assert.deepEqual(stream(events), [
      `{${shell},"choices":[{"text":"He","index":0,"logprobs":null,"finish_reason":null}]}`,
      `{${shell},"choices":[{"text":"llo","index":0,"logprobs":null,"finish_reason":null}]}`,
      `{${shell},"choices":[{"text":"","index":0,"logprobs":null,"finish_reason":"stop"}]}`,
      '[DONE]',
    ]);
    const asked = stream(events, { model: 'm', prompt: 'p', stream: true, stream_options: { include_usage: true } });
    assert.deepEqual(JSON.parse(asked.at(-2) ?? '').usage.total_tokens, 5);
    assert.equal(JSON.parse(asked[0] ?? '').usage, null);
  });

  it('say whole what the stream says', () => {
    const events = eventsOf([text('one'), text(' two'), { kind: 'reasoning', raw: 'r' }, text('three')], {
      status: 'incomplete',
      reason: 'max_output',
    });
    const whole = JSON.parse(completionsClient.encodeResponse(fold(events), undefined, contextOf({ model: 'm', prompt: 'p' })));
    assert.deepEqual(whole.choices, [{ text: 'one two\n\nthree', index: 0, logprobs: null, finish_reason: 'length' }]);
    assert.equal(whole.usage.prompt_tokens, 2);
    const said = stream(events)
      .filter((data) => data !== '[DONE]')
      .map((data) => JSON.parse(data).choices[0].text);
    assert.equal(said.join(''), 'one two\n\nthree');
  });

  it('part texts by what stands between them, and say nothing before the first or for one without words', () => {
    const phased = (value: string, phase: string): OutputItem => ({
      kind: 'text',
      role: 'assistant',
      text: value,
      citations: [],
      phase,
    });
    const refusal = (value: string): OutputItem => ({ kind: 'refusal', text: value });
    const reasoning: OutputItem = { kind: 'reasoning', raw: 'why' };
    for (const [items, expected] of [
      [[text('Well.'), refusal('No.')], 'Well.\n\nNo.'],
      [[refusal('No.'), refusal(' Never.')], 'No. Never.'],
      [
        [phased('Look. ', 'commentary'), phased('Look again.', 'commentary'), phased('Found.', 'final')],
        'Look. Look again.\n\nFound.',
      ],
      [[phased('Found.', 'final'), text('It is so.')], 'Found.\n\nIt is so.'],
      [[text(''), reasoning, text('So.')], 'So.'],
      [[reasoning, refusal(''), text('So.')], 'So.'],
      [[text('So.'), reasoning, text('')], 'So.'],
      [[text('So.'), reasoning, text(''), text('Yes.')], 'So.\n\nYes.'],
    ] as const) {
      const events = eventsOf(items);
      const whole = completionsClient.encodeResponse(fold(events), undefined, contextOf({ model: 'm', prompt: 'p' }));
      assert.equal(JSON.parse(whole).choices[0].text, expected);
      const said = stream(events).flatMap((data) => (data === '[DONE]' ? [] : [JSON.parse(data).choices[0].text]));
      assert.equal(said.join(''), expected);
    }
  });

  it('refuse tool calls and media', () => {
    const image: OutputItem = {
      kind: 'media',
      role: 'assistant',
      media: { type: 'image', source: { from: 'url', url: 'https://a.test' } },
    };
    for (const item of [call, image]) {
      const isRefusal = (error: unknown) => error instanceof GatewayError && error.code === 'response_not_representable';
      assert.throws(() => stream(eventsOf([item])), isRefusal);
      const whole = fold(eventsOf([item]));
      assert.throws(() => completionsClient.encodeResponse(whole, undefined, contextOf({ model: 'm', prompt: 'p' })), isRefusal);
    }
  });

  it('end a failure with an error frame', () => {
    const error = new GatewayError('upstream_error', 'It failed.');
    for (const status of ['failed', 'cancelled'] as const) {
      const frames = stream(eventsOf([text('Hi')], { status, error }));
      assert.equal(JSON.parse(frames.at(-1) ?? '').error.code, 'upstream_error');
    }
  });

  it('end a stream that was cut off with an error frame, and say nothing after it', () => {
    const events = eventsOf([text('Hi')]);
    for (const cut of events.keys()) {
      const encoder = completionsClient.encodeEvents(contextOf({ model: 'm', prompt: 'p', stream: true }));
      const out: Frame[] = [];
      encoder.push({ events: events.slice(0, cut) }, out);
      encoder.end(out);
      assert.ok(encoder.ended);
      encoder.push({ events: events.slice(cut) }, out);
      encoder.fail(new GatewayError('upstream_error', 'It failed.'), out);
      encoder.end(out);
      const failures = out.filter(({ data }) => data === '[DONE]' || 'error' in JSON.parse(data));
      assert.deepEqual(failures, out.slice(-1));
      assert.equal(JSON.parse(out.at(-1)?.data ?? '').error.code, 'upstream_error');
    }
  });
});
