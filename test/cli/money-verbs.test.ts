/**
 * The operator's verbs for accounts, keys, money and prices, over a real store: what they change, what they refuse and that a
 * refusal changes nothing.
 */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { parseConfig } from '../../src/http/config/parse.ts';
import { ACCOUNTS } from '../../src/cli/accounts.ts';
import { KEYS } from '../../src/cli/keys.ts';
import { BALANCE, LEDGER } from '../../src/cli/ledger.ts';
import { PRICES } from '../../src/cli/prices.ts';
import { SPEND } from '../../src/cli/spend.ts';
import { parsePrice } from '../../src/store/prices.ts';
import type { Store } from '../../src/store/store.ts';
import type { VerbContext } from '../../src/cli/verb.ts';
import { entry, funded, openStore } from '../store/support/store.ts';
import { typed } from '../support/verbs.ts';

const VERBS = [...ACCOUNTS, ...KEYS, BALANCE, SPEND, ...LEDGER, ...PRICES];
type Family = 'accounts' | 'keys' | 'balance' | 'spend' | 'ledger' | 'prices';

type Options = Record<string, string | boolean>;
// biome-ignore lint/suspicious/noExplicitAny: tests read what they expect
type Json = any;

class Operator {
  readonly store: Store;
  readonly files = new Map<string, string>();
  #minted = 0;

  constructor(store: Store) {
    this.store = store;
  }

  async run(verb: Family, args: string[], options: Options = {}): Promise<{ code: number; text: string }> {
    const printed: string[] = [];
    const has: Partial<VerbContext> = {
      mint: (prefix) => `${prefix}${++this.#minted}`,
      readFile: (path) => this.files.get(path) ?? '',
      config: () =>
        parseConfig(
          JSON.stringify({
            channels: [
              {
                id: 'a',
                type: 'messages',
                base_url: 'http://127.0.0.1:1',
                api_key: 'k',
                models: { fast: 'claude-fast', slow: 'slow' },
              },
            ],
            models: {
              fast: { price: { input: '1', output: '5', cached_input: '0.1' } },
              slow: { price: { input: '2', output: '4' } },
            },
          }),
          { env: {}, readFile: () => '', parsePrice, path: '/tmp/mizu.config.json', revision: 1, nowMs: 0 },
        ),
      store: () => Promise.resolve(this.store),
    };
    const code = await typed(VERBS, [verb, ...args], options, has, (text) => void printed.push(text));
    return { code, text: printed.join('\n') };
  }

  async json(verb: Family, args: string[], options: Options = {}): Promise<Json> {
    return JSON.parse((await this.run(verb, args, { ...options, json: true })).text);
  }

  /** Everything that money and keys are, in words. */
  async state(): Promise<string> {
    return JSON.stringify(
      [await this.store.accounts.list(), await this.store.keys.list(), await this.store.ledger.journal()],
      (_key, value: unknown) => (typeof value === 'bigint' ? String(value) : value),
    );
  }
}

async function operator(t: TestContext): Promise<Operator> {
  const self = new Operator(await openStore(t));
  await self.run('accounts', ['create', 'ada'], { credit: '10' });
  await self.run('keys', ['create'], { account: 'ada', name: 'laptop' });
  return self;
}

