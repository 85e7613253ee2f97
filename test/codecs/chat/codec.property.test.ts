import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { GatewayError } from '../../../src/codecs/canonical/error.ts';
import type { Step } from '../../../src/codecs/canonical/event.ts';
import type { JsonObject, JsonValue } from '../../../src/codecs/canonical/json.ts';
import { Order } from '../../../src/codecs/canonical/order.ts';
import { chatClient, chatUpstream } from '../../../src/codecs/chat/index.ts';
import { checkChatStream } from '../../support/client-order/chat.ts';
import type { Frame } from '../../../src/codecs/codec.ts';
import { chunk, decode, decodeContext, encode, frame, requestContext, responseContext, withoutNative } from './support.ts';

const word = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 6 });

/** One answer as a list of deltas, and what a client must have at the end. */
const answer = fc
  .record({
    raw: fc.array(word, { maxLength: 3 }),
    content: fc.array(word, { maxLength: 4 }),
    calls: fc.array(fc.array(word, { maxLength: 4 }), { maxLength: 3 }),
    seed: fc.array(fc.nat(), { minLength: 12, maxLength: 12 }),
  })
  .map(({ raw, content, calls, seed }) => {
    const heads = calls.map((_, index) => ({
      tool_calls: [{ index, id: `call_${index}`, type: 'function', function: { name: `f${index}`, arguments: '' } }],
    }));
    // The pieces of parallel calls in any interleaving that keeps each call's own order.
    const queues = calls.map((pieces, index) =>
      pieces.map((piece) => ({ tool_calls: [{ index, function: { arguments: piece } }] })),
    );
    const mixed: JsonObject[] = [];
    for (let turn = 0; queues.some((queue) => queue.length > 0); turn += 1) {
      const open = queues.filter((queue) => queue.length > 0);
      const next = open[(seed[turn % seed.length] ?? 0) % open.length]?.shift();
      if (next !== undefined) mixed.push(next);
    }
    const deltas: JsonObject[] = [
      ...raw.map((reasoning_content) => ({ reasoning_content })),
      ...content.map((piece) => ({ content: piece })),
      ...heads,
      ...mixed,
    ];
    return { deltas, raw: raw.join(''), content: content.join(''), calls: calls.map((pieces) => pieces.join('') || '{}') };
  });

function whole(frames: readonly Frame[]) {
  return decode(frames).order.fold.whole({ status: 'completed', stop: 'end' });
}

const framesOf = (deltas: readonly JsonObject[]): Frame[] => [
  ...deltas.map((delta) => chunk(delta)),
  chunk({}, 'stop'),
  frame('[DONE]'),
];

const cite = (at: number): JsonObject => ({
  annotations: [
    { type: 'url_citation', url_citation: { url: `https://example.com/${at}`, title: '', start_index: at, end_index: at + 1 } },
  ],
});

/** Kinds in any order, citations among them. */
const mixed: fc.Arbitrary<JsonObject[]> = fc.array(
  fc.oneof(
    { weight: 4, arbitrary: word.map((content) => ({ content })) },
    word.map((reasoning_content) => ({ reasoning_content })),
    word.map((refusal) => ({ refusal })),
    fc.nat(2).map((index) => ({ tool_calls: [{ index, id: `call_${index}`, function: { name: 'f', arguments: '1' } }] })),
    fc.nat(9).map(cite),
  ),
  { maxLength: 12 },
);

