import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { changesOf, editJson, editKnown, editValue, type JsonEdit } from '../../../src/codecs/json/edit.ts';
import {
  compactJson,
  type Ends,
  isEscaped,
  type JsonPath,
  jsonSlicer,
  skipString,
  skipValue,
  sliceElements,
  sliceJson,
  stringEnd,
} from '../../../src/codecs/json/text.ts';

const edit = (path: readonly (string | number)[], value: string | undefined): JsonEdit => ({ path, value });

test('a replaced member leaves number spelling, key order, white space and duplicates alone', () => {
  const text = '{ "10": 1.0e2, "id" :  "up" ,"2":{"id":"inner"}, "b":[1,2.50] }';
  assert.equal(editJson(text, [edit(['id'], '"mine"')]), '{ "10": 1.0e2, "id" :  "mine" ,"2":{"id":"inner"}, "b":[1,2.50] }');
});

test('nested paths and array elements are reached', () => {
  const text = '{"choices":[{"delta":{"x":"a\\"]}"}},{"delta":{}}]}';
  assert.equal(editJson(text, [edit(['choices', 0, 'delta', 'x'], '1')]), '{"choices":[{"delta":{"x":1}},{"delta":{}}]}');
});

test('removal takes one comma with it, wherever the member stands', () => {
  assert.equal(editJson('{"a":1,"b":2,"c":3}', [edit(['a'], undefined)]), '{"b":2,"c":3}');
  assert.equal(editJson('{"a":1,"b":2,"c":3}', [edit(['b'], undefined)]), '{"a":1,"c":3}');
  assert.equal(editJson('{"a":1, "b":2 , "c":3}', [edit(['b'], undefined), edit(['c'], undefined)]), '{"a":1}');
  assert.equal(editJson('{"a":1}', [edit(['a'], undefined)]), '{}');
  assert.equal(editJson('[1,2,3]', [edit([0], undefined), edit([2], undefined)]), '[2]');
});

test('a missing member is added to its object, and only there', () => {
  assert.equal(editJson('{"a":{}}', [edit(['a', 'b'], '1'), edit(['a', 'c'], '2')]), '{"a":{"b":1,"c":2}}');
  assert.equal(editJson('{"a":1}', [edit(['x', 'y'], '1')]), '{"a":1}');
  assert.equal(editJson('{"a":1}', [edit(['a'], undefined), edit(['b'], '2')]), '{"b":2}');
});

test('an edit beneath a parent of another kind is ignored, and no change is noted', () => {
  for (const text of ['{"a":5,"b":1}', '{"a":"{\\"x\\":0}","b":1}', '{"a":null,"b":1}', '{"a":true , "b":1}']) {
    for (const step of ['x', 0]) assert.deepEqual(changesOf(text, [edit(['a', step], '1'), edit(['a', 'x', 0], '2')]), []);
    assert.equal(
      editJson(text, [edit(['a', 'x'], '1'), edit(['b'], '3')]),
      text.replace(/1\}$/, '3}'),
      'what follows is reached',
    );
  }
  assert.deepEqual(changesOf('{"a":[1,{}]}', [edit(['a', 'x'], '1')]), [], 'an array has no names');
  assert.deepEqual(changesOf('{"a":{"x":1}}', [edit(['a', 0], '1')]), [], 'and an object no places');
  assert.deepEqual(changesOf('5', [edit(['a'], '1')]), []);
});

test('escaped keys and __proto__ are keys like any other', () => {
  assert.equal(
    editJson('{"\\u0061":1,"__proto__":2}', [edit(['a'], '3'), edit(['__proto__'], '4')]),
    '{"\\u0061":3,"__proto__":4}',
  );
});

test('slices give the exact text', () => {
  const text = '{"a":[ {"x":1.50} , "s" ],"a2":null}';
  assert.equal(sliceJson(text, ['a', 0, 'x']), '1.50');
  assert.equal(sliceJson(text, ['a', 5]), undefined);
  const scalars = '{"a":true,"b":"}x,1]","c":12}';
  for (const name of ['a', 'b', 'c']) {
    for (const step of ['x', 0]) {
      assert.equal(sliceJson(scalars, [name, step]), undefined, `${name} has no ${step}`);
      assert.equal(jsonSlicer(scalars)([name, step]), undefined);
    }
  }
  assert.deepEqual(sliceElements(text, ['a']), ['{"x":1.50}', '"s"']);
});

