/** Laws of the dialect over arbitrary answers: our streams obey our own tables, whole = stream, what was said comes back. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { accumulateResponse } from 'openai/lib/responses/ResponseAccumulator';
import type { Response, ResponseStreamEvent } from 'openai/resources/responses/responses';
import { GatewayError } from '../../../src/codecs/canonical/error.ts';
import type { CanonicalEvent, Step } from '../../../src/codecs/canonical/event.ts';
import { Fold } from '../../../src/codecs/canonical/fold.ts';
import type { OutputItem } from '../../../src/codecs/canonical/item.ts';
import type { Outcome } from '../../../src/codecs/canonical/outcome.ts';
import type { Frame } from '../../../src/codecs/codec.ts';
import { responsesClient } from '../../../src/codecs/responses/index.ts';
import { checkResponsesStream } from '../../support/client-order/responses.ts';
import { inOrder } from '../../support/wire.ts';
import { headOf } from '../../../src/codecs/canonical/item-emitter.ts';
import { decodeAll, encodeAll, OWNER, objectFrom, open, responseContext, terminalOf } from './support.ts';

const word = fc.string({ minLength: 1, maxLength: 6, unit: 'grapheme' });
const opaque = fc.option(
  word.map((value) => ({ owner: OWNER, value })),
  { nil: undefined },
);
const optional = <T extends object>(key: string, value: T | undefined) => (value === undefined ? {} : { [key]: value });

const item: fc.Arbitrary<OutputItem> = fc.oneof(
  fc.record({ text: word, phase: fc.option(fc.constantFrom('commentary', 'final_answer'), { nil: undefined }) }).map(
    ({ text, phase }): OutputItem => ({
      kind: 'text',
      role: 'assistant',
      text,
      citations: [{ kind: 'url', url: 'https://e.x', title: 't', start: 0, end: 1 }],
      ...(phase === undefined ? {} : { phase }),
    }),
  ),
  word.map((text): OutputItem => ({ kind: 'refusal', text })),
  fc.record({ raw: fc.option(word, { nil: undefined }), summary: fc.array(word, { minLength: 1, maxLength: 3 }), opaque }).map(
    ({ raw, summary, opaque: value }): OutputItem => ({
      kind: 'reasoning',
      ...(raw === undefined ? {} : { raw }),
      summary,
      ...optional('opaque', value),
    }),
  ),
  fc
    .record({
      name: word,
      input: word,
      toolType: fc.constantFrom('function' as const, 'custom' as const),
      callId: fc.uuid(),
      opaque,
    })
    .map(
      ({ name, opaque: value, ...call }): OutputItem => ({
        kind: 'toolCall',
        tool: { name },
        ...call,
        ...optional('opaque', value),
      }),
    ),
  fc.constant<OutputItem>({
    kind: 'media',
    role: 'assistant',
    media: { type: 'image', source: { from: 'inline', mime: 'image/png', data: 'iVBORw0KGgo=' } },
  }),
);

const outcome: fc.Arbitrary<Outcome> = fc.constantFrom<Outcome>(
  { status: 'completed', stop: 'end' },
  { status: 'incomplete', reason: 'max_output' },
  { status: 'incomplete', reason: 'content_filter' },
  { status: 'failed', error: new GatewayError('upstream_error', 'x') },
);

/** The events of one item, its text in two pieces. */
function eventsOf(index: number, whole: OutputItem): CanonicalEvent[] {
  const events: CanonicalEvent[] = [{ type: 'item.start', index, head: headOf(whole) }];
  const say = (delta: Extract<CanonicalEvent, { type: 'item.delta' }>['delta']) =>
    events.push({ type: 'item.delta', index, delta });
  const half = (text: string) => text.slice(0, Math.ceil(text.length / 2));
  if (whole.kind === 'text' || whole.kind === 'refusal') say({ kind: 'text', text: half(whole.text) });
  if (whole.kind === 'reasoning') {
    if (whole.raw !== undefined) say({ kind: 'raw', text: half(whole.raw) });
    for (const [part, text] of (whole.summary ?? []).entries()) say({ kind: 'summary', part, text });
  }
  if (whole.kind === 'toolCall') say({ kind: 'input', text: half(whole.input) });
  events.push({ type: 'item.end', index, item: whole, status: 'completed' });
  return events;
}

/** Items one after another, or the deltas of neighbours interleaved. */
const answer = fc.record({ items: fc.array(item, { maxLength: 5 }), interleave: fc.boolean(), outcome }).map((given) => {
  const tracks = given.items.map((whole, index) => eventsOf(index, whole));
  const events: CanonicalEvent[] = [{ type: 'response.start' }];
  if (given.interleave) {
    events.push(...tracks.flatMap((track) => track.slice(0, 2)));
    events.push(...tracks.flatMap((track) => track.slice(2)));
  } else {
    events.push(...tracks.flat());
  }
  events.push({ type: 'usage.report', usage: { input: 3, output: 2 } }, { type: 'response.end', outcome: given.outcome });
  return { ...given, events };
});

const anonymous = (value: unknown) =>
  JSON.stringify(value).replace(/"(id|item_id)":"(msg|rs|fc|ctc|ig)_[0-9a-f]{32}"/g, '"$1":"-"');
/** What an item says, whatever its ids; `value` reads its opaque value. */
function facesOf(entry: OutputItem, value: (opaque: string) => string | undefined) {
  const sealed = entry.kind === 'reasoning' ? entry.opaque?.value : undefined;
  return {
    kind: entry.kind,
    text: entry.kind === 'text' || entry.kind === 'refusal' ? entry.text : undefined,
    citations: entry.kind === 'text' ? entry.citations : undefined,
    phase: entry.kind === 'text' ? entry.phase : undefined,
    call: entry.kind === 'toolCall' ? [entry.toolType, entry.callId, entry.tool, entry.input] : undefined,
    reasoning: entry.kind === 'reasoning' ? [entry.raw, entry.summary] : undefined,
    opaque: sealed === undefined ? undefined : value(sealed),
    media: entry.kind === 'media' ? entry.media.source : undefined,
  };
}