test('an account is created, credited, corrected, changed, disabled and enabled; the journal says each of it', async (t) => {
  const ops = await operator(t);
  assert.deepEqual(await ops.json('accounts', ['credit', 'ada', '2.5'], { note: 'invoice 7' }), {
    ...(await ops.json('accounts', ['list']))[0],
    balance: '12.50',
  });
  assert.equal((await ops.json('accounts', ['credit', 'ada', '-0.000000001'])).balance, '12.499999999');
  assert.equal((await ops.json('accounts', ['change', 'ada'], { class: 'gold', unlimited: true })).class, 'gold');
  assert.match((await ops.run('accounts', ['list'])).text, /ada +gold +\S+ +unlimited$/);
  assert.equal((await ops.json('accounts', ['disable', 'ada'])).disabled, true);
  assert.match((await ops.run('accounts', ['list'])).text, /ada +gold +\S+ +disabled$/);
  assert.equal((await ops.json('accounts', ['enable', 'ada'])).disabled, false);
  const rows = (await ops.run('ledger', ['journal'], { account: 'ada' })).text.split('\n');
  assert.ok(rows.some((row) => / credit .* 2\.50 /.test(row)));
  assert.doesNotMatch(rows.find((row) => row.includes('account_changed')) ?? '0.00', / 0\.00 /, 'no money moved');
  const journal: Json[] = await ops.json('ledger', ['journal'], { account: 'ada' });
  assert.deepEqual(
    journal.map(({ kind, nanos }) => [kind, nanos]),
    [
      ['account_created', '0'],
      ['credit', '10000000000'],
      ['key_created', '0'],
      ['credit', '2500000000'],
      ['admin_adjustment', '1'],
      ['account_changed', '0'],
      ['account_changed', '0'],
      ['account_changed', '0'],
    ],
  );
  assert.equal(journal[3].note, 'invoice 7');
  assert.match((await ops.run('ledger', ['journal'], { ref: journal[3].ref })).text, /credit +external +wallet:acct_/);
  assert.equal((await ops.run('ledger', ['verify'])).code, 0);
});

test('the same cause is done once', async (t) => {
  const ops = await operator(t);
  await ops.run('accounts', ['credit', 'ada', '1'], { cause: 'invoice-9' });
  await ops.run('accounts', ['credit', 'ada', '1'], { cause: 'invoice-9' });
  assert.match((await ops.run('balance', ['ada'])).text, /ada +11\.00/);
  await assert.rejects(ops.run('accounts', ['credit', 'ada', '2'], { cause: 'invoice-9' }), /cause reused/);
  const create = () => ops.run('accounts', ['create', 'eve'], { credit: '3', class: 'gold', cause: 'ticket-1' });
  assert.equal((await create()).text, (await create()).text);
  await assert.rejects(ops.run('accounts', ['create', 'eve'], { credit: '4', cause: 'ticket-1' }), /cause reused/);
  const key: Json = await ops.json('keys', ['create'], { account: 'ada' });
  const change = () => ops.json('keys', ['change', key.id], { expires: '30d', cause: 'ticket-2' });
  const first: Json = await change();
  assert.equal((await change()).expiresAtMs, first.expiresAtMs);
  assert.ok(first.expiresAtMs > Date.now() + 29 * 86_400_000);
});

test('a key takes every option, is changed, and loses its restrictions with "none"', async (t) => {
  const ops = await operator(t);
  const made: Json = await ops.json('keys', ['create'], {
    account: 'ada',
    name: 'ci',
    expires: '2099-01-31T00:00:00Z',
    models: 'fast, slow',
    ips: '10.0.0.0/8,::1',
    'limit-total': '9',
    'limit-hourly': '0.000000001',
    'limit-daily': '1.5',
    'sub-account': true,
  });
  assert.match(made.key, /^sk-mizu-[A-Za-z0-9_-]{43}$/);
  const { key: _secret, ...shown } = made;
  assert.deepEqual(shown.limits, { total: '9.00', hourly: '0.000000001', daily: '1.50' });
  assert.deepEqual(
    [shown.models, shown.ips, shown.expiresAtMs],
    [['fast', 'slow'], ['10.0.0.0/8', '::1'], Date.UTC(2099, 0, 31)],
  );
  assert.equal(shown.digest, undefined);
  const { id } = shown;
  assert.equal((await ops.json('keys', ['transfer', id, '3'])).balance, '3.00');
  assert.equal((await ops.json('keys', ['transfer', id, '-1'])).balance, '2.00');
  assert.match((await ops.run('balance', [])).text, /ada +8\.00\nada +key_[0-9a-f]+ +2\.00/);
  const changed: Json = await ops.json('keys', ['change', id], {
    name: 'builds',
    models: 'none',
    ips: 'none',
    expires: 'none',
    'limit-total': 'none',
    'limit-daily': '2',
  });
  assert.deepEqual([changed.name, changed.models, changed.ips, changed.expiresAtMs], ['builds', undefined, undefined, undefined]);
  assert.deepEqual(changed.limits, { hourly: '0.000000001', daily: '2.00' });
  assert.match(
    (await ops.run('keys', ['list'], { account: 'ada' })).text,
    /builds .*hourly \$0\.000000001; daily \$2\.00; sub-account/,
  );
  assert.match((await ops.run('keys', ['list'], { account: 'ada' })).text, / builds .* active /);
  assert.equal((await ops.json('keys', ['disable', id])).disabled, true);
  assert.match((await ops.run('keys', ['list'], { account: 'ada' })).text, / builds .* disabled /);
  assert.match((await ops.run('balance', ['ada'])).text, /ada +10\.00$/, 'its balance went back to the wallet');
  assert.equal((await ops.json('keys', ['enable', id])).disabled, false);
  await ops.json('keys', ['change', id], { expires: '2020-01-01' });
  assert.match((await ops.run('keys', ['list'], { account: 'ada' })).text, /builds .*expired +2020-01-01T00:00:00\.000Z/);
  assert.equal((await ops.run('ledger', ['verify'])).code, 0);
});