test('where long values end is remembered once they were looked through, and short ones are not', () => {
  const long = `"${'x'.repeat(16 * 1024)}"`;
  const text = `{"a":[1,"b",${long}],"c":{"d":"e"}}`;
  const ends: Ends = new Map();
  assert.equal(skipValue(text, 0, ends), text.length);
  const list = text.indexOf('[');
  const found = [list + text.slice(list).indexOf(long), list, 0].map((start) => [start, skipValue(text, start)]);
  assert.deepEqual([...ends], found, 'from the inside out');
});

/** A value in some spelling, and where its children stand in it. */
interface Spelled {
  readonly text: string;
  readonly kind: 'object' | 'array' | 'scalar';
  readonly children: readonly { readonly key: string | number; readonly start: number; readonly value: Spelled }[];
}

const space = fc.string({ unit: fc.constantFrom(' ', '\t', '\r', '\n'), maxLength: 2 });
const escaped = (key: string): string =>
  `"${[...key].map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`).join('')}"`;
const keys = fc
  .tuple(fc.constantFrom('a', 'b', '0', '', 'c"}]', '__proto__'), fc.boolean())
  .map(([key, isEscaped]) => ({ key, text: isEscaped ? escaped(key) : JSON.stringify(key) }));

const { spelled } = fc.letrec<{ spelled: Spelled }>((tie) => ({
  spelled: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc
      .constantFrom('1.50', '-0', '1e2', 'true', 'null', '"s"', '"\\\\"', '"{[\\"]}"', '""')
      .map((text): Spelled => ({ text, kind: 'scalar', children: [] })),
    fc
      .tuple(fc.boolean(), space, fc.array(fc.tuple(keys, tie('spelled'), space, space, space, space), { maxLength: 4 }))
      .map(([isObject, inner, members]): Spelled => {
        let text = isObject ? '{' : '[';
        text += inner;
        const children: Spelled['children'][number][] = [];
        for (const [index, [key, value, before, colon, after, end]] of members.entries()) {
          if (index > 0) text += `,${before}`;
          if (isObject) text += `${key.text}${colon}:${after}`;
          children.push({ key: isObject ? key.key : index, start: text.length, value });
          text += value.text + end;
        }
        return { text: text + (isObject ? '}' : ']'), kind: isObject ? 'object' : 'array', children };
      }),
  ),
}));

/** Every path that leads somewhere; of duplicate keys to the last. */
function placesIn(value: Spelled, path: JsonPath, start: number): { path: JsonPath; start: number; value: Spelled }[] {
  const last = new Map(value.children.map((child) => [child.key, child]));
  const below = [...last.values()].flatMap((child) => placesIn(child.value, [...path, child.key], start + child.start));
  return [{ path, start, value }, ...below];
}

/** Paths that lead nowhere: a number into an object, a name into an array, a child that is not there. */
function astray(path: JsonPath): JsonPath[] {
  const turns = path.map((step, index) => [...path.slice(0, index), typeof step === 'number' ? String(step) : 0]);
  return [...turns, [...path, 'none'], [...path, 99]];
}

/** A key on the way stands twice, so that an edit has two places. */
function isDouble(at: Spelled, [step, ...rest]: JsonPath): boolean {
  const found = at.children.filter(({ key }) => key === step);
  return found.length > 1 || found.some(({ value }) => isDouble(value, rest));
}

test('property: a value that is edited is what its edited text parses to', () => {
  fc.assert(
    fc.property(spelled, fc.array(fc.tuple(fc.nat(), fc.nat(6), fc.nat(4)), { maxLength: 4 }), (whole, choices) => {
      const places = placesIn(whole, [], 0).filter(({ path }) => !isDouble(whole, path));
      const paths = places.flatMap(({ path }) => [path, ...astray(path)]);
      const values = ['1', '{"x":[2]}', 'null', '"s"', undefined];
      const edits = choices.map(([at, , which]) => edit(paths[at % paths.length] ?? [], values[which]));
      // An object that is to lose itself becomes null, as its text does.
      assert.deepEqual(editValue(JSON.parse(whole.text), edits), JSON.parse(editJson(whole.text, edits)));
      const ends = new Map(places.map(({ start, value: { text } }) => [start, start + text.length]));
      const known = editKnown(whole.text, edits, ends);
      assert.equal(known.text, editJson(whole.text, edits), 'what is known to end there is skipped');
      for (const [start, end] of known.ends) assert.equal(skipValue(known.text, start), end, 'and ends where it ends now');
    }),
  );
});

