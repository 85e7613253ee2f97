import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { GatewayError, upstreamFault } from '../../../src/codecs/canonical/error.ts';
import type { CanonicalEvent, ItemDelta, ItemHead, Step } from '../../../src/codecs/canonical/event.ts';
import { fold } from '../../../src/codecs/canonical/fold.ts';
import type { OutputItem } from '../../../src/codecs/canonical/item.ts';
import { Order } from '../../../src/codecs/canonical/order.ts';
import { answer, eventsOf, fractions, stepsOf } from '../../support/arbitraries/response.ts';

const OWNER = { channelType: 'responses', scope: 'https://up.example', model: 'up-model' } as const;
const EVERYTHING = {
  refusal: true,
  custom: true,
  citations: true,
  logprobs: true,
  phase: true,
  raw: true,
  summary: true,
  opaque: true,
  images: true,
  toolSignature: true,
};

const failed: CanonicalEvent = { type: 'response.end', outcome: { status: 'failed', error: upstreamFault('error_event', 'no') } };

function run(events: readonly CanonicalEvent[]): Order {
  const order = new Order();
  const out: Step[] = [];
  for (const step of stepsOf(events)) order.push(step, out);
  order.end();
  return order;
}

test('property: every arbitrary answer is in order, and folds back to itself however it was cut', () => {
  fc.assert(
    fc.property(answer(EVERYTHING, OWNER), fractions, fc.boolean(), (said, cuts, interleave) => {
      const events = eventsOf(said, cuts, interleave);
      run(events);
      const whole = fold(events);
      assert.deepEqual(
        whole.items.map(({ item }) => item),
        said.items,
      );
      assert.deepEqual(whole.usage, said.usage);
    }),
  );
});

test('property: what the deltas of an item lack is inserted before its end, and then they add up to it', () => {
  fc.assert(
    fc.property(answer(EVERYTHING, OWNER), fractions, fc.nat(), (said, cuts, kept) => {
      const counts = new Map<number, number>();
      // The first deltas of each item.
      const sound = eventsOf(said, cuts).filter((event) => {
        if (event.type !== 'item.delta') return true;
        const count = counts.get(event.index) ?? 0;
        counts.set(event.index, count + 1);
        return count < kept % 4;
      });
      const out: Step[] = [];
      const order = new Order();
      for (const step of stepsOf(sound)) order.push(step, out);
      const checked = out.flatMap(({ events: some }) => some);
      // Without their ends, the items are what their deltas say.
      const deltas = checked.filter(({ type }) => type !== 'item.end' && type !== 'response.end');
      assert.deepEqual(
        run([...deltas, failed])
          .fold.whole({ status: 'completed', stop: 'end' })
          .items.map(({ item }) => textsOf(item)),
        said.items.filter(({ kind }) => kind !== 'media').map(textsOf),
      );
    }),
  );
});

/** What the deltas of an item add up to. */
function textsOf(item: OutputItem): readonly unknown[] {
  switch (item.kind) {
    case 'text':
      return [item.text, item.citations];
    case 'refusal':
      return [item.text];
    case 'reasoning':
      return [item.raw ?? '', item.summary ?? []];
    case 'toolCall':
      return [item.input];
    default:
      return [];
  }
}

test('a final item that contradicts its deltas is refused, and changes nothing', () => {
  const head = { kind: 'text', role: 'assistant' } as const;
  const order = new Order();
  const out: Step[] = [];
  order.push({ events: [{ type: 'response.start' }, { type: 'item.start', index: 0, head }] }, out);
  order.push({ events: [{ type: 'item.delta', index: 0, delta: { kind: 'text', text: 'Hi' } }] }, out);
  const end = (text: string): CanonicalEvent => ({
    type: 'item.end',
    index: 0,
    item: { kind: 'text', role: 'assistant', text, citations: [] },
    status: 'completed',
  });
  assert.throws(() => order.push({ events: [end('Ho')] }, out), /contradicts/);
  assert.equal(out.length, 2);
  const native = { dialect: 'chat', name: '', text: '{}', json: {} } as const;
  order.push({ native, events: [end('Hi there')] }, out);
  assert.deepEqual(out[2], {
    native,
    events: [{ type: 'item.delta', index: 0, delta: { kind: 'text', text: ' there' } }, end('Hi there')],
  });
});

