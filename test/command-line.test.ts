/** The verbs as an operator types them, in this process: what they print, what they refuse, and their exit codes. */
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { openLmdbArchive } from '../src/store/lmdb/archive.ts';
import { options } from './store/support/store.ts';
import { command } from './support/command.ts';

test('what is copied from must be a store: a folder that is none is not made one', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'mizu-copy-from-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const refused = await command(['store', 'copy', '--from', folder, '--to', join(folder, 'new')]);
  assert.deepEqual([refused.code, refused.err], [1, 'mizu: there is no store to copy at --from\n']);
  const same = await command(['store', 'copy', '--from', folder, '--to', folder]);
  assert.deepEqual([same.code, same.err], [2, 'mizu: --from and --to are the same place\n']);
  assert.deepEqual(readdirSync(folder), []);
});

test('a backup of which nothing but an empty file is left is no store: restoring it is refused, and makes none', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'mizu-empty-backup-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const [backup, place] = [join(folder, 'backup'), join(folder, 'place')];
  mkdirSync(backup);
  writeFileSync(join(backup, 'data.mdb'), '');
  const restored = await command(['store', 'restore', backup, '--to', place]);
  assert.deepEqual([restored.code, restored.err], [1, `mizu: there is no store in ${backup}\n`]);
  const copied = await command(['store', 'copy', '--from', backup, '--to', place]);
  assert.deepEqual([copied.code, copied.err], [1, 'mizu: there is no store to copy at --from\n']);
  assert.deepEqual([readdirSync(folder), readdirSync(backup)], [['backup'], ['data.mdb']]);
});

test('a backup that was killed as it began is no store either, though its file is one: nothing is made of it', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'mizu-begun-backup-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const [backup, place] = [join(folder, 'backup'), join(folder, 'place')];
  const begun = await openLmdbArchive(options(backup));
  await begun.close();
  for (const verb of [
    ['restore', backup],
    ['copy', '--from', backup],
  ]) {
    const refused = await command(['store', ...verb, '--to', place]);
    assert.deepEqual([refused.code, refused.err], [1, 'mizu: there is nothing in the store to copy\n']);
  }
  assert.deepEqual(readdirSync(folder), ['backup']);
});

