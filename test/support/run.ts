/**
 * The test command: runs every `*.test.ts` of the fast suite, or of the slow one that `--suite` names (a folder of `test/slow/`), with Node's
 * own runner; only those whose path holds an argument, where there are any. After a whole run of the fast suite the ledger of known failures is
 * checked against what ran and passed.
 * Usage: npm test [-- streams codecs/chat]
 */
import { spawnSync } from 'node:child_process';
import { globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { complaints, type Report, readLedger } from './ledger.ts';

const { values, positionals: wanted } = parseArgs({ options: { suite: { type: 'string' } }, allowPositionals: true });
const files = globSync(values.suite === undefined ? 'test/**/*.test.ts' : `test/slow/${values.suite}/**/*.test.ts`)
  .filter((file) => values.suite !== undefined || !file.includes('test/slow/'))
  .filter((file) => wanted.length === 0 || wanted.some((part) => file.includes(part)))
  .sort();

if (files.length === 0) {
  console.error(`no test file matches ${wanted.join(', ')}`);
  process.exit(1);
}

const folder = mkdtempSync(join(tmpdir(), 'mizu-test-'));
const report = join(folder, 'report.tap');
const reporters = [
  ...['--test-reporter=spec', '--test-reporter-destination=stdout'],
  ...['--test-reporter=tap', `--test-reporter-destination=${report}`],
];
// Every file is a process of its own that imports much of the product: compiled code is kept from one to the next, as `npm start` keeps it.
const env = { ...process.env, NODE_COMPILE_CACHE: fileURLToPath(new URL('../../node_modules/.cache/mizu', import.meta.url)) };
const { status } = spawnSync(process.execPath, ['--test', '--test-concurrency=2', ...reporters, ...files], {
  stdio: 'inherit',
  env,
});
const found = values.suite === undefined && wanted.length === 0 ? complaints(readLedger(), readReports()) : [];
rmSync(folder, { recursive: true });
for (const complaint of found) console.error(`known failures: ${complaint}`);
process.exit(status === 0 && found.length > 0 ? 1 : (status ?? 1));

function readReports(): Report[] {
  const lines = readFileSync(report, 'utf8').split('\n');
  return lines.flatMap((line) => {
    const [, not, title, directive] = /^\s*(not )?ok \d+ - (.*?)(?: # (SKIP|TODO).*)?$/.exec(line) ?? [];
    return title === undefined ? [] : [{ title, passed: not === undefined, skipped: directive !== undefined }];
  });
}
