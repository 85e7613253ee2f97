/** What requests cost, for operators: one charge explained, and the costs of end users. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { LOGS } from '../../src/cli/logs.ts';
import type { Typed } from '../../src/cli/perform.ts';
import { SPEND } from '../../src/cli/spend.ts';
import { SPEND_USERS } from '../../src/cli/spend-users.ts';
import type { Store } from '../../src/store/store.ts';
import { entry, funded, openStore, realClock } from '../store/support/store.ts';
import { CLIENTS, moneyGateway } from '../support/money-gateway.ts';
import { typed } from '../support/verbs.ts';

const VERBS = [LOGS, SPEND, SPEND_USERS];

async function printed(store: Store, words: readonly string[], values: Typed['values'] = {}): Promise<string[]> {
  const lines: string[] = [];
  await typed(VERBS, words, values, { store: () => Promise.resolve(store) }, (text) => void lines.push(...text.split('\n')));
  return lines;
}

test('logs --request explains the charge, as text and as JSON', async (t) => {
  const gateway = await moneyGateway(t);
  const owner = await gateway.owner(10n ** 12n);
  gateway.simulator.enqueue({ reply: { pieces: [{ type: 'text', text: 'hello' }], usage: { input: 11, cached: 5, output: 4 } } });
  const { path, ask } = CLIENTS.messages;
  const response = await gateway.post(owner, path, { ...ask('messages', false), metadata: { user_id: 'ada' } });
  await response.text();
  const [row] = await gateway.settled(owner, 1);
  const id = row?.requestId ?? '';
  const lines = await printed(gateway.store, ['logs'], { request: id });
  assert.deepEqual(lines.slice(2), [
    '  charge $0.0001325 at the price of messages, as the upstream reported, attempt 1 of 1 (messages messages)',
    '    input: 6 × $5.00 a million = $0.00003',
    '    cached_input: 5 × $0.50 a million = $0.0000025',
    '    output: 4 × $25.00 a million = $0.0001',
    '  user ada',
  ]);
  const { explained, endUser } = JSON.parse((await printed(gateway.store, ['logs'], { request: id, json: true })).join('\n'));
  assert.deepEqual([explained.total, explained.basis, explained.lines.length, endUser], ['0.0001325', 'reported', 3, 'ada']);
});

test('the end user of each dialect is in the row, capped; the first of the three names counts', async (t) => {
  const gateway = await moneyGateway(t);
  const owner = await gateway.owner(10n ** 12n);
  const asked = [
    ['/v1/chat/completions', { ...CLIENTS.chat.ask('chat_completion', false), safety_identifier: 'safe', user: 'old' }, 'safe'],
    ['/v1/chat/completions', { ...CLIENTS.chat.ask('chat_completion', false), user: ' old ' }, 'old'],
    [
      '/v1/responses',
      { ...CLIENTS.responses.ask('responses', false), safety_identifier: '', user: 'x'.repeat(1000) },
      'x'.repeat(256),
    ],
    ['/v1/responses', { ...CLIENTS.responses.ask('responses', false), metadata: { user_id: 'm' } }, 'm'],
    ['/v1/messages', CLIENTS.messages.ask('messages', false), undefined],
    ['/v1/completions', { ...CLIENTS.completions.ask('chat_completion', false), user: 'c' }, 'c'],
  ] as const;
  for (const [path, body] of asked) {
    gateway.simulator.enqueue({ reply: { pieces: [{ type: 'text', text: 'hello' }], usage: { input: 1, output: 1 } } });
    const response = await gateway.post(owner, path, body);
    assert.equal(response.status, 200, await response.text());
  }
  const rows = await gateway.settled(owner, asked.length);
  assert.deepEqual(
    rows.map(({ endUser }) => endUser),
    asked.map(([, , user]) => user),
  );
});

test('vectors and pictures have an end user, too', async (t) => {
  const base = { base_url: 'SIMULATOR', api_key: 'k' };
  const gateway = await moneyGateway(t, {
    channels: [
      { id: 'v', type: 'chat_completion', ...base, models: ['vectors'] },
      { id: 'i', type: 'openai_image', ...base, models: ['pictures'] },
    ],
    models: { vectors: { kind: 'embedding', price: { input: '1' } }, pictures: { kind: 'image', price: { image: '0.01' } } },
  });
  const owner = await gateway.owner(10n ** 12n);
  await (await gateway.post(owner, '/v1/embeddings', { model: 'vectors', input: 'a', user: 'v1' })).text();
  await (await gateway.post(owner, '/v1/images/generations', { model: 'pictures', prompt: 'a', user: 'p1' })).text();
  const rows = await gateway.settled(owner, 2);
  assert.deepEqual(
    rows.map(({ endUser }) => endUser),
    ['v1', 'p1'],
  );
});

async function usersStore(t: TestContext): Promise<{ store: Store; names: string[] }> {
  const store = await openStore(t);
  const [ada, bob] = [await funded(store, 10n ** 12n), await funded(store, 10n ** 12n)];
  let made = 0;
  for (const [owner, endUser, nanos] of [
    [ada, 'u1', 5n],
    [ada, 'u2', 7n],
    [bob, 'u1', 1n],
    [bob, undefined, 100n],
  ] as const) {
    const usage = { input: 3, cachedInput: 2, output: 1, reasoning: 1 };
    const row = entry(owner, `ex_${++made}`, nanos, { usage, ...(endUser === undefined ? {} : { endUser }) });
    await store.settlements.settle({ entry: row });
  }
  await store.settlements.flush();
  return { store, names: [ada.account.name, bob.account.name] };
}

test('logs --user finds the rows of one end user, spend users sums them all', async (t) => {
  const { store, names } = await usersStore(t);
  const found = await printed(store, ['logs'], { user: 'u1' });
  assert.deepEqual(
    found.slice(1).map((line) => /req_ex_\d/.exec(line)?.[0]),
    ['req_ex_3', 'req_ex_1'],
  );
  assert.match(found[0] ?? '', /^TIME REQUEST/);
  assert.equal((await printed(store, ['logs'], { user: 'u1', limit: '1' })).length, 2);
  assert.deepEqual(await printed(store, ['logs'], { user: 'nobody' }), []);
  await assert.rejects(printed(store, ['logs'], { user: 'u1', request: 'req_ex_1' }), /--request and --user do not go together/);
  assert.deepEqual(await printed(store, ['spend', 'users']), [
    'USER  REQUESTS  INPUT  OUTPUT  CHARGED USD',
    '-     1         5      2       0.0000001',
    'u2    1         5      2       0.000000007',
    'u1    2         10     4       0.000000006',
  ]);
  const [newest] = await store.requestLog.list({ limit: 1 });
  const day = new Date(newest?.loggedAtMs ?? 0).toISOString().slice(0, 10);
  const one = await printed(store, ['spend', 'users'], { account: names[0] ?? '', from: day, to: day, json: true });
  assert.deepEqual(
    JSON.parse(one.join('\n')).map(({ user, charged }: { user: string; charged: string }) => [user, charged]),
    [
      ['u2', '0.000000007'],
      ['u1', '0.000000005'],
    ],
  );
  assert.equal((await printed(store, ['spend', 'users'], { to: '2020-01-01' })).length, 1);
  await assert.rejects(printed(store, ['spend', 'users'], { from: 'x' }), /--from must be a day/);
  for (const words of [['spend'], ['spend', 'users']])
    await assert.rejects(printed(store, words, { key: 'key_typo' }), /^RefusedError: there is no key key_typo$/);
  const interrupted = () => AbortSignal.abort(new Error('interrupted'));
  await assert.rejects(
    typed(VERBS, ['spend', 'users'], {}, { store: () => Promise.resolve(store), interrupted }),
    /^Error: interrupted$/,
    'the sums of a part are not printed as those of all',
  );
  assert.equal((await printed(store, ['spend'])).length > 2, true, 'the verb without a word is still the one by day');
});

test('a law: the days of a range add up to the range, whatever the millisecond at which a request was logged', async (t) => {
  const DAY_MS = 86_400_000;
  const first = Date.UTC(2026, 2, 1);
  let nowMs = first;
  const store = await openStore(t, { clock: { ...realClock, now: () => nowMs } });
  const owner = await funded(store, 10n ** 12n);
  const times = [0, 1, DAY_MS / 2, DAY_MS - 2, DAY_MS - 1, DAY_MS, DAY_MS + 1, 2 * DAY_MS - 1, 2 * DAY_MS];
  for (const [index, atMs] of times.entries()) {
    nowMs = first + atMs;
    await store.settlements.settle({ entry: entry(owner, `ex_${index}`, 10n ** BigInt(index)) });
    await store.settlements.flush();
  }
  const charged = async (from: string, to: string): Promise<string> => {
    const [one] = JSON.parse((await printed(store, ['spend', 'users'], { from, to, json: true })).join('\n'));
    return one?.charged ?? '0';
  };
  assert.equal(await charged('2026-03-01', '2026-03-01'), '0.000011111');
  assert.equal(await charged('2026-03-02', '2026-03-02'), '0.0111');
  assert.equal(await charged('2026-03-03', '2026-03-03'), '0.10');
  assert.equal(await charged('2026-03-01', '2026-03-03'), '0.111111111');
});
