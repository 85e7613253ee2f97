/** `npm run bench -- compare A B [suite…]`: the suites at two commits, each from a checkout of its own, and how the figures moved. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Results } from './report.ts';

const ROOT = new URL('..', import.meta.url).pathname;

/** Both commits need a bench of their own; the installed packages are those of this checkout. */
export function compare(before: string, after: string, args: readonly string[]): void {
  const folder = mkdtempSync(join(tmpdir(), 'mizu-bench-compare-'));
  const runs = [before, after].map((commit, index) => {
    const tree = join(folder, String(index));
    execFileSync('git', ['worktree', 'add', '--detach', '--quiet', tree, commit], { cwd: ROOT, stdio: 'inherit' });
    return tree;
  });
  try {
    const results = runs.map((tree): Results => {
      symlinkSync(join(ROOT, 'node_modules'), join(tree, 'node_modules'));
      const out = join(tree, 'bench', 'results.json');
      execFileSync(process.execPath, ['bench/run.ts', ...args, '--out', out], {
        cwd: tree,
        stdio: ['ignore', 'ignore', 'inherit'],
      });
      return JSON.parse(readFileSync(out, 'utf8'));
    });
    console.table(movements(results[0]?.rows ?? [], results[1]?.rows ?? []));
  } finally {
    for (const tree of runs) execFileSync('git', ['worktree', 'remove', '--force', tree], { cwd: ROOT });
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Ratios to the floor where there is one, since two runs meet two machines; bare figures otherwise. */
function movements(before: Results['rows'], after: Results['rows']): object[] {
  const known = new Map(before.map((row) => [`${row.suite} ${row.name}`, row]));
  return after.flatMap((row) => {
    const old = known.get(`${row.suite} ${row.name}`);
    if (old === undefined) return [];
    const [was, is] = row.ratio === undefined || old.ratio === undefined ? [old.subject, row.subject] : [old.ratio, row.ratio];
    const change = `${(((is - was) / was) * 100).toFixed(0)} %`;
    return [
      {
        work: row.name,
        measure: row.ratio === undefined ? row.unit : 'ratio',
        before: was.toFixed(2),
        after: is.toFixed(2),
        change,
      },
    ];
  });
}
