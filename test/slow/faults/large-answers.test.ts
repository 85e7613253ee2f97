/**
 * What an upstream's large answer can do to another key's stream: the longest turn of the event loop while it is read, in processor
 * time, measured again before it fails (see stalls.test.ts).
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { figure } from '../../support/figures.ts';
import { KEY } from '../../support/test-gateway.ts';
import { withRig } from '../../support/memory-law.ts';
import { leastTurn } from './support/flood.ts';

const STALL_MS = 50;
const MIB = 1024 * 1024;
const WHOLE = 'application/json';
const STREAM = 'text/event-stream';

const PICTURE = 'iVBORw0KGgoAAAAN'.repeat(2 * MIB);
const USAGE = { input_tokens: 5, output_tokens: 5, total_tokens: 10 };
const drawn = (entry: object, more = ''): string =>
  `${more === '' ? '' : `{${more},`}${JSON.stringify({ created: 1, data: [entry], usage: USAGE }).slice(more === '' ? 0 : 1)}`;
const completed = (members: object): string =>
  `data: ${JSON.stringify({ type: 'image_generation.completed', created_at: 1, ...members, usage: USAGE })}\n\n`;
const called = (result: string): object => ({ type: 'image_generation_call', id: 'ig', status: 'completed', result });
const responses = (output: readonly object[]): object => ({ id: 'r', object: 'response', status: 'completed', output });

const events = (list: readonly object[]): string =>
  list.map((event) => `event: ${(event as { type: string }).type}\ndata: ${JSON.stringify(event)}\n\n`).join('');
const said = (text: string): string =>
  events([
    {
      type: 'message_start',
      message: { id: 'm', type: 'message', role: 'assistant', model: 'm', content: [], stop_reason: null, usage: USAGE },
    },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } },
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens: 5 } },
    { type: 'message_stop' },
  ]);

interface Large {
  readonly channel: 'openai_image' | 'openrouter_image' | 'responses' | 'messages';
  readonly type: typeof WHOLE | typeof STREAM;
  readonly answer: () => string;
}

const ANSWERS: Readonly<Record<string, Large>> = {
  'a picture of 32 MB': { channel: 'openai_image', type: WHOLE, answer: () => drawn({ b64_json: PICTURE }) },
  'a picture of 32 MB of a router': { channel: 'openrouter_image', type: WHOLE, answer: () => drawn({ b64_json: PICTURE }) },
  'a picture of 32 MB of an image tool': {
    channel: 'responses',
    type: WHOLE,
    answer: () => JSON.stringify(responses([called(PICTURE)])),
  },
  'a picture of 20 MB in lines': {
    channel: 'openai_image',
    type: WHOLE,
    answer: () => drawn({ b64_json: `${PICTURE.slice(0, 76)}\n`.repeat(256 * 1024) }),
  },
  'a picture beside ten million numbers': {
    channel: 'openai_image',
    type: WHOLE,
    answer: () => drawn({ b64_json: 'AAAA' }, `"x":[${'1,'.repeat(10_000_000)}1]`),
  },
  '200,000 pictures': {
    channel: 'openai_image',
    type: WHOLE,
    answer: () =>
      JSON.stringify({ created: 1, data: Array.from({ length: 200_000 }, (_, at) => ({ url: `https://x.test/${at}` })) }),
  },
  'a link of 32 MB': { channel: 'openai_image', type: WHOLE, answer: () => drawn({ url: `https://x.test/${PICTURE}` }) },
  'a streamed picture of 32 MB': { channel: 'openai_image', type: STREAM, answer: () => completed({ b64_json: PICTURE }) },
  'a streamed picture of 16 MB with a text of 20 MB, not ASCII alone': {
    channel: 'openai_image',
    type: STREAM,
    answer: () => completed({ b64_json: PICTURE.slice(16 * MIB), revised_prompt: 'wörter '.repeat(2.5 * MIB) }),
  },
  'a streamed picture of 32 MB of an image tool': {
    channel: 'responses',
    type: STREAM,
    answer: () =>
      events([
        { type: 'response.output_item.done', output_index: 0, item: called(PICTURE) },
        { type: 'response.completed', response: responses([]) },
      ]),
  },
  'a streamed text of 32 MB that comes at once': {
    channel: 'messages',
    type: STREAM,
    answer: () => said('word '.repeat(6.4 * MIB)),
  },
  'a streamed text of twelve million quotes that comes at once': {
    channel: 'messages',
    type: STREAM,
    answer: () => said('"'.repeat(12 * MIB)),
  },
};

for (const [name, { channel, type, answer }] of Object.entries(ANSWERS)) {
  test(`F47: ${name}: another key's stream is stalled for no longer than ${STALL_MS} ms`, async (t) => {
    const text = Buffer.from(answer());
    const upstream = createServer((request, response) => {
      request.resume();
      response.writeHead(200, { 'content-type': type }).end(text);
    });
    await once(upstream.listen(0, '127.0.0.1'), 'listening');
    const url = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`;
    const isText = channel === 'messages';
    const price = { input: '0.0001', output: '0.0001' };
    const own = isText ? { price } : { kind: 'image', price: { ...price, image_output: '0.0001' } };
    const models = { m: { price }, free: { price }, lowered: { price }, own };
    const body = isText
      ? { model: 'own', max_tokens: 9, stream: true, messages: [{ role: 'user', content: 'x' }] }
      : { model: 'own', prompt: 'x', stream: type === STREAM };
    const ask = async (rig: { readonly post: (body: object, key: string, path: string) => Promise<Response> }) => {
      const answered = await rig.post(body, KEY, isText ? '/v1/messages' : '/v1/images/generations');
      let bytes = 0;
      let end = '';
      for await (const chunk of answered.body ?? []) {
        bytes += chunk.length;
        end = Buffer.from(chunk.subarray(-200)).toString();
      }
      assert.equal(answered.status, 200, end);
      // As long as what the upstream sent, but for what comes as characters of its own.
      assert.ok(bytes > text.length / 8, `${bytes} bytes: ${end}`);
    };
    const run = async (rig: Parameters<Parameters<typeof withRig>[1]>[0]): Promise<void> => {
      const least = await leastTurn(rig, STALL_MS, () => ask(rig));
      figure(t, `${name}: the longest turn of the event loop`, `${Math.round(least)} ms`);
      assert.ok(least <= STALL_MS, `a turn took ${least.toFixed(1)} ms`);
    };
    const more = channel === 'responses' ? { options: { image_enable_openai_generation_tool: true } } : {};
    const one = { id: 'own', type: channel, base_url: isText ? url : `${url}/v1`, api_key: 'k', models: ['own'], ...more };
    await withRig({ models }, run, () => [one]);
    upstream.close();
    upstream.closeAllConnections();
  });
}
