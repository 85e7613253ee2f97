/** What the documents refer to exists: files, headings, commands with their options, keys of the configuration, metrics. */
import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { test } from 'node:test';
import { command } from './support/command.ts';

const DOCUMENTS = globSync(['*.md', 'docs/*.md', 'bench/*.md']);
const texts = new Map(DOCUMENTS.map((document) => [document, readFileSync(document, 'utf8')]));

/** A fenced block, whole. */
const FENCED = /^```.*\n[\s\S]*?^```/gm;
const prose = (text: string): string => text.replaceAll(FENCED, '');

/** All that stands in code, in a line or in a block, with the document. */
const code = [...texts].flatMap(([document, text]) => [
  ...[...prose(text).matchAll(/`([^`\n]+)`/g)].map(([, span = '']) => ({ document, span })),
  ...[...text.matchAll(FENCED)].flatMap(([block]) => joined(block).map((span) => ({ document, span }))),
]);

/** The lines of a block, each with those that a backslash adds to it. */
function joined(block: string): string[] {
  return block
    .replaceAll(/\\\n\s*/g, '')
    .split('\n')
    .slice(1, -1);
}

/** As GitHub names a heading. */
function anchorOf(heading: string): string {
  const plain = heading.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase();
  return plain
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replaceAll(/\s/g, '-');
}

function anchorsOf(document: string): Set<string> {
  const headings = [...prose(texts.get(document) ?? '').matchAll(/^#{1,6} (.*)$/gm)];
  return new Set(headings.map(([, heading = '']) => anchorOf(heading)));
}

test('links lead to files that exist and to headings that stand in them', () => {
  let links = 0;
  for (const [document, text] of texts) {
    for (const [, target = ''] of prose(text).matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^[a-z]+:/.test(target)) continue;
      const [path = '', anchor] = target.split('#');
      const file = path === '' ? document : normalize(join(dirname(document), path));
      assert.ok(existsSync(file), `${document}: ${target}`);
      if (anchor !== undefined) assert.ok(anchorsOf(file).has(anchor), `${document}: ${target}`);
      links += 1;
    }
  }
  assert.ok(links > 60, `${links} links`);
});

test('files and folders of the repository that are named exist', () => {
  const named = code.filter(({ span }) => /^(?:src|test|docs|bench|packaging|static|bin)\/[\w./*-]*$/.test(span));
  for (const { document, span } of named) assert.ok(globSync(span).length > 0, `${document}: ${span}`);
  assert.ok(named.length > 40, `${named.length} files`);
});

test('npm scripts that are named exist', () => {
  const { scripts } = JSON.parse(readFileSync('package.json', 'utf8')) as { readonly scripts: Record<string, string> };
  const named = code.flatMap(({ document, span }) =>
    [...span.matchAll(/\bnpm run (?:-s |--silent )?([\w:-]+)/g)].map(([, script = '']) => ({ document, script })),
  );
  for (const { document, script } of named) assert.ok(script in scripts, `${document}: npm run ${script}`);
  assert.ok(named.length > 40, `${named.length} scripts`);
});

/** Words that stand for an option of every verb, or of those that change something. */
const COMMON = ['--config', '--json', '--cause', '--note', '--yes', '--help'];

test('verbs that are named exist, and have the options that are named with them', async () => {
  const { out } = await command(['help']);
  // A usage may go on in lines of its own.
  const usages = out
    .replaceAll(/\n {10,}/g, ' ')
    .split('\n')
    .map((line) => line.trim());
  let named = 0;
  for (const { document, span } of code) {
    for (const [, typed = ''] of span.matchAll(/(?:^|[|(;] *|\$ )(?:npm run (?:-s|--silent) )?mizu (?:-- )?([a-z][^#|<;)]*)/g)) {
      const words = typed.trim().split(/\s+/);
      const verb = words[0] === 'help' ? undefined : words.filter((word) => /^[a-z-]+$/.test(word)).slice(0, 2);
      if (verb === undefined) continue;
      const own = usages.filter((usage) => usage.startsWith(`${verb.join(' ')} `) || usage === verb.join(' '));
      const family = usages.filter((usage) => usage.split(' ')[0] === verb[0]);
      const meant = own.length > 0 ? own : family;
      assert.ok(meant.length > 0, `${document}: mizu ${typed}`);
      for (const option of words.filter((word) => word.startsWith('--'))) {
        assert.ok(
          COMMON.includes(option) || meant.some((usage) => usage.includes(option)),
          `${document}: mizu ${typed}: ${option}`,
        );
      }
      named += 1;
    }
  }
  assert.ok(named > 40, `${named} verbs`);
});

test('keys of the configuration that are named exist', () => {
  // Printed from the schemas, which test/docs.test.ts holds.
  const known = new Set([...(texts.get('docs/options.md') ?? '').matchAll(/^\| `([a-z_.]+)`/gm)].map(([, path = '']) => path));
  const holds = (path: string): boolean => known.has(path) || [...known].some((each) => each.startsWith(`${path}.`));
  const sections = new Set([...known].filter((path) => path.includes('.')).map((path) => path.split('.', 1)[0]));
  let named = 0;
  for (const { document, span } of code) {
    if (document === 'docs/options.md') continue;
    const path = span.replace(/^(?:channels\[\]|models\.NAME|classes\.NAME)\./, '').replace(/: .*$/, '');
    if (!/^[a-z_]+(?:\.[a-z_]+)+$/.test(path) || !sections.has(path.split('.', 1)[0])) continue;
    assert.ok(holds(path), `${document}: ${span}`);
    named += 1;
  }
  assert.ok(named > 80, `${named} keys`);
});

test('metrics that are named exist', () => {
  const source = globSync('src/http/**/*.ts')
    .map((file) => readFileSync(file, 'utf8'))
    .join('\n');
  const named = new Set(code.flatMap(({ span }) => [...span.matchAll(/\bmizu_[a-z_]+[a-z]/g)].map(([name]) => name)));
  // prom-client adds these to the name of a histogram.
  for (const name of named) assert.ok(source.includes(name.replace(/_(?:bucket|sum|count)$/, '')), name);
  assert.ok(named.size > 20, `${named.size} metrics`);
});

test('docs/protocols.md names the versions of the SDKs that the code is compared with, and dates of interfaces that the code writes', () => {
  const text = texts.get('docs/protocols.md') ?? '';
  const { devDependencies }: { devDependencies: Record<string, string> } = JSON.parse(readFileSync('package.json', 'utf8'));
  const sdks = [...text.matchAll(/types of `([^`]+)` (\d+\.\d+)/g)];
  assert.deepEqual([...new Set(sdks.map(([, name]) => name))].sort(), ['@anthropic-ai/sdk', '@google/genai', 'openai']);
  for (const [, name = '', version = ''] of sdks)
    assert.ok(devDependencies[name]?.startsWith(`${version}.`), `${name} ${version}`);
  const written = globSync('src/**/*.ts')
    .map((file) => readFileSync(file, 'utf8'))
    .join('\n');
  const dates = [...text.matchAll(/`[a-z_-]+[:=]? ?([a-z-]*\d{4}-\d{2}-\d{2})`/g)].map(([, date = '']) => date);
  assert.ok(dates.length >= 4, dates.join());
  for (const date of dates) assert.ok(written.includes(date), date);
});
