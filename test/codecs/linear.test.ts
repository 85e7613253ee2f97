/**
 * What an answer or a request costs grows as it does: eight times as much of it takes about eight times the processor time of this thread, in the
 * same run. Each row was once a search from the beginning for every entry, which takes sixty-four.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject, JsonValue } from '../../src/codecs/canonical/json.ts';
import { chatClient, chatUpstream } from '../../src/codecs/chat/index.ts';
import type { UpstreamCodec } from '../../src/codecs/codec.ts';
import { geminiUpstream } from '../../src/codecs/gemini/index.ts';
import { chunk, frame } from './chat/support.ts';
import {
  decodeBytes,
  encodeSteps,
  openForTests,
  ownerOf,
  requestOf,
  responseContext,
  sseText,
  targetOf,
} from '../support/wire.ts';

const SMALL = 2000;
const TIMES = 8;
/** Between the 8 of a cost that grows as its input and the 64 of one that grows as its square. */
const LIMIT = 24;
const TRIES = 3;

const list = <T>(count: number, entry: (index: number) => T): T[] => Array.from({ length: count }, (_, index) => entry(index));

/** Processor time of `work(SMALL × TIMES)` beside `work(SMALL)`, the least of a few tries each: a collection may fall into any of them. */
function growth(work: (size: number) => () => void): number {
  const least = (size: number): number => {
    const run = work(size);
    run();
    return Math.min(
      ...list(2, () => {
        const before = process.threadCpuUsage();
        run();
        const { user, system } = process.threadCpuUsage(before);
        return user + system;
      }),
    );
  };
  return least(SMALL * TIMES) / Math.max(1, least(SMALL));
}

function isLinear(name: string, work: (size: number) => () => void): void {
  test(`${name}: linear`, () => {
    const seen: number[] = [];
    while (seen.length < TRIES && !seen.some((ratio) => ratio < LIMIT)) seen.push(growth(work));
    assert.ok(
      Math.min(...seen) < LIMIT,
      `eight times as much cost ${seen.map((ratio) => ratio.toFixed(0)).join(', ')} times as much`,
    );
  });
}

/** A whole stream of `upstream`, decoded, checked and said to a chat client, which has the most to count. */
function stream(name: string, upstream: UpstreamCodec, eventsOf: (size: number) => readonly string[]): void {
  isLinear(name, (size) => {
    const bytes = Buffer.from(sseText(eventsOf(size).map((data) => ({ event: undefined, data }))));
    const request = requestOf('chat');
    const owner = ownerOf(upstream);
    return () => {
      const { steps, failure } = decodeBytes(upstream, [bytes], { request });
      assert.equal(failure, undefined);
      encodeSteps(chatClient, steps, responseContext(chatClient, owner, { request }));
    };
  });
}

/** A chat client's request, read and written for `upstream`. */
function request(name: string, upstream: UpstreamCodec, bodyOf: (size: number) => JsonObject): void {
  isLinear(name, (size) => {
    const target = targetOf(ownerOf(upstream));
    const text = JSON.stringify(bodyOf(size));
    return () => {
      const read = chatClient.decodeRequest(text, JSON.parse(text), { open: openForTests });
      upstream.encodeRequest(read, target);
    };
  });
}

const chat = (deltas: readonly JsonObject[], finish: string) => [
  ...deltas.map((delta) => chunk(delta).data),
  chunk({}, finish).data,
  frame('[DONE]').data,
];
const gemini = (parts: JsonValue, rest: JsonObject = {}) =>
  JSON.stringify({ candidates: [{ content: { role: 'model', parts }, index: 0, ...rest }] });
const link = (index: number) => ({ url: `https://e.example/${index}`, title: 't', start_index: 0, end_index: 4 });

stream('a text with a citation in each piece', chatUpstream, (size) =>
  chat(
    list(size, (at) => ({ content: 'said ', annotations: [{ type: 'url_citation', url_citation: link(at) }] })),
    'stop',
  ),
);
stream('grounding of words all over a text, each with its numbers off', geminiUpstream, (size) => [
  gemini([{ text: list(size, (at) => `Sentence number ${at} of an answer. `).join('') }]),
  gemini([], {
    finishReason: 'STOP',
    groundingMetadata: {
      groundingChunks: [{ web: { uri: 'https://e.example', title: 't' } }],
      groundingSupports: list(size, (at) => ({
        segment: { startIndex: at, endIndex: at + 1, text: `number ${at} of an answer` },
        groundingChunkIndices: [0],
      })),
    },
  }),
]);
stream('signed texts', geminiUpstream, (size) => [
  ...list(size, () => gemini([{ text: 'said ', thoughtSignature: 'QUJD' }])),
  gemini([], { finishReason: 'STOP' }),
]);
stream('citations of places all over a text', geminiUpstream, (size) => [
  ...list(size, (at) =>
    gemini([{ text: 'é said ' }], {
      citationMetadata: { citationSources: [{ startIndex: at * 8, endIndex: at * 8 + 2, uri: `https://e.example/${at}` }] },
    }),
  ),
  gemini([], { finishReason: 'STOP' }),
]);

request('references to schemas of one name', geminiUpstream, (size) => ({
  model: 'm',
  messages: [{ role: 'user', content: 'hi' }],
  tools: [
    {
      type: 'function',
      function: {
        name: 'find',
        parameters: {
          type: 'object',
          $defs: Object.fromEntries(list(size, (at) => [`D${at}`, { type: 'object', properties: { x: { type: 'string' } } }])),
          properties: Object.fromEntries(list(size, (at) => [`p${at}`, { $ref: `#/$defs/D${at}/properties/x` }])),
        },
      },
    },
  ],
}));
