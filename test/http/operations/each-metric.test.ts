/**
 * The law of metrics: each is moved by what it counts. What it counts is brought about here, and its series are read before and
 * after; of what needs a process of its own a test is named that shows it. A new metric wants its series in `HAPPENINGS`.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { test, type TestContext } from 'node:test';
import { createFakeClock } from '../../support/fake-clock.ts';
import { beginMessage, endMessage, fakeUpstream, jsonAnswer } from '../../support/fake-upstream.ts';
import { ask, channel, eventually, KEY, MODELS, type TestGateway, testGateway } from '../../support/test-gateway.ts';
import { VideoGateway } from '../videos/video-gateway.ts';

/** By how much a series grows; a function where only some numbers are right. */
type Growth = number | ((by: number) => boolean);
interface Happening {
  /** Series as `/metrics` spells them. */
  readonly moves: Readonly<Record<string, Growth>>;
  /** Brings it about, and reads the metrics before and after. */
  readonly happen: (t: TestContext) => Promise<readonly [before: string, after: string]>;
}

/** Seven tokens in and five out, in two pieces of text. */
const well = await fakeUpstream(({ socket }) => {
  const stream = beginMessage(socket, 'fine ');
  setTimeout(() => {
    stream.event('content_block_delta', { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'day' } });
    endMessage(stream);
  }, 10);
});
const sick = await fakeUpstream(jsonAnswer(500, { type: 'error', error: { type: 'api_error', message: 'no' } }));
const silent = await fakeUpstream(() => undefined);
for (const upstream of [well, sick, silent]) test.after(() => upstream.close());

const some = (by: number): boolean => by > 0;
const read = ({ running }: Pick<TestGateway, 'running'>): Promise<string> => running.gateway.metrics.registry.metrics();

/** The metrics of a gateway with one Channel before and after `happen`. */
async function around(
  upstream: string,
  happen: (gateway: TestGateway) => Promise<unknown>,
  file: object = {},
  options: Parameters<typeof testGateway>[1] = {},
): Promise<readonly [string, string]> {
  await using gateway = await testGateway({ channels: [channel(upstream)], models: MODELS, ...file }, options);
  const before = await read(gateway);
  await happen(gateway);
  return [before, await read(gateway)];
}

async function streamed(gateway: TestGateway): Promise<void> {
  const rows = gateway.store.settled.length;
  assert.match(await (await gateway.post('/v1/messages', ask({ stream: true }))).text(), /message_stop/);
  await eventually(() => gateway.store.settled.length > rows, 'the row');
  await new Promise((resolve) => setImmediate(resolve));
}

