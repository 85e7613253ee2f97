/** Real processes: reloads by file and by signal, a bad file, strict durability, workers, and restarts under load. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { test } from 'node:test';
import { Agent, request } from 'undici';
import { type Simulator, startSimulator } from '../../../src/simulator/simulator.ts';
import { freePort, install, type Installation, type Serving, waitFor } from '../../support/processes.ts';

const simulator = await startSimulator();
test.after(() => simulator.close());

const MODELS = { m: { price: { input: '1', output: '2' } } };
const file = (upstream: Simulator, changes: object = {}): object => ({
  operations: null,
  channels: [{ id: 'one', type: 'chat_completion', base_url: upstream.url, api_key: 'sk-canary-upstream', models: ['m'] }],
  models: MODELS,
  channel_header: true,
  ...changes,
});
const say = (text: string, more: object = {}) => ({
  reply: { pieces: [{ type: 'text' as const, text }], usage: { input: 3, output: 2 } },
  times: 1_000_000,
  ...more,
});
const post = (serving: Serving, { key }: Installation, body: object = {}): Promise<Response> =>
  fetch(`${serving.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'hi' }], ...body }),
  });

/** Resolves once so many processes have said that they listen. */
const listeners = (serving: Serving, count: number): Promise<true> =>
  waitFor(
    () => (serving.text().split('Mizu listens').length > count ? true : undefined),
    () => serving.text(),
  );

test('a reload by file and by SIGHUP; a bad file keeps the old one; open streams go on', async () => {
  simulator.reset();
  simulator.enqueue(say('words that take their time to come', { pace: { ms: 40 }, times: 1 }), say('quick'));
  const operations = { port: await freePort() };
  await using place = await install(file(simulator, { operations }));
  const serving = await place.serve();
  const reloads = async (result: string): Promise<number> => {
    const text = await (await fetch(`http://127.0.0.1:${operations.port}/metrics`)).text();
    return Number(new RegExp(`^mizu_config_reloads_total\\{result="${result}"\\} (\\d+)$`, 'm').exec(text)?.[1]);
  };
  const open = await post(serving, place, { stream: true });
  assert.equal(open.headers.get('x-mizu-channel'), 'one');

  place.configure('{ "channels": [ { "id": 5 } ], "nonsense": 1 }');
  await serving.logged('the new configuration is refused; the old one stays');
  const refused = serving.log().find(({ msg }) => msg === 'the new configuration is refused; the old one stays');
  assert.match(JSON.stringify(refused), /nonsense.*channels\[0\]\.type/);
  assert.equal((await post(serving, place)).headers.get('x-mizu-channel'), 'one');

  const renamed = JSON.parse(JSON.stringify(file(simulator, { operations })).replace('"one"', '"two"'));
  place.configure(renamed);
  await serving.logged('configuration reloaded');
  assert.equal((await post(serving, place)).headers.get('x-mizu-channel'), 'two');

  serving.process.kill('SIGHUP');
  await serving.logged('configuration reloaded', 2);
  const startOnly = 'these keys are read at start only: restart to apply them';
  assert.ok(!serving.log().some(({ msg }) => msg === startOnly));
  place.configure({ ...renamed, listen: { port: 1 }, store: { path: './elsewhere' } });
  await serving.logged(startOnly);
  assert.deepEqual(serving.log().find(({ msg }) => msg === startOnly)?.['keys'], ['store']);
  assert.deepEqual([(await reloads('accepted')) >= 3, (await reloads('refused')) >= 1], [true, true]);
  assert.match(await open.text(), /come[\s\S]*data: \[DONE\]\n\n$/, 'the open stream was not touched');
  assert.equal(await serving.stop(), 0);
  assert.doesNotMatch(serving.text(), /sk-canary|sk-mizu-/);
});

test('a SIGHUP while a renewed worker starts ends nothing: the worker reads the configuration again once it listens', async () => {
  simulator.reset();
  await using place = await install(file(simulator));
  const serving = await place.serve('--workers', '2');
  serving.process.kill('SIGUSR2');
  for (let times = 0; times < 5; times++) {
    await new Promise((resolve) => setTimeout(resolve, 30));
    serving.process.kill('SIGHUP');
  }
  await serving.logged('workers renewed');
  assert.doesNotMatch(serving.text(), /a new worker did not start/);
  assert.equal(await serving.stop(), 0);
});

