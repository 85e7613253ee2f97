/**
 * The history's books: whatever is saved, found and forgotten, bytes are those of what is held, bounds hold, children stay whole.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { atOnce } from '../../../src/codecs/steps.ts';
import { itemTexts, ownBytes, type PastTurn, pastTurn, TURN_BYTES, withHistory } from '../../../src/http/history/past-turn.ts';
import { HISTORY_TTL_MS, type KeptTurn, ResponseHistory } from '../../../src/http/history/response-history.ts';
import { createFakeClock } from '../../support/fake-clock.ts';

const LIMITS = { entryBytes: 8_000, keyBytes: 10_000, totalBytes: 14_000 };
const OWNERS = ['a', 'b', 'c'];

const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('save' as const),
      owner: fc.constantFrom(...OWNERS),
      parent: fc.nat(),
      size: fc.nat(1_500),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('find' as const), at: fc.nat() }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('keep' as const),
      owner: fc.constantFrom(...OWNERS),
      parent: fc.nat(),
      size: fc.nat(1_500),
      isSaved: fc.boolean(),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('release' as const), at: fc.nat() }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('wait' as const), ms: fc.integer({ min: 1, max: HISTORY_TTL_MS }) }) },
);

/** Bytes of every turn that a findable id needs, each once. */
function neededBytes(turns: Iterable<PastTurn>): number {
  const needed = new Set<PastTurn>();
  for (const tip of turns) for (let turn: PastTurn | undefined = tip; turn !== undefined; turn = turn.parent) needed.add(turn);
  return [...needed].reduce((sum, turn) => sum + ownBytes(turn), 0);
}

function textOf(turn: PastTurn): string {
  return atOnce(withHistory({ text: '{}' }, itemTexts([]), turn));
}

test('F37: bytes are exact, bounds hold, what is found is whole and its owner’s (history bounds)', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
      const clock = createFakeClock();
      const history = new ResponseHistory(clock, () => LIMITS);
      const kept = new Set<{ readonly owner: string; readonly turn: PastTurn; readonly hold: KeptTurn }>();
      const saved: { id: string; owner: string; turn: PastTurn; at: number; text: string }[] = [];
      for (const [index, action] of steps.entries()) {
        if (action.do === 'wait') clock.advance(action.ms);
        if (action.do === 'find' && saved.length > 0) {
          const entry = saved[action.at % saved.length];
          assert.ok(entry !== undefined);
          const found = history.find(entry.id, entry.owner);
          if (found !== undefined) assert.equal(textOf(found), entry.text);
          if (clock.monotonic() - entry.at >= HISTORY_TTL_MS) assert.equal(found, undefined);
          for (const other of OWNERS) if (other !== entry.owner) assert.equal(history.find(entry.id, other), undefined);
        }
        if (action.do === 'keep') {
          const own = saved.filter(({ owner, id }) => owner === action.owner && history.find(id, owner) !== undefined);
          const parent = own[action.parent % Math.max(1, own.length)]?.turn;
          const fresh = pastTurn({ parent, input: itemTexts([`"${'x'.repeat(action.size)}"`]), output: itemTexts([]) });
          const turn = action.isSaved ? (parent ?? fresh) : fresh;
          let isDropped = false;
          const hold = history.keep(action.owner, turn, 300, () => {
            isDropped = true;
            for (const one of kept) if (one.hold === hold) kept.delete(one);
          });
          assert.equal(hold !== undefined, turn.totalBytes + 300 <= LIMITS.entryBytes);
          assert.equal(isDropped, false);
          if (hold !== undefined) kept.add({ owner: action.owner, turn, hold });
        }
        if (action.do === 'release') {
          const one = [...kept][action.at % Math.max(1, kept.size)];
          one?.hold.touch();
          one?.hold.release();
          one?.hold.release();
          if (one !== undefined) kept.delete(one);
        }
        if (action.do === 'save') {
          const own = saved.filter(({ owner, id }) => owner === action.owner && history.find(id, owner) !== undefined);
          const parent = action.parent % 3 === 0 ? undefined : own[action.parent % Math.max(1, own.length)]?.turn;
          const turn = pastTurn({
            parent,
            input: itemTexts([`"${'x'.repeat(action.size)}"`]),
            output: itemTexts([`{"id":"m${index}"}`]),
            itemIds: [`m${index}`],
          });
          const id = `r${index}`;
          const isSaved = history.save(id, action.owner, turn);
          assert.equal(isSaved, turn.totalBytes <= LIMITS.entryBytes);
          if (isSaved) saved.push({ id, owner: action.owner, turn, at: clock.monotonic(), text: textOf(turn) });
        }
        const alive = saved.filter(({ id, owner }) => history.find(id, owner) !== undefined);
        for (const entry of saved) {
          const itemId = entry.id.replace('r', 'm');
          const found = OWNERS.filter((owner) => history.turnsOf([itemId], owner).get(itemId) === entry.turn);
          assert.deepEqual(found, alive.includes(entry) ? [entry.owner] : []);
        }
        assert.equal(alive.length, history.size);
        const held = [...alive, ...kept];
        assert.equal(history.bytes, neededBytes(held.map(({ turn }) => turn)) + kept.size * 300);
        assert.ok(history.bytes <= LIMITS.totalBytes);
        for (const owner of OWNERS) {
          const beside = [...kept].filter((one) => one.owner === owner).length * 300;
          const own = held.filter((entry) => entry.owner === owner).map(({ turn }) => turn);
          assert.ok(neededBytes(own) + beside <= LIMITS.keyBytes);
        }
      }
      for (const { hold } of kept) hold.release();
      clock.advance(HISTORY_TTL_MS);
      assert.equal(history.size, 0);
      assert.equal(history.bytes, 0);
      assert.equal(clock.pending, 0);
    }),
    { numRuns: 150 },
  );
});

