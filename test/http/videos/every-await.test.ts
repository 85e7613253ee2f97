/**
 * The law of a video task, on a sample of the faults that a run finds; all of them, on both engines: `npm run test:faults --
 * every-await`.
 */
import { test } from 'node:test';
import { faultsOf } from '../../support/exchange-law.ts';
import { exchangeRig } from '../../support/exchange-rig.ts';
import { runVideo, unsaidOf, VIDEO_MEMBERS } from '../../support/video-law.ts';

const SAMPLED = 6;
/** It left the task `submitting` for ever. */
const ONCE_LOST = new Map([['store.videos.change#1', 'throw' as const]]);
/** `MIZU_SEED=N` repeats what a failure has named. */
const seed = Number(process.env['MIZU_SEED'] ?? Date.now() % 1_000_000);

test('whatever breaks at an await: a video is made, submitted and paid for at most once', async (t) => {
  const rig = await exchangeRig('lmdb', 'batched', VIDEO_MEMBERS);
  t.after(() => rig.close());
  const points = await runVideo(rig, new Map());
  const faults = faultsOf(points);
  const unsaid = unsaidOf(points);
  if (unsaid.length < 3) throw new Error(`the worker changes nothing: ${unsaid.join(' ')}`);
  for (const id of unsaid)
    await t.test(`unsaid at ${id}`, async () => {
      await runVideo(rig, new Map([[id, 'unsaid']]));
    });
  await t.test('throw at store.videos.change#1', async () => {
    await runVideo(rig, ONCE_LOST);
  });
  let state = seed;
  for (let drawn = 0; drawn < SAMPLED; drawn++) {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    const fault = faults[Math.floor((state / 2_147_483_648) * faults.length)];
    if (fault === undefined) throw new Error('a run finds no points');
    const { point, mode } = fault;
    await t.test(`${mode} at ${point.id} (MIZU_SEED=${seed})`, async () => {
      await runVideo(rig, new Map([[point.id, mode]]));
    });
  }
});