test('an operator’s day: check, account, key, list, disable, balance, verify', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'mizu-day-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, 'gateway.json');
  writeFileSync(
    path,
    JSON.stringify({
      store: { path: join(folder, 'data') },
      channels: [{ id: 'a', type: 'messages', base_url: 'http://127.0.0.1:1', api_key: `\${UP}`, models: ['m'] }],
      models: { m: { price: { input: '1', output: '2' } } },
    }),
  );
  const mizu = (...args: string[]) => command([...args, '--config', path], { UP: 'sk-canary' });
  const checked = await mizu('check');
  assert.equal(checked.code, 0, checked.err);
  assert.doesNotMatch(checked.out, /canary/);
  assert.equal((await command(['check', '--config', path])).code, 1, 'the variable is missing');
  const wrong = await command(['check', '--json', '--config', path]);
  assert.equal(wrong.code, 1);
  const { valid, problems }: { valid: boolean; problems: { path: string }[] } = JSON.parse(wrong.out);
  assert.equal(valid, false);
  assert.deepEqual(
    problems.map(({ path: where }) => where),
    ['channels[0].api_key'],
  );
  assert.equal((await mizu('accounts', 'create', 'ada', '--credit', '13.50')).code, 0);
  assert.match((await mizu('accounts', 'credit', 'ada', '-1', '--note', 'one too much')).out, /balance \$12\.50/);
  const refused = await mizu('accounts', 'create', 'eve', '--credit', '-1');
  assert.deepEqual([refused.code, refused.err], [2, 'mizu: --credit must not be negative\n']);
  const made = await mizu('keys', 'create', '--account', 'ada', '--name', 'laptop', '--limit-daily', '1');
  assert.match(made.out, /^sk-mizu-[A-Za-z0-9_-]{43}\n$/);
  const listed: { id: string; digest?: string; disabled: boolean }[] = JSON.parse((await mizu('keys', 'list', '--json')).out);
  const [key] = listed;
  assert.ok(key);
  assert.equal(key.digest, undefined);
  const copy = join(folder, 'backup');
  assert.match((await mizu('store', 'backup', copy)).out, /journal rows, which add up\nhead \d+:[0-9a-f]{64}: keep it/);
  assert.match((await mizu('store', 'backup', copy)).err, /is there and not empty: name a new folder/);
  assert.match((await mizu('store', 'restore', copy)).err, /there is a store in the place to restore to, and it stays as it is/);
  assert.match((await mizu('store', 'restore', copy, '--to', join(folder, 'other'))).out, /rows restored and compared/);
  assert.match((await mizu('store', 'restore', folder)).err, /there is no store in/);
  const unasked = await mizu('keys', 'delete', key.id);
  assert.equal(unasked.code, 2);
  assert.match(unasked.err, /cannot be undone: nobody can be asked here, so repeat it with --yes/);
  assert.equal((await mizu('keys', 'disable', key.id)).code, 0);
  assert.match((await mizu('keys', 'delete', key.id, '--yes')).out, /is deleted/);
  assert.deepEqual(JSON.parse((await mizu('keys', 'list', '--json')).out), []);
  assert.equal((await mizu('keys', 'enable', key.id)).err, 'mizu: unknown key\n');
  assert.equal((await mizu('accounts', 'list', '--yes')).err, 'mizu: accounts list has no option --yes\n');
  for (const _time of ['first', 'again'])
    assert.match((await mizu('secrets', 'rotate', '--cause', 'leak')).out, /sealed with secret 2/);
  assert.match((await mizu('balance')).out, /ada +12\.50/);
  assert.match((await mizu('ledger', 'verify')).out, /no difference/);
  assert.equal((await mizu('keys', 'create', '--account', 'nobody')).code, 1);
  assert.equal((await mizu('accounts', 'create', 'ada')).code, 1);
  assert.equal((await mizu('nonsense')).code, 2);
  for (const asked of [['help'], ['--help'], ['-h'], ['keys', '--help'], ['help', 'keys']]) {
    const { code, out } = await mizu(...asked);
    assert.deepEqual([code, out.split(' ', 2)], [0, ['usage:', 'mizu']], asked.join(' '));
  }
  for (const asked of [
    ['help', 'nonsense'],
    ['nonsense', '--help'],
  ]) {
    const { code, out, err } = await mizu(...asked);
    assert.deepEqual(
      [code, out, /^mizu: there is no verb nonsense: it is one of serve, /.test(err)],
      [2, '', true],
      asked.join(' '),
    );
  }
  assert.match((await mizu('--version')).out, /^\d+\.\d+\.\d+\n$/);
  assert.equal((await mizu('keys', 'list', '--version')).err, 'mizu: keys list has no option --version\n');
  const expired = await mizu('keys', 'create', '--account', 'ada', '--expires', '2020-01-01T00:00:00Z');
  assert.deepEqual([expired.code, expired.err], [2, 'mizu: --expires: 2020-01-01T00:00:00Z is over\n']);
  assert.equal((await mizu('channels', 'test')).code, 1);
  assert.match((await mizu('logs')).out, /^$/);
  const unknown = await mizu('logs', '--request', 'req_nobody');
  assert.deepEqual([unknown.code, unknown.err], [1, 'mizu: there is no request req_nobody\n']);
  for (const [words, reason] of [
    [['serve', '--limit', '5'], 'serve has no option --limit'],
    [['logs', '--follow', '--limit', '5'], 'logs: --follow and --limit do not go together'],
    [['logs', '--request', 'req_1', '--limit', '5'], 'logs: --request and --limit do not go together'],
    [['logs', '--request', 'req_1', '--follow'], 'logs: --request and --follow do not go together'],
    [['logs', 'req_1'], 'logs: unexpected argument "req_1"'],
    [['videos', '--limit-total', '5'], 'videos list has no option --limit-total'],
  ] as const) {
    const { code, err } = await mizu(...words);
    assert.deepEqual([code, err], [2, `mizu: ${reason}\n`]);
  }
});

test('what an operator gives twice is refused: one of the two would do nothing', async () => {
  for (const words of [
    ['keys', 'create', '--account', 'ada', '--models', 'a', '--models', 'b'],
    ['keys', 'create', '--account', 'ada', '--models', 'a', '--models=b'],
  ]) {
    const { code, err } = await command(words);
    assert.deepEqual([code, err.split('\n')[0]], [2, 'mizu: --models is given twice']);
  }
});

test('a name of the configuration that is empty is none, and an empty option is named', async () => {
  const { code, err } = await command(['check'], { MIZU_CONFIG: '' });
  assert.equal(code, 1);
  assert.match(err, /^mizu: there is no configuration file .*\/mizu\.config\.json; --config or MIZU_CONFIG names another\n$/);
  for (const verb of ['check', 'serve']) {
    const empty = await command([verb, '--config', '']);
    assert.deepEqual([empty.code, empty.err], [2, 'mizu: --config is empty\n']);
  }
});

test('channels test says why there is nothing to ask', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'mizu-nothing-to-ask-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, 'gateway.json');
  const test = async (channels: readonly object[], ...only: string[]): Promise<string> => {
    writeFileSync(path, JSON.stringify({ channels, models: { m: {} } }));
    const { code, err } = await command(['channels', 'test', ...only, '--config', path]);
    assert.equal(code, 1);
    return err;
  };
  const off = { id: 'off', type: 'messages', base_url: 'http://127.0.0.1:1', models: ['m'], disabled: true };
  assert.equal(await test([]), 'mizu: there are no channels\n');
  assert.equal(await test([off]), 'mizu: every channel is disabled\n');
  assert.equal(await test([off], 'off'), 'mizu: the channel off is disabled\n');
  assert.equal(await test([off], 'other'), 'mizu: there is no channel other\n');
});

