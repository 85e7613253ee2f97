/** What is printed from the code is current, and no loss table drops what the conversion rules protect. */
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import {
  type Decision,
  REQUEST_FEATURES,
  type RequestFeature,
  RESPONSE_FEATURES,
  type ResponseFeature,
} from '../src/codecs/canonical/features.ts';
import { CLIENTS, UPSTREAMS } from '../src/codecs/registry.ts';
import { contractFiles, RELIABILITY, promiseOf, titlesIn } from './support/store-report.ts';
import { ADMIN_ROUTES, type AdminRoute } from '../src/http/admin/routes.ts';
import { CHANNEL_SCHEMAS } from '../src/http/config/channel-schema.ts';
import { verbsOf } from '../src/cli/command-line.ts';
import { CONFIG_SCHEMA, MODEL_SCHEMA } from '../src/http/config/schema.ts';
import { ARCHITECTURE, LOSSES, OPTIONS, printLosses, printVerbs, VERBS, withDiagrams } from './support/print-docs.ts';
import { TARGETS } from './fuzz/targets.ts';
import { optionsOf, printOptions } from './support/print-options.ts';

/** Features that conversion rules 1 to 15 protect: no loss table may answer `drop` for them (an explicit refusal is allowed). */
const MUST_KEEP: readonly (RequestFeature | ResponseFeature)[] = [
  'system text',
  'developer text',
  'user text',
  'assistant text',
  'refusal in history',
  'reasoning: opaque of this owner',
  'function call',
  'custom tool call',
  'tool result: text',
  'tool result: image',
  'tool result: file',
  'tool result: error flag',
  'image: inline',
  'image: url',
  'image: reference',
  'audio: inline',
  'file: inline',
  'file: url',
  'file: reference',
  'function tool',
  'function tool: namespace',
  'custom tool with object schema',
  'custom tool: freeform',
  'tool choice: one tool',
  'tool choice: native',
  'output cap',
  'temperature, top_p',
  'format: json schema',
  'reasoning effort',
  'reasoning effort: none',
  'text',
  'several texts',
  'refusal',
  'image',
  'audio',
  'file',
  'usage: cache',
  'usage: reasoning',
  'incomplete: max output',
  'incomplete: content filter',
  'incomplete: context window',
  'incomplete: pause',
  'incomplete: compaction',
  'failed with partial output',
  'cancelled',
];

test('docs/losses.md is what the loss tables say (npm run docs)', () => {
  assert.equal(readFileSync(LOSSES, 'utf8'), printLosses());
});

test('docs/verbs.md is what the verbs say, and each says what it does (npm run docs)', () => {
  assert.equal(readFileSync(VERBS, 'utf8'), printVerbs());
  assert.ok(verbsOf(() => assert.fail()).every(({ does }) => /^[A-Z].*\.$/.test(does)));
});

test('docs/options.md is what the schema of the configuration says, and says something of every option (npm run docs)', () => {
  assert.equal(readFileSync(OPTIONS, 'utf8'), printOptions());
  const schemas = [CONFIG_SCHEMA, MODEL_SCHEMA, ...Object.values(CHANNEL_SCHEMAS)];
  const options = schemas.flatMap((schema) => optionsOf(schema));
  assert.ok(options.length > 150);
  assert.deepEqual(
    options.filter(({ does }) => does === '').map(({ path }) => path),
    [],
  );
});

test('docs/operating.md says something of every metric', () => {
  const named = new Set(readFileSync('docs/operating.md', 'utf8').match(/mizu_[a-z_]+/g));
  const metrics = [...readFileSync('src/http/operations/metrics.ts', 'utf8').matchAll(/'(mizu_[a-z_]+)'/g)].map(
    ([, name = '']) => name,
  );
  assert.ok(metrics.length > 20);
  assert.deepEqual(
    metrics.filter((name) => !named.has(name)),
    [],
    'these want a row in docs/operating.md',
  );
});

test('the state diagrams are those of the tables (npm run docs)', () => {
  const text = readFileSync(ARCHITECTURE, 'utf8');
  assert.equal(text, withDiagrams(text));
});

