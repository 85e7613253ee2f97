/** The law of an exchange at every await that its runs find, for every endpoint, both durabilities and both engines. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ENGINES } from '../../support/engines.ts';
import { CASES, discover, faultsOf, run } from '../../support/exchange-law.ts';
import { exchangeRig } from '../../support/exchange-rig.ts';
import { runVideo, unsaidOf, VIDEO_MEMBERS } from '../../support/video-law.ts';
import { existsSync } from 'node:fs';

const noServer = existsSync('/usr/lib/postgresql') ? false : 'no PostgreSQL server: install the package postgresql';

for (const engine of ENGINES) {
  const skip = engine === 'postgres' && noServer;
  test(`whatever breaks at an await: a video is made, submitted and paid for at most once; ${engine}`, { skip }, async (t) => {
    const rig = await exchangeRig(engine, 'batched', VIDEO_MEMBERS);
    t.after(() => rig.close());
    const points = await runVideo(rig, new Map());
    assert.ok(points.length > 10, `${points.length} points`);
    for (const { point, mode } of faultsOf(points))
      await t.test(`${mode} at ${point.id}`, async () => {
        await runVideo(rig, new Map([[point.id, mode]]));
      });
    for (const id of unsaidOf(points))
      await t.test(`unsaid at ${id}`, async () => {
        await runVideo(rig, new Map([[id, 'unsaid']]));
      });
  });
  for (const durability of ['batched', 'strict'] as const) {
    test(`whatever breaks at an await: one settlement, one row, one line; ${engine}, ${durability}`, { skip }, async (t) => {
      const rig = await exchangeRig(engine, durability);
      t.after(() => rig.close());
      for (const each of CASES) {
        const points = await discover(rig, each);
        assert.ok(points.length > 5, `${each.name}: ${points.length} points`);
        for (const { point, mode } of faultsOf(points))
          await t.test(`${each.name}: ${mode} at ${point.id}`, () => run(rig, each, new Map([[point.id, mode]])));
        const [open, settle] = ['store.settlements.open#0', 'store.settlements.settle#0'];
        const refusals = [[open], [settle], [open, settle]];
        for (const ids of refusals)
          await t.test(`${each.name}: the store refuses ${ids.join(' and ')}`, () =>
            run(rig, each, new Map(ids.map((id) => [id, 'refuse']))),
          );
      }
    });
  }
}