test('limits by time are set when a key or an account is made, changed one by one, listed, and removed with "none"', async (t) => {
  const operator = new Operator(await openStore(t));
  const all = { 'requests-per-minute': '60', 'tokens-per-minute': '90000', 'max-concurrency': '2' };
  const json = { json: true };
  await operator.run('accounts', ['create', 'ada'], { ...all, credit: '1' });
  const made: Json = JSON.parse(
    (await operator.run('keys', ['create'], { account: 'ada', ...all, 'max-concurrency': 'none', ...json })).text,
  );
  assert.deepEqual(made.rateLimits, { requestsPerMinute: 60, tokensPerMinute: 90_000 });
  assert.match((await operator.run('keys', ['list'])).text, /60 requests\/min; 90000 tokens\/min/);
  assert.match((await operator.run('accounts', ['list'])).text, /60 requests\/min; 90000 tokens\/min; 2 at once/);

  const limited = await operator.run('keys', ['limit', made.id], { 'max-concurrency': '7', 'requests-per-minute': 'none' });
  assert.match(limited.text, /90000 tokens\/min; 7 at once$/);
  const twice = { 'tokens-per-minute': '5', cause: 'ticket-1', ...json };
  const changed: Json = JSON.parse((await operator.run('accounts', ['limit', 'ada'], twice)).text);
  assert.deepEqual(changed.rateLimits, { requestsPerMinute: 60, tokensPerMinute: 5, maxConcurrency: 2 });
  assert.deepEqual(JSON.parse((await operator.run('accounts', ['limit', 'ada'], twice)).text), changed);
  const rows = await operator.store.ledger.journal({ ref: 'ticket-1' });
  assert.deepEqual(
    rows.map(({ kind, by, note }) => [kind, by, note]),
    [['account_changed', 'cli', '{"rateLimits":{"tokensPerMinute":5}}']],
  );
  const none = { 'requests-per-minute': 'none', 'tokens-per-minute': 'none', 'max-concurrency': 'none', ...json };
  assert.equal('rateLimits' in (JSON.parse((await operator.run('accounts', ['limit', 'ada'], none)).text) as object), false);
  assert.equal('rateLimits' in (JSON.parse((await operator.run('keys', ['limit', made.id], none)).text) as object), false);
  assert.deepEqual((await operator.store.ledger.verify()).differences, []);
});