test('F30: strict durability: what was answered is in the log after kill -9', async () => {
  simulator.reset();
  simulator.enqueue(say('kept'));
  await using place = await install(file(simulator, { ledger: { durability: 'strict' } }));
  const serving = await place.serve();
  const asked: string[] = [];
  for (let round = 0; round < 5; round++) {
    const response = await post(serving, place, { stream: round % 2 === 0 });
    await response.text();
    asked.push(response.headers.get('x-request-id') ?? '');
  }
  // A stream's last byte does not wait for its row; a moment later even that is on disk.
  await new Promise((resolve) => setTimeout(resolve, 100));
  await serving.stop('SIGKILL');
  const { out } = await place.run('logs', '--json');
  const rows = out
    .trim()
    .split('\n')
    .map((line): { requestId: string; status: string } => JSON.parse(line));
  assert.deepEqual(new Set(rows.map(({ requestId }) => requestId)), new Set(asked));
  assert.ok(rows.every(({ status }) => status === 'success'));
  assert.equal((await place.run('ledger', 'verify')).code, 0);
});

test('counters never fall: not when a worker is killed, and not when all are renewed', async () => {
  simulator.reset();
  simulator.enqueue(say('counted'));
  const port = await freePort();
  await using place = await install(file(simulator, { operations: { port } }));
  const serving = await place.serve('--workers', '2');
  const operations = `http://127.0.0.1:${port}`;
  const ready = () =>
    waitFor(
      async () => ((await fetch(`${operations}/healthz`)).status === 200 ? true : undefined),
      () => `two workers never were ready: ${serving.text()}`,
    );
  await ready();
  await listeners(serving, 2);
  const answered = async (): Promise<number> => {
    const text = await (await fetch(`${operations}/metrics`)).text();
    return Number(/^mizu_requests_total\{route="chat_completions",status="200"\} (\d+)$/m.exec(text)?.[1]);
  };
  const ask = async (): Promise<void> => {
    for (let n = 0; n < 10; n++) await (await post(serving, place)).text();
  };
  await ask();
  assert.equal(await answered(), 10);
  const { workers }: { workers: { pid: number }[] } = JSON.parse(await (await fetch(`${operations}/healthz`)).text());
  process.kill(workers[0]?.pid ?? assert.fail('no worker'), 'SIGKILL');
  await serving.logged('a worker exited; starting another');
  assert.equal(await answered(), 10);
  await listeners(serving, 3);
  await ready();
  await ask();
  // Nobody has asked for the metrics since: workers that end in good order tell them by themselves.
  serving.process.kill('SIGUSR2');
  await serving.logged('workers renewed');
  assert.equal(await answered(), 20);
  assert.equal(await serving.stop(), 0);
});

