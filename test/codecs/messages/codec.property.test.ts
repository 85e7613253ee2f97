/** Laws over arbitrary answers and arbitrary bytes. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { GatewayError, upstreamFault } from '../../../src/codecs/canonical/error.ts';
import type { CanonicalEvent } from '../../../src/codecs/canonical/event.ts';
import { Fold, fold, type Whole } from '../../../src/codecs/canonical/fold.ts';
import type { Outcome } from '../../../src/codecs/canonical/outcome.ts';
import type { OutputItem } from '../../../src/codecs/canonical/item.ts';
import type { Opaque } from '../../../src/codecs/canonical/opaque.ts';
import { UNSIGNED } from '../../../src/codecs/messages/message-parts.ts';
import { messagesClient, messagesUpstream } from '../../../src/codecs/messages/index.ts';
import { checkMessagesStream } from '../../support/client-order/messages.ts';
import { decodeContext, decodeFrames, encodeSteps, open, owner, payloads, responseContext } from './support.ts';

const opaque: fc.Arbitrary<Opaque> = fc.string({ minLength: 1 }).map((value) => ({ owner, value }));
const words = fc.string({ minLength: 1, unit: 'grapheme' });
const textItem: fc.Arbitrary<OutputItem> = words.map((text) => ({ kind: 'text', role: 'assistant', text, citations: [] }));
const reasoning: fc.Arbitrary<OutputItem> = fc
  .tuple(words, fc.option(opaque, { nil: undefined }))
  .map(([text, value]) => ({ kind: 'reasoning', summary: [text], ...(value === undefined ? {} : { opaque: value }) }));
const call: fc.Arbitrary<OutputItem> = fc.tuple(fc.uuid(), fc.dictionary(fc.string(), fc.jsonValue())).map(([callId, input]) => ({
  kind: 'toolCall',
  toolType: 'function',
  callId,
  tool: { name: 'f' },
  input: JSON.stringify(input),
}));

/** The item in pieces: its start, its deltas cut where the numbers say, its end. */
function eventsOf(item: OutputItem, index: number, cuts: readonly number[]): CanonicalEvent[] {
  const text =
    item.kind === 'text'
      ? item.text
      : item.kind === 'reasoning'
        ? (item.summary?.[0] ?? '')
        : item.kind === 'toolCall'
          ? item.input
          : '';
  const places = [0, ...cuts.map((cut) => cut % (text.length + 1)), text.length].sort((a, b) => a - b);
  const pieces = places.slice(1).map((to, at) => text.slice(places[at] ?? 0, to));
  const events: CanonicalEvent[] = [];
  if (item.kind === 'text') events.push({ type: 'item.start', index, head: { kind: 'text', role: 'assistant' } });
  if (item.kind === 'reasoning') events.push({ type: 'item.start', index, head: { kind: 'reasoning' } });
  if (item.kind === 'toolCall') {
    const { toolType, callId, tool } = item;
    events.push({ type: 'item.start', index, head: { kind: 'toolCall', toolType, callId, tool } });
  }
  for (const piece of pieces) {
    if (item.kind === 'text') events.push({ type: 'item.delta', index, delta: { kind: 'text', text: piece } });
    if (item.kind === 'reasoning') events.push({ type: 'item.delta', index, delta: { kind: 'summary', part: 0, text: piece } });
    if (item.kind === 'toolCall') events.push({ type: 'item.delta', index, delta: { kind: 'input', text: piece } });
  }
  events.push({ type: 'item.end', index, item, status: 'completed' });
  return events;
}

const cuts = fc.array(fc.nat(50), { maxLength: 3 });
const done: CanonicalEvent = { type: 'response.end', outcome: { status: 'completed', stop: 'end' } };

/** Items one after another. */
const answer = fc
  .array(fc.tuple(fc.oneof(textItem, reasoning, call), cuts), { maxLength: 6 })
  .map((list) => [{ type: 'response.start' } as const, ...list.flatMap(([item, at], index) => eventsOf(item, index, at)), done]);

/** Calls at once: all start in order, then their other events mixed as the numbers say. */
const parallel = fc
  .tuple(fc.array(fc.tuple(call, cuts), { minLength: 1, maxLength: 4 }), fc.array(fc.nat(), { maxLength: 40 }))
  .map(([list, picks]) => {
    const queues = list.map(([item, at], index) => eventsOf(item, index, at));
    const events: CanonicalEvent[] = [{ type: 'response.start' }];
    for (const queue of queues) events.push(...queue.splice(0, 1));
    for (const pick of [...picks, ...queues.flatMap((queue) => queue.map(() => 0))]) {
      const left = queues.filter((queue) => queue.length > 0);
      const queue = left[pick % Math.max(1, left.length)];
      if (queue !== undefined) events.push(...queue.splice(0, 1));
    }
    for (const queue of queues) events.push(...queue);
    return [...events, done];
  });