test('the head of the journal is printed to be kept, and compared; open holds are listed with their tasks', async (t) => {
  const store = await openStore(t);
  const operator = new Operator(store);
  const principal = await funded(store, 1_000_000_000n);
  const kept = (await operator.run('ledger', ['head'])).text;
  assert.match(kept, /^\d+:[0-9a-f]{64}$/);
  await operator.run('accounts', ['credit', principal.account.name, '1']);
  assert.deepEqual(await operator.run('ledger', ['verify'], { head: kept }), { code: 0, text: '5 journal rows, no difference' });
  const other = `${kept.slice(0, -1)}${kept.endsWith('0') ? '1' : '0'}`;
  const rebuilt = await operator.run('ledger', ['verify'], { 'rebuild-rollups': true });
  assert.deepEqual(rebuilt, { code: 0, text: 'sums of 0 hours made anew\n5 journal rows, no difference' });
  const compared = await operator.run('ledger', ['verify'], { head: other });
  assert.equal(compared.code, 1);
  assert.match(compared.text, /^chain the head that was kept: expected [0-9a-f]{64}, found [0-9a-f]{64}$/);
  await assert.rejects(
    operator.run('ledger', ['verify'], { head: '5' }),
    /^UsageError: --head must be what `ledger head` printed/,
  );

  assert.match((await operator.run('ledger', ['holds'])).text, /\ntotal \$0\.00$/);
  const video = { id: 'video_1', principal, model: 'v', requestJson: '{}', bodyHash: 'h', idempotencyKey: 'i', nowMs: 1_000 };
  assert.ok((await store.videos.create({ ...video, priceNanos: 250_000_000n })).ok);
  const { text } = await operator.run('ledger', ['holds'], { account: principal.account.name });
  assert.match(text, /video_1 +acct_\w+ +key_\w+ +0\.25 +1970-01-01T00:00:01\.000Z +queued\ntotal \$0\.25$/);
  const [hold]: Json = JSON.parse((await operator.run('ledger', ['holds'], { json: true })).text);
  assert.deepEqual([hold.id, hold.amount, hold.task], ['video_1', '0.25', 'queued']);
  const poor = await funded(store, 0n);
  assert.match((await operator.run('ledger', ['holds'], { account: poor.account.name })).text, /^ID +ACCOUNT .*\ntotal \$0\.00$/);
});

test('a span is counted from now', async (t) => {
  const ops = await operator(t);
  const [key] = await ops.store.keys.list();
  assert.ok(key);
  for (const [span, ms] of [
    ['90s', 90_000],
    ['45m', 2_700_000],
    ['12h', 43_200_000],
    ['30d', 2_592_000_000],
  ] as const) {
    const before = Date.now();
    const { expiresAtMs }: { expiresAtMs: number } = await ops.json('keys', ['change', key.id], { expires: span });
    assert.ok(expiresAtMs >= before + ms && expiresAtMs <= Date.now() + ms, span);
  }
});

