/** E4 31: a disk that is read-only, corrupt, or fails while it is written to. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { exchangeRig, newPlace } from '../../support/exchange-rig.ts';
import { waitFor } from '../../support/processes.ts';
import { smallDisk } from '../../support/small-disk.ts';
import { noStrace } from '../../support/strace.ts';
import { ask, folderFor, MAIN, start, verify } from './support/demonstration.ts';

test('F31: a corrupt store is refused at start with a sentence, and nothing is served from it', async (t) => {
  const folder = folderFor(t);
  const { child } = await start(t, folder);
  const gone = once(child, 'exit');
  child.kill('SIGTERM');
  assert.deepEqual(await gone, [0, null]);
  const file = join(folder, '.mizu-demo', 'data.mdb');
  const whole = readFileSync(file);
  const serve = () =>
    spawnSync(process.execPath, [MAIN, 'serve'], {
      cwd: folder,
      env: { PATH: process.env['PATH'] ?? '', PORT: '0' },
      encoding: 'utf8',
      timeout: 20_000,
    });
  for (const broken of [
    Buffer.alloc(65_536, 'garbage'),
    whole.subarray(0, 4096),
    whole.subarray(0, whole.length - 4096),
    Buffer.from('x'),
    Buffer.concat([Buffer.alloc(4096), whole.subarray(4096)]),
  ]) {
    writeFileSync(file, broken);
    const done = serve();
    assert.equal(done.signal, null, `${broken.length} bytes: it ended by itself: ${done.stderr}`);
    assert.equal(done.status, 1);
    assert.match(done.stderr, /^mizu: .*data\.mdb/m);
  }
  writeFileSync(file, whole);
  const again = await start(t, folder);
  assert.equal((await ask(again.url, false)).status, 200);
});

test('F31: a store on a disk that is read-only is refused at start with a sentence', async (t) => {
  const folder = folderFor(t);
  const disk = join(folder, 'disk');
  spawnSync('mkdir', [disk]);
  if (spawnSync('mount', ['-t', 'tmpfs', '-o', 'ro,size=1m', 'mizu-faults', disk]).status !== 0) {
    t.skip('this machine lets nobody mount');
    return;
  }
  writeFileSync(join(folder, 'mizu.config.json'), JSON.stringify({ store: { path: './disk/data' }, channels: [], models: {} }));
  const done = spawnSync(process.execPath, [MAIN, 'serve'], {
    cwd: folder,
    env: { PATH: process.env['PATH'] ?? '', PORT: '0' },
    encoding: 'utf8',
    timeout: 20_000,
  });
  spawnSync('umount', [disk]);
  assert.equal(done.signal, null);
  assert.notEqual(done.status, 0);
  assert.match(done.stderr, /^mizu: /m);
});

/**
 * What the kernel says of the store's file, from a moment on: `strace` is laid over the running process, and taken away again.
 */
const FAILURES: Readonly<Record<string, string>> = {
  'every write fails': 'pwrite64,pwritev,pwritev2,writev:error=EIO',
  'every sync fails': 'fdatasync,fsync:error=EIO',
  'every second write fails': 'pwrite64,pwritev,pwritev2,writev:error=EIO:when=2+2',
  'there is no space': 'pwrite64,pwritev,pwritev2,writev:error=ENOSPC',
};

