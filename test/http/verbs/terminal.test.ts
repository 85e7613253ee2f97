/** What the operator's terminal is told: words of clients and upstreams command it nothing, and write no line of their own. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { logs } from '../../../src/http/verbs/logs.ts';
import { table, type VerbContext } from '../../../src/http/verbs/verb.ts';
import { parseConfig } from '../../../src/http/config/parse.ts';
import { parsePrice } from '../../../src/store/prices.ts';
import type { AttemptEntry } from '../../../src/store/request-log.ts';
import type { Store } from '../../../src/store/store.ts';
import { systemClock } from '../../../src/streams/clock.ts';
import { entry, funded, openStore } from '../../store/support/store.ts';

const EVIL = 'm\u001b]0;owned\u0007\u001b[2J\u009b31m\r\n2026-01-01T00:00:00.000Z req_forged\u2028\u202egpj.exe';
const FORBIDDEN = /[\p{Cc}\u2028\u202e]/u;

const context = (store: Store, print: VerbContext['print']): VerbContext => ({
  args: [],
  options: {},
  json: false,
  clock: systemClock,
  mint: (prefix) => prefix,
  print,
  readFile: () => '',
  config: () =>
    parseConfig('{}', { env: {}, readFile: () => '', parsePrice, path: '/tmp/mizu.config.json', revision: 1, nowMs: 0 }),
  store: () => Promise.resolve(store),
  interrupted: () => new AbortController().signal,
});

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
  const run = async (options: VerbContext['options'], json = false): Promise<string[]> => {
    const printed: string[] = [];
    await logs({ ...context(store, (text) => void printed.push(text)), options, json });
    return printed;
  };
  const listed = await run({});
  assert.equal(listed.length, 1);
  assert.doesNotMatch(listed[0] ?? '', FORBIDDEN);
  const [shown = ''] = await run({ request: row.requestId });
  assert.equal(shown.split('\n').length, 3, 'the row, its attempt and its words');
  for (const line of shown.split('\n')) assert.doesNotMatch(line, FORBIDDEN);
  const [text = ''] = await run({}, true);
  assert.doesNotMatch(text, FORBIDDEN);
  assert.equal(JSON.parse(text).model, EVIL);
});

test('mizu logs: as many rows as were asked for, over the pages of the store', async (t) => {
  const store = await openStore(t);
  const owner = await funded(store, 10n ** 12n);
  for (let n = 0; n < 1_010; n++) void store.settlements.settle({ entry: entry(owner, `ex_${n}`, 0n) });
  await store.settlements.flush();
  const rowsOf = async (limit: string): Promise<string[]> => {
    const printed: string[] = [];
    await logs({ ...context(store, (text) => void printed.push(text)), options: { limit }, json: true });
    return printed.map((text) => JSON.parse(text).exchangeId);
  };
  for (const limit of [7, 1_000, 1_005, 2_000]) {
    const rows = await rowsOf(String(limit));
    assert.equal(rows.length, Math.min(limit, 1_010));
    assert.deepEqual([rows[0], rows.at(-1)], ['ex_1009', `ex_${1_010 - rows.length}`]);
  }
});

test('a cell of a table is one line, whatever stands in it', () => {
  const text = table([
    ['NAME', 'STATE'],
    ['a\nb\u001b[31m', 'x'],
  ]);
  assert.equal(text, 'NAME                STATE\na\\u000ab\\u001b[31m  x');
});