/** Each is refused with these words, and changes nothing. `KEY` is the id of ada's key. */
const REFUSED: readonly (readonly [Family, readonly string[], Options, RegExp])[] = [
  ['accounts', ['credit', 'ada', '1.0000000001'], {}, /^USD has more than 9 digits after the point$/],
  ['accounts', ['credit', 'ada', '1e3'], {}, /^USD must be a plain decimal number/],
  ['accounts', ['credit', 'ada', '+1'], {}, /^USD must be a plain decimal/],
  ['accounts', ['credit', 'ada', '0'], {}, /^USD must not be zero/],
  ['accounts', ['credit', 'ada', '-0'], {}, /^USD must not be negative/],
  ['accounts', ['credit', 'ada', '9223372036.854775808'], {}, /^USD is too large$/],
  ['accounts', ['credit', 'ada', '9223372036'], {}, /^USD the balance would be out of range$/],
  ['accounts', ['credit', 'ada', '0x10'], {}, /^USD must be a plain decimal/],
  ['accounts', ['credit', 'ada', ' 1'], {}, /^USD must be a plain decimal/],
  ['accounts', ['credit', 'nobody', '1'], {}, /^there is no account nobody$/],
  ['accounts', ['create', ' bob'], {}, /^NAME must be 1 to 128 characters/],
  ['spend', [], { from: '2026-03-02', to: '2026-03-01' }, /^--from is after --to$/],
  ['accounts', ['change', 'ada'], { unlimited: true, limited: true }, /^--unlimited and --limited exclude each other$/],
  ['prices', ['import', 'empty.json'], { from: 'litellm' }, /^empty\.json holds no model as litellm writes them$/],
  ['prices', ['check', 'empty.json'], { from: 'models.dev' }, /^empty\.json holds no model as models\.dev writes them$/],
  ['accounts', ['create', 'bob'], { credit: '-1' }, /^--credit must not be negative$/],
  ['accounts', ['create', 'bob'], { credit: '99999999999' }, /^--credit is too large$/],
  ['accounts', ['create', 'bob'], { class: 'a b' }, /^--class is not a class name$/],
  ['accounts', ['create', ' bob'], {}, /^NAME must be 1 to 128 characters/],
  ['accounts', ['create', 'ada'], {}, /^name taken$/],
  ['accounts', ['change', 'ada'], {}, /^nothing to change is given$/],
  ['accounts', ['change', 'ada'], { class: '' }, /^--class is not a class name$/],
  ['keys', ['create'], {}, /^--account is missing$/],
  ['keys', ['create'], { account: 'nobody' }, /^there is no account nobody$/],
  ['keys', ['create'], { account: 'ada', name: 'a\nb' }, /^--name must be 1 to 128 characters/],
  ['keys', ['create'], { account: 'ada', expires: 'soon' }, /^--expires must be a time/],
  ['keys', ['create'], { account: 'ada', expires: '7' }, /^--expires must be a time/],
  ['keys', ['create'], { account: 'ada', models: 'fast,fastt' }, /^--models\[1\] no such model: fastt$/],
  ['keys', ['create'], { account: 'ada', expires: '2030-02-30' }, /^--expires must be a time/],
  ['keys', ['create'], { account: 'ada', expires: '2030-02-30T10:00:00Z' }, /^--expires must be a time/],
  ['keys', ['create'], { account: 'ada', expires: '2031-04-31T23:30:00-05:00' }, /^--expires must be a time/],
  ['keys', ['create'], { account: 'ada', limit: '5' }, /^keys create has no option --limit$/],
  ['keys', ['limit', 'KEY'], {}, /^nothing to change is given$/],
  ['keys', ['limit', 'KEY'], { 'max-concurrency': '0' }, /^--max-concurrency must be a whole number from 1 to 1000000, or none$/],
  ['keys', ['limit', 'KEY'], { 'tokens-per-minute': '1.5' }, /^--tokens-per-minute must be a whole number from 1 to 1000000000/],
  ['keys', ['limit', 'KEY'], { 'limit-total': '5' }, /^keys limit has no option --limit-total$/],
  ['keys', ['create'], { account: 'ada', 'requests-per-minute': '-1' }, /^--requests-per-minute must be/],
  ['accounts', ['limit', 'ada'], { 'requests-per-minute': 'many' }, /^--requests-per-minute must be/],
  ['accounts', ['limit', 'nobody'], { 'requests-per-minute': '5' }, /^there is no account nobody$/],
  ['keys', ['create', 'laptop'], { account: 'ada' }, /^keys create: unexpected argument "laptop"$/],
  ['keys', ['enable', 'KEY'], { 'limit-total': '5' }, /^keys enable has no option --limit-total$/],
  ['keys', ['change', 'KEY'], { name: 'x', account: 'ada' }, /^keys change has no option --account$/],
  ['keys', ['list'], { note: 'why' }, /^keys list has no option --note$/],
  ['accounts', ['create', 'bob', 'smith'], {}, /^accounts create: unexpected argument "smith"$/],
  ['accounts', ['credit', 'ada', '1'], { class: 'gold' }, /^accounts credit has no option --class$/],
  ['accounts', ['list'], { class: 'gold' }, /^accounts list has no option --class$/],
  ['balance', ['ada', 'bob'], {}, /^balance: unexpected argument "bob"$/],
  ['balance', [], { account: 'ada' }, /^balance has no option --account$/],
  ['ledger', ['verify'], { account: 'ada' }, /^ledger verify has no option --account$/],
  ['spend', ['ada'], {}, /^spend: unexpected argument "ada"$/],
  ['prices', ['import', 'book.json', 'more.json'], { from: 'litellm' }, /^prices import: unexpected argument "more.json"$/],
  ['keys', ['create'], { account: 'ada', models: '' }, /^--models is empty$/],
  ['keys', ['create'], { account: 'ada', models: 'fast,,slow' }, /^--models\[1\] is empty$/],
  ['keys', ['create'], { account: 'ada', ips: '10.0.0.0/33' }, /^--ips\[0\] must be an IP address or a CIDR range/],
  ['keys', ['create'], { account: 'ada', ips: '::1,10.0.0' }, /^--ips\[1\] must be an IP address/],
  ['keys', ['create'], { account: 'ada', ips: '10.0.0.0/08' }, /^--ips\[0\] must be an IP address/],
  ['keys', ['create'], { account: 'ada', ips: 'fe80::1%eth0' }, /^--ips\[0\] must be an IP address/],
  ['keys', ['create'], { account: 'ada', 'limit-total': '0' }, /^--limit-total must be greater than zero$/],
  ['keys', ['create'], { account: 'ada', 'limit-hourly': '0.00' }, /^--limit-hourly must be greater than zero$/],
  ['keys', ['create'], { account: 'ada', 'limit-daily': '-3' }, /^--limit-daily must not be negative$/],
  ['keys', ['create'], { account: 'ada', 'limit-daily': '1e2' }, /^--limit-daily must be a plain decimal/],
  ['keys', ['change', 'KEY'], { 'limit-total': '0' }, /^--limit-total must be greater than zero$/],
  ['keys', ['change', 'KEY'], { models: 'other' }, /^--models\[0\] no such model: other$/],
  ['keys', ['change', 'KEY'], { name: 'fine', ips: 'x' }, /^--ips\[0\] must be an IP address/],
  ['keys', ['change', 'KEY'], {}, /^nothing to change is given$/],
  ['keys', ['change', 'key_nothing'], { name: 'n' }, /^unknown key$/],
  ['keys', ['transfer', 'KEY', '1'], {}, /^no sub account$/],
  ['keys', ['transfer', 'KEY', '0'], {}, /^USD must not be zero/],
  ['keys', ['transfer', 'KEY', '1.23456789012'], {}, /^USD has more than 9 digits/],
  ['spend', [], { from: '2026-02-30' }, /^--from must be a day/],
  ['spend', [], { key: 'key_nothing' }, /^there is no key key_nothing$/],
  ['ledger', ['journal'], { limit: '0' }, /^--limit must be 1 to/],
  ['prices', ['import', 'book.json'], { from: 'elsewhere' }, /^--from must be one of litellm, models\.dev$/],
  ['prices', ['import', 'bad.json'], { from: 'litellm' }, /^bad\.json is not valid JSON/],
  [
    'prices',
    ['import', 'book.json'],
    { from: 'litellm', models: 'fast,negative' },
    /^--models fast is not in the file; negative: .*is missing/,
  ],
];

