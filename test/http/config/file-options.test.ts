/**
 * The law of options, for sections of the file and entries of `models` (those of Channels: `option-effects.test.ts`; of platforms:
 * `http/platforms/options.test.ts`): of each a test is named that shows what it changes. A new option wants a row.
 */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { Agent, request } from 'undici';
import { CONFIG_SCHEMA, MODEL_SCHEMA } from '../../../src/http/config/schema.ts';
import { startSimulator } from '../../../src/simulator/simulator.ts';
import { CA, GOOD_CERT, GOOD_KEY } from '../../support/certificates.ts';
import { fakeUpstream } from '../../support/fake-upstream.ts';
import { optionsOf } from '../../support/print-options.ts';
import { ask, channel, eventually, MODELS, testGateway } from '../../support/test-gateway.ts';

type Shown = readonly [file: string, words: string];
const HERE = 'http/config/file-options.test.ts';
const PARSE = 'http/config/parse.test.ts';
const ALERTS = 'http/exchange/ledger-alerts.test.ts';
const TRACING = 'http/tracing/tracing.test.ts';
const WEIGHTS = 'http/request/weights.test.ts';
const BUDGETS = 'http/websocket/budgets.test.ts';
const SESSION = 'http/websocket/session.test.ts';
const SILENCE = 'http/text/silence.test.ts';
const HEALTH = 'http/dispatch/health.test.ts';

/** A file of tests, and words of what stands in it: the option itself, or what it is called where it is used. */
const OF_FILE: Readonly<Record<string, Shown>> = {
  'listen.host': [PARSE, "{ host: '0.0.0.0', port: 9 }"],
  'listen.port': ['main.test.ts', 'listen\\.port'],
  operations: ['slow/processes/workers.test.ts', 'operations: null'],
  'operations.host': ['slow/postgres/game-day.test.ts', 'insecure: true'],
  'operations.port': ['http/mishaps.test.ts', 'operations: {'],
  'operations.tls': [HERE, 'speaks HTTPS'],
  'operations.tls.cert': [HERE, 'cert: GOOD_CERT'],
  'operations.tls.key': [HERE, 'key: GOOD_KEY'],
  'operations.insecure': ['slow/postgres/game-day.test.ts', 'insecure: true'],
  public_base_url: ['pages/pages.test.ts', 'the base URL comes from the configuration alone'],
  'node.role': ['http/videos/videos.test.ts', "'replica'"],
  'store.path': ['command-line.test.ts', "store: { path: join(folder, 'data') }"],
  'store.url': ['slow/postgres/game-day.test.ts', 'store: { url'],
  'store.backups': ['admin/actions.test.ts', '{ backups }'],
  trusted_proxies: ['http/request/client-ip.test.ts', 'trusted_proxies:'],
  'ledger.durability': [SESSION, "durability: 'strict'"],
  'ledger.unpriced_tools': ['http/money/unpriced-tools.test.ts', 'unpriced_tools:'],
  'ledger.unpriced': ['http/money/unpriced-members.test.ts', 'unpriced:'],
  'ledger.charge_failures': ['http/money/endings.test.ts', 'charge_failures:'],
  'ledger.alert_balance': [ALERTS, 'alert_balance:'],
  'ledger.alert_window': [ALERTS, 'alert_window:'],
  'ledger.alert_accounts': [ALERTS, 'alert_accounts:'],
  'log.level': [HERE, "log: { level: 'error' }"],
  'log.retention_days': ['http/operations/retention.test.ts', 'retention_days:'],
  tracing: [TRACING, 'three spans of the client’s own trace'],
  'tracing.endpoint': [TRACING, 'tracing: { endpoint'],
  'tracing.headers': [TRACING, "headers: { 'x-team': 'blue' }"],
  'tracing.sample': [TRACING, 'sample: 0'],
  'tracing.service_name': [TRACING, "service_name: 'mine'"],
  'limits.json_bytes': [WEIGHTS, 'json_bytes:'],
  'limits.json_values': [WEIGHTS, 'json_values:'],
  'limits.object_members': [WEIGHTS, 'object_members:'],
  'limits.multipart_bytes': [WEIGHTS, 'multipart_bytes:'],
  'limits.event_bytes': ['http/websocket/steering.test.ts', 'event_bytes:'],
  'limits.answer_bytes': [SILENCE, 'answer_bytes:'],
  'limits.body_ms': ['http/server/server.test.ts', 'body_ms:'],
  'limits.connections': ['http/operations/each-metric.test.ts', 'limits: { connections: 1 }'],
  'limits.key_exchanges': [WEIGHTS, 'key_exchanges:'],
  'limits.key_body_bytes': [WEIGHTS, 'key_body_bytes:'],
  'limits.body_bytes': [WEIGHTS, 'body_bytes:'],
  'dispatch.max_attempts': ['http/dispatch/failover.test.ts', 'max_attempts:'],
  'dispatch.max_retry_wait_ms': ['http/dispatch/failover.test.ts', 'max_retry_wait_ms:'],
  'health.failures': ['http/observe.test.ts', 'health: { failures: 2'],
  'health.window_ms': [HEALTH, 'windowMs'],
  'health.cooldown_ms': [HEALTH, 'cooldownMs'],
  'health.rate_limit_cooldown_ms': [HEALTH, 'rateLimitCooldownMs'],
  'health.refused_cooldown_ms': [HEALTH, 'refusedCooldownMs'],
  'health.probe_ms': ['http/dispatch/limits.test.ts', 'probe_ms:'],
  history: ['http/history/response-history.property.test.ts', 'bytes are exact, bounds hold'],
  'history.entry_bytes': [SESSION, 'entry_bytes:'],
  'history.key_bytes': [BUDGETS, 'key_bytes:'],
  'history.total_bytes': [BUDGETS, 'total_bytes:'],
  'websocket.turns': [SESSION, 'websocket: { turns:'],
  'websocket.idle_ms': [SESSION, 'websocket: { idle_ms:'],
  'websocket.lifetime_ms': [SESSION, 'lifetime_ms:'],
  'websocket.per_key': [SESSION, 'per_key:'],
  'websocket.unfinished_bytes': [BUDGETS, 'unfinished_bytes:'],
  'affinity.max_entries': ['http/dispatch/affinity.test.ts', 'maxEntries: 2'],
  'affinity.idle_ms': ['http/dispatch/affinity.test.ts', 'idleMs: 1000'],
  'timeouts.connect_ms': ['http/dispatch/upstreams.test.ts', 'connect_ms:'],
  'timeouts.first_data_ms': [SILENCE, 'first_data_ms:'],
  'timeouts.idle_ms': [SILENCE, 'idle_ms:'],
  'timeouts.write_stall_ms': [SILENCE, 'write_stall_ms:'],
  commit_after_ms: ['http/dispatch/failover.test.ts', 'commit_after_ms:'],
  keep_alive_ms: ['http/dispatch/failover.test.ts', 'keep_alive_ms:'],
  warm_up_ms: ['cli/warm-up.test.ts', 'warm_up_ms:'],
  worker_silence_ms: ['slow/processes/silent-worker.test.ts', 'worker_silence_ms:'],
  drain_ms: ['http/server/server.test.ts', 'drain_ms:'],
  channel_header: ['http/observe.test.ts', 'channel_header: true'],
  price_book: ['http/config/book-prices.test.ts', 'price_book:'],
  classes: ['http/limits/limits.test.ts', 'classes: { gold:'],
};