describe('chat laws', () => {
  it('a text that ends when another kind begins is the text that waits for its citations', () => {
    fc.assert(
      fc.property(mixed, (deltas) => {
        const live = decodeContext({ request: { ...decodeContext().request, dialect: 'responses', stream: true } });
        const ending = decode(framesOf(deltas), live);
        const waiting = decode(framesOf(deltas));
        const said = ({ order }: typeof ending) => order.fold.whole({ status: 'completed', stop: 'end' }).items;
        const bare = (items: ReturnType<typeof said>) =>
          items
            .map(({ item, status }) => ({ status, item: item.kind === 'text' ? { ...item, citations: [] } : item }))
            // Sources that no text could take any more do not stand in an empty one.
            .filter(({ item }) => item.kind !== 'text' || item.text !== '');
        assert.deepEqual(bare(said(ending)), bare(said(waiting)));
        const cites = (items: ReturnType<typeof said>) =>
          items.reduce((sum, { item }) => sum + (item.kind === 'text' ? item.citations.length : 0), 0);
        const events = ending.steps.flatMap((step) => step.events);
        const late = events.filter(({ type }) => type === 'native.event').length;
        assert.equal(cites(said(ending)) + late, cites(said(waiting)));
        if (deltas.some((delta) => 'annotations' in delta)) return;
        // Nothing promised citations: no call begins beside an open text.
        let open = 0;
        for (const event of events) {
          if (event.type === 'item.start' && event.head.kind === 'toolCall') assert.equal(open, 0);
          if (event.type === 'item.start' && event.head.kind === 'text') open += 1;
          if (event.type === 'item.end' && event.item.kind === 'text') open -= 1;
        }
      }),
    );
  });

  it('interleaving of parallel calls does not matter', () => {
    fc.assert(
      fc.property(answer, ({ deltas, raw, content, calls }) => {
        const { items } = whole(framesOf(deltas));
        assert.equal(items.map(({ item }) => (item.kind === 'reasoning' ? item.raw : '')).join(''), raw);
        assert.equal(items.map(({ item }) => (item.kind === 'text' ? item.text : '')).join(''), content);
        assert.deepEqual(
          items.flatMap(({ item }) => (item.kind === 'toolCall' ? [item.input] : [])),
          calls,
        );
      }),
    );
  });

  it('decode after encode gives the same answer', () => {
    fc.assert(
      fc.property(answer, ({ deltas }) => {
        const { steps, order } = decode(framesOf(deltas));
        const again = whole(encode(withoutNative(steps)).map(frame));
        const first = order.fold.whole({ status: 'completed', stop: 'end' });
        assert.deepEqual(again.items, first.items);
        assert.deepEqual(again.outcome.status, first.outcome.status);
      }),
    );
  });

  it('a whole body says what the stream says', () => {
    fc.assert(
      fc.property(answer, ({ deltas }) => {
        const first = whole(framesOf(deltas));
        const body = chatClient.encodeResponse(first, undefined, responseContext());
        const order = new Order();
        order.push(chatUpstream.decodeResponse(body, decodeContext()), []);
        assert.deepEqual(order.fold.whole({ status: 'completed', stop: 'end' }).items, first.items);
      }),
    );
  });

  it('no prefix without a finish is a success', () => {
    fc.assert(
      fc.property(answer, fc.nat(), fc.boolean(), ({ deltas }, at, done) => {
        const prefix = framesOf(deltas).slice(0, at % (deltas.length + 1));
        if (done) prefix.push(frame('[DONE]'));
        assert.throws(
          () => decode(prefix),
          (error) => error instanceof GatewayError && error.details.reason === 'truncated',
        );
      }),
    );
  });

  it('garbage gets documented errors only, and the client an ending that its table accepts', () => {
    const { value } = fc.letrec<{ value: JsonValue }>((tie) => ({
      value: fc.oneof(
        { depthSize: 'small', withCrossShrink: true },
        fc.constantFrom<JsonValue>(null, '', 'stop', 0, 1, -1, true, 'function', 'reasoning.text', 'url_citation', 'text'),
        fc.array(tie('value'), { maxLength: 2 }),
        fc.dictionary(
          fc.constantFrom(
            'index',
            'id',
            'type',
            'function',
            'name',
            'arguments',
            'text',
            'url_citation',
            'url',
            '__proto__',
            'data',
          ),
          tie('value'),
          { maxKeys: 4, noNullPrototype: true },
        ),
      ),
    }));
    const delta = fc.dictionary(
      fc.constantFrom(
        'role',
        'content',
        'refusal',
        'reasoning',
        'reasoning_content',
        'reasoning_details',
        'reasoning_opaque',
        'tool_calls',
        'function_call',
        'annotations',
        'images',
        'audio',
      ),
      value,
      { maxKeys: 3, noNullPrototype: true },
    );
    const one = fc.oneof(
      fc.record({
        choices: fc.array(fc.record({ index: fc.constantFrom(0, 1), delta, finish_reason: value }), { maxLength: 2 }),
        usage: value,
      }),
      fc.record({ error: value }),
      fc.record({ choices: value }),
    );
    fc.assert(
      fc.property(fc.array(one, { maxLength: 5 }), (chunks) => {
        for (const native of [true, false]) {
          const out: Frame[] = [];
          const encoder = chatClient.encodeEvents(responseContext());
          try {
            const decoder = chatUpstream.decodeEvents(decodeContext());
            const order = new Order();
            const steps: Step[] = [];
            const flow = () => {
              for (const step of steps.splice(0)) {
                order.push(step, []);
                encoder.push(native ? step : { events: step.events }, out);
              }
            };
            for (const body of chunks) {
              decoder.push(frame(body), steps);
              flow();
            }
            if (!decoder.ended) decoder.end(steps);
            flow();
          } catch (error) {
            if (!(error instanceof GatewayError)) throw error;
            assert.equal(error.blame, 'upstream');
            encoder.fail(error, out);
          }
          assert.equal(encoder.ended, true);
          checkChatStream(out.map(({ data }) => data));
        }
      }),
      { numRuns: 300 },
    );
  });

  it('any request body is read or refused with a path', () => {
    fc.assert(
      fc.property(
        fc.dictionary(
          fc.constantFrom('model', 'messages', 'tools', 'stop', 'tool_choice', 'n', 'reasoning', 'functions'),
          fc.jsonValue(),
          {
            noNullPrototype: true,
          },
        ),
        fc.array(fc.jsonValue(), { maxLength: 3 }),
        (body, messages) => {
          for (const json of [
            body,
            { model: 'm', messages: messages.map((content) => ({ role: 'assistant', ...(content as object) })) },
          ]) {
            try {
              chatClient.decodeRequest(JSON.stringify(json), JSON.parse(JSON.stringify(json)), requestContext);
            } catch (error) {
              assert.ok(error instanceof GatewayError && error.status === 400 && error.param !== null, String(error));
            }
          }
        },
      ),
    );
  });
});
