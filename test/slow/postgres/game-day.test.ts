/**
 * The game day with three whole gateways on one database, as processes: Channels are broken one after another, then one gateway
 * is killed and the wire between another and the database is pulled, all in the middle of load. Afterwards every answer that a
 * client has is settled once, every balance is the sum of its journal, and no video task was submitted twice.
 */
import assert from 'node:assert/strict';
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { startSimulator, type Simulator } from '../../../src/simulator/simulator.ts';
import { formatUsd } from '../../../src/store/money.ts';
import OpenAI from 'openai';
import {
  ANSWER,
  breakOneByOne,
  channelsOf,
  defineSlow,
  logOf,
  startCrowd,
  startUpstreams,
  timelineOf,
} from '../../support/game-day.ts';
import { makeNetworkNamespace, type NetworkNamespace, noNamespaces } from '../../support/network-namespace.ts';
import { noPostgres, startServer } from '../../support/postgres.ts';
import { freePort, type Installation, install, type Serving, waitFor } from '../../support/processes.ts';

const NAMES = ['cut', 'killed', 'steady'] as const;
type Name = (typeof NAMES)[number];
/** Good answers of a Channel in a row after which it is well again: more than were in flight when it broke. */
const ENOUGH = 5;
const PRICE = { price: { input: '1', output: '2' } };
const SLOW = 'slow-request';
const CREDIT_NANOS = 1000n * 10n ** 9n;

interface Fleet {
  /** Starts one of them, anew where it ran before. */
  readonly serve: (name: Name) => Promise<Serving>;
  readonly place: Installation;
  readonly gateways: Readonly<Record<Name, Serving>>;
  readonly operations: Readonly<Record<Name, string>>;
  readonly film: Simulator;
  readonly simulators: ReadonlyMap<string, Simulator>;
  metrics(of?: readonly Name[]): Promise<string>;
}

/**
 * `cut` lives in a network of its own: one wire leads to the database, another to everything else. It starts first and holds the
 * lease.
 */
async function startFleet(t: TestContext, network: NetworkNamespace): Promise<Fleet> {
  const [world, wire] = network.wires;
  assert.ok(world !== undefined && wire !== undefined);
  const server = await startServer({
    settings: { listen_addresses: wire.here },
    access: [`host all all ${wire.there}/32 trust`],
  });
  t.after(() => server.stop());
  const url = await server.createDatabase();
  const simulators = await startUpstreams(t, world.here);
  const film = await startSimulator({ host: world.here, journal: 10_000, video: { queueMs: 20, runMs: 50 } });
  t.after(() => film.close());
  const { channels, health } = channelsOf(simulators);
  const cinema = { id: 'film', type: 'ark_video', base_url: `${film.url}/api/v3`, api_key: 'k', models: ['v'] };
  const common = {
    channels: [...channels, { ...cinema, options: { poll_interval_ms: 100 } }],
    health,
    models: { m: PRICE, slow: PRICE, v: { kind: 'video', price: { video: '0.01' } } },
  };
  const place = await install({ ...common, operations: null, store: { url, path: './observer' } });
  t.after(() => place[Symbol.asyncDispose]());
  const operations: Record<string, string> = {};
  const serve = async (name: Name): Promise<Serving> => {
    const host = name === 'cut' ? world.there : '127.0.0.1';
    const port = await freePort();
    operations[name] = `http://${host}:${port}`;
    const configPath = join(place.folder, `${name}.json`);
    const way = name === 'cut' ? url.replace(/@[^/]+/, `@${wire.here}`) : url;
    const file = {
      ...common,
      listen: { host },
      operations: { host, port, insecure: true },
      store: { url: way, path: `./${name}` },
    };
    // The killed one promises that whoever has an answer pays for it, if only from its disk once it is back; the others pay
    // within milliseconds.
    const ledger = name === 'killed' ? { durability: 'strict' } : {};
    writeFileSync(configPath, JSON.stringify({ ...file, ledger }));
    return await place.serveAt({ configPath, ...(name === 'cut' ? { command: network.command } : {}) });
  };
  const cut = await serve('cut');
  const [killed, steady] = await Promise.all([serve('killed'), serve('steady')]);
  return {
    place,
    serve,
    gateways: { cut, killed, steady },
    operations: { cut: '', killed: '', steady: '', ...operations },
    film,
    simulators,
    async metrics(of = NAMES) {
      const texts = of.map(async (name) => (await fetch(`${operations[name]}/metrics`)).text());
      return (await Promise.all(texts)).join('\n');
    },
  };
}

