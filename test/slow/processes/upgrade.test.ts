/**
 * docs/upgrading.md on the stores that older commits wrote, each command as it stands there: back up, check, upgrade, look, back
 * up again, restore.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { test } from 'node:test';
import { startSimulator } from '../../../src/simulator/simulator.ts';
import { FIXTURES, placeOf } from '../../store/support/committed.ts';
import { eachStore } from '../../store/support/stores.ts';
import { server } from '../../support/postgres.ts';
import { freePort, type Installation, install, waitFor } from '../../support/processes.ts';

/** What a verb prints; it must succeed. */
async function said(place: Installation, ...verb: readonly string[]): Promise<string> {
  const { code, out, err } = await place.run(...verb);
  assert.equal(code, 0, `${verb.join(' ')}: ${err}`);
  return out;
}

eachStore((engine) => {
  for (const fixture of FIXTURES)
    test(`a store of an older version is upgraded as the document says: ${basename(fixture)}`, {
      timeout: 300_000,
    }, async (t) => {
      const simulator = await startSimulator();
      t.after(() => simulator.close());
      const older = await placeOf(engine, fixture, t);
      const isFolder = engine.name === 'lmdb';
      const port = await freePort();
      const { models } = JSON.parse(readFileSync(join(fixture, 'mizu.config.json'), 'utf8'));
      const channel = { id: 'one', type: 'messages', base_url: simulator.url, api_key: 'k', models: ['messages'] };
      // Its rows are of another year, and would be pruned.
      const log = { retention_days: 3_650 };
      const file = { operations: { port }, log, channels: [channel], models: { messages: models.messages } };
      // It makes a store of its own to begin with, which is left alone.
      await using place = await install(file);
      const at = (store: string) => (isFolder ? { path: store } : { url: store, path: join(place.folder, 'local') });
      place.configure({ ...file, store: at(older) });

      // Back up, check, install: the new version's verbs read the old store.
      const before = await said(place, 'store', 'backup', join(place.folder, 'before'));
      const [, head = ''] = /^head (\d+:\S+): keep it elsewhere/m.exec(before) ?? [];
      assert.match(before, /journal rows, which add up/);
      assert.match(await said(place, 'check'), /^the configuration is valid: 1 channel, 1 model$/m);
      if (!isFolder) assert.match(await said(place, 'store', 'migrate'), /schema/);

      // Start and look.
      const serving = await place.serve();
      await waitFor(
        async () => ((await fetch(`${serving.url}/readyz`)).ok ? true : undefined),
        () => `it is never ready: ${serving.text()}`,
      );
      assert.match(await said(place, 'channels', 'test'), /^one +ok/m);
      assert.match(await said(place, 'ledger', 'verify', '--head', head), /no difference/);
      assert.match(await said(place, 'ledger', 'verify', '--rebuild-rollups'), /no difference/);
      for (const [filter, count] of [
        [['--request', 'ex_1'], 1],
        [['--code', 'upstream_error'], 1],
        [['--account', 'house'], 1],
        [['--channel', 'one'], 2],
      ] as const) {
        const rows = await said(place, 'logs', '--json', ...filter);
        assert.ok(rows.trim().split('\n').length >= count && rows.trim() !== '', `${filter.join(' ')}: ${rows}`);
      }
      const ask = async (url: string): Promise<number> => {
        const answer = await fetch(`${url}/v1/messages`, {
          method: 'POST',
          headers: {
            'x-api-key': 'sk-mizu-fixture-plain',
            'anthropic-version': '2023-06-01',
            'content-type': 'application/json',
          },
          body: JSON.stringify({ model: 'messages', max_tokens: 64, messages: [{ role: 'user', content: 'hi' }] }),
        });
        await answer.text();
        return answer.status;
      };
      assert.equal(await ask(serving.url), 200, 'a key of the older version');
      const token = (await said(place, 'admin-tokens', 'create', 'ops', '--role', 'read')).trim();
      const overview = await fetch(`http://127.0.0.1:${port}/admin/v1/overview?from=20000d&by=account`, {
        headers: { authorization: `Bearer ${token}` },
      });
      const sums = (await overview.json()) as { total: { requests: number }; data: { account: string }[] };
      assert.ok(sums.total.requests >= 8, `hours from before the upgrade are summed up: ${sums.total.requests}`);

      // Back up while it runs, stop, restore elsewhere, serve from there.
      await said(place, 'store', 'backup', join(place.folder, 'after'));
      const inUse = await place.run('store', 'restore', join(place.folder, 'after'));
      assert.deepEqual([inUse.code, /stays as it is/.test(inUse.err)], [1, true], inUse.err);
      assert.equal(await serving.stop(), 0);
      const restored = isFolder ? join(place.folder, 'restored') : await (await server()).createDatabase();
      assert.match(await said(place, 'store', 'restore', join(place.folder, 'after'), '--to', restored), /journal rows verified/);
      place.configure({ ...file, store: at(restored) });
      assert.match(await said(place, 'ledger', 'verify', '--head', head), /no difference/, 'it is the same ledger, gone on');
      const again = await place.serve();
      assert.equal(await ask(again.url), 200);
      assert.equal(await again.stop(), 0);

      // The backup of before is good, too: what a roll back needs.
      const rolledBack = isFolder ? join(place.folder, 'rolled-back') : await (await server()).createDatabase();
      await said(place, 'store', 'restore', join(place.folder, 'before'), '--to', rolledBack);
      place.configure({ ...file, store: at(rolledBack) });
      assert.match(await said(place, 'ledger', 'verify', '--head', head), /no difference/);
    });
});
