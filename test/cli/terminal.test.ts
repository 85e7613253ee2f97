/** What the operator's terminal is told: words of clients and upstreams command it nothing, and write no line of their own. */
import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import { LOGS } from '../../src/cli/logs.ts';
import type { Typed } from '../../src/cli/perform.ts';
import { table, type VerbContext } from '../../src/cli/verb.ts';
import type { AttemptEntry } from '../../src/store/request-log.ts';
import type { Store } from '../../src/store/store.ts';
import { entry, funded, openStore, T0 } from '../store/support/store.ts';
import { command } from '../support/command.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { eventually } from '../support/test-gateway.ts';
import { typed } from '../support/verbs.ts';

const EVIL = 'm\u001b]0;owned\u0007\u001b[2J\u009b31m\r\n2026-01-01T00:00:00.000Z req_forged\u2028\u202egpj.exe';
const FORBIDDEN = /[\p{Cc}\u2028\u202e]/u;

const withoutHeader = (text: string): string => text.replace(/^TIME REQUEST [^\n]*\n/, '');

/** What `mizu logs` prints, its header aside. */
async function printed(
  store: Store,
  values: Typed['values'],
  has: Partial<VerbContext> = {},
  lines: string[] = [],
): Promise<string[]> {
  const keep = (text: string): void => void lines.push(values.request === undefined ? withoutHeader(text) : text);
  await typed([LOGS], ['logs'], values, { store: () => Promise.resolve(store), ...has }, keep);
  return lines;
}

test('F42: mizu logs: models, errors and upstream words of anybody are one line of plain text, in JSON too', async (t) => {
  const store = await openStore(t);
  const owner = await funded(store, 10n ** 12n);
  const attempt: AttemptEntry = {
    channelId: 'one',
    channelType: 'messages',
    upstreamModel: 'u',
    startedAtMs: 1,
    durationMs: 1,
    errorCode: 'upstream_error',
  };
  const words = { model: EVIL, errorText: EVIL, errorCode: 'model_not_found', attempts: [{ ...attempt, errorText: EVIL }] };
  await store.settlements.settle({ entry: entry(owner, 'ex_1', 0n, words) });
  await store.settlements.flush();
  const [row] = await store.requestLog.list({ limit: 1 });
  assert.equal(row?.model, EVIL, 'the record itself is exact');
  const run = (values: Typed['values'], json = false): Promise<string[]> => printed(store, { ...values, json });
  const listed = await run({});
  assert.equal(listed.length, 1);
  assert.doesNotMatch(listed[0] ?? '', FORBIDDEN);
  const [shown = ''] = await run({ request: row.requestId });
  assert.equal(shown.split('\n').length, 4, 'the row, its attempt, its words and its charge');
  for (const line of shown.split('\n')) assert.doesNotMatch(line, FORBIDDEN);
  const [text = ''] = await run({}, true);
  assert.doesNotMatch(text, FORBIDDEN);
  assert.equal(JSON.parse(text).model, EVIL);
});

test('what a refusal quotes, of a file or of the line itself, is plain text too', async () => {
  const { code, err } = await command([EVIL.replaceAll(/[\r\n]/g, '')]);
  assert.equal(code, 2);
  assert.doesNotMatch(err.replace(/\n$/, ''), FORBIDDEN);
  assert.match(err, /m\\u001b\]0;owned\\u0007/);
});

test('a word that an option does not know is refused with those that it knows', async () => {
  const { code, err } = await command(['logs', '--status', 'bad']);
  assert.deepEqual([code, err], [2, 'mizu: --status must be one of success, error, interrupted\n']);
});

test('mizu logs: as many rows as were asked for, over the pages of the store', async (t) => {
  const store = await openStore(t);
  const owner = await funded(store, 10n ** 12n);
  for (let n = 0; n < 1_010; n++) void store.settlements.settle({ entry: entry(owner, `ex_${n}`, 0n) });
  await store.settlements.flush();
  const rowsOf = async (limit: string): Promise<string[]> =>
    (await printed(store, { limit, json: true })).map((text) => JSON.parse(text).exchangeId);
  for (const limit of [7, 1_000, 1_005, 2_000]) {
    const rows = await rowsOf(String(limit));
    assert.equal(rows.length, Math.min(limit, 1_010));
    assert.deepEqual([rows[0], rows.at(-1)], ['ex_1009', `ex_${1_010 - rows.length}`]);
  }
});