test('bad input is refused with the field named, and nothing is changed', async (t) => {
  const ops = await operator(t);
  ops.files.set('bad.json', '{');
  ops.files.set('empty.json', '{}');
  ops.files.set('book.json', BOOK);
  const [key] = await ops.store.keys.list();
  const before = await ops.state();
  for (const [verb, args, options, words] of REFUSED) {
    const real = args.map((arg) => (arg === 'KEY' ? (key?.id ?? '') : arg));
    await assert.rejects(
      ops.run(verb, real, options),
      (error: Error) => {
        assert.match(error.message, words, `${verb} ${real.join(' ')} ${JSON.stringify(options)}`);
        return true;
      },
      `${verb} ${real.join(' ')} ${JSON.stringify(options)} was not refused`,
    );
  }
  assert.equal(await ops.state(), before);
});

const BOOK = JSON.stringify({
  'claude-fast': {
    mode: 'chat',
    input_cost_per_token: 1e-6,
    output_cost_per_token: 5e-6,
    cache_read_input_token_cost: 1.5e-7,
    input_cost_per_character: 1e-6,
  },
  slow: { mode: 'chat', input_cost_per_token: 2e-6, output_cost_per_token: 4e-6 },
  negative: { mode: 'chat', input_cost_per_token: -1, output_cost_per_token: 1 },
});

