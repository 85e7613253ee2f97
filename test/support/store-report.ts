/**
 * Runs the contract of the store against each engine and writes what held into docs/reliability.md, side by side. Durations and
 * counts stay out, so that the table changes only when what is promised does. `npm run docs:stores` writes it; test/docs.test.ts
 * compares its titles.
 */
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { basename } from 'node:path';
import { run } from 'node:test';
import { fileURLToPath } from 'node:url';
import { ENGINES, type EngineName } from './engines.ts';
import { scriptOptions } from './script-options.ts';

const ROOT = new URL('../../', import.meta.url);
export const RELIABILITY = new URL('docs/reliability.md', ROOT);
type Outcome = 'holds' | 'FAILS' | 'skipped';

const OPEN = '<!-- generated: stores -->';
const CLOSE = '<!-- /generated: stores -->';

/** The files that define the same tests for every engine. */
export function contractFiles(): string[] {
  return globSync('test/store/*.test.ts', { cwd: ROOT })
    .filter((file) => readFileSync(new URL(file, ROOT), 'utf8').includes('eachStore('))
    .sort();
}

/** What each test of one file came to, by its title. */
export async function outcomesOf(file: string): Promise<Map<string, Map<EngineName, Outcome>>> {
  const found = new Map<string, Map<EngineName, Outcome>>();
  let inside: { readonly title: string; readonly outcome: Outcome }[] = [];
  const seen = ({ name, nesting, skip }: { name: string; nesting: number; skip?: string | boolean }, outcome: Outcome): void => {
    if (nesting === 1) inside.push({ title: name, outcome: skip === undefined ? outcome : 'skipped' });
    if (nesting !== 0) return;
    // An engine's own event comes after those of its tests.
    const engine = ENGINES.find((one) => one === name);
    for (const each of engine === undefined ? [] : inside) {
      const row = found.get(each.title) ?? new Map<EngineName, Outcome>();
      if (engine !== undefined) row.set(engine, each.outcome);
      found.set(each.title, row);
    }
    inside = [];
  };
  const stream = run({ files: [fileURLToPath(new URL(file, ROOT))], env: { ...process.env, MIZU_STORES: ENGINES.join(',') } });
  stream.on('test:pass', (event) => seen(event, 'holds'));
  stream.on('test:fail', (event) => seen(event, 'FAILS'));
  for await (const _event of stream);
  return found;
}

function printed(sections: ReadonlyMap<string, ReadonlyMap<string, ReadonlyMap<EngineName, Outcome>>>): string {
  const lines = ['| promise | LMDB | PostgreSQL |', '|---|---|---|'];
  for (const [file, rows] of sections) {
    lines.push(`| **${basename(file, '.test.ts')}** | | |`);
    for (const [title, outcomes] of rows) {
      const cells = ENGINES.map((engine) => outcomes.get(engine) ?? '–');
      lines.push(`| ${promiseOf(title).replaceAll('|', '\\|')} | ${cells.join(' | ')} |`);
    }
  }
  return lines.join('\n');
}

/** A title without the faults that it names. */
export function promiseOf(title: string): string {
  return title.replace(/^(?:[A-Z]\d{1,2}(?:, )?)+: /, '');
}

/** The titles in the table, in order. */
export function titlesIn(text: string): string[] {
  const table = text.split(OPEN)[1]?.split(CLOSE)[0] ?? '';
  return [...table.matchAll(/^\| ([^*|-](?:[^|]|\\\|)*) \| (?:holds|FAILS|skipped|–) \|/gm)].map(([, title = '']) => title);
}

if (import.meta.main) {
  scriptOptions('npm run docs:stores', {});
  const sections = new Map<string, Map<string, Map<EngineName, Outcome>>>();
  for (const file of contractFiles()) sections.set(file, await outcomesOf(file));
  const text = readFileSync(RELIABILITY, 'utf8');
  const [before, rest] = text.split(OPEN);
  const after = rest?.split(CLOSE)[1];
  if (before === undefined || after === undefined) throw new Error(`docs/reliability.md has no ${OPEN} … ${CLOSE}`);
  const table = printed(sections);
  writeFileSync(RELIABILITY, `${before}${OPEN}\n\n${table}\n\n${CLOSE}${after}`);
  console.log(table);
  if (table.includes('FAILS')) process.exitCode = 1;
}