/** What deltas can say of an item: neither its opaque value nor a picture. */
function saidOf(item: OutputItem): OutputItem[] {
  if (item.kind === 'media') return [];
  if (!('opaque' in item)) return [item];
  const { opaque: _, ...said } = item;
  return [said];
}

test('property: an answer that fails before its items end is what its deltas say together', () => {
  fc.assert(
    fc.property(answer(EVERYTHING, OWNER), fractions, fc.boolean(), (said, cuts, interleave) => {
      const events = eventsOf(said, cuts, interleave).filter(({ type }) => type !== 'item.end' && type !== 'response.end');
      const { items } = run([...events, failed]).fold.whole({ status: 'completed', stop: 'end' });
      assert.deepEqual(
        items,
        said.items.flatMap(saidOf).map((item) => ({ item, status: 'incomplete' })),
      );
    }),
  );
});

test('law 3: every proper prefix is a truncation, blamed on the upstream', () => {
  fc.assert(
    fc.property(answer(EVERYTHING, OWNER), fractions, fc.nat(), (said, cuts, pick) => {
      const events = eventsOf(said, cuts);
      assert.throws(
        () => run(events.slice(0, pick % events.length)),
        (error) => error instanceof GatewayError && error.blame === 'upstream',
      );
    }),
  );
});

const start: CanonicalEvent = { type: 'response.start' };
const textStart: CanonicalEvent = { type: 'item.start', index: 0, head: { kind: 'text', role: 'assistant' } };
const textDelta = (value: string): CanonicalEvent => ({ type: 'item.delta', index: 0, delta: { kind: 'text', text: value } });
const inputDelta = (index: number): CanonicalEvent => ({ type: 'item.delta', index, delta: { kind: 'input', text: '{' } });
const textEnd = (value: string): CanonicalEvent => ({
  type: 'item.end',
  index: 0,
  item: { kind: 'text', role: 'assistant', text: value, citations: [] },
  status: 'completed',
});
const done: CanonicalEvent = { type: 'response.end', outcome: { status: 'completed', stop: 'end' } };

const ILLEGAL: readonly (readonly [string, readonly CanonicalEvent[]])[] = [
  ['an item before the start', [textStart]],
  ['two starts', [start, start]],
  ['a delta of an item that never started', [start, textDelta('a')]],
  ['a delta after the end of its item', [start, textStart, textEnd('a'), textDelta('b')]],
  ['a delta like the one before the end of its item', [start, textStart, textDelta('a'), textEnd('ab'), textDelta('b')]],
  ['a second end of an item', [start, textStart, textEnd('a'), textEnd('a')]],
  ['an item out of number', [start, { type: 'item.start', index: 1, head: { kind: 'refusal' } }]],
  ['a success with an open item', [start, textStart, textDelta('a'), done]],
  ['anything after the end', [start, done, textStart]],
  ['a success without a start', [done]],
  ['a delta of the wrong kind', [start, textStart, inputDelta(0)]],
  ['a delta of the wrong kind behind one of the right kind', [start, textStart, textDelta('a'), inputDelta(0)]],
  ['a delta of another item that never started, behind one that goes on', [start, textStart, textDelta('a'), inputDelta(1)]],
  ['an end as another kind', [start, textStart, { ...textEnd('a'), item: { kind: 'refusal', text: 'a' } } as CanonicalEvent]],
  ['a final text that contradicts its deltas', [start, textStart, textDelta('ab'), textEnd('ac')]],
  [
    'reasoning that ends without the raw text that it said',
    [
      start,
      { type: 'item.start', index: 0, head: { kind: 'reasoning' } },
      { type: 'item.delta', index: 0, delta: { kind: 'raw', text: 'a' } },
      { type: 'item.end', index: 0, item: { kind: 'reasoning', summary: ['a'] }, status: 'completed' },
    ],
  ],
];

for (const [what, events] of ILLEGAL) {
  test(`refused: ${what}`, () => {
    // Not `truncated`: that is what any of them would be for ending too early.
    assert.throws(
      () => run(events),
      (error) => error instanceof GatewayError && error.details.reason === 'illegal_lifecycle',
    );
  });
}

