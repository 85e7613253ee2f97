/**
 * The law of verbs: each is run against a store, what it prints is read, and so is what it changed. `DAY` is one story, since a
 * verb needs what others made; what has tests of its own because it needs more than a store is named in `ELSEWHERE`. A new verb
 * wants a step of the story.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { verbsOf } from '../../src/cli/command-line.ts';
import type { Typed } from '../../src/cli/perform.ts';
import { parseConfig } from '../../src/http/config/parse.ts';
import type { Principal } from '../../src/store/keys.ts';
import { parsePrice } from '../../src/store/prices.ts';
import type { Store } from '../../src/store/store.ts';
import { startSimulator } from '../../src/simulator/simulator.ts';
import { entry, openStore } from '../store/support/store.ts';
import { typed } from '../support/verbs.ts';

const VERBS = verbsOf(() => assert.fail('nothing is served here'));

/** What a step sees: the store itself, what earlier steps printed by the names that they gave it, and a folder. */
interface Place {
  readonly store: Store;
  readonly folder: string;
  readonly seen: Map<string, string>;
}

interface Step {
  readonly verb: string;
  /** `$name` stands for what an earlier step printed, `FOLDER` for a folder of this test. */
  readonly args?: readonly string[];
  readonly options?: Typed['values'];
  readonly prints: RegExp;
  /** What is printed is kept under this name. */
  readonly as?: string;
  /** Looks at what it did, beside what it printed. */
  readonly did?: (place: Place) => Promise<void>;
}

const account = async ({ store }: Place, name = 'ada') =>
  (await store.accounts.list()).find((one) => one.name === name) ?? assert.fail(name);
const key = async ({ store, seen }: Place, id = seen.get('key') ?? '') =>
  (await store.keys.list()).find((one) => one.id === id) ?? assert.fail(`no key ${id}`);

/** What a request of the key cost, as a gateway settles it. */
async function ask(place: Place): Promise<void> {
  const owner: Principal = { account: await account(place), key: await key(place) };
  const used = { endUser: 'end-user-7', usage: { input: 3, output: 2 } };
  await place.store.settlements.settle({ entry: entry(owner, 'ex_1', 250_000_000n, { ...used, startedAtMs: Date.now() }) });
  await place.store.settlements.flush();
}