test('F34, F37: exactly 30 minutes from creation, and use does not make it longer', () => {
  const clock = createFakeClock();
  const history = new ResponseHistory(clock, () => LIMITS);
  const turn = pastTurn({ parent: undefined, input: itemTexts(['1']), output: itemTexts(['2']) });
  history.save('r', 'a', turn);
  clock.advance(HISTORY_TTL_MS - 1);
  assert.equal(history.find('r', 'a'), turn);
  clock.advance(1);
  assert.equal(history.find('r', 'a'), undefined);
});

test('a parent that is over leaves its children whole', () => {
  const clock = createFakeClock();
  const history = new ResponseHistory(clock, () => LIMITS);
  const first = pastTurn({ parent: undefined, input: itemTexts(['1']), output: itemTexts(['2']) });
  history.save('first', 'a', first);
  clock.advance(HISTORY_TTL_MS - 1);
  history.save('second', 'a', pastTurn({ parent: first, input: itemTexts(['3']), output: itemTexts(['4']) }));
  clock.advance(1);
  assert.equal(history.find('first', 'a'), undefined);
  const second = history.find('second', 'a');
  assert.ok(second !== undefined);
  assert.equal(textOf(second), '{"input":[1,2,3,4]}');
});

test('N turns cost what was said once, not N times (R24, linear memory)', () => {
  const history = new ResponseHistory(createFakeClock(), () => ({ entryBytes: 1e9, keyBytes: 1e9, totalBytes: 1e9 }));
  let parent: PastTurn | undefined;
  for (let index = 0; index < 100; index++) {
    parent = pastTurn({
      parent,
      input: itemTexts([`"${'i'.repeat(98)}"`]),
      output: itemTexts([`"${'o'.repeat(98)}"`]),
    });
    history.save(`r${index}`, 'a', parent);
  }
  assert.equal(history.bytes, 100 * (200 + TURN_BYTES));
});

test('F37: room is made by the branch that was not used for longest, and only by it', () => {
  const history = new ResponseHistory(createFakeClock(), () => ({ entryBytes: 4_000, keyBytes: 9_000, totalBytes: 9_000 }));
  const turnOf = (size: number, parent?: PastTurn) =>
    pastTurn({ parent, input: itemTexts([`"${'x'.repeat(size)}"`]), output: itemTexts([]) });
  const root = turnOf(1_000);
  history.save('root', 'a', root);
  history.save('left', 'a', turnOf(1_000, root));
  history.save('right', 'a', turnOf(1_000, root));
  history.save('other', 'a', turnOf(1_000));
  assert.ok(history.find('left', 'a') !== undefined);
  history.save('newest', 'a', turnOf(3_000));
  assert.deepEqual(
    ['root', 'left', 'right', 'other', 'newest'].filter((id) => history.find(id, 'a') !== undefined),
    ['root', 'left', 'other', 'newest'],
  );
});

test('a conversation of very many turns is kept again after it was dropped while its next turn was on its way', () => {
  const bounds = { entryBytes: 1e8, keyBytes: 1e8, totalBytes: 1e8 };
  const clock = createFakeClock();
  const history = new ResponseHistory(clock, () => bounds);
  let last: PastTurn | undefined;
  for (let turn = 0; turn < 60_000; turn++)
    last = pastTurn({ parent: last, input: itemTexts([]), output: itemTexts([]), itemIds: [`m${turn}`] });
  assert.ok(last !== undefined);
  assert.equal(history.save('last', 'a', last), true);
  assert.equal(history.bytes, last.totalBytes);
  const hold = history.keep('a', pastTurn({ parent: last, input: itemTexts([]), output: itemTexts([]) }), 0, () => undefined);
  clock.advance(HISTORY_TTL_MS);
  hold?.release();
  assert.equal(history.bytes, 0);
});
