/**
 * Decoders and native encoders read an event that repeats the one before by comparing it (`codecs/json-repeat.ts`). Law: it means what it
 * would mean alone. The same stream with white space that changes from event to event repeats nothing, and says the same.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Frame } from '../../src/codecs/codec.ts';
import { DIALECTS, UPSTREAMS } from '../support/dialects.ts';
import { answer, fractions } from '../support/arbitraries/response.ts';
import type { TwoSided, UpstreamSide } from '../support/laws.ts';
import { bytesOf, decodeBytes, encodeSteps, ownerOf, requestOf, responseContext, sseText } from '../support/wire.ts';
import { sseDecode, type SseEvent } from '../../src/streams/sse-decode.ts';

const ASKING = { request: requestOf('chat', { logprobs: { top: 20 } }) };

function framesOf(bytes: Uint8Array): SseEvent[] {
  const frames: SseEvent[] = [];
  sseDecode({ maxEventBytes: 1 << 24 }).push(bytes, frames);
  return frames;
}

function spaced({ event, data }: Frame, at: number): Frame {
  if (data === '[DONE]') return { event, data };
  const json = JSON.stringify(JSON.parse(data), null, 1 + (at % 2)).replaceAll(/\n */g, at % 2 === 0 ? ' ' : '\t');
  return { event, data: json };
}

function parsed(frames: readonly Frame[]): unknown[] {
  return frames.map(({ event, data }) => ({ event, data: data === '[DONE]' ? data : JSON.parse(data) }));
}

function said(upstream: UpstreamSide, client: TwoSided, frames: readonly Frame[]): unknown {
  const { events, steps, failure } = decodeBytes(upstream.upstream, [bytesOf(sseText(frames))], ASKING);
  const context = responseContext(client.client, ownerOf(upstream.upstream));
  return { events, failure: failure?.message, frames: parsed(encodeSteps(client.client, steps, context, failure)) };
}

for (const upstream of UPSTREAMS) {
  for (const client of DIALECTS) {
    const dialect = upstream.upstream.dialect;
    test(`white space between the tokens of ${dialect} events changes nothing for ${client.client.dialect} clients`, () => {
      const owner = ownerOf(upstream.upstream);
      const cutAt = fc.option(fc.double({ min: 0, max: 1, noNaN: true }), { nil: 1, freq: 2 });
      fc.assert(
        fc.property(answer(upstream.features, owner), fractions, fc.boolean(), cutAt, (whole, cuts, interleave, cut) => {
          const frames = framesOf(upstream.write(whole, cuts, interleave));
          const heard = frames.slice(0, Math.ceil(cut * frames.length));
          assert.deepEqual(said(upstream, client, heard), said(upstream, client, heard.map(spaced)));
        }),
        { numRuns: 60 },
      );
    });
  }
}

/** What the arbitrary answers rarely have: a stream of one thing in many pieces, as models send it. */
const PIECES: readonly (readonly [string, (piece: string, at: number) => object])[] = [
  ['chat text', (content) => chunk({ content })],
  ['chat reasoning', (reasoning_content) => chunk({ reasoning_content })],
  ['chat arguments', (piece) => chunk({ tool_calls: [{ index: 0, function: { arguments: piece } }] })],
  ['chat text with a time that changes', (content, at) => ({ ...chunk({ content }), created: 1_760_000_000 + at })],
];

function chunk(delta: object): object {
  return {
    id: 'c',
    object: 'chat.completion.chunk',
    created: 7,
    model: 'm',
    choices: [{ index: 0, delta, finish_reason: null }],
  };
}

const piece = fc.oneof(fc.string({ maxLength: 6 }), fc.constantFrom('', '"', '\\', 'é', '水', '\n', '\ud83d\ude00', '\u2028'));

for (const [name, write] of PIECES) {
  test(`many pieces of ${name} mean what each means alone`, () => {
    const [chat] = DIALECTS.filter(({ upstream }) => upstream.dialect === 'chat');
    assert.ok(chat !== undefined);
    const call = { index: 0, id: 'call_1', type: 'function', function: { name: 'f', arguments: '' } };
    const first = name === 'chat arguments' ? chunk({ tool_calls: [call] }) : chunk({ role: 'assistant', content: '' });
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 30 }), (pieces) => {
        const events = [first, ...pieces.map(write)].map((json) => ({ event: undefined, data: JSON.stringify(json) }));
        for (const client of DIALECTS) assert.deepEqual(said(chat, client, events), said(chat, client, events.map(spaced)));
      }),
      { numRuns: 60 },
    );
  });
}