test('mizu logs --json says what meters counted', async (t) => {
  const store = await openStore(t);
  const owner = await funded(store, 10n ** 12n);
  await store.settlements.settle({
    entry: entry(owner, 'ex_1', 5n, { usage: { input: 3, meters: new Map([['web_search', 2]]) } }),
  });
  await store.settlements.flush();
  const [row = ''] = await printed(store, { json: true });
  assert.deepEqual(JSON.parse(row).usage, { input: 3, meters: { web_search: 2 } });
});

test('mizu logs: under a header, with names, and filtered by key, account, model, Channel, status and time', async (t) => {
  const store = await openStore(t);
  const [one, two] = [await funded(store, 10n ** 12n), await funded(store, 10n ** 12n)];
  const attempts = [{ channelId: 'c1', channelType: 'chat', upstreamModel: 'u', startedAtMs: T0, durationMs: 1 }];
  const settle = async (owner: typeof one, id: string, more: object): Promise<void> => {
    await store.settlements.settle({ entry: entry(owner, id, 5n, more) });
    await store.settlements.flush();
  };
  await settle(one, 'ex_1', { model: 'm1', channelId: 'c1', attempts });
  await settle(two, 'ex_2', { model: 'm2', channelId: 'c2' });
  await settle(two, 'ex_3', { model: 'm2', status: 'error', errorCode: 'upstream_error', attempts });
  const all: string[] = [];
  await typed([LOGS], ['logs'], {}, { store: () => Promise.resolve(store) }, (text) => void all.push(text));
  assert.match(all.join('\n'), /^TIME REQUEST ACCOUNT\/KEY /);
  assert.ok(all.join('\n').includes(` ${one.account.name}/${one.key.name} `));
  const found = async (values: Typed['values']) => (await printed(store, values)).map((line) => line.split(' ')[1]);
  assert.deepEqual(await found({ account: two.account.name }), ['req_ex_3', 'req_ex_2']);
  assert.deepEqual(await found({ key: one.key.id }), ['req_ex_1']);
  assert.deepEqual(await found({ model: 'm2', status: 'error' }), ['req_ex_3']);
  assert.deepEqual(await found({ channel: 'c1' }), ['req_ex_3', 'req_ex_1']);
  assert.deepEqual(await found({ since: '1h', limit: '2' }), ['req_ex_3', 'req_ex_2']);
  assert.deepEqual(await found({ until: '1h' }), []);
  await assert.rejects(found({ key: one.key.name }), /2 keys are named key: give an id/);
  await assert.rejects(found({ model: 'm1', request: 'req_ex_1' }), /--request and --model do not go together/);
});

test('mizu logs --follow prints what comes after it began, oldest first, until it is interrupted', async (t) => {
  const store = await openStore(t);
  const owner = await funded(store, 10n ** 12n);
  const settle = async (...exchanges: string[]): Promise<void> => {
    for (const id of exchanges) await store.settlements.settle({ entry: entry(owner, id, 5n) });
    await store.settlements.flush();
  };
  await settle('ex_before');
  const clock = createFakeClock();
  const interrupt = new AbortController();
  const lines: string[] = [];
  const followed = printed(store, { follow: true }, { clock, interrupted: () => interrupt.signal }, lines);
  await eventually(() => clock.pending === 1);
  await settle('ex_1', 'ex_2');
  clock.advance(500);
  await eventually(() => clock.pending === 1 && lines.length === 2);
  assert.equal(getEventListeners(interrupt.signal, 'abort').length, 1, 'a wait that is over leaves nothing behind');
  interrupt.abort();
  await followed;
  assert.deepEqual(
    lines.map((line) => line.split(' ')[1]),
    ['req_ex_1', 'req_ex_2'],
  );
  assert.equal(clock.pending, 0);
});

test('a cell of a table is one line, whatever stands in it', () => {
  const text = table([
    ['NAME', 'STATE'],
    ['a\nb\u001b[31m', 'x'],
  ]);
  assert.equal(text, 'NAME                STATE\na\\u000ab\\u001b[31m  x');
});