test('law 9: a refused event changes nothing', () => {
  const order = new Order();
  const out: Step[] = [];
  for (const step of stepsOf([start, textStart, textDelta('ab')])) order.push(step, out);
  assert.throws(() => order.push({ events: [textEnd('x')] }, out));
  assert.throws(() => order.push({ events: [start] }, out));
  for (const step of stepsOf([textEnd('abc'), done])) order.push(step, out);
  assert.equal(order.ended, true);
});

test('a failure may leave items open: they count as incomplete, with what was said', () => {
  const order = run([start, textStart, textDelta('par'), failed]);
  const whole = order.fold.whole({ status: 'completed', stop: 'end' });
  assert.equal(whole.outcome.status, 'failed');
  assert.deepEqual(whole.items, [
    { item: { kind: 'text', role: 'assistant', text: 'par', citations: [] }, status: 'incomplete' },
  ]);
});

test('a failure may come before anything else', () => {
  assert.equal(run([failed]).ended, true);
});

test('an error of our own is not blamed on the upstream', () => {
  const broken = {
    get type(): never {
      throw new TypeError('ours');
    },
  };
  assert.throws(() => new Order().push({ events: [broken] }, []), TypeError);
});

test('a delta fits the kinds that it was made for, and no other', () => {
  const heads: readonly ItemHead[] = [
    { kind: 'text', role: 'assistant' },
    { kind: 'refusal' },
    { kind: 'reasoning' },
    { kind: 'toolCall', toolType: 'function', callId: 'c', tool: { name: 'f' } },
    { kind: 'media' },
    { kind: 'native', dialect: 'chat' },
  ];
  const deltas: readonly ItemDelta[] = [
    { kind: 'text', text: 'x' },
    { kind: 'citation', citation: { kind: 'url', url: 'http://x' } },
    { kind: 'raw', text: 'x' },
    { kind: 'summary', part: 0, text: 'x' },
    { kind: 'input', text: 'x' },
  ];
  const fitting = heads.flatMap((head) =>
    deltas.flatMap((delta) => {
      const order = new Order();
      const start: CanonicalEvent[] = [{ type: 'response.start' }, { type: 'item.start', index: 0, head }];
      order.push({ events: start }, []);
      try {
        order.push({ events: [{ type: 'item.delta', index: 0, delta }] }, []);
      } catch (error) {
        assert.ok(error instanceof GatewayError);
        assert.equal(error.details.reason, 'illegal_lifecycle');
        return [];
      }
      return [`${head.kind} ${delta.kind}`];
    }),
  );
  assert.deepEqual(fitting, [
    'text text',
    'text citation',
    'refusal text',
    'reasoning raw',
    'reasoning summary',
    'toolCall input',
  ]);
});

test('a step passes as it is, and an answer that was cancelled may leave items open', () => {
  const order = new Order();
  const out: Step[] = [];
  const error = upstreamFault('error_event', 'no');
  const step: Step = {
    events: [
      { type: 'response.start' },
      { type: 'item.start', index: 0, head: { kind: 'refusal' } },
      { type: 'response.end', outcome: { status: 'cancelled', error } },
    ],
  };
  order.push(step, out);
  assert.deepEqual(
    out.map(({ events }) => events),
    [step.events],
  );
  assert.equal(out[0]?.events, step.events);
});

test('a step that begins no item is the same object; one that does tells where the texts of its items are, as they grow', () => {
  const order = new Order();
  const out: Step[] = [];
  const begin: Step = {
    events: [{ type: 'response.start' }, { type: 'item.start', index: 0, head: { kind: 'refusal' } }],
  };
  const piece = (text: string): Step => ({ events: [{ type: 'item.delta', index: 0, delta: { kind: 'text', text } }] });
  const pieces = [piece('a'), piece('b')];
  for (const step of [begin, ...pieces]) order.push(step, out);
  assert.ok(pieces.every((step, at) => out[at + 1] === step));
  assert.equal(out[0]?.fold?.texts(0)?.text, 'ab');
  assert.equal(out[0]?.fold?.texts(1), undefined);
  order.push({ events: [{ type: 'item.end', index: 0, item: { kind: 'refusal', text: 'abc' }, status: 'completed' }] }, out);
  assert.equal(out[0]?.fold?.texts(0)?.text, 'abc');
});