const DAY: readonly Step[] = [
  { verb: 'check', prints: /the configuration is valid: 1 channel, 1 model/ },
  {
    verb: 'accounts create',
    args: ['ada'],
    options: { credit: '13.50' },
    prints: /^account ada \(acct_\w+\), balance \$13\.50$/,
    did: async (place) => assert.equal((await account(place)).walletNanos, 13_500_000_000n),
  },
  {
    verb: 'accounts credit',
    args: ['ada', '-1'],
    prints: /balance \$12\.50/,
    did: async (place) => assert.equal((await account(place)).walletNanos, 12_500_000_000n),
  },
  {
    verb: 'accounts limit',
    args: ['ada'],
    options: { 'requests-per-minute': '60' },
    prints: /ada.*60 requests\/min/,
    did: async (place) => assert.deepEqual((await account(place)).rateLimits, { requestsPerMinute: 60 }),
  },
  {
    verb: 'accounts change',
    args: ['ada'],
    options: { class: 'gold' },
    prints: /class gold/,
    did: async (place) => assert.equal((await account(place)).class, 'gold'),
  },
  {
    verb: 'accounts disable',
    args: ['ada'],
    prints: /disabled/,
    did: async (place) => assert.equal((await account(place)).disabled, true),
  },
  {
    verb: 'accounts enable',
    args: ['ada'],
    prints: /active/,
    did: async (place) => assert.equal((await account(place)).disabled, false),
  },
  { verb: 'accounts list', prints: /^ID .*LIMITS\nacct_\w+ +ada +gold +12\.50 +active +60 requests\/min/ },
  { verb: 'keys create', options: { account: 'ada', name: 'laptop' }, prints: /^sk-mizu-[A-Za-z0-9_-]{43}$/, as: 'secret' },
  {
    verb: 'keys list',
    options: { json: true },
    prints: /"name":"laptop"/,
    as: 'keys',
    did: async ({ seen }) => void seen.set('key', JSON.parse(seen.get('keys') ?? '')[0].id),
  },
  {
    verb: 'keys change',
    args: ['$key'],
    options: { 'limit-daily': '5', models: 'm' },
    prints: /daily \$5\.00; models m/,
    did: async (place) => assert.deepEqual((await key(place)).limits, { daily: 5_000_000_000n }),
  },
  {
    verb: 'keys limit',
    args: ['$key'],
    options: { 'max-concurrency': '2' },
    prints: /2 at once/,
    did: async (place) => assert.deepEqual((await key(place)).rateLimits, { maxConcurrency: 2 }),
  },
  {
    verb: 'keys disable',
    args: ['$key'],
    prints: /is disabled/,
    did: async (place) => assert.equal((await key(place)).disabled, true),
  },
  {
    verb: 'keys enable',
    args: ['$key'],
    prints: /is enabled/,
    did: async (place) => {
      assert.equal((await key(place)).disabled, false);
      await ask(place);
    },
  },
  { verb: 'balance', args: ['ada'], prints: /ada +12\.25/ },
  { verb: 'spend', options: { account: 'ada' }, prints: /0\.25/ },
  { verb: 'spend users', options: { account: 'ada' }, prints: /end-user-7.*0\.25/ },
  { verb: 'logs', options: { request: 'req_ex_1' }, prints: /req_ex_1 .*\$0\.25/ },
  { verb: 'ledger journal', options: { account: 'ada' }, prints: /KIND[\s\S]*account_created[\s\S]*charge/ },
  { verb: 'ledger holds', prints: /total \$0\.00/ },
  { verb: 'ledger head', prints: /^\d+:[0-9a-f]{64}$/, as: 'head' },
  { verb: 'ledger verify', options: { head: '$head' }, prints: /journal rows, no difference/ },
  {
    verb: 'keys rotate',
    args: ['$key'],
    prints: /^sk-mizu-[A-Za-z0-9_-]{43}$/,
    as: 'rotated',
    did: async ({ store, seen }) => {
      assert.equal((await store.keys.authenticate(seen.get('secret') ?? '', Date.now())).ok, false);
      assert.equal((await store.keys.authenticate(seen.get('rotated') ?? '', Date.now())).ok, true);
    },
  },
  {
    verb: 'keys create',
    options: { account: 'ada', name: 'team', 'sub-account': true, json: true },
    prints: /"id":"key_/,
    as: 'made',
  },
  {
    verb: 'keys transfer',
    args: ['$made.id', '2'],
    prints: /2\.00/,
    did: async (place) => assert.equal((await account(place)).walletNanos, 10_250_000_000n),
  },
  {
    verb: 'keys delete',
    args: ['$made.id'],
    options: { yes: true },
    prints: /deleted/,
    did: async (place) => assert.equal((await account(place)).walletNanos, 12_250_000_000n, 'its balance went back'),
  },
  {
    verb: 'secrets rotate',
    prints: /sealed with secret 2/,
    did: async ({ store }) => assert.equal(store.secrets.current().id, 2),
  },
  {
    verb: 'channels out-of-service',
    args: ['one'],
    options: { note: 'red' },
    prints: /channel one is out of service/,
    did: async ({ store }) => assert.equal((await store.controls.list('channel')).length, 1),
  },
  { verb: 'channels list', prints: /one .*out of service/ },
  {
    verb: 'channels in-service',
    args: ['one'],
    prints: /channel one is in service/,
    did: async ({ store }) => assert.equal((await store.controls.list('channel')).length, 0),
  },
  { verb: 'channels test', prints: /one +ok +200/ },
  { verb: 'admin-tokens create', args: ['ops'], options: { role: 'write' }, prints: /^mizu-admin-/ },
  { verb: 'admin-tokens list', prints: /ops +write/ },
  {
    verb: 'admin-tokens delete',
    args: ['ops'],
    prints: /admin token ops is deleted/,
    did: async ({ store }) => assert.deepEqual(await store.adminTokens.list(), []),
  },
  { verb: 'prices check', args: ['book.json'], options: { from: 'litellm' }, prints: /m .*input/ },
  {
    verb: 'prices import',
    args: ['book.json'],
    options: { from: 'litellm', write: true },
    prints: /0 models added, 1 changed\nm input: 1\.00 -> 3\.00/,
    did: async ({ folder }) => assert.match(readFileSync(join(folder, 'mizu.config.json'), 'utf8'), /"input": "3"/),
  },
  { verb: 'store backup', args: ['FOLDER/backup'], prints: /journal rows, which add up\nhead \d+:/ },
  { verb: 'store restore', args: ['FOLDER/backup'], options: { to: 'FOLDER/restored' }, prints: /rows restored and compared/ },
  { verb: 'store copy', options: { from: 'FOLDER/restored', to: 'FOLDER/copied' }, prints: /rows/ },
];