test('property: every way to read a place gives its exact text, in any spelling, and an edit of it changes no other byte', () => {
  fc.assert(
    fc.property(spelled, space, space, (whole, before, after) => {
      const text = before + whole.text + after;
      const slice = jsonSlicer(text);
      for (const { path, start, value } of placesIn(whole, [], before.length)) {
        assert.equal(sliceJson(text, path), value.text);
        assert.equal(slice(path), value.text);
        const elements = value.kind === 'array' ? value.children.map((child) => child.value.text) : undefined;
        assert.deepEqual(sliceElements(text, path), elements);
        for (const nowhere of astray(path)) {
          assert.equal(sliceJson(text, nowhere), undefined);
          assert.equal(slice(nowhere), undefined);
        }
        if (isDouble(whole, path)) continue;
        const edited = `${text.slice(0, start)}"new"${text.slice(start + value.text.length)}`;
        assert.equal(editJson(text, [edit(path, '"new"')]), edited);
      }
    }),
    { numRuns: 300 },
  );
});

test('property: an edited text parses to the edited value, and other members keep their text', () => {
  const values = fc.jsonValue({ maxDepth: 3 });
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.string(), values), { maxLength: 6 }),
      fc.array(fc.tuple(fc.nat(7), fc.option(values)), { maxLength: 4 }),
      fc.constantFrom(undefined, 1, '\t'),
      (members, changes, indent) => {
        const object = Object.fromEntries(members);
        const keys = [...Object.keys(object), 'added'];
        const expected = new Map<string, unknown>(Object.entries(object));
        const edits = new Map<string, JsonEdit>();
        for (const [pick, value] of changes) {
          const key = keys[pick % keys.length] ?? 'added';
          edits.set(key, edit([key], value === null ? undefined : JSON.stringify(value)));
        }
        for (const [key, { value }] of edits) {
          if (value === undefined) expected.delete(key);
          else expected.set(key, JSON.parse(value));
        }
        const edited = editJson(JSON.stringify(object, null, indent), [...edits.values()]);
        assert.deepEqual(
          JSON.parse(edited),
          Object.fromEntries([...expected].map(([key, value]) => [key, JSON.parse(JSON.stringify(value))])),
        );
      },
    ),
    { numRuns: 500 },
  );
});

test('property: an array keeps what is not removed', () => {
  fc.assert(
    fc.property(
      fc.array(fc.jsonValue({ maxDepth: 2 }), { maxLength: 8 }),
      fc.uniqueArray(fc.nat(9)),
      fc.constantFrom(undefined, 2),
      (list, removed, indent) => {
        const text = JSON.stringify(list, null, indent);
        const edited = editJson(
          text,
          removed.filter((index) => index < list.length).map((index) => edit([index], undefined)),
        );
        assert.deepEqual(JSON.parse(edited), JSON.parse(JSON.stringify(list.filter((_, index) => !removed.includes(index)))));
      },
    ),
    { numRuns: 300 },
  );
});

test('compacted text has no white space between tokens, and says the same in the same spelling', () => {
  assert.equal(compactJson('{ "a b" : [ 1.0 , "x\\" y" ,\n\ttrue ] }'), '{"a b":[1.0,"x\\" y",true]}');
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const text = JSON.stringify(value, null, 3);
      assert.equal(compactJson(text), JSON.stringify(JSON.parse(text)));
    }),
  );
});

test('a string of many megabytes is compacted as any other', () => {
  const long = JSON.stringify(`${'a'.repeat(20_000_000)}${'\\"'.repeat(1_000_000)}`);
  assert.equal(compactJson(`{ "x" : ${long} }`), `{"x":${long}}`);
});

test('whether a quote is escaped is told however many backslashes stand before it', () => {
  for (const count of [0, 1, 2, 1023, 1024, 1025, 2047, 2048, 2049, 5000, 5001, 100_000])
    for (const from of [0, 1, 1024].filter((one) => one <= count))
      for (const before of ['', 'x', '"'])
        assert.equal(
          isEscaped(`${before}${'\\'.repeat(count)}"`, before.length + count, before.length + from),
          (count - from) % 2 === 1,
        );
});

test('the end of a string is found however often the look at it pauses', () => {
  const piece = fc.constantFrom('\\"', '\\\\', 'x', 'é', 'x'.repeat(20));
  const string = fc.array(piece, { maxLength: 60 }).map((pieces) => `"${pieces.join('')}"`);
  fc.assert(
    fc.property(string, fc.boolean(), fc.integer({ min: 1, max: 40 }), (whole, isCut, step) => {
      const text = isCut ? whole.slice(0, -1) : `${whole},"next"`;
      let end = stringEnd(text, 1, step);
      for (let looks = 0; end < 0; looks++) {
        assert.ok(looks <= text.length, 'it goes on');
        end = stringEnd(text, ~end, ~end + step);
      }
      assert.equal(end, skipString(text, 0));
      assert.equal(end, isCut ? text.length : whole.length);
    }),
  );
});
