/** That "on disk" is meant: the kernel's own record of what was written and synced before anything was acknowledged. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { startSimulator } from '../../../src/simulator/simulator.ts';
import { GatewayProcess } from '../crash/gateway-process.ts';
import { funded, openStore } from '../../store/support/store.ts';
import { noStrace, traced, unsynced } from '../../support/strace.ts';

const CHILD = fileURLToPath(new URL('./durable-child.ts', import.meta.url));
const skip = noStrace() ?? false;

async function prepared(t: TestContext): Promise<{ folder: string; secret: string }> {
  const folder = mkdtempSync(join(tmpdir(), 'mizu-durable-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  mkdirSync(join(folder, 'data'));
  const store = await openStore(t, { path: join(folder, 'data') });
  const { secret } = await funded(store, 10n ** 12n);
  await store.close();
  return { folder, secret };
}

function traceOfChild(folder: string, secret: string, manner: string, what: string): string {
  const name = `${what}_${manner}`;
  const file = join(folder, `${name}.trace`);
  const [command = '', ...args] = [...traced(file), process.execPath, CHILD, join(folder, 'data'), secret, manner, what, name];
  const { status, stderr } = spawnSync(command, args, { encoding: 'utf8', timeout: 60_000 });
  assert.equal(status, 0, stderr);
  return readFileSync(file, 'utf8');
}

for (const what of ['task', 'settlement']) {
  test(`the data of a ${what} is synced before its promise resolves, and a planted violation is caught`, {
    skip,
    timeout: 60_000,
  }, async (t) => {
    const { folder, secret } = await prepared(t);
    const honest = traceOfChild(folder, secret, 'honest', what);
    assert.equal(unsynced(honest, `${what}_honest`, new RegExp(`acknowledged ${what}_honest`)), undefined);
    const planted = traceOfChild(folder, secret, 'planted', what);
    assert.match(unsynced(planted, `${what}_planted`, new RegExp(`acknowledged ${what}_planted`)) ?? '', /^acknowledged before/);
  });
}

test('the data of a video task is synced before its 202 is written', { skip, timeout: 60_000 }, async (t) => {
  const { folder, secret } = await prepared(t);
  const simulator = await startSimulator();
  t.after(() => simulator.close());
  const file = join(folder, 'gateway.trace');
  const parts = {
    channels: [{ id: 'ark', type: 'ark_video', base_url: `${simulator.url}/api/v3`, api_key: 'k', models: ['film'] }],
    models: { film: { kind: 'video', price: { video: '0.5' } } },
  };
  const gateway = GatewayProcess.on(folder, parts, traced(file));
  t.after(() => gateway.kill());
  const response = await fetch(`${await gateway.listening()}/v1/videos`, {
    method: 'POST',
    headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json', 'idempotency-key': 'idempotency-canary' },
    body: JSON.stringify({ model: 'film', prompt: 'a harbour', duration: 5 }),
  });
  const { id } = (await response.json()) as { id: string };
  assert.equal(response.status, 202);
  await gateway.kill('SIGTERM');
  const trace = readFileSync(file, 'utf8');
  assert.equal(unsynced(trace, id, /HTTP\/1\.1 202/), undefined);
  assert.equal(unsynced(trace, 'idempotency-canary', /HTTP\/1\.1 202/), undefined);
});

const PAGE = 'pwrite64(17</d/data.mdb>, "…task-1…", 4096, 8192) = 4096';
const SYNC = 'fdatasync(17</d/data.mdb>) = 0';
const META = 'pwrite64(18</d/data.mdb>, "meta", 128, 0) = 128';
const OPEN = 'openat(AT_FDCWD, "/d/data.mdb", O_WRONLY|O_DSYNC|O_CLOEXEC) = 18</d/data.mdb>';
const SAY = 'write(1</dev/pts/0>, "done task-1\\n", 12) = 12';
const VERDICTS: readonly (readonly [string, readonly string[], RegExp | undefined])[] = [
  ['written, synced, pointed to, said', [OPEN, PAGE, SYNC, META, SAY], undefined],
  ['synced twice instead of a synchronous meta page', [PAGE, SYNC, META, SYNC, SAY], undefined],
  ['said first', [OPEN, SAY, PAGE, SYNC, META], /before the data was written/],
  ['said before the sync', [OPEN, PAGE, SAY, SYNC, META], /before the data was synced/],
  ['said before the meta page', [OPEN, PAGE, SYNC, SAY, META], /points to the data/],
  ['never synced', [OPEN, PAGE, META, SAY], /before the data was synced/],
  ['a sync that failed', [OPEN, PAGE, 'fdatasync(17</d/data.mdb>) = -1 EIO (Input/output error)', META, SAY], /synced/],
  ['a sync of another file', [OPEN, PAGE, 'fdatasync(9</d/other>) = 0', META, SAY], /synced/],
];

for (const [name, lines, wrong] of VERDICTS) {
  test(`the tracer’s judge: ${name}`, () => {
    const verdict = unsynced(lines.map((line) => `77 ${line}`).join('\n'), 'task-1', /done task-1/);
    if (wrong === undefined) assert.equal(verdict, undefined);
    else assert.match(verdict ?? 'nothing', wrong);
  });
}

test('the tracer’s judge: a sync that had begun but not ended is no sync', () => {
  const trace = `1 ${OPEN}\n1 ${PAGE}\n2 fdatasync(17</d/data.mdb> <unfinished ...>\n1 ${SAY}\n2 <... fdatasync resumed>) = 0\n2 ${META}`;
  assert.match(unsynced(trace, 'task-1', /done task-1/) ?? '', /before the data was synced/);
});
