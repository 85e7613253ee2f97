/**
 * A gateway between a raw upstream and any client dialect, with everything counted that a fault could leave behind: timers,
 * sockets, reservations, rows. Upstream streams are literal frames of each dialect.
 */
import assert from 'node:assert/strict';
import { type Clock, systemClock } from '../../../../src/streams/clock.ts';
import { type FakeAnswer, type FakeUpstream, fakeUpstream } from '../../../support/fake-upstream.ts';
import { eventually, type TestGateway, testGateway } from '../../../support/test-gateway.ts';

export const TYPES = ['chat_completion', 'responses', 'messages', 'gemini'] as const;
export type Type = (typeof TYPES)[number];
export const CLIENTS = ['chat', 'responses', 'messages'] as const;
export type Client = (typeof CLIENTS)[number];

export interface CountingClock extends Clock {
  readonly armed: number;
  /** Added to `now`, not to `monotonic`: a wall clock that jumps. */
  jumpMs: number;
}

export function countingClock(): CountingClock {
  let armed = 0;
  const clock: CountingClock = {
    jumpMs: 0,
    now: () => systemClock.now() + clock.jumpMs,
    monotonic: systemClock.monotonic,
    setTimeout(fire, ms) {
      let live = true;
      armed++;
      const done = (): void => {
        if (live) armed--;
        live = false;
      };
      const timer = systemClock.setTimeout(() => {
        done();
        fire();
      }, ms);
      return {
        cancel() {
          done();
          timer.cancel();
        },
      };
    },
    get armed() {
      return armed;
    },
  };
  return clock;
}

/** Whole streams that say "hello" and report 7 tokens in, 5 out. The first two frames come before or with the first words. */
export const GOOD: Readonly<Record<Type, readonly string[]>> = {
  chat_completion: [
    chat({ delta: { role: 'assistant', content: '' } }),
    chat({ delta: { content: 'hel' } }),
    chat({ delta: { content: 'lo' } }),
    chat({ delta: {}, finish_reason: 'stop' }),
    `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'up', choices: [], usage: { prompt_tokens: 7, completion_tokens: 5, total_tokens: 12 } })}\n\n`,
    'data: [DONE]\n\n',
  ],
  messages: [
    event('message_start', {
      message: {
        id: 'msg_up',
        type: 'message',
        role: 'assistant',
        model: 'up',
        content: [],
        stop_reason: null,
        stop_sequence: null,
        usage: { input_tokens: 7, output_tokens: 1 },
      },
    }),
    event('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
    event('content_block_delta', { index: 0, delta: { type: 'text_delta', text: 'hel' } }),
    event('content_block_delta', { index: 0, delta: { type: 'text_delta', text: 'lo' } }),
    event('content_block_stop', { index: 0 }),
    event('message_delta', { delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens: 5 } }),
    event('message_stop', {}),
  ],
  responses: [
    event('response.created', { sequence_number: 0, response: responseObject('in_progress', []) }),
    event('response.output_item.added', {
      sequence_number: 1,
      output_index: 0,
      item: { type: 'message', id: 'msg_1', status: 'in_progress', role: 'assistant', content: [] },
    }),
    event('response.content_part.added', {
      sequence_number: 2,
      item_id: 'msg_1',
      output_index: 0,
      content_index: 0,
      part: part(''),
    }),
    event('response.output_text.delta', {
      sequence_number: 3,
      item_id: 'msg_1',
      output_index: 0,
      content_index: 0,
      delta: 'hello',
    }),
    event('response.output_text.done', {
      sequence_number: 4,
      item_id: 'msg_1',
      output_index: 0,
      content_index: 0,
      text: 'hello',
    }),
    event('response.content_part.done', {
      sequence_number: 5,
      item_id: 'msg_1',
      output_index: 0,
      content_index: 0,
      part: part('hello'),
    }),
    event('response.output_item.done', { sequence_number: 6, output_index: 0, item: messageItem() }),
    event('response.completed', { sequence_number: 7, response: responseObject('completed', [messageItem()]) }),
  ],
  gemini: [
    gemini({ content: { role: 'model', parts: [{ text: 'hel' }] } }),
    gemini({ content: { role: 'model', parts: [{ text: 'l' }] } }),
    gemini({ content: { role: 'model', parts: [{ text: 'o' }] }, finishReason: 'STOP' }),
  ],
};