for (const [name, injection] of Object.entries(FAILURES)) {
  test(`F31: ${name}: 503 by name, nothing served without a record, and everything settled once when the disk is back`, async (t) => {
    const missing = noStrace();
    if (missing !== undefined) {
      t.skip(missing);
      return;
    }
    const folder = folderFor(t);
    const { child, url } = await start(t, folder);
    const answered = new Set<string>();
    const asked = async (): Promise<{ status: number; text: string }> => {
      const response = await ask(url, answered.size % 2 === 0);
      if (response.status === 200) answered.add(response.headers.get('x-request-id') ?? '');
      return { status: response.status, text: await response.text() };
    };
    assert.equal((await asked()).status, 200);
    const file = join(folder, '.mizu-demo', 'data.mdb');
    const [calls = ''] = injection.split(':');
    const strace = spawn(
      'strace',
      ['-f', '-p', String(child.pid), '-P', file, '-e', `trace=${calls}`, '-e', `inject=${injection}`, '-o', '/dev/null'],
      { stdio: ['ignore', 'ignore', 'pipe'] },
    );
    t.after(() => strace.kill('SIGKILL'));
    await once(strace.stderr, 'data');
    const refused = await waitFor(
      async () => {
        const answer = await asked();
        return answer.status === 200 ? undefined : answer;
      },
      () => 'a store that cannot write was never noticed',
    );
    assert.equal(refused.status, 503, refused.text);
    assert.match(refused.text, /"code":"store_unavailable"/);
    const ready = await fetch(`${url}/readyz`);
    assert.equal(ready.status, 503);
    assert.match(await ready.text(), /"reasons":\["store"\]/);
    strace.kill('SIGINT');
    await once(strace, 'exit');
    let last = '';
    await waitFor(
      async () => {
        const { status, text } = await asked();
        last = `${status} ${text}`;
        return status === 200 ? true : undefined;
      },
      () => `it never recovered; its last answer: ${last}`,
    );
    const gone = once(child, 'exit');
    child.kill('SIGTERM');
    assert.deepEqual(await gone, [0, null]);
    const { code, out } = verify(folder);
    assert.equal(code, 0, out);
    const { stdout } = spawnSync(process.execPath, [MAIN, 'logs', '--json', '--limit', '1000', '--config', 'verify.json'], {
      cwd: folder,
      encoding: 'utf8',
    });
    const rows = stdout
      .trim()
      .split('\n')
      .map((line): { requestId: string; status: string } => JSON.parse(line));
    const paid = rows.filter(({ status }) => status === 'success').map(({ requestId }) => requestId);
    assert.deepEqual(paid.toSorted(), [...answered].toSorted(), 'each answer has one row, and each row its answer');
  });
}

/** Until there is no space for another byte. */
function fill(file: string): void {
  for (const size of [1024 * 1024, 4096, 1])
    for (;;) {
      try {
        appendFileSync(file, Buffer.alloc(size));
      } catch (thrown) {
        assert.match(String(thrown), /ENOSPC/);
        break;
      }
    }
}

for (const durability of ['batched', 'strict'] as const) {
  test(`F31: a disk that is full between opening and settlement: one row, paid, once there is space; ${durability}`, async (t) => {
    const disk = smallDisk(t, '128m');
    if (disk === undefined) return;
    const rig = await exchangeRig('lmdb', durability, [], await newPlace('lmdb', disk));
    const { key, secret } = await rig.newKey();
    const filler = join(disk, 'filler');
    t.after(() => rig.close());
    rig.injector.onLeave = () => fill(filler);
    rig.injector.start(new Map([['store.settlements.settle#0', 'leave']]));
    let status: number | undefined;
    const asking = fetch(`${rig.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'hi' }] }),
    }).then(async (answer) => {
      await answer.arrayBuffer();
      ({ status } = answer);
    });
    await rig.pass(() => status === undefined, 20);
    await asking;
    assert.ok(statSync(filler).size > 0);
    // With strict durability what the given-up ballast had no room for is told as a failure.
    assert.ok(status === 200 || (durability === 'strict' && (status ?? 0) >= 500), `the client was told ${status}`);
    rmSync(filler);
    rig.injector.stop();
    await rig.pass(() => rig.store.admission.reserved(key.id) !== 0n || !rig.store.health().healthy, 120);
    await rig.store.settlements.flush();
    const rows = await rig.store.requestLog.list({ keyId: key.id });
    assert.equal(rows.length, 1);
    assert.ok((rows[0]?.charge?.total ?? 0n) > 0n, 'what was answered is paid for');
    const { differences } = await rig.store.ledger.verify();
    assert.deepEqual(differences, []);
  });
}
