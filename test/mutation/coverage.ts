/**
 * Which test file runs which places of the source, and how long it takes: V8's own block coverage, one process a test file. What
 * was collected is kept below node_modules and collected anew where a test file has changed. Of a source that has changed since,
 * a test file that loads it counts as running all of it, until `--fresh` collects everything anew.
 */
import { createHash } from 'node:crypto';
import { existsSync, globSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runTest } from './run-test.ts';

/** From the first of two offsets up to the second. */
type Span = readonly [from: number, to: number];

export interface Coverage {
  readonly test: string;
  readonly hash: string;
  readonly ms: number;
  /** A test file that fails without any mutant tells nothing of one. */
  readonly passed: boolean;
  readonly sources: Readonly<Record<string, { readonly hash: string; readonly spans: readonly Span[] }>>;
}

export const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const CACHE = join(ROOT, 'node_modules/.cache/mutation');
/** No test file of the fast suite takes as long. Milliseconds. */
const LONGEST = 100_000;
const cacheOf = (test: string): string => join(CACHE, `${test.replaceAll('/', '+')}.json`);

/**
 * Every test file of the fast suite, except those that look at the text of the sources and not at what they do. That of the
 * documents prints tables which say what the code does.
 */
export const testFiles = (): string[] =>
  globSync('test/**/*.test.ts', { cwd: ROOT })
    .filter((file) => /^test\/([^/]+\/|docs\.)/.test(file) && !/^test\/(slow|mutation|bench)\//.test(file))
    .sort();

export const hashOf = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 16);

/** What is known of a test file and still true; undefined where it has to be collected. */
function known(test: string): Coverage | undefined {
  let found: Coverage;
  try {
    found = JSON.parse(readFileSync(cacheOf(test), 'utf8')) as Coverage;
  } catch {
    // Never collected, or cut off while it was written.
    return undefined;
  }
  return found.hash === currentHash(test) ? found : undefined;
}

const hashes = new Map<string, string>();
function currentHash(file: string): string {
  let hash = hashes.get(file);
  if (hash === undefined) {
    const path = join(ROOT, file);
    hash = existsSync(path) ? hashOf(readFileSync(path, 'utf8')) : '';
    hashes.set(file, hash);
  }
  return hash;
}

async function collect(test: string): Promise<Coverage> {
  const folder = mkdtempSync(join(tmpdir(), 'mizu-coverage-'));
  // What comes out of the compile cache is counted less precisely.
  const { passed, ms } = await runTest(test, LONGEST, { NODE_V8_COVERAGE: folder, NODE_DISABLE_COMPILE_CACHE: '1' });
  const spans = new Map<string, Span[]>();
  for (const file of readdirSync(folder)) {
    const { result }: { result: readonly Script[] } = JSON.parse(readFileSync(join(folder, file), 'utf8'));
    for (const { url, functions } of result) {
      if (!url.startsWith('file:')) continue;
      const path = relative(ROOT, fileURLToPath(url));
      if (/^src\/.*\.ts$/.test(path)) spans.set(path, [...(spans.get(path) ?? []), ...covered(functions)]);
    }
  }
  rmSync(folder, { recursive: true });
  const sources = Object.fromEntries([...spans].map(([file, found]) => [file, { hash: currentHash(file), spans: found }]));
  const coverage = { test, hash: currentHash(test), ms, passed, sources };
  writeFileSync(cacheOf(test), JSON.stringify(coverage));
  return coverage;
}

interface Script {
  readonly url: string;
  readonly functions: readonly { readonly ranges: readonly Range[] }[];
}
interface Range {
  readonly startOffset: number;
  readonly endOffset: number;
  readonly count: number;
}

/** Ranges lie within each other; the innermost says whether a place ran. */
export function covered(functions: Script['functions']): Span[] {
  const ranges = functions.flatMap(({ ranges }) => ranges);
  ranges.sort((a, b) => a.startOffset - b.startOffset || b.endOffset - a.endOffset);
  const spans: Span[] = [];
  const open: Range[] = [];
  let at = 0;
  const upTo = (to: number): void => {
    if ((open.at(-1)?.count ?? 0) > 0 && to > at) spans.push([at, to]);
    at = Math.max(at, to);
  };
  const close = (before: number): void => {
    for (let last = open.at(-1); last !== undefined && last.endOffset <= before; last = open.at(-1)) {
      upTo(last.endOffset);
      open.pop();
    }
  };
  for (const range of ranges) {
    close(range.startOffset);
    upTo(range.startOffset);
    open.push(range);
  }
  close(Number.POSITIVE_INFINITY);
  return spans;
}

/** The coverage of test files, collected where it must be, so many at a time. */
export async function collectAll(tests: readonly string[], hands: number, isFresh: boolean): Promise<Coverage[]> {
  mkdirSync(CACHE, { recursive: true });
  const all: Coverage[] = [];
  const waiting: string[] = [];
  for (const test of tests) {
    const found = isFresh ? undefined : known(test);
    if (found === undefined) waiting.push(test);
    else all.push(found);
  }
  if (waiting.length > 0) console.log(`collects the coverage of ${waiting.length} test files`);
  const next = waiting.values();
  const work = async (): Promise<void> => {
    for (const test of next) all.push(await collect(test));
  };
  await Promise.all(Array.from({ length: hands }, work));
  return all.sort((a, b) => a.ms - b.ms);
}

/** The test files that run a place, those that take the least time first. */
export function covering(all: readonly Coverage[], file: string, at: number): Coverage[] {
  return all.filter(({ passed, sources }) => {
    const source = sources[file];
    if (!passed || source === undefined) return false;
    return source.hash !== currentHash(file) || source.spans.some(([from, to]) => from <= at && at < to);
  });
}
