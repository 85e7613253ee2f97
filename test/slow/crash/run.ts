/**
 * `npm run test:crash [-- --kills 200] [--seed N] [--engine postgres]`: the whole gateway is killed with SIGKILL at random points
 * under load, text requests, turns of WebSockets, compactions, pictures and video tasks, and after each kill the ledger is
 * compared with what the clients saw and what the upstream received. Prints a report; exit code 1 on any violation. Two gateways
 * side by side, each with a store of its own.
 */
import { ENGINES } from '../../support/engines.ts';
import { misused, numberOption, scriptOptions } from '../../support/script-options.ts';
import { CrashLane, type CrashReport } from './crash-lane.ts';

const USAGE = `npm run test:crash -- [--kills N] [--seed S] [--engine ${ENGINES.join('|')}]`;
const { values } = scriptOptions(USAGE, {
  options: { kills: { type: 'string', default: '200' }, seed: { type: 'string' }, engine: { type: 'string', default: 'lmdb' } },
});
const kills = numberOption(USAGE, 'kills', values.kills);
const seed = numberOption(USAGE, 'seed', values.seed ?? String(Date.now() % 1_000_000), 0);
const engine = ENGINES.find((name) => name === values.engine) ?? misused(USAGE, `no engine is called ${values.engine}`);
const LANES = 2;

/** Mulberry32: the moments of the kills can be drawn again, what the machine does between them cannot. */
function random(from: number): () => number {
  let state = from;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let word = Math.imul(state ^ (state >>> 15), 1 | state);
    word = (word + Math.imul(word ^ (word >>> 7), 61 | word)) ^ word;
    return ((word ^ (word >>> 14)) >>> 0) / 2 ** 32;
  };
}

async function lane(index: number): Promise<CrashReport> {
  const crash = await CrashLane.open(random(seed + index), engine);
  try {
    for (let n = index; n < kills; n += LANES) await crash.round();
    await crash.finish();
    return crash.report;
  } finally {
    await crash.close();
  }
}

const started = performance.now();
const reports = await Promise.all(Array.from({ length: LANES }, (_, index) => lane(index)));
const sum = (name: keyof Omit<CrashReport, 'violations'>): number => reports.reduce((total, report) => total + report[name], 0);
const violations = reports.flatMap((report) => report.violations);
console.log(`${engine}, seed ${seed}, ${Math.round((performance.now() - started) / 1000)} s
kills                 ${sum('kills')} (${sum('killedWhileStarting')} while starting)
requests              ${sum('requests')}
  settled once        ${sum('settled')}
  interrupted, free   ${sum('interrupted')}
  in the unflushed window, not billed ${sum('unflushed')}
  never admitted      ${sum('neverAdmitted')}
video tasks           ${sum('tasks')} (${sum('submitted')} submissions)
  succeeded, settled  ${sum('succeeded')}
  failed, refunded    ${sum('failed')}
  unknown, kept       ${sum('unknown')}
journal rows          ${sum('journalRows')}, Σ journal = balances after each kill
violations            ${violations.length}`);
for (const violation of violations.slice(0, 50)) console.log(`  ${violation}`);
// A ledger that never gets anything to the disk loses nothing either.
const isWorking = sum('settled') * 4 > sum('requests');
process.exitCode = violations.length === 0 && sum('kills') === kills && isWorking ? 0 : 1;
