/**
 * `npm run bench -- compare A B [suite…]`: the suites at two commits, each in a checkout of its own, and how the figures moved.
 * The commits take turns several times; a figure has moved when all of its runs at one commit lie on one side of all those at the
 * other.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { median, type Row } from './harness/statistics.ts';
import { figure } from './plots.ts';
import type { Results } from './report.ts';

const ROOT = join(import.meta.dirname, '..');

/** `args` go to each run. Both commits need a bench of their own; the installed packages are those of this checkout. */
export function compare(before: string, after: string, turns: number, args: readonly string[]): void {
  const folder = mkdtempSync(join(tmpdir(), 'mizu-bench-compare-'));
  const trees = [before, after].map((commit, index) => ({ commit, path: join(folder, String(index)) }));
  const made: string[] = [];
  try {
    for (const { commit, path } of trees) {
      execFileSync('git', ['worktree', 'add', '--detach', '--quiet', path, commit], { cwd: ROOT, stdio: 'inherit' });
      made.push(path);
      symlinkSync(join(ROOT, 'node_modules'), join(path, 'node_modules'));
    }
    const runs = trees.map((): Row[][] => []);
    for (let turn = 0; turn < turns; turn++) {
      const order = turn % 2 === 0 ? [0, 1] : [1, 0];
      for (const index of order) runs[index]?.push(rowsOf(trees[index]?.path ?? '', args));
    }
    console.table(movements(runs[0] ?? [], runs[1] ?? []));
  } finally {
    for (const path of made) execFileSync('git', ['worktree', 'remove', '--force', path], { cwd: ROOT });
    rmSync(folder, { recursive: true, force: true });
  }
}

function rowsOf(tree: string, args: readonly string[]): Row[] {
  const out = join(tree, 'bench', 'results.json');
  execFileSync(process.execPath, ['bench/run.ts', ...args, '--out', out], { cwd: tree, stdio: ['ignore', 'ignore', 'inherit'] });
  const results: Results = JSON.parse(readFileSync(out, 'utf8'));
  return [...results.rows];
}

export interface Movement {
  readonly work: string;
  readonly measure: string;
  /** Median, and least to most. */
  readonly before: string;
  readonly after: string;
  readonly change: string;
  readonly moved: boolean;
}

/**
 * Each argument holds the rows of the runs at one commit. Ratios to the floor where there is one, since two runs meet two
 * machines; what was added to it, or the bare figure, otherwise. Rows that one of the commits does not have are left out.
 */
export function movements(before: readonly (readonly Row[])[], after: readonly (readonly Row[])[]): Movement[] {
  const figures = new Map<string, number[]>();
  for (const row of before.flat()) figures.set(nameOf(row), [...(figures.get(nameOf(row)) ?? []), measured(row).value]);
  const [latest = []] = after;
  return latest.flatMap((row) => {
    const was = figures.get(nameOf(row));
    if (was === undefined) return [];
    const is = after.flat().flatMap((other) => (nameOf(other) === nameOf(row) ? [measured(other).value] : []));
    const change = ((median(is) - median(was)) / Math.abs(median(was))) * 100;
    return [
      {
        work: row.name,
        measure: measured(row).unit,
        before: range(was),
        after: range(is),
        change: `${change > 0 ? '+' : ''}${change.toFixed(0)} %`,
        moved: Math.min(...is) > Math.max(...was) || Math.max(...is) < Math.min(...was),
      },
    ];
  });
}

const nameOf = ({ suite, name }: Row): string => `${suite} ${name}`;

function measured({ ratio, added, subject, unit }: Row): { readonly value: number; readonly unit: string } {
  if (ratio !== undefined) return { value: ratio, unit: 'ratio' };
  return added === undefined ? { value: subject, unit } : { value: added, unit: `${unit}, added` };
}

const range = (values: readonly number[]): string =>
  `${figure(median(values))} (${figure(Math.min(...values))} to ${figure(Math.max(...values))})`;
