/**
 * Decoders and native encoders read an event that repeats the one before by comparing it (`codecs/json/repeats.ts`). Law: it
 * means what it would mean alone. The same stream with white space that changes from event to event repeats nothing, and says the
 * same.
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
import { sized } from '../support/sampled.ts';

/** As a client of this dialect asks: a decoder keeps what it read in its own form for clients of its dialect alone. */
const asking = ({ client }: TwoSided) => ({ request: requestOf(client.dialect, { logprobs: { top: 20 } }) });

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
  const { events, steps, failure } = decodeBytes(upstream.upstream, [bytesOf(sseText(frames))], asking(client));
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
        { numRuns: sized(12, 60) },
      );
    });
  }
}

/** What the arbitrary answers rarely have: one thing in many pieces, as models send it. The stream breaks off behind them. */
interface Pieces {
  readonly name: string;
  readonly dialect: 'chat' | 'responses' | 'messages';
  readonly before: readonly object[];
  write(piece: string, at: number): object;
}

const STREAMS: readonly Pieces[] = [
  { name: 'text', dialect: 'chat', before: [], write: (content) => chunk({ content }) },
  { name: 'reasoning', dialect: 'chat', before: [], write: (reasoning_content) => chunk({ reasoning_content }) },
  {
    name: 'text with a time that changes',
    dialect: 'chat',
    before: [chunk({ role: 'assistant', content: '' })],
    write: (content, at) => ({ ...chunk({ content }), created: 1_760_000_000 + at }),
  },
  {
    name: 'text of another candidate',
    dialect: 'chat',
    before: [],
    write: (content) => ({
      ...chunk({}),
      choices: [
        { index: 1, delta: { content }, finish_reason: null },
        { index: 0, delta: { content: 'same' }, finish_reason: null },
      ],
    }),
  },
  {
    name: 'arguments of a call that is named again',
    dialect: 'chat',
    before: [],
    write: (piece) => chunk({ tool_calls: [{ function: { name: 'f', arguments: piece } }] }),
  },
  {
    name: 'arguments',
    dialect: 'chat',
    before: [chunk({ tool_calls: [{ index: 0, id: 'call_1', type: 'function', function: { name: 'f', arguments: '' } }] })],
    write: (piece) => chunk({ tool_calls: [{ index: 0, function: { arguments: piece } }] }),
  },
  ...[0, 3].map(
    (output_index): Pieces => ({
      name: `text of item ${output_index}`,
      dialect: 'responses',
      before: [
        { type: 'response.created', sequence_number: 0, response: { id: 'r', object: 'response', output: [] } },
        {
          type: 'response.output_item.added',
          output_index,
          item: { id: 'msg_1', type: 'message', role: 'assistant', content: [] },
        },
        { type: 'response.content_part.added', output_index, content_index: 0, part: { type: 'output_text', text: '' } },
      ].map((event, at) => ({ ...event, sequence_number: at })),
      write: (delta, at) => ({
        type: 'response.output_text.delta',
        sequence_number: at + 3,
        item_id: 'msg_1',
        output_index,
        content_index: 0,
        delta,
        obfuscation: `x${delta}`,
      }),
    }),
  ),
  {
    name: 'arguments',
    dialect: 'responses',
    before: [
      { type: 'response.created', sequence_number: 0, response: { id: 'r', object: 'response', output: [] } },
      {
        type: 'response.output_item.added',
        sequence_number: 1,
        output_index: 0,
        item: { id: 'fc_1', type: 'function_call', call_id: 'call_1', name: 'f', arguments: '' },
      },
    ],
    write: (delta, at) => ({
      type: 'response.function_call_arguments.delta',
      sequence_number: at + 2,
      item_id: 'fc_1',
      output_index: 0,
      delta,
    }),
  },
  ...['reasoning_text', 'reasoning_summary_text'].map(
    (said): Pieces => ({
      name: said,
      dialect: 'responses',
      before: [
        { type: 'response.created', sequence_number: 0, response: { id: 'r', object: 'response', output: [] } },
        {
          type: 'response.output_item.added',
          sequence_number: 1,
          output_index: 0,
          item: { id: 'rs_1', type: 'reasoning', summary: [] },
        },
        said === 'reasoning_text'
          ? { type: 'response.content_part.added', content_index: 0, part: { type: 'reasoning_text', text: '' } }
          : { type: 'response.reasoning_summary_part.added', summary_index: 0, part: { type: 'summary_text', text: '' } },
      ].map((event) => ({ output_index: 0, item_id: 'rs_1', ...event })),
      write: (delta) => ({
        type: `response.${said}.delta`,
        item_id: 'rs_1',
        output_index: 0,
        ...(said === 'reasoning_text' ? { content_index: 0 } : { summary_index: 0 }),
        delta,
      }),
    }),
  ),
  { ...block({ type: 'text', text: '' }), write: (text) => delta({ type: 'text_delta', text }) },
  { ...block({ type: 'thinking', thinking: '' }), write: (thinking) => delta({ type: 'thinking_delta', thinking }) },
  {
    ...block({ type: 'tool_use', id: 't', name: 'f', input: {} }),
    write: (piece) => delta({ type: 'input_json_delta', partial_json: piece }),
  },
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

function block(content_block: {
  readonly type: string;
  readonly [member: string]: unknown;
}): Pick<Pieces, 'name' | 'dialect' | 'before'> {
  const message = {
    id: 'm',
    type: 'message',
    role: 'assistant',
    model: 'm',
    content: [],
    stop_reason: null,
    usage: { input_tokens: 1 },
  };
  const before = [
    { type: 'message_start', message },
    { type: 'content_block_start', index: 0, content_block },
  ];
  return { name: content_block.type, dialect: 'messages', before };
}

function delta(said: object): object {
  return { type: 'content_block_delta', index: 0, delta: said };
}

const piece = fc.oneof(fc.string({ maxLength: 6 }), fc.constantFrom('', '"', '\\', 'é', '水', '\n', '\ud83d\ude00', '\u2028'));

for (const { name, dialect, before, write } of STREAMS) {
  test(`many pieces of ${dialect} ${name} mean what each means alone, also when the stream breaks off`, () => {
    const upstream = DIALECTS.find((known) => known.upstream.dialect === dialect);
    assert.ok(upstream !== undefined);
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 30 }), (pieces) => {
        const events = [...before, ...pieces.map(write)].map((json) => ({ event: undefined, data: JSON.stringify(json) }));
        for (const client of DIALECTS)
          assert.deepEqual(said(upstream, client, events), said(upstream, client, events.map(spaced)));
      }),
      { numRuns: sized(12, 60) },
    );
  });
}
