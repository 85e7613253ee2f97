/** `prices import --write`: the prices of a catalogue in the configuration file, whose comments and other members stay. */
import assert from 'node:assert/strict';
import {
  chmodSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { changeConfig } from '../../src/http/config/source.ts';
import { parsePrice } from '../../src/store/prices.ts';
import { command, type Finished } from '../support/command.ts';

const BOOK = {
  fast: { mode: 'chat', input_cost_per_token: 2e-6, output_cost_per_token: 6e-6 },
  same: { mode: 'chat', input_cost_per_token: 1e-6, output_cost_per_token: 2e-6 },
  bare: { mode: 'chat', input_cost_per_token: 3e-6, output_cost_per_token: 9e-6 },
  'a "new" one': { mode: 'chat', input_cost_per_token: 4e-6, output_cost_per_token: 8e-6 },
  vectors: { mode: 'embedding', input_cost_per_token: 1e-7 },
};

const FILE = `{
    // who answers
    "channels": [{ "id": "a", "type": "chat_completion", "base_url": "http://127.0.0.1:1", "api_key": "\${KEY}", "models": ["fast"] }],
    "models": {
        /* ours */ "fast": { "price": { "input": "1", "output": "5" }, "limits": { "max_concurrency": 3 } }, // negotiated
        "same": { "price": { "output": "2.00", "input": "1.0" } },
        "bare": { "limits": { "max_concurrency": 2 } },
    },
}
`;

interface Place {
  readonly path: string;
  text(): string;
  run(...words: string[]): Promise<Finished>;
}

function place(t: TestContext, text = FILE): Place {
  const folder = mkdtempSync(join(tmpdir(), 'mizu-prices-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, 'mizu.config.json');
  writeFileSync(path, text);
  writeFileSync(join(folder, 'book.json'), JSON.stringify(BOOK));
  return {
    path,
    text: () => readFileSync(path, 'utf8'),
    run: (...words) =>
      command(['prices', 'import', '--from', 'litellm', join(folder, 'book.json'), ...words, '--config', path], { KEY: 'k' }),
  };
}

test('prices that differ are written, models that are not there are added, and nothing else of the file changes', async (t) => {
  const { path, text, run } = place(t);
  chmodSync(path, 0o600);
  const { code, out, err } = await run('--write');
  assert.deepEqual([code, err], [0, '']);
  assert.deepEqual(out.trimEnd().split('\n'), [
    `${path}: 3 models added, 1 changed`,
    'bare: added',
    'a "new" one: added',
    'vectors: added',
    'fast input: 1.00 -> 2.00',
    'fast output: 5.00 -> 6.00',
  ]);
  const changed = FILE.replace('{ "input": "1", "output": "5" }', '{ "input": "2", "output": "6" }')
    .replace('"bare": {', '"bare": { "price": { "input": "3", "output": "9" },')
    .replace(
      '"models": {',
      `"models": {
        "a \\"new\\" one": { "price": { "input": "4", "output": "8" } },
        "vectors": { "kind": "embedding", "price": { "input": "0.1" } },`,
    );
  assert.equal(text(), changed);
  assert.equal(statSync(path).mode & 0o777, 0o600);
  assert.match((await run('--write')).out, /: 0 models added, 0 changed$/m);
  assert.equal(text(), changed);
});

test('only the models that are named, as JSON, through a link, and into a file without models', async (t) => {
  const { path, text, run } = place(t, '{"channels":[]}');
  const { out } = await run('--models', 'fast', '--write', '--json');
  assert.deepEqual(JSON.parse(out).written, { file: path, added: ['fast'], differences: [] });
  assert.deepEqual(JSON.parse(text()), { models: { fast: { price: { input: '2', output: '6' } } }, channels: [] });
  renameSync(path, `${path}.real`);
  symlinkSync(`${path}.real`, path);
  assert.equal((await run('--models', 'same', '--write')).code, 0);
  assert.equal(lstatSync(path).isSymbolicLink(), true);
  assert.deepEqual(Object.keys(JSON.parse(readFileSync(`${path}.real`, 'utf8')).models), ['same', 'fast']);
});

test('a file that would not be valid stays as it is, and so does one that is not valid now', async (t) => {
  const other = place(t, FILE.replace('"bare": {', '"vectors": { "price": { "input": "1", "output": "1" } }, "bare": {'));
  const before = other.text();
  const refused = await other.run('--write');
  assert.equal(refused.code, 1);
  assert.match(refused.err, /vectors is of the kind text in the configuration, and embedding in the catalogue/);
  assert.equal(other.text(), before);

  const wrong = place(t, FILE.replace('"id": "a"', '"id": 7'));
  assert.match((await wrong.run('--write')).err, /channels\[0\]\.id/);
  assert.match(wrong.text(), /"id": 7/);
  assert.deepEqual(readdirSync(join(wrong.path, '..')).sort(), ['book.json', 'mizu.config.json']);
});

test('two that write at once: one is refused, and what the other has written stays; one that was killed holds nobody up', async (t) => {
  const { path, text, run } = place(t);
  const load = { env: { KEY: 'k' }, readFile: () => '', parsePrice, now: Date.now };
  const renamed = (from: string, to: string) => (whole: string) => whole.replace(from, to);
  changeConfig(path, load, (whole) => {
    // Another process, at the worst moment.
    assert.throws(() => changeConfig(path, load, renamed('who answers', 'lost')), /is being changed by another process/);
    return renamed('negotiated', 'kept')(whole);
  });
  assert.match(text(), /who answers.*kept/s);
  changeConfig(path, load, renamed('ours', 'theirs'));
  assert.match(text(), /theirs.*kept/s);

  const taken = text();
  const tooLate = (): string =>
    changeConfig(path, load, (whole) => {
      // Stopped for longer than a change may take: another process has begun, and is not done.
      rmSync(`${path}.new`);
      writeFileSync(`${path}.new`, 'half of a file');
      return renamed('theirs', 'late')(whole);
    });
  assert.throws(tooLate, /is being changed by another process/);
  assert.equal(text(), taken);
  assert.match((await run('--write')).err, /is being changed by another process/);
  const before = (Date.now() - 120_000) / 1000;
  utimesSync(`${path}.new`, before, before);
  const { code, err } = await run('--write');
  assert.equal(code, 0, err);
  assert.deepEqual(readdirSync(join(path, '..')).sort(), ['book.json', 'mizu.config.json']);
});
