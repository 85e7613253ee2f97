/**
 * `npm run test:faults [-- --record] [PART …]`: the fault suites. A row whose every test here was skipped is told, since it was
 * not shown. With `--record` the figures go to docs/reliability.json and the document is printed anew.
 */
import { globSync } from 'node:fs';
import { gatherFigures, keepFigures } from '../../support/figures.ts';
import { writeReliability } from '../../support/print-docs.ts';
import { runShares } from '../../support/runner.ts';
import { misused, scriptOptions } from '../../support/script-options.ts';

const USAGE = 'npm run test:faults -- [PART …] [--record]';
const { values, positionals } = scriptOptions(USAGE, { options: { record: { type: 'boolean' } }, allowPositionals: true });
const files = globSync('test/slow/faults/*.test.ts')
  .filter((file) => positionals.length === 0 || positionals.some((part) => file.includes(part)))
  .sort();
if (files.length === 0) misused(USAGE, `no suite matches ${positionals.join(', ')}`);
const gathered = gatherFigures();
const [code, { reports }] = await runShares(
  files.map((file) => [file]),
  2,
  { patience: 900_000, limit: 900_000, env: { MIZU_FIGURES: gathered.file } },
);

const shown = new Map<string, boolean>();
for (const { title, passed } of reports) {
  const [, ids = ''] = /^((?:[A-Z]\d{1,2}(?:, )?)+): /.exec(title) ?? [];
  for (const id of ids.split(', ').filter((one) => one !== '')) shown.set(id, shown.get(id) === true || passed);
}
for (const [id, isShown] of shown) if (!isShown) console.log(`${id} was not shown here: its tests were skipped`);
const figures = gathered.take();
if (values.record === true && code === 0) {
  keepFigures(figures);
  writeReliability();
}
process.exitCode = code;
