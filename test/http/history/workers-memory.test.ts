/** A history over several workers: found whichever one answers, kept once. The primary is a function that passes messages on. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import type { JsonObject } from '../../../src/codecs/canonical/json.ts';
import type { Memory } from '../../../src/http/history/memory.ts';
import { allItems, itemTexts, type PastTurn, pastTurn, storedItemsOf } from '../../../src/http/history/past-turn.ts';
import { ResponseHistory } from '../../../src/http/history/response-history.ts';
import { routeMessage, workersMemory } from '../../../src/http/history/workers-memory.ts';
import { createFakeClock } from '../../support/fake-clock.ts';

const LIMITS = { entryBytes: 1e9, keyBytes: 1e9, totalBytes: 1e9 };

/** Workers 1 to `count`; messages cross as they do between processes: as JSON, later. */
function workers(count: number) {
  const clock = createFakeClock();
  const listeners = new Map<number, (message: unknown) => void>();
  const dead = new Set<number>();
  /** What the primary passed on. */
  const sent: JsonObject[] = [];
  const sendTo = (to: number, message: JsonObject): boolean => {
    if (dead.has(to) || !listeners.has(to)) return false;
    sent.push(message);
    setImmediate(() => listeners.get(to)?.(JSON.parse(JSON.stringify(message))));
    return true;
  };
  const all = Array.from({ length: count }, (_, index) => {
    const worker = index + 1;
    const history = new ResponseHistory(clock, () => LIMITS);
    const memory = workersMemory({
      history,
      clock,
      worker,
      mint: (prefix) => prefix + randomBytes(16).toString('hex'),
      link: {
        send: (message) =>
          setImmediate(() =>
            routeMessage(JSON.parse(JSON.stringify(message)), worker, { workers: () => [...listeners.keys()], sendTo }),
          ),
        onMessage: (listener) => void listeners.set(worker, listener),
      },
    });
    return { memory, history };
  });
  return { all, clock, dead, sent };
}

function textOf(turn: PastTurn | undefined): string | undefined {
  return turn === undefined ? undefined : allItems(turn).bytes.toString();
}

async function saveTurn(memory: Memory, parent: { id: string; turn: PastTurn } | undefined, at: number): Promise<string> {
  const id = memory.responseId(parent?.id);
  const turn = pastTurn({
    parent: parent?.turn,
    input: itemTexts([`"i${at}"`]),
    output: itemTexts([`"o${at}"`]),
    storedItems: new Map([[`rs_${at}`, `channel_${at}`]]),
  });
  await memory.save({ id, owner: 'me', turn, ...(parent === undefined ? {} : { previousId: parent.id }) });
  return id;
}

test('every turn is found whichever worker answers, and each is kept once', async () => {
  const { all, clock } = workers(3);
  let id: string | undefined;
  for (let at = 0; at < 30; at++) {
    const { memory } = all[at % 3] ?? assert.fail();
    const parent: PastTurn | undefined = id === undefined ? undefined : await memory.find(id, 'me');
    assert.ok(at === 0 || parent !== undefined, `turn ${at}`);
    id = await saveTurn(memory, id === undefined || parent === undefined ? undefined : { id, turn: parent }, at);
    assert.match(id, /^resp_mizu_[0-9a-f]{32}$/);
  }
  const expected = Array.from({ length: 30 }, (_, at) => `"i${at}","o${at}"`).join(',');
  for (const { memory } of all) {
    const found = await memory.find(id ?? '', 'me');
    assert.equal(textOf(found), expected);
    assert.equal(found && storedItemsOf(found).get('rs_7'), 'channel_7');
    assert.equal(await memory.find(id ?? '', 'somebody else'), undefined);
  }
  assert.deepEqual(
    all.map(({ history }) => history.size),
    [30, 0, 0],
  );
  assert.equal(clock.pending, 1, 'what was answered waits for nothing more; the history itself for its end');
});

test('what only a connection of another worker held goes along', async () => {
  const { all } = workers(2);
  const [one, two] = all;
  assert.ok(one !== undefined && two !== undefined);
  const id = await saveTurn(one.memory, undefined, 0);
  const found = await two.memory.find(id, 'me');
  const unsaved = pastTurn({ parent: found, input: itemTexts(['"i1"']), output: itemTexts(['"o1"']) });
  const unsavedId = two.memory.responseId(id);
  const last = await saveTurn(two.memory, { id: unsavedId, turn: unsaved }, 2);
  assert.equal(textOf(await one.memory.find(last, 'me')), '"i0","o0","i1","o1","i2","o2"');
});