/** What needs more than a store, and the file whose tests run it, with words that stand there. */
const ELSEWHERE: Readonly<Record<string, readonly [file: string, words: string]>> = {
  serve: ['test/main.test.ts', "'serve'"],
  convert: ['test/cli/convert.test.ts', 'mizu convert'],
  'ledger reconcile': ['test/cli/reconcile.test.ts', "'ledger', 'reconcile'"],
  'videos list': ['test/http/videos/videos.test.ts', 'the verb alone lists'],
  'videos show': ['test/http/videos/videos.test.ts', "verb(['show'"],
  'videos resolve': ['test/http/videos/videos.test.ts', "verb(['resolve'"],
  'store migrate': ['test/slow/postgres/gateway.test.ts', "'store', 'migrate'"],
};

const BOOK = { m: { litellm_provider: 'openai', mode: 'chat', input_cost_per_token: 3e-6, output_cost_per_token: 2e-6 } };

test('every verb of the command line does to a store what it says', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'mizu-verbs-'));
  const upstream = await startSimulator();
  t.after(() => upstream.close());
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, 'mizu.config.json');
  const channels = [{ id: 'one', type: 'chat_completion', base_url: upstream.url, api_key: 'k', models: ['m'] }];
  const written = { store: { path: './data' }, channels, models: { m: { price: { input: '1', output: '2' } } } };
  writeFileSync(path, JSON.stringify(written));
  writeFileSync(join(folder, 'book.json'), JSON.stringify(BOOK));
  const store = await openStore(t, { path: join(folder, 'data') });
  const place: Place = { store, folder, seen: new Map() };
  const filled = (text: string): string =>
    text.replace('FOLDER', folder).replace(/^\$(\w+)(?:\.(\w+))?$/, (_, name: string, member?: string) => {
      const seen = place.seen.get(name) ?? assert.fail(name);
      return member === undefined ? seen : JSON.parse(seen)[member];
    });
  for (const { verb, args = [], options = {}, prints, as, did } of DAY) {
    const printed: string[] = [];
    const values = Object.entries(options).map(([name, value]) => [name, typeof value === 'string' ? filled(value) : value]);
    const has = {
      store: () => Promise.resolve(store),
      readFile: (name: string) => readFileSync(join(folder, name), 'utf8'),
      config: () =>
        parseConfig(readFileSync(path, 'utf8'), { env: {}, readFile: () => '', parsePrice, path, revision: 1, nowMs: 0 }),
      changeConfig(edit: (text: string) => string) {
        writeFileSync(path, edit(readFileSync(path, 'utf8')));
        return path;
      },
    };
    const words = [...verb.split(' '), ...args.map(filled)];
    await typed(VERBS, words, Object.fromEntries(values), has, (text) => void printed.push(text));
    assert.match(printed.join('\n'), prints, verb);
    if (as !== undefined) place.seen.set(as, printed.join('\n'));
    await did?.(place);
  }
});

test('every verb is run here, or by a test that is named', () => {
  const run = new Set(DAY.map(({ verb }) => verb));
  const missing = VERBS.map(({ name }) => name).filter((name) => {
    const [file, words] = ELSEWHERE[name] ?? [];
    return file === undefined ? !run.has(name) : !readFileSync(file, 'utf8').includes(words ?? '');
  });
  assert.deepEqual(missing, [], 'these want a step of DAY');
});