const OF_MODELS: Readonly<Record<string, Shown>> = {
  kind: ['http/server/model-kinds.test.ts', 'kind:'],
  price: ['http/money/bill.test.ts', 'price:'],
  price_as: ['http/config/book-prices.test.ts', 'price_as:'],
  fallbacks: ['http/money/fallbacks.test.ts', 'fallbacks:'],
  thinking: [HERE, "thinking: 'level'"],
  compaction: ['slow/faults/stalls.test.ts', "compaction: 'summary'"],
  min_thinking_budget: [HERE, 'min_thinking_budget: 3_000'],
  max_thinking_budget: [HERE, 'max_thinking_budget: 600'],
  max_output_tokens: ['http/money/estimate.test.ts', 'max_output_tokens:'],
  reasoning: ['http/money/leaving.test.ts', 'reasoning: false'],
  limits: ['http/limits/limits.test.ts', 'limits: { requests_per_minute: 3 }'],
  'limits.requests_per_minute': ['http/limits/limits.test.ts', 'limits: { requests_per_minute: 3 }'],
  'limits.tokens_per_minute': [HERE, 'limits: { tokens_per_minute: 1 }'],
  'limits.max_concurrency': [HERE, 'limits: { max_concurrency: 1 }'],
};

/** For editors; and lists whose entries are walked by themselves. */
const REST: ReadonlySet<string> = new Set(['$schema', 'channels', 'models']);

