/**
 * The whole gateway killed twice under load (`npm run test:crash` does it two hundred times), and that its judge would
 * notice.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CrashLane } from '../../slow/crash/crash-lane.ts';
import { CHARGE, type Evidence, judge, type Row, STALL_MS, WINDOW_MS } from '../../slow/crash/judgement.ts';

const KILLS = 2;

test('F30: killed twice under load: every request settled once, interrupted or unflushed; no task lost, doubled or sent twice', async (t) => {
  const lane = await CrashLane.open(Math.random);
  try {
    for (let kill = 0; kill < KILLS; kill += 1) await lane.round();
    await lane.finish();
    const { violations, ...figures } = lane.report;
    t.diagnostic(JSON.stringify(figures));
    assert.deepEqual(violations, []);
    assert.equal(figures.kills, KILLS);
    assert.ok(figures.journalRows > 2);
  } finally {
    await lane.close();
  }
});

const KILL = 100_000;
const ROW: Row = { status: 'success', chargedNanos: CHARGE, estimated: false, journaledNanos: CHARGE, journaledCharges: 1 };
const FREE: Row = { status: 'interrupted', chargedNanos: 0n, estimated: false, journaledNanos: 0n, journaledCharges: 0 };
const LONG_AGO = KILL - WINDOW_MS - 1;
const GOOD: Evidence = {
  kind: 'ok',
  sentAtMs: LONG_AGO,
  receivedAtMs: LONG_AGO,
  answeredAtMs: LONG_AGO,
  received: 1,
  rows: [ROW],
  killedAtMs: KILL,
  durableAtMs: KILL,
};
const { answeredAtMs: _answered, ...UNANSWERED } = GOOD;
const { durableAtMs: _durable, ...NOTHING_DURABLE } = GOOD;
const STALLED: Evidence = { ...GOOD, durableAtMs: LONG_AGO - 1, rows: [] };

const FATES: readonly (readonly [string, Evidence, string])[] = [
  ['all three agree', GOOD, 'settled'],
  ['open at the kill', { ...UNANSWERED, rows: [FREE] }, 'interrupted'],
  ['received just before the kill', { ...UNANSWERED, rows: [], receivedAtMs: KILL - 5 }, 'unflushed'],
  ['answered just before the kill', { ...GOOD, rows: [], answeredAtMs: KILL - 5 }, 'unflushed'],
  ['settled in memory, open on disk', { ...GOOD, rows: [FREE], answeredAtMs: KILL - 5 }, 'interrupted'],
  ['answered while the disk stalled: nothing later is there', STALLED, 'unflushed'],
  ['answered while the disk stalled, open on disk', { ...STALLED, rows: [FREE] }, 'interrupted'],
  ['nothing of a short life is there', { ...NOTHING_DURABLE, rows: [] }, 'unflushed'],
  ['missing, though something that came later is there', { ...STALLED, durableAtMs: LONG_AGO + WINDOW_MS + 1 }, 'violation'],
  ['missing for longer than any disk stalls', { ...STALLED, answeredAtMs: KILL - STALL_MS - 1, durableAtMs: 0 }, 'violation'],
  ['two rows', { ...GOOD, rows: [ROW, ROW] }, 'violation'],
  ['sent upstream twice', { ...GOOD, received: 2 }, 'violation'],
  [
    'charged twice in the journal',
    { ...GOOD, rows: [{ ...ROW, journaledNanos: 2n * CHARGE, journaledCharges: 2 }] },
    'violation',
  ],
  ['log and journal differ', { ...GOOD, rows: [{ ...ROW, journaledNanos: 1n }] }, 'violation'],
  ['answered long ago and missing', { ...GOOD, rows: [] }, 'violation'],
  ['received long ago and missing', { ...UNANSWERED, rows: [] }, 'violation'],
  ['answered long ago and interrupted', { ...GOOD, rows: [FREE] }, 'violation'],
  ['interrupted and charged', { ...UNANSWERED, rows: [{ ...ROW, status: 'interrupted' }] }, 'violation'],
  ['charged, and never sent', { ...UNANSWERED, received: 0, rows: [ROW] }, 'violation'],
  ['the wrong charge', { ...GOOD, rows: [{ ...ROW, chargedNanos: 1n, journaledNanos: 1n }] }, 'violation'],
  ['a failure that costs', { ...GOOD, kind: 'fail', rows: [{ ...ROW, status: 'error' }] }, 'violation'],
  ['an estimate without its flag', { ...GOOD, kind: 'unreported' }, 'violation'],
];

for (const [name, evidence, fate] of FATES) {
  test(`the judge: ${name} is ${fate}`, () => assert.equal(judge(evidence).fate, fate));
}
