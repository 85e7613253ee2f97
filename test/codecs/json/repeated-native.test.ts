/** Events that repeat the one before: their JSON on demand, and what was spliced into one spliced into all. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Native } from '../../../src/codecs/canonical/event.ts';
import { parseJson } from '../../../src/codecs/canonical/json.ts';
import { JsonRepeats } from '../../../src/codecs/json/repeats.ts';
import { editJson } from '../../../src/codecs/json/edit.ts';
import { RepeatedEdits, RepeatedNative } from '../../../src/codecs/json/repeated-native.ts';

const textOf = (word: string, end = ''): string => `{"id":"theirs",${end}"delta":${JSON.stringify(word)}}`;
const EDITS = [{ path: ['id'], value: '"ours"' }];

/** The events of one stream, as a decoder of its dialect would say them. */
function natives(texts: readonly string[], name = 'delta'): Native[] {
  const repeats = new JsonRepeats([['delta']]);
  return texts.map((text): Native => {
    const known = repeats.match(text);
    if (known !== undefined) return new RepeatedNative('chat', name, text, known);
    const json = parseJson(text);
    const learnt = repeats.learn(text, json);
    return { dialect: 'chat', name, text, json, ...(learnt === undefined ? {} : { repeat: learnt }) };
  });
}

test('an event that was recognised is what a parser says of its text', () => {
  const [, second] = natives([textOf('a'), textOf('b\n"')]);
  assert.ok(second instanceof RepeatedNative);
  assert.deepEqual([second.dialect, second.name, second.text], ['chat', 'delta', textOf('b\n"')]);
  assert.deepEqual(second.json, parseJson(second.text));
  assert.equal(second.json, second.json, 'made once');
});

test('what was spliced into one event is spliced into those that repeat it, until it is forgotten', () => {
  for (const [edits, end, oneLine] of [
    [EDITS, '', true],
    [[], '', true],
    [EDITS, '\n', false],
    [[], '\r', false],
  ] as const) {
    const [first, second] = natives([textOf('a', end), textOf('b', end)]);
    assert.ok(first !== undefined && second !== undefined);
    const spliced = new RepeatedEdits();
    assert.equal(spliced.apply(second, 'x'), undefined, 'nothing was noted');
    spliced.note(first, edits);
    assert.deepEqual(spliced.apply(second, 'x'), { event: 'x', data: editJson(second.text, edits), oneLine });
    assert.deepEqual(spliced.apply(first, undefined)?.data, editJson(first.text, edits));
    spliced.forget();
    assert.equal(spliced.apply(second, 'x'), undefined);
  }
});

test('an event of another shape, of another name, or of none is not taken for one', () => {
  const [first, second] = natives([textOf('a'), textOf('b')]);
  const [other] = natives([textOf('a')]);
  const [named] = natives([textOf('a')], 'other');
  assert.ok(first !== undefined && second !== undefined && other !== undefined && named !== undefined);
  const spliced = new RepeatedEdits();
  spliced.note(first, EDITS);
  assert.equal(spliced.apply(other, 'x'), undefined);
  assert.equal(spliced.apply({ ...named, ...(first.repeat === undefined ? {} : { repeat: first.repeat }) }, 'x'), undefined);
  const { repeat: _repeat, ...alone } = first;
  assert.equal(spliced.apply(alone, 'x'), undefined);
});

test('what cannot be spliced into all is noted for none, and takes the place of what was', () => {
  const [first, second] = natives([textOf('a'), textOf('b')]);
  assert.ok(first !== undefined && second !== undefined);
  const { repeat: _repeat, ...alone } = first;
  const spliced = new RepeatedEdits();
  for (const unfit of [() => spliced.note(first, [{ path: ['delta'], value: '0' }]), () => spliced.note(alone, EDITS)]) {
    spliced.note(first, EDITS);
    unfit();
    assert.equal(spliced.apply(second, 'x'), undefined);
  }
});
