/** E4 30, 34, 39, 41: the process itself under failure. Real processes, the built-in demonstration as upstream. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { waitFor } from '../../support/processes.ts';
import { smallDisk } from '../../support/small-disk.ts';
import { ask, folderFor, start, verify } from './support/demonstration.ts';
import { CLIENTS, chunk, exchange, GOOD, rig, STREAM_HEAD } from './support/rig.ts';

test('F30: SIGKILL under load, three times: it starts again, answers, and the ledger adds up', async (t) => {
  const folder = folderFor(t);
  for (let round = 0; round < 3; round++) {
    const { child, url } = await start(t, folder);
    const load = Promise.allSettled(Array.from({ length: 30 }, async (_, n) => await (await ask(url, n % 2 === 0)).text()));
    await new Promise((done) => setTimeout(done, 60 + 120 * round));
    const gone = once(child, 'exit');
    child.kill('SIGKILL');
    await gone;
    await load;
    const { code, out } = verify(folder);
    assert.equal(code, 0, out);
  }
  const { url } = await start(t, folder);
  assert.equal((await ask(url, false)).status, 200);
});

test('F41: a log that nobody reads any more ends nothing', async (t) => {
  const { child, url } = await start(t, folderFor(t));
  child.stderr?.destroy();
  child.stdout?.destroy();
  for (let n = 0; n < 20; n++) {
    const response = await ask(url, true, n % 2 === 0 ? 'demo-chat' : 'no-such-model');
    assert.equal(response.status, n % 2 === 0 ? 200 : 404);
    await response.text();
  }
  assert.equal(child.exitCode, null);
});

test('F41: a log that is open, and read by nobody, holds up neither requests nor the end', async (t) => {
  const { child, url } = await start(t, folderFor(t));
  const { stderr } = child;
  assert.ok(stderr !== null);
  stderr.removeAllListeners('data');
  stderr.pause();
  // More than the system keeps for a reader.
  for (let round = 0; round < 60; round++) {
    const answers = await Promise.all(Array.from({ length: 20 }, () => ask(url, false)));
    for (const answer of answers) {
      assert.equal(answer.status, 200);
      await answer.text();
    }
  }
  const before = performance.now();
  const gone = once(child, 'exit');
  child.kill('SIGTERM');
  assert.deepEqual(await gone, [0, null]);
  const ms = performance.now() - before;
  assert.ok(ms > 900 && ms < 5_000, `it ended within ${ms} ms: the last lines are tried for a second`);
});

test('F41: a log on a disk that is full ends nothing, goes on when there is room, and tells how much is missing', async (t) => {
  const disk = smallDisk(t, '1m');
  if (disk === undefined) return;
  const [log, filler] = [join(disk, 'log'), join(disk, 'filler')];
  const { child, url } = await start(t, folderFor(t), { log });
  const fill = (): void => assert.throws(() => writeFileSync(filler, Buffer.alloc(2 * 1024 * 1024)), /ENOSPC/);
  assert.equal((await ask(url, false)).status, 200);
  fill();
  for (let n = 0; n < 40; n++) {
    const response = await ask(url, n % 2 === 0, n % 4 === 3 ? 'no-such-model' : 'demo-chat');
    assert.equal(response.status, n % 4 === 3 ? 404 : 200, `request ${n}`);
    await response.text();
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  assert.equal(child.exitCode, null);
  const full = statSync(log).size;
  rmSync(filler);
  await (await ask(url, false)).text();
  await waitFor(
    () => (statSync(log).size > full ? true : undefined),
    () => 'the log never went on',
  );
  for (const line of readFileSync(log, 'utf8').trim().split('\n')) JSON.parse(line);
  fill();
  await (await ask(url, false)).text();
  const gone = once(child, 'exit');
  child.kill('SIGTERM');
  assert.deepEqual(await gone, [0, null]);
});

test('F39: SIGTERM under load: every request that was accepted gets its whole answer, and the exit is clean', async (t) => {
  const folder = folderFor(t);
  const { child, url } = await start(t, folder);
  const responses = Array.from({ length: 40 }, (_, n) => ask(url, n >= 20));
  const answers = responses.map(async (response, n) => {
    assert.equal((await response).status, 200);
    return { text: await (await response).text(), stream: n >= 20 };
  });
  // Connections are accepted in their order: once the last stream has begun, every request is in hand.
  await Promise.all(responses.slice(20));
  const gone = once(child, 'exit');
  child.kill('SIGTERM');
  const done = await Promise.allSettled(answers);
  for (const result of done) {
    assert.ok(result.status === 'fulfilled', result.status === 'rejected' ? String(result.reason) : '');
    assert.match(result.value.text, result.value.stream ? /\[DONE\]/ : /"finish_reason"/);
  }
  assert.deepEqual(await gone, [0, null]);
  assert.equal(verify(folder).code, 0);
});

test('F34: a wall clock that jumps an hour either way ends no stream and holds none', async () => {
  await using r = await rig({ timeouts: { first_data_ms: 5000, idle_ms: 5000 } });
  let asked = 0;
  for (const jump of [3_600_000, -7_200_000, 86_400_000]) {
    r.answer = ({ socket }) => {
      const frames = GOOD.messages.map((frame) => chunk(frame));
      socket.write(STREAM_HEAD);
      for (const frame of frames.slice(0, 4)) socket.write(frame);
      setTimeout(() => {
        r.clock.jumpMs += jump;
        setTimeout(() => socket.write(Buffer.concat([...frames.slice(4), Buffer.from('0\r\n\r\n')])), 50);
      }, 50);
    };
    for (const client of CLIENTS) {
      asked++;
      const { status, broken } = await exchange(r, client, 'messages', true);
      assert.deepEqual([status, broken], [200, false]);
    }
    await r.quiet(asked);
  }
  for (const row of r.gateway.store.settled) {
    assert.equal(row.status, 'success');
    assert.ok(row.durationMs >= 0 && row.durationMs < 5000, `${row.durationMs} ms`);
  }
});
