/**
 * `npm run bench` runs every suite; `npm run bench -- relay memory --rounds 9` single ones; `compare A B` two commits; `guard`
 * the check of CI. Prints a table and writes JSON (`--out`) and, with `--html FILE`, a report. Method: bench/README.md.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { availableParallelism, cpus } from 'node:os';
import { dirname } from 'node:path';
import { compare } from './compare.ts';
import { guard } from './guard.ts';
import { held, type Row } from './harness/statistics.ts';
import { figure } from './plots.ts';
import { reportHtml, type Results } from './report.ts';
import { cold } from './suites/cold.ts';
import { counts } from './suites/counts.ts';
import { dispatching } from './suites/dispatch.ts';
import { codecsAlone, pipeline, streams } from './suites/in-process.ts';
import { least } from './suites/least.ts';
import { memory } from './suites/memory.ts';
import { eventLoop, startUp } from './suites/process.ts';
import { relay } from './suites/relay.ts';
import { mixed } from './suites/mixed.ts';
import { rivals } from './suites/rivals.ts';
import { scaling } from './suites/scaling.ts';
import { signing } from './suites/signing.ts';
import { admission } from './suites/store.ts';
import { websocket } from './suites/websocket.ts';
import { workers } from './suites/workers.ts';
import { misused, numberOption, scriptOptions } from '../test/support/script-options.ts';

const USAGE = `npm run bench -- [SUITE …] [--rounds N] [--streams N] [--out FILE] [--html FILE] [--node-args="…"] [--rival PEER.json|NAME=URL|portkey=PATH …] [--upstream-port N]
       npm run bench -- compare BEFORE [AFTER] [SUITE …] [--turns N]
       npm run bench -- guard
The suites, and what each measures: bench/README.md. Without a name all of them run.`;

const { values, positionals, tokens } = scriptOptions(USAGE, {
  allowPositionals: true,
  tokens: true,
  options: {
    rounds: { type: 'string', default: '5' },
    turns: { type: 'string', default: '5' },
    streams: { type: 'string', default: '10000' },
    out: { type: 'string', default: 'bench/results/latest.json' },
    html: { type: 'string' },
    'upstream-port': { type: 'string', default: '0' },
    rival: { type: 'string', multiple: true, default: [] },
    'node-args': { type: 'string', default: '' },
  },
});
const rounds = numberOption(USAGE, 'rounds', values.rounds);
const open = numberOption(USAGE, 'streams', values.streams);
const turns = numberOption(USAGE, 'turns', values.turns);
const upstreamPort = numberOption(USAGE, 'upstream-port', values['upstream-port'], 0);
const nodeArgs = values['node-args'].split(' ').filter((word) => word !== '');

const SUITES: Readonly<Record<string, () => Row[] | Promise<Row[]>>> = {
  streams: () => streams(rounds),
  codecs: () => codecsAlone(rounds),
  pipeline: () => pipeline(rounds),
  relay: () => relay(rounds, nodeArgs),
  mixed: () => mixed(rounds, { rivals: [], nodeArgs, upstreamPort }),
  cold: () => cold(rounds, nodeArgs),
  counts: () => counts(nodeArgs),
  least: () => least(rounds, nodeArgs),
  rivals: () => rivals(rounds, { rivals: values.rival, nodeArgs, upstreamPort }),
  workers: () => workers(rounds, nodeArgs),
  dispatch: () => dispatching(rounds),
  signing: () => signing(rounds),
  websocket: () => websocket(rounds, nodeArgs),
  admission: () => admission(rounds),
  memory: () => memory(open, nodeArgs),
  'event-loop': () => eventLoop(rounds, nodeArgs),
  'start-up': () => startUp(rounds, nodeArgs),
  scaling: () => scaling(rounds, nodeArgs),
};

/** What `compare` looks at when nothing is named: no processes, no sockets, minutes. */
const COMPARED = ['codecs', 'pipeline'];
const OF_COMPARE = ['turns', 'out', 'html'];

/** As a run at another commit should get them. */
function optionsGiven(): string[] {
  return tokens.flatMap((token) =>
    token.kind === 'option' && !OF_COMPARE.includes(token.name) ? [`--${token.name}=${token.value}`] : [],
  );
}

if (positionals[0] === 'compare') {
  const [, before, after = 'HEAD', ...suites] = positionals;
  if (before === undefined) misused(USAGE, 'compare needs a commit');
  compare(before, after, turns, [...(suites.length > 0 ? suites : COMPARED), ...optionsGiven()]);
} else if (positionals[0] === 'guard') {
  process.exitCode = guard() ? 0 : 1;
} else {
  await run(positionals.length > 0 ? positionals : Object.keys(SUITES));
}

async function run(names: readonly string[]): Promise<void> {
  const suites = names.map((name) => {
    const suite = SUITES[name];
    if (suite === undefined) misused(USAGE, `there is no suite ${name}; there are ${Object.keys(SUITES).join(', ')}`);
    return { name, suite };
  });
  const rows: Row[] = [];
  for (const { name, suite } of suites) {
    const started = performance.now();
    process.stderr.write(`${name} … `);
    rows.push(...(await suite()));
    process.stderr.write(`${Math.round((performance.now() - started) / 1000)} s\n`);
    // A suite that fails later does not take these with it.
    write(values.out, `${JSON.stringify(resultsOf(rows), null, 2)}\n`);
  }
  console.table(rows.map(line));
  const beside = sideBySide(rows);
  if (beside.length > 0) console.table(beside);
  console.log(`written to ${values.out}`);
  if (values.html === undefined) return;
  write(values.html, reportHtml(resultsOf(rows)));
  console.log(`written to ${values.html}`);
}

function resultsOf(rows: readonly Row[]): Results {
  return {
    node: process.version,
    cpu: cpus()[0]?.model,
    cores: availableParallelism(),
    commit: execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim(),
    at: new Date().toISOString(),
    command: `npm run bench -- ${process.argv.slice(2).join(' ')}`,
    rows,
  };
}

function line(row: Row): object {
  return {
    work: row.name,
    unit: row.unit,
    floor: figure(row.floor),
    mizu: figure(row.subject),
    ratio: row.ratio === undefined ? '' : `${figure(row.ratio)}${row.spread === undefined ? '' : ` ±${figure(row.spread)}`}`,
    added: figure(row.added),
    goal: figure(row.goal),
    held: held(row) ?? '',
  };
}

/** One line for each work that several subjects did: each one's figure, and behind it the ratio to the floor or what it adds. */
function sideBySide(rows: readonly Row[]): object[] {
  const works = Map.groupBy(
    rows.filter(({ of }) => of !== undefined),
    ({ work = '' }) => work,
  );
  return [...works].map(([work, all]) => ({
    work,
    floor: figure(all[0]?.floor),
    ...Object.fromEntries(
      all.map(({ of = '', subject, ratio, added }) => [
        of,
        `${figure(subject)}${ratio === undefined ? '' : ` (${figure(ratio)} ×)`}${added === undefined ? '' : ` (+${figure(added)})`}`,
      ]),
    ),
  }));
}

function write(file: string, text: string): void {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}
