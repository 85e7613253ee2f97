/**
 * What goes wrong inside a stream of Bedrock: before the first word the next Channel answers, after it the client of each
 * protocol reads the error that its protocol documents, and the operator a name.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { crc32 } from 'node:zlib';
import type { AwsAccess } from '../../../src/simulator/clouds/aws.ts';
import { chunkMessage, errorMessage, exceptionMessage } from '../../../src/simulator/clouds/event-stream.ts';
import { type Clock, systemClock } from '../../../src/streams/clock.ts';
import { AZURE, BEDROCK, rig, VERTEX } from '../../support/cloud-rig.ts';
import { AWS_KEYS } from '../../support/clouds.ts';
import { eventually } from '../../support/test-gateway.ts';

const EVENTS = [
  {
    type: 'message_start',
    message: {
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      model: 'm',
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: { input_tokens: 3, output_tokens: 1 },
    },
  },
  { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
  { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hello' } },
  { type: 'content_block_stop', index: 0 },
  { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens: 2 } },
  { type: 'message_stop' },
].map((event) => chunkMessage(JSON.stringify(event)));
const STREAM = { 'content-type': 'application/vnd.amazon.eventstream' };

const damaged = (message: Buffer): Buffer => {
  const copy = Buffer.from(message);
  copy.writeUInt8(copy.readUInt8(copy.length - 1) ^ 1, copy.length - 1);
  return copy;
};

/** The beginning of a message of a gibibyte, with the right checksum. */
function enormous(): Buffer {
  const prelude = Buffer.alloc(12);
  prelude.writeUInt32BE(2 ** 30, 0);
  prelude.writeUInt32BE(crc32(prelude.subarray(0, 8)), 8);
  return prelude;
}

interface Mishap {
  readonly chunks: readonly Uint8Array[];
  /** The type of the error for clients of messages; default `api_error`. */
  readonly type?: string;
  /** What the operator reads of it. */
  readonly code?: string;
  readonly words: RegExp;
}

const exception = (name: string, type: string): Mishap => ({
  ...{ chunks: [exceptionMessage(name, 'The words of the vendor.')], type, code: name, words: /The words of the vendor/ },
});
const [, , delta = Buffer.alloc(0)] = EVENTS;

const MISHAPS: Readonly<Record<string, Mishap>> = {
  'a bad checksum': { chunks: [damaged(delta)], words: /damaged on its way.*checksum of a message/ },
  'a bad checksum of a prelude': { chunks: [Buffer.alloc(16, 7)], words: /damaged on its way.*checksum of a prelude/ },
  'a frame that is cut off': { chunks: [delta.subarray(0, 30)], words: /before its answer was complete.*into a message/ },
  'a frame without end': { chunks: [enormous()], words: /event that is too large.*more than \d+ bytes/ },
  'a page': { chunks: [Buffer.from('<html>502 Bad Gateway</html>')], words: /damaged on its way.*checksum of a prelude/ },
  'no more': { chunks: [], words: /complete|end|empty|without/i },
  'an error frame': {
    chunks: [errorMessage('InternalFailure', 'The words of the vendor.')],
    code: 'InternalFailure',
    words: /words of the vendor/,
  },
  throttling: exception('throttlingException', 'rate_limit_error'),
  'a failing model': exception('modelStreamErrorException', 'api_error'),
  'a model that takes too long': exception('modelTimeoutException', 'timeout_error'),
  'a failing service': exception('internalServerException', 'api_error'),
  'a service that is away': exception('serviceUnavailableException', 'overloaded_error'),
  'a request that is wrong after all': exception('validationException', 'invalid_request_error'),
  'a credential that expired': exception('expiredTokenException', 'api_error'),
  'an exception of later days': exception('somethingNewException', 'api_error'),
};

