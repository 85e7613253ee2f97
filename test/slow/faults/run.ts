/**
 * `npm run test:faults [-- --record] [PART …]`: the fault suites. A row whose every test here was skipped is told, since it was not shown.
 * With `--record` the figures go to docs/reliability.json and the document is printed anew.
 */
import { spawnSync } from 'node:child_process';
import { globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gatherFigures, keepFigures } from '../../support/figures.ts';
import { writeReliability } from '../../support/print-docs.ts';
import { misused, scriptOptions } from '../../support/script-options.ts';

const USAGE = 'npm run test:faults -- [PART …] [--record]';
const { values, positionals } = scriptOptions(USAGE, { options: { record: { type: 'boolean' } }, allowPositionals: true });
const files = globSync('test/slow/faults/*.test.ts')
  .filter((file) => positionals.length === 0 || positionals.some((part) => file.includes(part)))
  .sort();
if (files.length === 0) misused(USAGE, `no suite matches ${positionals.join(', ')}`);
const gathered = gatherFigures();
const folder = mkdtempSync(join(tmpdir(), 'mizu-faults-run-'));
const report = join(folder, 'report.tap');
const { status } = spawnSync(
  process.execPath,
  [
    ...['--test', '--test-concurrency=2', '--test-reporter=spec', '--test-reporter-destination=stdout'],
    ...['--test-reporter=tap', `--test-reporter-destination=${report}`],
    ...files,
  ],
  { stdio: 'inherit', env: { ...process.env, MIZU_FIGURES: gathered.file } },
);

const shown = new Map<string, boolean>();
for (const [, ids = '', skipped] of readFileSync(report, 'utf8').matchAll(
  /^\s*ok \d+ - ((?:[A-Z]\d{1,2}(?:, )?)+): .*?( # SKIP.*)?$/gm,
)) {
  for (const id of ids.split(', ')) shown.set(id, shown.get(id) === true || skipped === undefined);
}
for (const [id, isShown] of shown) if (!isShown) console.log(`${id} was not shown here: its tests were skipped`);
rmSync(folder, { recursive: true });
const figures = gathered.take();
if (values.record === true && status === 0) {
  keepFigures(figures);
  writeReliability();
}
process.exitCode = status ?? 1;