function itemsOf(whole: Whole): OutputItem[] {
  return whole.items.map(({ item }) => item);
}

/** Items as our own upstream side read them back, with their envelopes opened. */
function openedItems(whole: Whole): OutputItem[] {
  return whole.items.map(({ item }) => {
    if (item.kind !== 'reasoning' || item.opaque === undefined) return item;
    const opened = open(item.opaque.value);
    if (opened?.form !== UNSIGNED) return opened === undefined ? item : { ...item, opaque: opened };
    const { opaque: _added, ...own } = item;
    return own;
  });
}

function roundTrip(events: readonly CanonicalEvent[]): OutputItem[] {
  const frames = encodeSteps(events.map((event) => ({ events: [event] })));
  checkMessagesStream(frames);
  const decoded = decodeFrames(frames);
  assert.equal(decoded.error, undefined);
  return openedItems(fold(decoded.events));
}

test('decode(encode(events)) = events; the whole answer says the same', () => {
  fc.assert(
    fc.property(answer, (events) => {
      const whole = fold(events);
      assert.deepEqual(roundTrip(events), itemsOf(whole));
      const body = messagesClient.encodeResponse(whole, undefined, responseContext());
      assert.deepEqual(openedItems(fold(messagesUpstream.decodeResponse(body, decodeContext()).events)), itemsOf(whole));
    }),
    { numRuns: 200 },
  );
});

test('interleaving of parallel calls does not matter', () => {
  fc.assert(
    fc.property(parallel, (events) => {
      assert.deepEqual(roundTrip(events), itemsOf(fold(events)));
    }),
    { numRuns: 200 },
  );
});

test('every prefix, failed or cut, is a legal client stream with one ending', () => {
  fc.assert(
    fc.property(fc.oneof(answer, parallel), fc.nat(), fc.boolean(), (events, length, fails) => {
      const prefix = events.slice(0, 1 + (length % events.length)).filter(({ type }) => type !== 'response.end');
      const steps = prefix.map((event) => ({ events: [event] }));
      const outcome: Outcome = { status: 'incomplete', reason: 'max_output' };
      const known = new Fold();
      for (const event of prefix) known.push(event);
      const ends = known
        .whole(outcome)
        .items.flatMap(({ item, status }, index): CanonicalEvent[] =>
          known.open(index) === undefined ? [] : [{ type: 'item.end', index, item, status }],
        );
      const cut: CanonicalEvent[] = [...ends, { type: 'response.end', outcome }];
      const frames = fails ? encodeSteps(steps, upstreamFault('truncated', 'cut')) : encodeSteps([...steps, { events: cut }]);
      checkMessagesStream(frames);
      assert.equal(frames.at(-1)?.event, fails ? 'error' : 'message_stop');
    }),
    { numRuns: 200 },
  );
});

const fragment = fc.oneof(
  fc.constantFrom(
    { type: 'message_start', message: { id: 'm', content: [] } },
    { type: 'message_delta', delta: { stop_reason: 'end_turn' } },
    { type: 'message_delta', delta: { stop_reason: 'max_tokens' } },
    { type: 'message_stop' },
    { type: 'ping' },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
    { type: 'content_block_start', index: 1, content_block: { type: 'tool_use', id: 'c', name: 'f', input: {} } },
    { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'x' } },
    { type: 'content_block_delta', index: 1, delta: { type: 'input_json_delta', partial_json: '{' } },
    { type: 'content_block_delta', index: 1, delta: { type: 'input_json_delta', partial_json: '}' } },
    { type: 'content_block_stop', index: 0 },
    { type: 'content_block_stop', index: 1 },
  ),
  fc.dictionary(fc.constantFrom('type', 'index', 'delta', 'message', 'usage'), fc.jsonValue()),
);

test('garbage gets only documented errors, and its client still gets a legal stream', () => {
  fc.assert(
    fc.property(fc.array(fragment, { maxLength: 12 }), (list) => {
      const { steps, error } = decodeFrames(payloads(list as never[]));
      assert.ok(error === undefined || (error instanceof GatewayError && error.blame === 'upstream'));
      checkMessagesStream(encodeSteps(steps, error));
      checkMessagesStream(
        encodeSteps(
          steps.map(({ events }) => ({ events })),
          error,
        ),
      );
    }),
    { numRuns: 500 },
  );
});