const HAPPENINGS: Readonly<Record<string, Happening>> = {
  'a stream is answered': {
    moves: {
      'mizu_requests_total{route="messages",status="200"}': 1,
      'mizu_attempts_total{channel="one",outcome="success",reason=""}': 1,
      'mizu_request_duration_seconds_count{route="messages"}': 1,
      'mizu_time_to_first_token_seconds_count{route="messages"}': 1,
      'mizu_time_between_tokens_seconds_count{route="messages"}': some,
      'mizu_upstream_duration_seconds_count{channel="one",model="m"}': 1,
      'mizu_upstream_first_token_seconds_count{channel="one",model="m"}': 1,
      'mizu_tokens_total{kind="input"}': 7,
      'mizu_model_tokens_total{model="m",kind="output"}': 5,
      'mizu_prompt_tokens_total{channel="one",model="m",cache="none"}': 7,
      // Seven at $1 and five at $2 a million.
      'mizu_charged_usd_total{model="m"}': (by) => Math.abs(by - 17e-6) < 1e-9,
      'mizu_affinity_total{channel="one",result="miss"}': 1,
    },
    happen: () => around(well.url, streamed),
  },
  'a conversation goes on': {
    moves: { 'mizu_affinity_total{channel="one",result="hit"}': 1, 'mizu_requests_total{route="messages",status="200"}': 2 },
    happen: () =>
      around(well.url, async (gateway) => {
        await streamed(gateway);
        await streamed(gateway);
      }),
  },
  'a balance goes below its threshold': {
    moves: { 'mizu_ledger_alerts_total{what="balance"}': 1 },
    happen: () =>
      around(well.url, async (gateway) => {
        gateway.store.walletNanos = 1_000_000_001n;
        await streamed(gateway);
        await gateway.running.gateway.alerts.look();
      }),
  },
  'a settlement cannot be written': {
    moves: { mizu_settlements_lost_total: 1 },
    happen: () =>
      around(well.url, async (gateway) => {
        gateway.store.disk = Promise.reject(new Error('the disk is full'));
        gateway.store.disk.catch(() => undefined);
        await streamed(gateway);
      }),
  },
  'the store is unwell, and settlements wait': {
    moves: { mizu_store_healthy: -1, mizu_settlements_pending: 3 },
    happen: () =>
      around(well.url, async ({ store }) => {
        Object.assign(store, { health: () => ({ healthy: false }) });
        Object.assign(store.settlements, { pending: 3 });
      }),
  },
  'a request is refused': {
    moves: { 'mizu_errors_total{route="messages",code="model_not_found"}': 1 },
    happen: () => around(well.url, (gateway) => gateway.post('/v1/messages', ask({ model: 'nothing' }))),
  },
  'a key causes more refusals than are written': {
    moves: { mizu_refusals_unwritten_total: 2 },
    happen: () =>
      around(
        well.url,
        async (gateway) => {
          for (let n = 0; n < 12; n += 1) await gateway.post('/v1/messages', '{');
        },
        {},
        { clock: createFakeClock() },
      ),
  },
  'a key asks more often than it may': {
    moves: { 'mizu_rate_limited_total{scope="key",limit="requests"}': 1 },
    happen: () =>
      around(well.url, async (gateway) => {
        gateway.store.addKey(KEY, { rateLimits: { requestsPerMinute: 1 } });
        await streamed(gateway);
        assert.equal((await gateway.post('/v1/messages', ask())).status, 429);
      }),
  },
  'a request waits for its upstream': {
    moves: { 'mizu_requests_in_flight{route="messages"}': 1, 'mizu_held{kind="body_bytes"}': some },
    happen: async () => {
      const client = new AbortController();
      const asked = silent.requests.length;
      return await around(silent.url, async (gateway) => {
        void gateway.post('/v1/messages', ask(), { signal: client.signal }).catch(() => undefined);
        await eventually(() => silent.requests.length > asked, 'the request upstream');
      }).finally(() => client.abort());
    },
  },
  'a Channel fails until its circuit opens': {
    moves: {
      'mizu_circuit_open{channel="one",model="m",state="open"}': 1,
      'mizu_circuit_transitions_total{channel="one",state="open"}': 1,
      'mizu_attempts_total{channel="one",outcome="failure",reason="status_500"}': some,
    },
    happen: () =>
      around(sick.url, (gateway) => gateway.post('/v1/messages', ask()), { health: { failures: 1, cooldown_ms: 60_000 } }),
  },
  'a Channel is probed': {
    moves: { 'mizu_probes_total{channel="one",outcome="failure"}': 1 },
    happen: async () => {
      const clock = createFakeClock();
      const probe = async (gateway: TestGateway): Promise<void> => {
        clock.advance(60_000);
        while (!(await read(gateway)).includes('mizu_probes_total{')) await new Promise((resolve) => setTimeout(resolve, 5));
      };
      return await around(sick.url, probe, { health: { probe_ms: 60_000 } }, { clock });
    },
  },
  'more connect than may': {
    moves: { mizu_connections_dropped_total: 1 },
    happen: () =>
      around(
        well.url,
        async ({ running }) => {
          const sockets = [1, 2].map(() => connect(running.port, '127.0.0.1'));
          await Promise.race(sockets.map((socket) => once(socket, 'close')));
          for (const socket of sockets) socket.destroy();
        },
        { limits: { connections: 1 } },
      ),
  },
  'a gateway starts': {
    moves: { [`mizu_build_info{version="",node="${process.versions.node}"}`]: 1 },
    happen: async () => ['', (await around(well.url, async () => undefined))[1]],
  },
  'a video is asked for': {
    moves: { 'mizu_videos{state="running"}': 1 },
    happen: (t) =>
      aroundVideo(t, { queueMs: 5, runMs: 60_000 }, async (gateway, id) => {
        await gateway.until(id, 'in_progress', 'running');
      }),
  },
  'a video is made': {
    moves: { 'mizu_videos_ended_total{model="ark",state="succeeded"}': 1, 'mizu_charged_usd_total{model="ark"}': some },
    happen: (t) =>
      aroundVideo(t, { queueMs: 5, runMs: 10 }, async (gateway, id) => {
        await gateway.until(id, 'succeeded');
      }),
  },
};

async function aroundVideo(
  t: TestContext,
  video: { readonly queueMs: number; readonly runMs: number },
  until: (gateway: VideoGateway, id: string) => Promise<void>,
): Promise<readonly [string, string]> {
  const gateway = await VideoGateway.start(t, { video });
  const before = await read(gateway);
  const { body } = await gateway.create({ model: 'ark', prompt: 'a cat', duration: 6 }, 'one');
  await until(gateway, body.id);
  return [before, await read(gateway)];
}

/** What needs a process of its own: a file of tests that reads the metric. */
const ELSEWHERE: Readonly<Record<string, string>> = { mizu_config_reloads_total: 'test/slow/processes/workers.test.ts' };

const figure = (text: string, series: string): number =>
  Number(
    text
      .split('\n')
      .find((line) => line.startsWith(`${series} `))
      ?.slice(series.length + 1) ?? 0,
  );

for (const [what, { moves, happen }] of Object.entries(HAPPENINGS)) {
  test(`metrics when ${what}`, async (t) => {
    const [before, after] = await happen(t);
    for (const [series, growth] of Object.entries(moves)) {
      const by = figure(after, series) - figure(before, series);
      assert.ok(typeof growth === 'number' ? by === growth : growth(by), `${series} grew by ${by}`);
    }
  });
}

test('every metric is moved here, or by a test that is named', async () => {
  const [, text] = await around(well.url, async () => undefined);
  const names = [...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name = '']) => name);
  assert.ok(names.length > 25);
  const moved = new Set(
    Object.values(HAPPENINGS).flatMap(({ moves }) => Object.keys(moves).map((series) => series.replace(/(_count)?(\{.*)?$/, ''))),
  );
  const missing = names.filter((name) => {
    const file = ELSEWHERE[name];
    return file === undefined ? !moved.has(name) : !readFileSync(file, 'utf8').includes(name);
  });
  assert.deepEqual(missing, [], 'these want something in HAPPENINGS that moves them');
});
