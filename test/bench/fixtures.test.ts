import assert from 'node:assert/strict';
import { test } from 'node:test';
import { textFrames, tokens, wholeBody } from '../../bench/fixtures.ts';
import { convert, decode, DIALECTS, encode, pairOf, sseEventsOf } from '../../bench/harness/pipeline.ts';
import { historyBody, shapes, toolDeltas } from '../../bench/shapes.ts';
import { fold } from '../../src/codecs/canonical/fold.ts';

const WORDS = tokens(96);

function textOf(steps: ReturnType<typeof decode>): string {
  const whole = fold(steps.flatMap(({ events }) => events));
  assert.equal(whole.outcome.status, 'completed');
  return whole.items.map(({ item }) => (item.kind === 'text' ? item.text : '')).join('');
}

test('the same seed gives the same words', () => {
  assert.deepEqual(tokens(96), WORDS);
  assert.notDeepEqual(tokens(96, 1), WORDS);
});

test('a stream and a whole body of each dialect say the words, and end well', () => {
  for (const dialect of DIALECTS) {
    const pair = pairOf(dialect, dialect);
    const bytes = Buffer.from(textFrames(dialect, WORDS).join(''));
    assert.equal(textOf(decode(pair, sseEventsOf([bytes]))), WORDS.join(''), dialect);
    assert.equal(textOf([pair.upstream.decodeResponse(wholeBody(dialect, WORDS), pair.decoding)]), WORDS.join(''), dialect);
  }
});

test('every shape holds the events that it claims, and all shapes but heartbeats convert', () => {
  for (const dialect of DIALECTS) {
    for (const { name, reads, events } of shapes(dialect)) {
      assert.equal(sseEventsOf(reads).length, events, `${dialect}: ${name}`);
      if (events > 0) for (const client of DIALECTS) assert.ok(convert(pairOf(client, dialect), reads).length > 0, name);
    }
  }
});

test('cuts change no byte that a client reads', () => {
  for (const dialect of DIALECTS) {
    const [full, ...others] = shapes(dialect);
    assert.ok(full !== undefined);
    for (const client of DIALECTS) {
      const whole = convert(pairOf(client, dialect), full.reads).join('');
      for (const { name, reads } of others.filter((shape) => ['paced', 'one-byte chunks'].includes(shape.name))) {
        assert.equal(convert(pairOf(client, dialect), reads).join(''), whole, `${dialect} to ${client}: ${name}`);
      }
    }
  }
});

test('tool deltas are one call with all of its arguments', () => {
  const pair = pairOf('messages', 'chat');
  const steps = decode(pair, sseEventsOf(toolDeltas(1000).reads));
  const [only] = fold(steps.flatMap(({ events }) => events)).items;
  assert.equal(only?.item.kind, 'toolCall');
  assert.equal(typeof (only?.item.kind === 'toolCall' && JSON.parse(only.item.input).text), 'string');
  assert.ok(encode(pair, steps).length >= 1000);
});

test('a history has its turns and its size', () => {
  const body: { messages: unknown[] } = JSON.parse(historyBody(200, 1_000_000));
  assert.equal(body.messages.length, 201);
  const size = Buffer.byteLength(historyBody(200, 1_000_000));
  assert.ok(size > 800_000 && size < 2_000_000, String(size));
});