/**
 * A client that makes video tasks through one gateway after the other, and repeats with the same key what it got no answer to.
 */
function startFilmmaker({ gateways, place }: Fleet) {
  let [made, stopping] = [0, false];
  const create = async (key: string): Promise<void> => {
    for (let tries = 0; ; tries++) {
      const { url } = gateways[NAMES[(made + tries) % NAMES.length] ?? 'steady'];
      const status = await fetch(`${url}/v1/videos`, {
        method: 'POST',
        headers: { authorization: `Bearer ${place.key}`, 'content-type': 'application/json', 'idempotency-key': key },
        body: JSON.stringify({ model: 'v', prompt: key }),
      }).then(
        (response) => response.status,
        () => undefined,
      );
      if (status === 202) return;
      assert.ok(status === undefined || status === 503, `a task was answered with ${status}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  };
  const run = (async () => {
    for (; !stopping; made += 1) {
      await create(`film-${made}`);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  })();
  return {
    async stop(): Promise<number> {
      stopping = true;
      await run;
      return made;
    },
  };
}

test('three gateways on one database: Channels break, one gateway is killed, one is cut off', {
  skip: noPostgres || noNamespaces,
  timeout: 240_000,
}, async (t) => {
  const network = makeNetworkNamespace(2);
  t.after(() => network.remove());
  const fleet = await startFleet(t, network);
  const { place, gateways, metrics, simulators } = fleet;
  const [, wire] = network.wires;
  assert.ok(wire !== undefined);

  const crowd = startCrowd(new Map(NAMES.map((name) => [name, gateways[name].url])), place.key, 1);
  const filmmaker = startFilmmaker(fleet);
  const whole = (name: Name): number => crowd.asked.filter((ask) => ask.gateway === name && ask.outcome === 'whole').length;
  const told = await breakOneByOne(simulators, crowd, metrics, ENOUGH);
  const seenBefore = crowd.failures.length;

  defineSlow(simulators);
  const running = askSlowly(gateways.cut.url, place.key);
  await gateways.killed.stop('SIGKILL');
  wire.cut();
  await waitFor(
    () => crowd.asked.some(({ gateway, outcome }) => gateway === 'cut' && outcome === 'away') || undefined,
    () => 'the one that is cut off never noticed',
  );
  const steadyBefore = whole('steady');
  assert.equal(await running, ANSWER.join(''), 'what ran when the wire was pulled ends well');
  const healthz = await fetch(`${fleet.operations.cut}/healthz`);
  assert.equal(healthz.status, 503);
  // The lease of the video worker is with the one that is cut off until it runs out.
  const submitted = submissionsOf(fleet.film).size;
  await waitFor(
    () => submissionsOf(fleet.film).size >= submitted + 10 || undefined,
    () => 'nobody took over the video tasks',
  );
  assert.ok(whole('steady') > steadyBefore, 'the others go on');
  wire.heal();
  const cutBefore = whole('cut');
  await waitFor(
    () => whole('cut') >= cutBefore + 10 || undefined,
    () => 'the one that was cut off never came back',
  );
  await crowd.stop();
  const films = await filmmaker.stop();
  await waitFor(
    async () => (await metrics(['cut', 'steady'])).match(/^mizu_settlements_pending 0$/gm)?.length === 2 || undefined,
    () => 'settlements wait',
  );
  const tasks = await waitFor(
    async () => {
      const list = await tasksOf(place);
      return list.every(({ state }) => ['succeeded', 'failed', 'unknown'].includes(state)) ? list : undefined;
    },
    () => 'tasks are unfinished',
  );
  // The killed one comes back: what it had promised, and the database had not yet, stands on its own disk.
  assert.equal(await (await fleet.serve('killed')).stop(), 0);
  assert.equal(await gateways.cut.stop(), 0);
  assert.equal(await gateways.steady.stop(), 0);
  const logged = ['cut', 'killed'].flatMap((name) => readdirSync(join(place.folder, name, 'waiting')));
  assert.deepEqual(logged, [], 'what waited on the disk is in the database');

  const rows = await logOf(place);
  const byRequest = new Map(rows.map((row) => [row.requestId, row]));
  assert.equal(byRequest.size, rows.length, 'one row a request');
  for (const { id, gateway, outcome, said } of crowd.asked) {
    const row = byRequest.get(id);
    if (outcome === 'whole') assert.deepEqual([row?.status, row?.charge?.total], ['success', '21000'], `${gateway} ${id}`);
    else if (outcome === 'away') assert.equal(row?.charge?.total ?? '0', '0', `${gateway} ${id}`);
    assert.doesNotMatch(said, /^401/, 'a database that is away is no reason to refuse a key');
  }
  assert.equal(byRequest.get(SLOW)?.status, 'success', 'its charge waited on the disk');
  // What clients saw after the Channels were well again: the killed gateway, and the one that could not settle. Nothing else.
  const late = crowd.failures.slice(seenBefore);
  assert.deepEqual(
    late.filter(({ gateway, outcome }) => gateway === 'steady' || (gateway === 'cut' && outcome !== 'away')),
    [],
  );
  const interrupted = rows.filter(({ status }) => status === 'interrupted');
  const ofKilled = new Set(crowd.failures.filter(({ gateway }) => gateway === 'killed').map(({ id }) => id));
  assert.ok(interrupted.every(({ requestId }) => ofKilled.has(requestId)));
  const read = timelineOf(rows, ENOUGH);
  assert.deepEqual(read, told, 'the log tells what happened');

  const submissions = submissionsOf(fleet.film);
  assert.deepEqual(
    [...submissions].filter(([, times]) => times > 1),
    [],
    'a task was submitted twice',
  );
  assert.equal(tasks.length, films, 'one task a key, however often it was asked for');
  const verified = await place.run('ledger', 'verify', '--json');
  assert.equal(verified.code, 0, verified.out);
  const charged = rows.reduce((sum, row) => sum + BigInt(row.charge?.total ?? 0), 0n);
  const paid = tasks.filter(({ state }) => state === 'succeeded' || state === 'unknown').length;
  assert.equal(await walletOf(place), formatUsd(CREDIT_NANOS - charged - BigInt(paid) * 10_000_000n));
  const unknown = tasks.filter(({ state }) => state === 'unknown').length;
  t.diagnostic(`told: ${told.join('; ')}; one was killed; one was cut off and came back`);
  t.diagnostic(
    `${crowd.asked.length} requests, ${interrupted.length} interrupted; ${films} tasks, none submitted twice, ${unknown} unknown`,
  );
});

/** A stream that lasts longer than the gateway needs to see that its database is away. */
async function askSlowly(url: string, apiKey: string): Promise<string> {
  const openai = new OpenAI({ apiKey, baseURL: `${url}/v1`, maxRetries: 0 });
  const headers = { 'x-request-id': SLOW };
  let text = '';
  const stream = await openai.chat.completions.create(
    { model: 'slow', stream: true, messages: [{ role: 'user', content: 'slowly' }] },
    { headers },
  );
  for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? '';
  return text;
}

/** How often each prompt was submitted. */
function submissionsOf(film: Simulator): Map<string, number> {
  const times = new Map<string, number>();
  for (const { method, text } of film.requests) {
    const prompt = method === 'POST' ? /film-\d+/.exec(text)?.[0] : undefined;
    if (prompt !== undefined) times.set(prompt, (times.get(prompt) ?? 0) + 1);
  }
  return times;
}

async function tasksOf(place: Installation): Promise<readonly { readonly state: string }[]> {
  const { out } = await place.run('videos', 'list', '--limit', '1000', '--json');
  return JSON.parse(out);
}

async function walletOf(place: Installation): Promise<string> {
  const { out } = await place.run('balance', '--json');
  const [row]: { readonly balance: string }[] = JSON.parse(out);
  return row?.balance ?? '';
}
