/**
 * The test command: runs every `*.test.ts` (or those whose path holds an argument) with Node's own runner.
 * Usage: npm test [-- streams codecs/chat]
 */
import { spawnSync } from 'node:child_process';
import { globSync } from 'node:fs';

const wanted = process.argv.slice(2);
const files = globSync('test/**/*.test.ts')
  .filter((file) => !file.includes('test/slow/'))
  .filter((file) => wanted.length === 0 || wanted.some((part) => file.includes(part)))
  .sort();

if (files.length === 0) {
  console.error(`no test file matches ${wanted.join(', ')}`);
  process.exit(1);
}

const { status } = spawnSync(process.execPath, ['--test', '--test-concurrency=2', ...files], { stdio: 'inherit' });
process.exit(status ?? 1);
