/**
 * `npm run ready [-- --since COMMIT] [-- --list]`: what a change needs before it is pushed: types, lint, the fast suite, and the
 * slow suites of what it touches. Stops at the first that fails.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { scriptOptions } from './script-options.ts';
import { suitesFor } from './suites.ts';

const USAGE = 'npm run ready -- [--since COMMIT] [--list]';

const { values } = scriptOptions(USAGE, {
  options: { since: { type: 'string', default: 'main' }, list: { type: 'boolean', default: false } },
});
const git = (...args: readonly string[]): string[] => execFileSync('git', args, { encoding: 'utf8' }).split('\n').filter(Boolean);
const changed = [...git('diff', '--name-only', values.since), ...git('ls-files', '--others', '--exclude-standard')];
const needed = suitesFor(changed);

console.log(`${changed.length} files changed since ${values.since}: ${needed.join(', ') || 'nothing to run'}`);
for (const command of values.list ? [] : needed) {
  console.log(`\n$ ${command}`);
  const { status } = spawnSync(command, { shell: true, stdio: 'inherit' });
  if (status !== 0) process.exit(status ?? 1);
}