test('F39: workers: one port, summed metrics, circuits of each, a reload for all, a drain that loses nothing', async () => {
  simulator.reset();
  simulator.enqueue(say('from some worker', { pace: { ms: 20 } }));
  const port = await freePort();
  await using place = await install(file(simulator, { operations: { port } }));
  const serving = await place.serve('--workers', '2');
  const operations = `http://127.0.0.1:${port}`;
  await waitFor(
    async () => ((await fetch(`${operations}/healthz`)).status === 200 ? true : undefined),
    () => `two workers never were ready: ${serving.text()}`,
  );
  await listeners(serving, 2);
  const whole: { reasons: string[]; workers: { pid: number; store: object }[] } = JSON.parse(
    await (await fetch(`${operations}/healthz`)).text(),
  );
  assert.deepEqual([whole.reasons, new Set(whole.workers.map(({ pid }) => pid)).size], [[], 2]);
  assert.deepEqual(
    whole.workers.map(({ store }) => store),
    [{ healthy: true }, { healthy: true }],
  );
  assert.equal((await fetch(`${operations}/metrics`, { method: 'POST' })).status, 405);
  const answers = await Promise.all(Array.from({ length: 20 }, () => post(serving, place).then((response) => response.status)));
  assert.deepEqual(new Set(answers), new Set([200]));
  const metrics = await (await fetch(`${operations}/metrics`)).text();
  assert.match(metrics, /^mizu_requests_total\{route="chat_completions",status="200"\} 20$/m);
  const report: { workers: { pid: number; channels: { id: string }[] }[] } = JSON.parse(
    await (await fetch(`${operations}/channels`)).text(),
  );
  assert.equal(new Set(report.workers.map(({ pid }) => pid)).size, 2);
  for (const { channels } of report.workers)
    assert.deepEqual(
      channels.map(({ id }) => id),
      ['one'],
    );

  place.configure(JSON.parse(JSON.stringify(file(simulator, { operations: { port } })).replace('"one"', '"two"')));
  await serving.logged('configuration reloaded', 2);
  for (let round = 0; round < 6; round++) assert.equal((await post(serving, place)).headers.get('x-mizu-channel'), 'two');

  const open = await Promise.all(Array.from({ length: 8 }, () => post(serving, place, { stream: true })));
  const stopped = serving.stop();
  const draining = await waitFor(
    async () => {
      const answer = await fetch(`${operations}/healthz`);
      return answer.status === 503 ? await answer.text() : undefined;
    },
    () => 'a gateway that drains is well',
  );
  assert.match(draining, /"reasons":\["draining"/);
  for (const response of open) assert.match(await response.text(), /data: \[DONE\]\n\n$/);
  assert.equal(await stopped, 0);
});

test('with workers, too, both ports, pages and models are printed once, and that it drains and has stopped', async () => {
  await using place = await install(file(simulator, { operations: { port: 0 } }));
  const serving = await place.serve('--workers', '2');
  await listeners(serving, 2);
  // The primary prints it for all, and is well when its workers have told it so.
  await waitFor(
    async () => {
      const operations = /Operations: (http:\S+) /.exec(serving.text())?.[1];
      return operations !== undefined && (await fetch(`${operations}/healthz`)).status === 200 ? true : undefined;
    },
    () => serving.text(),
  );
  assert.ok(serving.text().includes(`Pages: ${serving.url}/ (prices)`), serving.text());
  assert.equal(await serving.stop(), 0);
  for (const line of ['Pages: ', 'Operations: ', 'Models: m', 'Draining: ', 'Stopped.'])
    assert.equal(serving.text().split(line).length, 2, `${line} in ${serving.text()}`);
});

test('what keeps every worker from starting ends the gateway with its reason', async () => {
  const holder = createServer().listen(0, '127.0.0.1');
  await once(holder, 'listening');
  const address = holder.address();
  const taken = typeof address === 'object' && address !== null ? address.port : 0;
  await using place = await install(file(simulator));
  const words = ['src/main.ts', 'serve', '--workers', '2', '--config', place.configPath];
  const env = { PATH: process.env['PATH'] ?? '', PORT: String(taken) };
  const { status, stderr } = spawnSync(process.execPath, words, { env, encoding: 'utf8', timeout: 40_000 });
  holder.close();
  assert.equal(status, 1, stderr);
  assert.match(stderr, /^mizu: .*EADDRINUSE/m);
  assert.match(stderr, /"no worker could start"/);
});

test('a default operations port that another gateway has costs workers their metrics, not their start', async (t) => {
  simulator.reset();
  simulator.enqueue(say('served all the same'));
  // Should another gateway have it already, it is taken all the same.
  const holder = createServer().on('error', () => undefined);
  holder.listen(8081, '127.0.0.1');
  t.after(() => holder.close());
  await using place = await install(file(simulator, { operations: undefined }));
  const serving = await place.serve('--workers', '2');
  await serving.logged('the default operations port is taken: no metrics; set "operations" in the configuration');
  assert.equal((await post(serving, place)).status, 200);
  assert.equal(await serving.stop(), 0);
});

test('a worker that dies is replaced, and its open exchange is closed without a charge', async () => {
  simulator.reset();
  simulator.enqueue(say('slow slow slow slow slow slow slow', { pace: { ms: 300 } }));
  const port = await freePort();
  await using place = await install(file(simulator, { operations: { port } }));
  const serving = await place.serve('--workers', '2');
  await listeners(serving, 2);
  const report: { workers: { pid: number }[] } = JSON.parse(await (await fetch(`http://127.0.0.1:${port}/channels`)).text());
  const [victim] = report.workers;
  assert.ok(victim);
  const open = await Promise.all(Array.from({ length: 12 }, () => post(serving, place, { stream: true })));
  // An opening is on disk within milliseconds, or more of them where the machine is busy; the streams last for seconds.
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  process.kill(victim.pid, 'SIGKILL');
  const ends = await Promise.allSettled(open.map((response) => response.text()));
  const cut = ends.filter(({ status }) => status === 'rejected').length;
  assert.ok(cut > 0 && cut < open.length, `${cut} of ${open.length} were the victim's`);
  await listeners(serving, 3);
  assert.equal((await post(serving, place, { stream: true })).status, 200);
  assert.equal(await serving.stop('SIGTERM'), 0);
  const { out } = await place.run('logs', '--json');
  const rows: { status: string; charge?: object }[] = out
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  const interrupted = rows.filter(({ status }) => status === 'interrupted');
  assert.equal(interrupted.length, cut);
  for (const { status, charge } of rows) assert.equal(charge !== undefined, status === 'success', status);
});

/** Responses whose connections are kept, some of each of two workers. */
async function conversation(serving: Serving, place: Installation, operations: number) {
  await listeners(serving, 2);
  const kept = new Agent({ connections: 8, pipelining: 1 });
  const respond = async (body: object): Promise<string> => {
    const { body: answer } = await request(`${serving.url}/v1/responses`, {
      method: 'POST',
      dispatcher: kept,
      headers: { authorization: `Bearer ${place.key}` },
      body: JSON.stringify({ model: 'm', input: 'hi', ...body }),
    });
    return await answer.text();
  };
  const [first = ''] = await Promise.all(Array.from({ length: 8 }, () => respond({})));
  const { id }: { id: string } = JSON.parse(first);
  const keeper = Number.parseInt(id.slice('resp_mizu_'.length, 'resp_mizu_0000'.length), 16);
  const report: { workers: { pid: number }[] } = JSON.parse(
    await (await fetch(`http://127.0.0.1:${operations}/channels`)).text(),
  );
  const pids = report.workers.map(({ pid }) => pid);
  const [keeping, other] = keeper === 1 ? pids : pids.toReversed();
  assert.ok(keeping !== undefined && other !== undefined);
  /** Every connection asks for that response. */
  const ask = () => Promise.allSettled(Array.from({ length: 8 }, () => respond({ previous_response_id: id })));
  return { ask, keeping, other, leave: () => kept.destroy() };
}

test('the primary outlives a worker that died while others still ask it for a response', async () => {
  simulator.reset();
  simulator.enqueue(say('remembered'));
  const port = await freePort();
  await using place = await install(file(simulator, { operations: { port } }));
  const serving = await place.serve('--workers', '2');
  // The primary hands out no new connections while it is stopped.
  const { ask, keeping, leave } = await conversation(serving, place, port);

  serving.process.kill('SIGSTOP');
  const answers = ask();
  await new Promise((resolve) => setTimeout(resolve, 300));
  process.kill(keeping, 'SIGKILL');
  await new Promise((resolve) => setTimeout(resolve, 100));
  serving.process.kill('SIGCONT');
  const told = (await answers).map((answer) => (answer.status === 'fulfilled' ? answer.value : ''));
  assert.ok(
    told.some((words) => words.includes('previous_response_not_found')),
    `the other worker was asked, too: ${told}`,
  );
  await listeners(serving, 3);
  assert.equal((await post(serving, place)).status, 200);
  assert.equal(await serving.stop(), 0);
  await leave();
});

test('a worker that asks its primary just as that dies ends as any other, and nobody is told of a fault', async () => {
  simulator.reset();
  simulator.enqueue(say('remembered'));
  const port = await freePort();
  await using place = await install(file(simulator, { operations: { port } }));
  const serving = await place.serve('--workers', '2');
  const { ask, keeping, other, leave } = await conversation(serving, place, port);

  // It reads the request before it learns of the death.
  process.kill(other, 'SIGSTOP');
  const answers = ask();
  await new Promise((resolve) => setTimeout(resolve, 300));
  serving.process.kill('SIGKILL');
  await new Promise((resolve) => setTimeout(resolve, 100));
  process.kill(other, 'SIGCONT');
  await answers;
  await waitFor(
    () => ([keeping, other].some(isAlive) ? undefined : true),
    () => `workers outlive their primary: ${serving.text()}`,
  );
  assert.doesNotMatch(serving.text(), /unhandled error/);
  await leave();
});

test('the primary is killed -9: workers finish what is open, end, and leave the store to others', async () => {
  simulator.reset();
  simulator.enqueue(say('a stream that lasts a little longer than its primary', { pace: { ms: 30 } }));
  const port = await freePort();
  await using place = await install(file(simulator, { operations: { port } }));
  const serving = await place.serve('--workers', '2');
  await listeners(serving, 2);
  const report: { workers: { pid: number }[] } = JSON.parse(await (await fetch(`http://127.0.0.1:${port}/channels`)).text());
  // Under load a worker is in the middle of a write most of the time.
  const open = await Promise.all(Array.from({ length: 12 }, () => post(serving, place, { stream: true })));
  const load = Array.from({ length: 8 }, async () => {
    for (let round = 0; round < 4; round++) await (await post(serving, place)).text();
  });
  const loaded = Promise.allSettled(load);
  await Promise.race(load);
  serving.process.kill('SIGKILL');
  for (const response of open) assert.match(await response.text(), /data: \[DONE\]\n\n$/);
  await loaded;
  await waitFor(
    () => (report.workers.some(({ pid }) => isAlive(pid)) ? undefined : true),
    () => `workers outlive their primary: ${serving.text()}`,
  );
  assert.equal((await place.run('accounts', 'create', 'later')).code, 0, 'the store takes writes');
  assert.equal((await place.run('ledger', 'verify')).code, 0);
});

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

test('F39: workers renewed under load (SIGUSR2): no request is lost; Ctrl-C to the group drains', async () => {
  simulator.reset();
  simulator.enqueue(say('a stream that lasts a little', { pace: { ms: 15 } }));
  const port = await freePort();
  await using place = await install(file(simulator, { operations: { port } }));
  const serving = await place.serve('--workers', '2');
  await listeners(serving, 2);
  const pids = async (): Promise<Set<number>> => {
    const report: { workers: { pid: number }[] } = JSON.parse(await (await fetch(`http://127.0.0.1:${port}/channels`)).text());
    return new Set(report.workers.map(({ pid }) => pid));
  };
  const before = await pids();
  const unkept = new Agent({ pipelining: 0 });
  let renewed = false;
  let answered = 0;
  const client = async (): Promise<void> => {
    while (!renewed) {
      // A connection of its own each time: one that is kept may be closed just as it is used again, whatever a server does.
      const { body } = await request(`${serving.url}/v1/chat/completions`, {
        method: 'POST',
        dispatcher: unkept,
        headers: { authorization: `Bearer ${place.key}` },
        body: JSON.stringify({ model: 'm', stream: true, messages: [{ role: 'user', content: 'hi' }] }),
      });
      assert.match(await body.text(), /data: \[DONE\]\n\n$/);
      answered += 1;
    }
  };
  const clients = [0, 1, 2, 3].map(client);
  serving.process.kill('SIGUSR2');
  await serving.logged('workers renewed');
  renewed = true;
  await Promise.all(clients);
  assert.ok(answered > 4);
  for (const pid of await pids()) assert.ok(!before.has(pid), 'every worker is new');
  const open = await post(serving, place, { stream: true });
  for (const pid of await pids()) process.kill(pid, 'SIGINT');
  const stopped = serving.stop('SIGINT');
  assert.match(await open.text(), /data: \[DONE\]\n\n$/);
  assert.equal(await stopped, 0);
});

test('workers that die while they are renewed leave as many as were asked for', async () => {
  simulator.reset();
  await using place = await install(file(simulator));
  const serving = await place.serve('--workers', '2');
  await listeners(serving, 2);
  const workers = (): string[] => {
    const pid = String(serving.process.pid);
    return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ');
  };
  const old = workers();
  serving.process.kill('SIGUSR2');
  await waitFor(
    () => (workers().length > 2 ? true : undefined),
    () => `no successor: ${serving.text()}`,
  );
  for (const pid of old) process.kill(Number(pid), 'SIGKILL');
  // The successor of the one, and another one for the other: whatever else was to start has started with it.
  await listeners(serving, 4);
  assert.equal(workers().length, 2, serving.text());
  assert.equal(await serving.stop(), 0);
});

test('a stop while workers are renewed (SIGUSR2, then SIGTERM) is a good end, and nobody is told of a failure', async () => {
  simulator.reset();
  await using place = await install(file(simulator));
  const serving = await place.serve('--workers', '2');
  await listeners(serving, 2);
  serving.process.kill('SIGUSR2');
  assert.equal(await serving.stop('SIGTERM'), 0);
  assert.deepEqual(
    serving.log().filter(({ level }) => level !== 'info'),
    [],
  );
});
