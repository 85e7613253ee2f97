/**
 * The linearity law over answers: every shape of an upstream's dialect, streamed and whole, for each client, in one read and in
 * many.
 */
import { GatewayError } from '../../../src/codecs/canonical/error.ts';
import { fold } from '../../../src/codecs/canonical/fold.ts';
import { Order } from '../../../src/codecs/canonical/order.ts';
import type { CanonicalRequest } from '../../../src/codecs/canonical/request.ts';
import type { Step } from '../../../src/codecs/canonical/event.ts';
import type { ClientCodec, UpstreamCodec } from '../../../src/codecs/codec.ts';
import { editKnown } from '../../../src/codecs/json/edit.ts';
import { CLIENTS, UPSTREAMS } from '../../../src/codecs/registry.ts';
import { eventsOf, stepsOf } from '../arbitraries/response.ts';
import { UPSTREAMS as SIDES } from '../dialects.ts';
import { decodeBytes, decodeContext, encodeSteps, ownerOf, requestOf, responseContext, sseText } from '../wire.ts';
import { ANSWERS, type BodyShape, type StreamShape } from './answer-shapes.ts';
import { BODIES } from './body-shapes.ts';
import { CHAT } from './chat-shapes.ts';
import { GEMINI } from './gemini-shapes.ts';
import type { Case, Work } from './growth.ts';
import { MESSAGES } from './messages-shapes.ts';
import { RESPONSES } from './responses-shapes.ts';
import { list } from './schema-shapes.ts';

/** What every answer is an answer to: logprobs count, and the tools that it calls are declared. */
export function asked(dialect: CanonicalRequest['dialect'], stream: boolean): CanonicalRequest {
  return requestOf(dialect, {
    stream,
    logprobs: { top: 20 },
    tools: [
      { kind: 'function', tool: { name: 'f' }, parameters: {}, at: 'tools[0]' },
      { kind: 'custom', tool: { name: 'patch' }, at: 'tools[1]' },
      { kind: 'function', tool: { name: 'get_more' }, parameters: {}, at: 'tools[2]' },
    ],
  });
}

export const upstreamOf = (dialect: string): UpstreamCodec => {
  const found = UPSTREAMS.find((codec) => codec.dialect === dialect);
  if (found === undefined) throw new Error(`no upstream speaks ${dialect}`);
  return found;
};

/** Its bytes in reads of this size: some events to each. */
const READ_BYTES = 4096;

function streamWork(bytes: Buffer, upstream: UpstreamCodec, client: ClientCodec): Work {
  const owner = ownerOf(upstream);
  const reads: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += READ_BYTES) reads.push(bytes.subarray(at, at + READ_BYTES));
  return {
    json: payloads(bytes.toString()),
    run() {
      const request = asked(client.dialect, true);
      const { steps, failure } = decodeBytes(upstream, reads, { request });
      encodeSteps(client, steps, responseContext(client, owner, { request }), failure);
    },
  };
}

const payloads = (text: string): string[] => [...text.matchAll(/^data: (\{.*)$/gm)].map(([, data = '']) => data);

/** The events as a stream's bytes. Named ones have their name in front, as the vendors that name them send it. */
function bytesOf(events: readonly (object | string)[]): Buffer {
  const frames = events.map((event) => {
    const data = typeof event === 'string' ? event : JSON.stringify(event);
    const name = typeof event === 'object' && 'type' in event && typeof event.type === 'string' ? event.type : undefined;
    return { event: name, data };
  });
  return Buffer.from(sseText(frames));
}

function wholeWork(text: string, upstream: UpstreamCodec, client: ClientCodec): Work {
  const owner = ownerOf(upstream);
  return {
    json: [text],
    run() {
      const request = asked(client.dialect, false);
      try {
        const step = upstream.decodeResponse(text, decodeContext(owner, { request }));
        const checked: Step[] = [];
        new Order().push(step, checked);
        const native = step.native?.dialect === client.dialect ? step.native : undefined;
        client.encodeResponse(fold(step.events), native, responseContext(client, owner, { request }));
      } catch (thrown) {
        // What cannot be said to this client must be found out in linear time, too.
        if (!(thrown instanceof GatewayError)) throw thrown;
      }
    },
  };
}

type Named<T> = { readonly dialect: string; readonly name: string; readonly of: (count: number) => T };

export const streams: readonly Named<Buffer>[] = [
  ...[...CHAT, ...RESPONSES, ...MESSAGES, ...GEMINI].map(({ dialect, name, events }: StreamShape) => ({
    dialect,
    name,
    of: (count: number) => bytesOf(events(count)),
  })),
  ...ANSWERS.flatMap(({ name, answer, pieces, interleaved = false }) =>
    SIDES.map(({ upstream, write }) => ({
      dialect: upstream.dialect,
      name,
      of: (count: number) => {
        const cuts = pieces?.(count) ?? 0;
        return Buffer.from(
          write(
            answer(count),
            list(cuts, (at) => (at + 1) / (cuts + 1)),
            interleaved,
          ),
        );
      },
    })),
  ),
];

export const bodies: readonly Named<string>[] = [
  ...BODIES.map(({ dialect, name, body }: BodyShape) => ({ dialect, name, of: (count: number) => JSON.stringify(body(count)) })),
  ...ANSWERS.flatMap(({ name, answer }) =>
    CLIENTS.filter(({ dialect }) => dialect !== 'completions').map((client) => ({
      dialect: client.dialect,
      name,
      of: (count: number) => {
        const owner = ownerOf(upstreamOf(client.dialect));
        const whole = fold(stepsOf(eventsOf(answer(count))).flatMap(({ events }) => events));
        return client.encodeResponse(whole, undefined, responseContext(client, owner));
      },
    })),
  ),
];

/** As much of a text is edited as is known of it: the items of a large terminal, half of them long. */
const EDITS: Case = {
  name: 'edits of a text whose long values are known',
  work(count) {
    const long = 'x'.repeat(100);
    const text = JSON.stringify({ output: list(2 * count, (at) => (at < count ? { text: long } : { id: null })) });
    const ends = new Map([...text.matchAll(/"x+"/g)].map(({ index, 0: { length } }) => [index, index + length]));
    const edits = list(count, (at) => ({ path: ['output', count + at, 'id'], value: `"x${at}"` }));
    return { json: [text], run: () => void editKnown(text, edits, ends) };
  },
};

export const ANSWER_CASES: readonly Case[] = [
  EDITS,
  ...streams.flatMap(({ dialect, name, of }) =>
    CLIENTS.map(
      (client): Case => ({
        name: `stream ${dialect} to ${client.dialect}: ${name}`,
        work: (count) => streamWork(of(count), upstreamOf(dialect), client),
      }),
    ),
  ),
  ...bodies.flatMap(({ dialect, name, of }) =>
    CLIENTS.map(
      (client): Case => ({
        name: `whole ${dialect} to ${client.dialect}: ${name}`,
        work: (count) => wholeWork(of(count), upstreamOf(dialect), client),
      }),
    ),
  ),
];