test('a price book is imported as the models of a configuration', async (t) => {
  const ops = await operator(t);
  ops.files.set('book.json', BOOK);
  const { text } = await ops.run('prices', ['import', 'book.json'], { from: 'litellm', models: 'claude-fast' });
  assert.match(text, /claude-fast input_cost_per_character: has no counterpart/);
  const { models } = JSON.parse(text.replace(/^\/\/.*$/gm, ''));
  assert.deepEqual(models, { 'claude-fast': { price: { input: '1', output: '5', cached_input: '0.15' } } });
  assert.equal(parsePrice(models['claude-fast'].price, { kind: 'text' }).ok, true);
  const all = await ops.json('prices', ['import', 'book.json'], { from: 'litellm' });
  assert.deepEqual(Object.keys(all.models), ['claude-fast', 'slow']);
  assert.deepEqual(
    all.skipped.map(({ model }: Json) => model),
    ['negative'],
  );
});

test('configured prices are checked against a book, by our name or by what a channel calls the model', async (t) => {
  const ops = await operator(t);
  ops.files.set('book.json', BOOK);
  const { code, text } = await ops.run('prices', ['check', 'book.json'], { from: 'litellm' });
  assert.equal(code, 1);
  assert.equal(text, 'fast cached_input: ours 0.10, claude-fast 0.15');
  assert.equal((await ops.run('prices', ['check', 'book.json'], { from: 'litellm', models: 'slow' })).code, 0);
  ops.files.set('dev.json', JSON.stringify({ vendor: { models: { slow: { cost: { input: 2, output: 4 } } } } }));
  const dev = await ops.json('prices', ['check', 'dev.json'], { from: 'models.dev' });
  assert.deepEqual(dev, { checked: 2, differences: [{ model: 'fast' }] });
  const dear = { only: { mode: 'chat', input_cost_per_token: -1, output_cost_per_token: 1 } };
  ops.files.set('dear.json', JSON.stringify(dear));
  assert.equal(
    (await ops.run('prices', ['check', 'dear.json'], { from: 'litellm' })).code,
    1,
    'a book of models that are skipped is one',
  );
  const sold = (input: number) => ({ models: { slow: { cost: { input, output: 4 } } } });
  for (const book of [
    { near: sold(2), far: sold(9) },
    { far: sold(9), near: sold(2) },
  ]) {
    ops.files.set('dev.json', JSON.stringify(book));
    const best = await ops.json('prices', ['check', 'dev.json'], { from: 'models.dev', models: 'slow' });
    assert.deepEqual(best, { checked: 1, differences: [] }, 'of several sellers the one that differs least counts');
  }
  const tiered = { input_cost_per_token: 2e-6, output_cost_per_token: 4e-6, output_cost_per_token_priority: 8e-6 };
  ops.files.set(
    'tiers.json',
    JSON.stringify({ slow: { mode: 'chat', ...tiered, input_cost_per_token_above_200k_tokens: 3e-6 } }),
  );
  const tiers = await ops.run('prices', ['check', 'tiers.json'], { from: 'litellm', models: 'slow' });
  assert.deepEqual(tiers.text.split('\n'), [
    'slow long_context.above: ours none, slow 200000',
    'slow long_context.input: ours none, slow 3.00',
    'slow service_tiers.priority.output: ours none, slow 8.00',
  ]);
  await assert.rejects(
    ops.run('prices', ['check', 'book.json'], { from: 'litellm', models: 'fast,none' }),
    /^RefusedError: --models none: no such model in the configuration$/,
  );
});

test('spend by day, per key and for an account', async (t) => {
  const ops = await operator(t);
  const [key] = await ops.store.keys.list();
  const account = await ops.store.accounts.find('ada');
  assert.ok(key && account);
  await ops.store.settlements.settle({ entry: entry({ key, account }, 'x1', 1_500n, { usage: { input: 10, output: 4 } }) });
  const today = new Date().toISOString().slice(0, 10);
  const rows: Json[] = await ops.json('spend', [], { account: 'ada' });
  assert.equal(rows.length, 1);
  assert.deepEqual(
    [rows[0].key, rows[0].requests, rows[0].input_tokens, rows[0].output_tokens, rows[0].charged],
    [key.id, 1, 10, 4, '0.0000015'],
  );
  assert.deepEqual(await ops.json('spend', [], { key: key.id, to: '2020-01-01' }), []);
  assert.match((await ops.run('spend', [], { from: today, to: today })).text, /total \$0\.0000015$/);
});
