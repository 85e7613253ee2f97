/**
 * `npm run bench` runs the quick set; `npm run bench -- relay memory --rounds 9` single suites. Prints a table and writes JSON to
 * bench/results/. Method: bench/README.md.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { availableParallelism, cpus } from 'node:os';
import { parseArgs } from 'node:util';
import { held, type Row } from './harness/statistics.ts';
import { memory } from './suites/memory.ts';
import { relay } from './suites/relay.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { rounds: { type: 'string', default: '5' }, streams: { type: 'string', default: '2000' }, out: { type: 'string' } },
});

const SUITES: Readonly<Record<string, () => Promise<Row[]>>> = {
  relay: () => relay(Number(values.rounds)),
  memory: () => memory(Number(values.streams)),
};

const figure = (value: number | undefined): string => (value === undefined ? '' : value.toFixed(value < 10 ? 2 : 0));

const rows: Row[] = [];
for (const name of positionals.length > 0 ? positionals : Object.keys(SUITES)) {
  const suite = SUITES[name];
  if (suite === undefined) throw new Error(`no suite ${name}; there are ${Object.keys(SUITES).join(', ')}`);
  rows.push(...(await suite()));
}
console.table(
  rows.map((row) => ({
    work: row.name,
    unit: row.unit,
    floor: figure(row.floor),
    mizu: figure(row.subject),
    ratio: row.ratio === undefined ? '' : `${figure(row.ratio)}${row.spread === undefined ? '' : ` ±${figure(row.spread)}`}`,
    added: figure(row.added),
    goal: figure(row.goal),
    held: held(row) ?? '',
  })),
);
const file = values.out ?? 'bench/results/latest.json';
mkdirSync(file.slice(0, file.lastIndexOf('/')), { recursive: true });
writeFileSync(
  file,
  `${JSON.stringify({ node: process.version, cpu: cpus()[0]?.model, cores: availableParallelism(), rows }, null, 2)}\n`,
);
console.log(`written to ${file}`);