test('every answer makes a stream that our own tables accept, with one ending', () => {
  fc.assert(
    fc.property(answer, ({ events }) => {
      const frames = encodeAll(events.map((event): Step => ({ events: [event] })));
      checkResponsesStream(frames);
      const sequence = frames.map((frame) => objectFrom(frame.data)['sequence_number']);
      assert.deepEqual(sequence, [...frames.keys()]);
    }),
  );
});

/** What the official SDK has put together before the terminal event, and what that event says. */
function accumulated(frames: readonly Frame[]): { before: Response; terminal: Response } {
  let snapshot: Response | undefined;
  for (const { data } of frames.slice(0, -1)) {
    const event: ResponseStreamEvent = JSON.parse(data);
    if (snapshot === undefined) {
      assert.ok(event.type === 'response.created', event.type);
      snapshot = event.response;
    } else {
      snapshot = accumulateResponse(event, snapshot);
    }
  }
  const last: ResponseStreamEvent = JSON.parse(frames.at(-1)?.data ?? 'null');
  assert.ok(snapshot !== undefined && 'response' in last);
  return { before: snapshot, terminal: accumulateResponse(last, snapshot) };
}

test("the official SDK's accumulator takes every stream, whole or broken off, and has its items before the terminal", () => {
  fc.assert(
    fc.property(answer, fc.option(fc.nat(), { nil: undefined }), ({ events }, cut) => {
      const encoder = responsesClient.encodeEvents(responseContext());
      const frames: Frame[] = [];
      const said = cut === undefined ? events : events.slice(0, cut % events.length);
      for (const event of said) encoder.push({ events: [event] }, frames);
      if (!encoder.ended) encoder.fail(new GatewayError('upstream_error', 'x'), frames);
      const { before, terminal } = accumulated(frames);
      assert.deepEqual(before.output, terminal.output);
    }),
  );
});

test('the last pieces of texts and inputs that an upstream leaves out are put back for a client of the same dialect', () => {
  fc.assert(
    fc.property(answer, fc.nat({ max: 3 }), ({ events }, kept) => {
      const seen = new Map<string, number>();
      const frames = encodeAll(events.map((event): Step => ({ events: [event] }))).filter(({ event = '', data }) => {
        if (!event.endsWith('.delta')) return true;
        const { output_index: item, content_index: content, summary_index: summary } = objectFrom(data);
        const place = JSON.stringify([event, item, content, summary]);
        seen.set(place, (seen.get(place) ?? 0) + 1);
        return (seen.get(place) ?? 0) <= kept;
      });
      const { steps } = decodeAll(frames);
      checkResponsesStream(encodeAll(steps), true);
    }),
  );
});

test('every prefix can be failed', () => {
  fc.assert(
    fc.property(answer, fc.nat(), ({ events }, cut) => {
      const encoder = responsesClient.encodeEvents(responseContext());
      const frames: Frame[] = [];
      const steps = events.slice(0, cut % events.length).map((event): Step => ({ events: [event] }));
      for (const step of inOrder(steps)) encoder.push(step, frames);
      encoder.fail(new GatewayError('upstream_error', 'x'), frames);
      checkResponsesStream(frames);
      assert.equal(frames.at(-1)?.event, 'response.failed');
    }),
  );
});

test('the whole body is the terminal of the stream', () => {
  fc.assert(
    fc.property(answer, ({ events, interleave }) => {
      fc.pre(!interleave);
      const folded = new Fold();
      for (const event of events) folded.push(event);
      const whole = folded.whole({ status: 'completed', stop: 'end' });
      const body = objectFrom(responsesClient.encodeResponse(whole, undefined, responseContext()));
      const terminal = terminalOf(encodeAll([{ events }]));
      assert.equal(anonymous(body), anonymous(terminal));
    }),
  );
});

test('what we say, we read back', () => {
  fc.assert(
    fc.property(answer, ({ events, items, outcome: ended, interleave }) => {
      fc.pre(!interleave && ended.status !== 'failed');
      // Values that belong to calls travel in carriers: another test.
      fc.pre(items.every((entry) => entry.kind !== 'toolCall' || entry.opaque === undefined));
      const { order } = decodeAll(encodeAll([{ events }]).map(({ data }) => ({ event: undefined, data })));
      const again = order.fold.whole(ended);
      assert.equal(again.outcome.status, ended.status);
      assert.deepEqual(
        again.items.map((entry) => facesOf(entry.item, (sealed) => open(sealed)?.value)),
        items.map((entry) => facesOf(entry, (value) => value)),
      );
    }),
  );
});

test('arbitrary bytes get only documented errors', () => {
  const line = fc.oneof(
    fc.json(),
    fc.string(),
    fc
      .record({
        type: fc.constantFrom(
          'response.created',
          'response.completed',
          'response.output_item.added',
          'response.output_text.delta',
          'error',
          'x',
        ),
        output_index: fc.jsonValue(),
        item: fc.jsonValue(),
        response: fc.jsonValue(),
        delta: fc.jsonValue(),
      })
      .map((value) => JSON.stringify(value)),
  );
  fc.assert(
    fc.property(fc.array(line, { maxLength: 5 }), (lines) => {
      try {
        decodeAll(lines.map((data) => ({ event: undefined, data })));
      } catch (error) {
        assert.ok(error instanceof GatewayError, String(error));
        assert.equal(error.code, 'upstream_error');
      }
    }),
  );
});