const USER = [{ role: 'user', content: 'hi' }];
const CLIENTS: Readonly<Record<'messages' | 'chat' | 'responses', readonly [path: string, body: object]>> = {
  messages: ['/v1/messages', { model: 'm', max_tokens: 50, messages: USER, stream: true }],
  chat: ['/v1/chat/completions', { model: 'm', messages: USER, stream: true }],
  responses: ['/v1/responses', { model: 'm', input: 'hi', stream: true }],
};
/** How each protocol ends a stream that failed, and one that went well. */
const FAILED = {
  messages: (type: string) => new RegExp(`event: error\ndata: {"type":"error","error":{"type":"${type}"[^\n]*\n\n$`),
  chat: () => /data: {"error":{"message":"[^\n]*\n\n(data: \[DONE\]\n\n)?$/,
  responses: () => /event: response\.failed\ndata: [^\n]*\n\n$/,
};
const WELL = { messages: /event: message_stop\n/, chat: /"finish_reason":"stop"/, responses: /event: response\.completed\n/ };

for (const [name, { chunks, type = 'api_error', code, words }] of Object.entries(MISHAPS)) {
  test(`${name} in mid-stream: the error of each client's protocol, named for the operator`, async (t) => {
    const raw = { headers: STREAM, chunks: [...EVENTS.slice(0, 3), ...chunks] };
    const { gateway, simulator } = await rig(t, BEDROCK);
    for (const client of ['messages', 'chat', 'responses'] as const) {
      simulator.enqueue({ raw });
      const before = gateway.store.settled.length;
      const answer = await gateway.post(...CLIENTS[client]);
      const text = await answer.text();
      assert.equal(answer.status, 200);
      assert.match(text, /Hello/);
      assert.match(text, FAILED[client](type));
      assert.doesNotMatch(text, WELL[client]);
      await eventually(() => gateway.store.settled.length > before, 'a row');
      const row = gateway.store.settled.at(-1);
      assert.equal(row?.errorCode, 'upstream_error');
      assert.match(`${row?.errorText} ${row?.attempts.at(-1)?.errorText ?? ''}`, words);
      if (code !== undefined) assert.ok(JSON.stringify([row?.errorText, row?.attempts]).includes(code), 'its own name');
    }
  });

  test(`${name} before the first word: the next Channel answers`, async (t) => {
    const { gateway, simulator } = await rig(t, BEDROCK, { second: true });
    for (const client of ['messages', 'chat', 'responses'] as const) {
      gateway.running.gateway.dispatcher.health.keepOnly(new Set());
      simulator.reset();
      simulator.enqueue({ raw: { headers: STREAM, chunks } });
      const text = await (await gateway.post(...CLIENTS[client])).text();
      assert.match(text, WELL[client]);
      assert.equal(simulator.requests.length, 2);
    }
  });
}

test('a whole stream ends well', async (t) => {
  const { ask } = await rig(t, BEDROCK, { simulator: { script: { raw: { headers: STREAM, chunks: EVENTS } } } });
  assert.match((await ask({ stream: true })).text, WELL.messages);
});

test('a credential that expires while an answer streams leaves it alone, and the next request has another', async (t) => {
  let now = Date.now();
  const clock: Clock = { ...systemClock, now: () => now, monotonic: () => performance.now() + now - started };
  const started = now;
  for (const form of [{ ...BEDROCK, source: 'container' }, VERTEX, AZURE]) {
    const role = (): AwsAccess => ({ ...AWS_KEYS, expiresAtMs: now + 60_000 });
    let given = role();
    const clouds = {
      aws: { role: () => (given = role()), accepted: () => [given] },
      ...{ google: { tokenLifeS: 60 }, azure: { tokenLifeS: 60 } },
    };
    const { gateway, simulator } = await rig(t, form, { clouds, clock, simulator: { now: () => now } });
    simulator.enqueue({ reply: { pieces: [{ type: 'text', text: ['one ', 'two ', 'three'] }] }, pace: { ms: 30 } });
    const answer = await gateway.post(...CLIENTS.messages);
    now += 120_000;
    const text = await answer.text();
    assert.match(text, /three/, form.name);
    assert.match(text, WELL.messages, form.name);
    const asked = simulator.asides.length;
    const next = await gateway.post(...CLIENTS.messages);
    assert.match(await next.text(), WELL.messages, form.name);
    assert.ok(simulator.asides.length > asked, form.name);
    assert.ok(
      simulator.requests.every(({ status }) => status === 200),
      'none was sent with the old one',
    );
  }
});