test('every option of the file and of a model is shown by a test', () => {
  for (const [table, shown] of [
    [optionsOf(CONFIG_SCHEMA), OF_FILE],
    [optionsOf(MODEL_SCHEMA), OF_MODELS],
  ] as const) {
    const paths = table.map(({ path }) => path).filter((path) => !REST.has(path));
    assert.deepEqual(
      paths.filter((path) => !Object.hasOwn(shown, path)),
      [],
      'these options have no row',
    );
    assert.deepEqual(
      Object.keys(shown).filter((path) => !paths.includes(path)),
      [],
      'these rows have no option',
    );
    const wrong = paths.filter((path) => {
      const [file = '', words = ''] = shown[path] ?? [];
      return !existsSync(`test/${file}`) || !readFileSync(`test/${file}`, 'utf8').includes(words);
    });
    assert.deepEqual(wrong, [], 'the words are not in the file that is named');
  }
});

/** What an upstream of this type is sent of a request with a reasoning effort, where the model's entry says so. */
async function sent(type: 'messages' | 'gemini', entry: object): Promise<string> {
  await using stack = new AsyncDisposableStack();
  const simulator = await startSimulator();
  stack.defer(() => simulator.close());
  const channels = [{ id: 'one', type, base_url: simulator.url, api_key: 'k', models: ['m'] }];
  await using gateway = await testGateway({ channels, models: { m: { price: { input: '1', output: '2' }, ...entry } } });
  const body = { model: 'm', max_tokens: 9_000, reasoning_effort: 'medium', messages: [{ role: 'user', content: 'hi' }] };
  const answer = await gateway.post('/v1/chat/completions', body);
  assert.equal(answer.status, 200, await answer.text());
  return simulator.requests[0]?.text ?? '';
}

test('how a model thinks: its entry decides what its upstream is asked for', async () => {
  assert.match(await sent('messages', { thinking: 'budget' }), /"budget_tokens":\d+/);
  assert.doesNotMatch(await sent('messages', { thinking: 'adaptive' }), /"budget_tokens"/);
  assert.match(await sent('gemini', { thinking: 'level' }), /"thinkingLevel":"medium"/i);
  assert.match(await sent('gemini', { thinking: 'budget', max_thinking_budget: 600 }), /"thinkingBudget":600\b/);
  const least = { thinking: 'budget', min_thinking_budget: 3_000, max_thinking_budget: 3_001 };
  assert.match(await sent('gemini', least), /"thinkingBudget":300[01]\b/);
});

test('the listener for operators speaks HTTPS where it has a certificate', async (t) => {
  const operations = { port: 0, tls: { cert: GOOD_CERT, key: GOOD_KEY } };
  await using gateway = await testGateway({ models: MODELS, operations });
  const dispatcher = new Agent({ connect: { ca: CA } });
  t.after(() => dispatcher.close());
  const port = gateway.running.operationsPort ?? assert.fail();
  const { statusCode, body } = await request(`https://localhost:${port}/healthz`, { dispatcher });
  assert.deepEqual([statusCode, JSON.parse(await body.text()).status], [200, 'ok']);
  await assert.rejects(fetch(`http://localhost:${port}/healthz`), 'and nothing else');
});

test('what is less important than the level is not logged, from the next reload on', async () => {
  await using gateway = await testGateway({ models: MODELS });
  const lines = async (file: object): Promise<number> => {
    gateway.configure({ channels: [channel('http://127.0.0.1:1')], models: MODELS, ...file });
    const [rows, before] = [gateway.store.settled.length, gateway.logLines.length];
    await gateway.post('/v1/messages', ask());
    await eventually(() => gateway.store.settled.length > rows, 'the row');
    return gateway.logLines.length - before;
  };
  assert.ok((await lines({})) > 0);
  assert.equal(await lines({ log: { level: 'error' } }), 0);
});

test('a model has limits of all who ask for it: tokens a minute, and requests at once', async () => {
  await using silent = await fakeUpstream(() => undefined);
  const second = async (entry: object): Promise<number> => {
    const client = new AbortController();
    const models = { m: { ...MODELS.m, ...entry } };
    await using gateway = await testGateway({ channels: [channel(silent.url)], models });
    const before = silent.requests.length;
    const first = gateway.post('/v1/messages', ask(), { signal: client.signal }).catch(() => undefined);
    await eventually(() => silent.requests.length > before, 'the first request');
    const { status } = await Promise.race([
      gateway.post('/v1/messages', ask(), { signal: client.signal }),
      eventually(() => silent.requests.length > before + 1, 'the second').then(() => ({ status: 0 })),
    ]);
    client.abort();
    await first;
    return status;
  };
  assert.equal(await second({ limits: { tokens_per_minute: 1 } }), 429);
  assert.equal(await second({ limits: { tokens_per_minute: 2_000 } }), 0, 'there is room for it');
  assert.equal(await second({ limits: { max_concurrency: 1 } }), 429);
});