test('docs/reliability.md lists the promises that the stores’ contract makes (npm run docs:stores)', () => {
  const promised = contractFiles().flatMap((file) => {
    const text = readFileSync(file, 'utf8');
    const each = text.slice(text.indexOf('eachStore('));
    return [...each.matchAll(/^ {2}test\('([^']+)'/gm)].map(([, title = '']) => promiseOf(title));
  });
  const listed = titlesIn(readFileSync(RELIABILITY, 'utf8'));
  assert.ok(promised.length > 30);
  assert.deepEqual(
    promised.filter((title) => !listed.includes(title)),
    [],
  );
});

test('every feature is answered by every encoder, and MUST_KEEP features are never dropped', () => {
  const check = (name: string, features: readonly string[], losses: Readonly<Record<string, Decision>>): void => {
    assert.deepEqual(Object.keys(losses).sort(), [...features].sort(), name);
    for (const feature of MUST_KEEP) {
      if (!features.includes(feature)) continue;
      assert.notEqual(losses[feature]?.does, 'drop', `${name} drops ${feature}`);
    }
  };
  for (const { dialect, losses } of UPSTREAMS) check(`${dialect} upstream`, REQUEST_FEATURES, losses);
  for (const { dialect, losses } of CLIENTS) check(`${dialect} client`, RESPONSE_FEATURES, losses);
  const known: readonly string[] = [...REQUEST_FEATURES, ...RESPONSE_FEATURES];
  for (const feature of MUST_KEEP) assert.ok(known.includes(feature), feature);
});

/** `faults/client "slow-loris", "odd targets"`: a file of tests, and words of what stands in it or in its support. */
const NAMED = /\b((?:faults|fuzz|http|main|store)(?:\/[a-z-]+)*)((?:,? "[^"]+")+)/g;

test('the tests that docs/threat-model.md and docs/reliability.md name exist', () => {
  const texts = new Map(globSync('test/**/*.ts').map((file) => [file, readFileSync(file, 'utf8')]));
  let checked = 0;
  for (const document of ['docs/threat-model.md', 'docs/reliability.md']) {
    for (const [, place = '', quoted = ''] of readFileSync(document, 'utf8').matchAll(NAMED)) {
      const named = [...texts].filter(([file]) => file.includes(`/${place}`));
      for (const [, words = ''] of quoted.matchAll(/"([^"]+)"/g)) {
        const shared = [...texts].filter(([file]) => file.endsWith(`support/${place.split('/').at(-1)}.ts`));
        assert.ok(
          [...named, ...shared].some(([, text]) => text.includes(words)),
          `${document}: ${place} "${words}"`,
        );
        checked += 1;
      }
    }
  }
  assert.ok(checked > 40, `${checked} found`);
});

/**
 * What stands between commas in the last column: a file or folder under test/, a fuzz target, or a script, each perhaps with
 * titles.
 */
const NAMED_TEST = /^(?:`npm run ([\w:]+)`|([a-z]+(?:\/[a-z.*-]+)*))(?: |$)/;

test('each row of docs/threat-model.md names tests, and each of these exists', () => {
  const files = globSync('test/**/*.ts');
  const { scripts } = JSON.parse(readFileSync('package.json', 'utf8')) as { readonly scripts: Record<string, string> };
  const isTest = (place: string): boolean =>
    files.some((file) => file.startsWith(place.startsWith('faults/') ? `test/slow/${place}` : `test/${place}`)) ||
    (place.startsWith('fuzz/') && TARGETS.some(({ name }) => `fuzz/${name}`.startsWith(place.replace(/\*$/, ''))));
  const rows = readFileSync('docs/threat-model.md', 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('| ') && !line.startsWith('| threat'));
  for (const row of rows) {
    const named = (row.split(' | ').at(-1) ?? '')
      .replace(/ \|$/, '')
      .replaceAll(/ \([^)]*\)|,? "[^"]+"/g, '')
      .split(/[,;] /);
    for (const one of named) {
      const [, script, place] = NAMED_TEST.exec(one.trim()) ?? [];
      assert.ok(script === undefined ? place !== undefined && isTest(place) : script in scripts, `${one.trim()} of ${row}`);
    }
  }
  assert.ok(rows.length > 40, `${rows.length} rows`);
});

test('docs/admin-api.md has every route, and every member of the queries of those that read', () => {
  const rows = readFileSync('docs/admin-api.md', 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('| `'))
    // `…/in-service` is said of the route in front of it, and a row may name several methods of one path.
    .map((line) => (line.split(' | ')[0] ?? '').replace(/`(GET|POST|PATCH|DELETE)` and `(GET|POST|PATCH|DELETE) /g, '`$1 $2 '));
  const said = [...rows.join(' ').matchAll(/`([^`]+)`/g)].map(([, text = '']) => text);
  for (const { method, path, request } of Object.values<AdminRoute>(ADMIN_ROUTES)) {
    const last = path.slice(path.lastIndexOf('/'));
    const row = said.find((text) => {
      const place = text.split('?')[0]?.split(' ').at(-1);
      return place === path || place === `…${last}`;
    });
    assert.ok(row !== undefined, `${method} ${path}`);
    if (method !== 'GET') continue;
    const named = (row.split('?')[1] ?? '').split(/[&=]/);
    for (const member of Object.keys(request.properties)) {
      if (!path.includes(`{${member}}`)) assert.ok(named.includes(member), `${path}?${member}`);
    }
  }
});