/** The same as one JSON body. */
export const WHOLE: Readonly<Record<Type, string>> = {
  chat_completion: JSON.stringify({
    id: 'c',
    object: 'chat.completion',
    created: 1,
    model: 'up',
    choices: [{ index: 0, message: { role: 'assistant', content: 'hello' }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 7, completion_tokens: 5, total_tokens: 12 },
  }),
  messages: JSON.stringify({
    id: 'msg_up',
    type: 'message',
    role: 'assistant',
    model: 'up',
    content: [{ type: 'text', text: 'hello' }],
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage: { input_tokens: 7, output_tokens: 5 },
  }),
  responses: JSON.stringify(responseObject('completed', [messageItem()])),
  gemini: JSON.stringify({
    candidates: [{ index: 0, content: { role: 'model', parts: [{ text: 'hello' }] }, finishReason: 'STOP' }],
    usageMetadata: { promptTokenCount: 7, candidatesTokenCount: 5, totalTokenCount: 12 },
  }),
};

function chat(choice: object): string {
  const body = {
    id: 'c',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'up',
    choices: [{ index: 0, finish_reason: null, ...choice }],
  };
  return `data: ${JSON.stringify(body)}\n\n`;
}

function event(type: string, members: object): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...members })}\n\n`;
}

function gemini(candidate: object): string {
  const usageMetadata = { promptTokenCount: 7, candidatesTokenCount: 5, totalTokenCount: 12 };
  return `data: ${JSON.stringify({ candidates: [{ index: 0, ...candidate }], usageMetadata, modelVersion: 'up' })}\n\n`;
}

function part(text: string): object {
  return { type: 'output_text', text, annotations: [] };
}

function messageItem(): object {
  return { type: 'message', id: 'msg_1', status: 'completed', role: 'assistant', content: [part('hello')] };
}

function responseObject(status: string, output: readonly object[]): object {
  const usage = {
    input_tokens: 7,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: 5,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: 12,
  };
  return {
    id: 'resp_up',
    object: 'response',
    created_at: 1,
    status,
    model: 'up',
    output,
    ...(status === 'completed' ? { usage } : {}),
  };
}

export const PATHS: Readonly<Record<Client, string>> = {
  chat: '/v1/chat/completions',
  responses: '/v1/responses',
  messages: '/v1/messages',
};

export function bodyOf(client: Client, model: string, stream: boolean, changes: object = {}): object {
  const common = { model, stream, ...changes };
  if (client === 'responses') return { ...common, input: 'hi', max_output_tokens: 50 };
  return { ...common, max_tokens: 50, messages: [{ role: 'user', content: 'hi' }] };
}

export type Ending = 'success' | 'failure' | 'none';

/** How a stream ended in the words of its dialect; fails when it says both. */
export function endingOf(client: Client, text: string): Ending {
  const events = [...text.matchAll(/^(?:event: (.*)\n)?data: (.*)$/gm)];
  const good = events.some(([, name = '', data = '']) => isGood(client, name, data));
  const bad = events.some(([, name = '', data = '']) => isBad(client, name, data));
  assert.ok(!(good && bad), `both a success and a failure:\n${text.slice(-600)}`);
  return good ? 'success' : bad ? 'failure' : 'none';
}

function isGood(client: Client, name: string, data: string): boolean {
  if (client === 'messages') return name === 'message_stop';
  if (client === 'responses') return name === 'response.completed' || name === 'response.incomplete';
  if (data === '[DONE]') return true;
  const chunk: unknown = JSON.parse(data);
  const choices = typeof chunk === 'object' && chunk !== null && 'choices' in chunk ? chunk.choices : undefined;
  const first: unknown = Array.isArray(choices) ? choices[0] : undefined;
  return (
    typeof first === 'object' &&
    first !== null &&
    'finish_reason' in first &&
    typeof first.finish_reason === 'string' &&
    first.finish_reason !== ''
  );
}

function isBad(client: Client, name: string, data: string): boolean {
  if (client === 'messages') return name === 'error';
  if (client === 'responses') return name === 'response.failed' || name === 'error';
  return data.startsWith('{"error":');
}

export interface Rig extends AsyncDisposable {
  readonly gateway: TestGateway;
  readonly upstream: FakeUpstream;
  readonly clock: CountingClock;
  /** Timers that may be armed when nothing is asked. */
  readonly resting: number;
  answer: FakeAnswer;
  /** Waits until nothing is left of what was asked: no reservation, timer, server connection beyond idle ones; every row once. */
  quiet(asked: number): Promise<void>;
}

/** Beside what a gateway at rest has armed: the next look of a worker. */
const MORE_TIMERS = 2;

export async function rig(changes: object = {}): Promise<Rig> {
  const clock = countingClock();
  const upstream = await fakeUpstream(() => undefined);
  const gateway = await testGateway(
    {
      timeouts: { connect_ms: 1000, first_data_ms: 900, idle_ms: 400, write_stall_ms: 1000 },
      limits: { event_bytes: 1 << 20, answer_bytes: 4 << 20 },
      health: { failures: 100_000, refused_cooldown_ms: 1, rate_limit_cooldown_ms: 1 },
      dispatch: { max_attempts: 1 },
      channels: TYPES.map((type) => ({
        id: `c-${type}`,
        type,
        base_url: upstream.url,
        api_key: 'sk-upstream-canary',
        models: [type],
      })),
      models: Object.fromEntries(TYPES.map((type) => [type, { price: { input: '1', output: '2' } }])),
      ...changes,
    },
    { clock, level: 'info' },
  );
  gateway.store.walletNanos = 10n ** 15n;
  await new Promise((resolve) => setTimeout(resolve, 20));
  const resting = clock.armed + MORE_TIMERS;
  return {
    gateway,
    upstream,
    clock,
    resting,
    get answer() {
      return upstream.answer;
    },
    set answer(answer) {
      upstream.answer = answer;
    },
    async quiet(asked) {
      const { store, running } = gateway;
      // Refusals before admission have rows of their own, and no exchange.
      const rows = () => {
        const opened = new Set(store.opened.map(({ exchangeId }) => exchangeId));
        return store.settled.filter(({ exchangeId }) => opened.has(exchangeId));
      };
      await eventually(() => rows().length === asked, `${asked} settled rows`);
      await eventually(() => store.held.size === 0, 'no reservation is left');
      await eventually(() => clock.armed <= resting, `no timer is left (${clock.armed} are armed)`);
      assert.equal(new Set(rows().map(({ exchangeId }) => exchangeId)).size, asked, 'each exchange settled once');
      assert.equal(store.opened.length, asked, 'each exchange opened once');
      assert.ok(running.port > 0);
    },
    async [Symbol.asyncDispose]() {
      await gateway[Symbol.asyncDispose]();
      await upstream.close();
    },
  };
}

export const STREAM_HEAD = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n';

export function chunk(bytes: string | Buffer): Buffer {
  const body = Buffer.from(bytes);
  return Buffer.concat([Buffer.from(`${body.length.toString(16)}\r\n`), body, Buffer.from('\r\n')]);
}

/** One exchange: asked, read to the end, and what came of it. A connection that breaks is part of the answer. */
export async function exchange(
  { gateway }: Rig,
  client: Client,
  model: string,
  stream: boolean,
): Promise<{ status: number; text: string; broken: boolean; type: string }> {
  const response = await gateway.post(PATHS[client], bodyOf(client, model, stream), { signal: AbortSignal.timeout(15_000) });
  const type = response.headers.get('content-type') ?? '';
  let text = '';
  try {
    const decoder = new TextDecoder();
    for await (const bytes of response.body ?? []) text += decoder.decode(bytes as Uint8Array, { stream: true });
    return { status: response.status, text, broken: false, type };
  } catch {
    return { status: response.status, text, broken: true, type }; // The caller says whether it may.
  }
}