test('a file with a byte order mark is read as without; an admin token of a name that is there already is refused by its name', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'mizu-marked-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const [path, book] = [join(folder, 'gateway.json'), join(folder, 'book.json')];
  writeFileSync(path, JSON.stringify({ store: { path: join(folder, 'data') }, channels: [], models: {} }));
  const prices = { slow: { mode: 'chat', input_cost_per_token: 2e-6, output_cost_per_token: 4e-6 } };
  writeFileSync(book, `\uFEFF${JSON.stringify(prices)}`);
  const imported = await command(['prices', 'import', book, '--from', 'litellm', '--config', path]);
  assert.deepEqual([imported.code, imported.err], [0, '']);
  assert.match(imported.out, /"slow"/);
  const create = (): ReturnType<typeof command> => command(['admin-tokens', 'create', 'ops', '--role', 'read', '--config', path]);
  assert.equal((await create()).code, 0);
  const again = await create();
  assert.deepEqual([again.code, again.err], [1, 'mizu: there is an admin token ops already\n']);
});

test('what makes no sense is 2 and what cannot be done is 1, each in one line that says why', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'mizu-refused-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, 'gateway.json');
  const data = join(folder, 'data');
  writeFileSync(path, JSON.stringify({ store: { path: data } }));
  const mizu = (line: string, env: Record<string, string> = {}) => {
    const words = line.split(' ').map((word) => word.replace('DATA', data));
    return command([...words, '--config', path], env);
  };
  assert.equal((await mizu('accounts create ada --credit 5')).code, 0);
  const before = (await mizu('ledger journal --json')).out;
  const nonsense: readonly (readonly [string, string | RegExp, Record<string, string>?])[] = [
    ['accounts nothing', /^accounts create NAME /],
    ['accounts change ada --unlimited --limited', '--unlimited and --limited exclude each other'],
    ['accounts credit ada 1 --cause é', '--cause must be 1 to 128 visible ASCII characters'],
    ['keys nothing', /^keys create --account /],
    ['ledger nothing', /^ledger verify .* | journal/],
    ['ledger journal --limit 0', '--limit must be 1 to 100000'],
    ['ledger journal --after x', /^--after must be 0 to /],
    ['logs --limit 0', '--limit must be 1 to 1000000'],
    ['videos nothing', /^videos \[list\] .* \| show ID/],
    ['videos --state nonsense', /^--state must be one of queued, submitting, /],
    ['videos --limit 0', '--limit must be 1 to 1000'],
    ['videos resolve video_1', 'give --succeeded URL or --failed MESSAGE'],
    ['videos resolve video_1 --failed x --succeeded http://x', 'give --succeeded URL or --failed MESSAGE'],
    ['store nothing', /^store migrate \| /],
    ['store copy --from a', '--to is missing'],
    ['store copy --from a --to a', '--from and --to are the same place'],
    ['channels nothing', /^channels test \[ID\] \[--inference\] \[--model M\] \| list \| out-of-service ID/],
    ['admin-tokens create ops', '--role is missing'],
    ['admin-tokens create ops --role root', '--role must be one of read, write'],
    ['prices nothing', /^prices import .* \| check/],
    ['serve --workers 0', '--workers must be 1 to 256'],
    [`channels in-service ${'x'.repeat(2_500)}`, 'ID must not have more than 256 characters'],
    [`admin-tokens delete ${'x'.repeat(2_500)}`, 'NAME must not have more than 256 characters'],
    ['check', 'PORT must be a number from 0 to 65535, not 70000', { PORT: '70000' }],
    ['check --nonsense', /^Unknown option '--nonsense'/],
    ['constructor', /^there is no verb constructor: it is one of serve, check, accounts, /],
  ];
  const impossible: typeof nonsense = [
    ['videos show video_1', 'there is no video task video_1'],
    ['videos resolve video_1 --failed late', 'there is no video task video_1'],
    ['store migrate', 'the store is a folder: it needs no migration'],
    ['store copy --from DATA --to DATA/', 'the target is not empty'],
    ['channels test', 'there are no channels'],
    ['channels test one', 'there is no channel one'],
    ['admin-tokens delete ops', 'there is no admin token ops'],
    ['prices import none.json --from litellm', /^none\.json cannot be read: ENOENT/],
    ['accounts credit ada 9223372036.854775807', 'USD the balance would be out of range'],
  ];
  for (const [expected, lines] of [
    [2, nonsense],
    [1, impossible],
  ] as const) {
    for (const [line, reason, env] of lines) {
      const { code, out, err } = await mizu(line, env);
      assert.deepEqual([code, out], [expected, ''], line);
      const words = err.replace(/^mizu: /, '').trimEnd();
      if (typeof reason === 'string') assert.equal(words, reason, line);
      else assert.match(words, reason, line);
    }
  }
  assert.equal((await mizu('ledger journal --json')).out, before, 'nothing was changed');
});