test('a worker that is gone or silent: its ids are unknown, and nobody waits for ever', async () => {
  const { all, clock, dead } = workers(2);
  const [one, two] = all;
  assert.ok(one !== undefined && two !== undefined);
  const id = await saveTurn(one.memory, undefined, 0);
  dead.add(1);
  assert.equal(await two.memory.find(id, 'me'), undefined);
  dead.delete(1);
  const silent = two.memory.find(`resp_mizu_0001${'0'.repeat(28)}`, 'me');
  two.memory.close();
  assert.equal(await silent, undefined);
  const late = one.memory.find(`resp_mizu_0002${'0'.repeat(28)}`, 'me');
  clock.advance(2_000);
  assert.equal(await late, undefined);
  assert.equal(await one.memory.find('resp_somebody_elses', 'me'), undefined);
});

test('items that are named by their ids are found whichever worker keeps them', async () => {
  const { all, clock, dead } = workers(3);
  for (const [index, { memory }] of all.entries()) {
    const turn = pastTurn({
      parent: undefined,
      input: itemTexts(['"question"']),
      output: itemTexts([`{"id":"msg_${index}"}`, `{"id":"fc_${index}"}`]),
      itemIds: [`msg_${index}`, `fc_${index}`],
    });
    await memory.save({ id: memory.responseId(undefined), owner: 'me', turn });
  }
  const [one] = all;
  assert.ok(one !== undefined);
  const named = async (itemIds: readonly string[], { owner = 'me', maxBytes = 1e6 } = {}) => {
    const turns = await one.memory.turnsOf({ itemIds, owner, maxBytes });
    return Object.fromEntries([...turns].map(([id, turn]) => [id, turn.output.bytes.toString()]));
  };
  const own = '{"id":"msg_0"},{"id":"fc_0"}';
  const second = '{"id":"msg_1"},{"id":"fc_1"}';
  const third = '{"id":"msg_2"},{"id":"fc_2"}';
  assert.deepEqual(await named(['msg_0']), { msg_0: own });
  const found = await named(['fc_2', 'msg_0', 'msg_1', 'nobody']);
  assert.deepEqual(found, { msg_0: own, msg_1: second, fc_1: second, msg_2: third, fc_2: third });
  assert.deepEqual(await named(['msg_1'], { owner: 'somebody else' }), {});
  const tooMuch = await named(['msg_1', 'msg_2'], { maxBytes: 1 });
  assert.deepEqual(Object.keys(tooMuch).sort(), ['fc_1', 'fc_2', 'msg_1', 'msg_2'], 'what is too much is there, to be refused');

  dead.add(2);
  assert.deepEqual(Object.keys(await named(['msg_1', 'msg_2'])).sort(), ['fc_2', 'msg_2'], 'nobody waits for one that is gone');
  dead.add(3);
  assert.deepEqual(await named(['msg_1']), {}, 'nor where there is no other');
  dead.delete(2);
  const silent = named(['msg_1', 'msg_0']);
  clock.advance(2_000);
  assert.deepEqual(Object.keys(await silent), ['msg_0'], 'one that says nothing is waited for two seconds');
});

test('a crowd that asks for long conversations: one answer is under way at a time, each owner in turn, and nothing too late', async () => {
  const { all, clock, sent } = workers(2);
  const [one, two] = all;
  assert.ok(one !== undefined && two !== undefined);
  const save = async (owner: string): Promise<string> => {
    const id = one.memory.responseId(undefined);
    const [input, output] = [itemTexts([`"${'x'.repeat(300_000)}"`]), itemTexts([`"of ${owner}"`])];
    await one.memory.save({ id, owner, turn: pastTurn({ parent: undefined, input, output, storedItems: new Map() }) });
    return id;
  };
  const mine = await Promise.all(Array.from({ length: 40 }, () => save('me')));
  const other = await save('other');
  const long = (): readonly JsonObject[] => sent.filter((message) => message['isLong'] === true);
  // The same many times is asked for once.
  const same = await Promise.all(Array.from({ length: 50 }, () => two.memory.find(mine[0] ?? '', 'me')));
  assert.ok(same.every((turn) => textOf(turn)?.endsWith('"of me"')));
  assert.equal(long().length, 1);
  // Many are answered one after another, and another owner's is the second or third.
  const order: string[] = [];
  const finds = mine.map(async (id) => {
    if ((await two.memory.find(id, 'me')) !== undefined) order.push('me');
  });
  const found = two.memory.find(other, 'other');
  assert.ok(textOf(await found)?.endsWith('"of other"'));
  assert.ok(order.length <= 2, `behind ${order.length} of another's`);
  await Promise.all(finds);
  assert.equal(order.length, 40);
  const turns = async (count: number): Promise<void> => {
    for (let turn = 0; turn < count; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  };
  await turns(5);
  assert.equal(clock.pending, 1, 'each has arrived');
  // What nobody waits for any more is not sent.
  const before = long().length;
  const late = mine.map((id) => two.memory.find(id, 'me'));
  // The questions have come to the other worker.
  await turns(3);
  clock.advance(2_000);
  await Promise.all(late);
  await turns(200);
  assert.ok(long().length - before <= 2, `${long().length - before} were sent to nobody`);
});
