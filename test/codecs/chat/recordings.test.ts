import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { ChatCompletionStream } from 'openai/lib/ChatCompletionStream';
import { GatewayError } from '../../../src/codecs/canonical/error.ts';
import { isObject, parseJson } from '../../../src/codecs/canonical/json.ts';
import { Order } from '../../../src/codecs/canonical/order.ts';
import { chatClient, chatUpstream } from '../../../src/codecs/chat/index.ts';
import { checkChatStream } from '../../support/client-order/chat.ts';
import {
  decode,
  decodeContext,
  encode,
  framesOf,
  isStream,
  noRecordings,
  recordings,
  requestOf,
  responseContext,
  withoutNative,
} from './support.ts';

/** What each recording that is no success must become; every other must be accepted. */
const expected: Record<string, unknown> = JSON.parse(readFileSync(new URL('recordings.expected.json', import.meta.url), 'utf8'));
const asking = requestOf({
  model: 'm',
  messages: [{ role: 'user', content: 'x' }],
  stream: true,
  stream_options: { include_usage: true },
});

function verdict(run: () => { status: string; error?: GatewayError }): unknown {
  try {
    const { status, error } = run();
    return error === undefined ? 'accepted' : { status, code: error.code, reason: error.details.reason };
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    return { code: error.code, reason: error.details.reason };
  }
}

/** A chunk without what the gateway owns in it, and without what official clients need (Groq, Mistral, Moonshot and Azure leave it out). */
function foreign(data: string): unknown {
  if (data === '[DONE]') return data;
  const json = parseJson(data);
  if (!isObject(json)) return data;
  const { id: _id, model: _model, usage: _usage, ...rest } = json;
  const text = JSON.stringify(rest).replaceAll(/"(signature|data)":"[^"]*"/g, '"$1":"opaque"');
  return JSON.parse(text, (key, value) =>
    NEEDED.has(`${key}:${value}`) || (key === 'message' && isBare(value)) ? undefined : asText(value),
  );
}

/** A delta or a message whose content is a list of texts and thoughts (Mistral), as clients of the protocol read it. */
function asText(value: unknown): unknown {
  if (!isObject(value) || !Array.isArray(value['content'])) return value;
  const { content, ...rest } = value;
  const said = { text: '', thinking: '' };
  const read = (blocks: readonly unknown[], kind: 'text' | 'thinking'): void => {
    for (const block of blocks) {
      if (!isObject(block)) continue;
      if (Array.isArray(block['thinking'])) read(block['thinking'], 'thinking');
      else said[kind] += String(block['text'] ?? '');
    }
  };
  read(content, 'text');
  return {
    ...rest,
    content: said.text === '' ? null : said.text,
    ...(said.thinking === '' ? {} : { reasoning_content: said.thinking }),
  };
}

const NEEDED = new Set(['role:assistant', 'index:0', 'type:function', 'object:chat.completion.chunk']);
const isBare = (message: unknown): boolean => JSON.stringify(message) === '{"content":null,"refusal":null}';

/** Strict clients refuse a chunk that lacks one of these. */
function checkMembers(sent: readonly string[]): void {
  for (const data of sent.slice(0, -1)) {
    const { id, object, created, model, choices } = JSON.parse(data);
    if (!Array.isArray(choices)) continue;
    const types = [typeof id, typeof object, typeof created, typeof model];
    assert.deepEqual(types, ['string', 'string', 'number', 'string'], data);
  }
}

describe('chat recordings', { skip: noRecordings }, () => {
  for (const recording of recordings('*-chat').filter(({ name }) => isStream(name))) {
    it(recording.name, () => {
      for (const frames of framesOf(recording)) {
        const got = verdict(() => {
          const { steps, order } = decode(frames);
          const { outcome, items } = order.fold.whole({ status: 'completed', stop: 'end' });
          for (const request of [asking, responseContext().request]) {
            const native = encode(steps, responseContext({ request }));
            checkChatStream(native);
            checkMembers(native);
            checkChatStream(encode(withoutNative(steps), responseContext({ request })));
            if (outcome.status === 'failed') continue;
            // Nothing but the gateway's own members differs from what the upstream sent for the first choice.
            const sent = new Set(native.map((data) => JSON.stringify(foreign(data))));
            const lost = frames.filter(({ data }) => data !== '[DONE]' && !sent.has(JSON.stringify(foreign(data))));
            for (const { data } of lost) assert.match(data, /"usage":\{|"index":[1-9]/, `lost: ${data}`);
          }
          assert.equal(items.length > 0 || outcome.status === 'failed', true);
          return outcome.status === 'failed' ? outcome : { status: outcome.status };
        });
        assert.deepEqual(got, expected[recording.name] ?? 'accepted');
      }
    });

    it(`${recording.name} is put together by the official client`, async () => {
      for (const frames of framesOf(recording)) {
        const { steps, order } = decode(frames);
        const { outcome, items } = order.fold.whole({ status: 'completed', stop: 'end' });
        if (outcome.status === 'failed') continue;
        const lines = encode(steps).filter((data) => data !== '[DONE]');
        const client = ChatCompletionStream.fromReadableStream(new Blob([lines.join('\n')]).stream());
        const [choice] = (await client.finalChatCompletion()).choices;
        const called = items.flatMap(({ item }) => (item.kind === 'toolCall' ? [item.callId] : []));
        assert.deepEqual(choice?.message.tool_calls?.map(({ id }) => id) ?? [], called);
      }
    });

    it(`${recording.name} cut anywhere before its finish is an error`, () => {
      for (const frames of framesOf(recording)) {
        const finish = frames.findIndex(({ data }) => /"finish_reason": ?"|"error": ?\{/.test(data));
        const cuts = [0, 1, Math.floor(finish / 2), finish].filter((cut) => cut >= 0 && cut <= finish);
        for (const cut of cuts) assert.throws(() => decode(frames.slice(0, cut)), GatewayError);
      }
    });
  }

  for (const recording of recordings('*-chat').filter(({ name }) => !isStream(name))) {
    it(recording.name, () => {
      const got = verdict(() => {
        const step = chatUpstream.decodeResponse(recording.text, decodeContext());
        const order = new Order();
        order.push(step, []);
        const whole = order.fold.whole({ status: 'completed', stop: 'end' });
        if (whole.outcome.status === 'failed') return whole.outcome;
        const spliced = chatClient.encodeResponse(whole, step.native, responseContext());
        assert.deepEqual({ ...(foreign(spliced) as object) }, { ...(foreign(recording.text) as object) });
        const built = parseJson(chatClient.encodeResponse(whole, undefined, responseContext()));
        assert.equal(isObject(built) && built['object'], 'chat.completion');
        return { status: whole.outcome.status };
      });
      assert.deepEqual(got, expected[recording.name] ?? 'accepted');
    });
  }
});
