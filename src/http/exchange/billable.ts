/** Canonical usage as what the store prices: disjoint classes (spec rule 9: what is reported on top is added once). */
import { type Usage, type UsageIteration, wholeOutput } from '../../codecs/canonical/usage.ts';
import type { BillableUsage } from '../../store/charge.ts';

/** What the main generation and a pass on top of it count alike; the main one may leave out what it does not know. */
type Pass = Partial<Omit<UsageIteration, 'type'>>;

/** Names that an upstream made up stand in every row of the log and in every line of it: more of them, and longer ones, are none of a price. */
const MAX_METERS = 32;
const MAX_NAME = 64;

/** The main generation and every pass on top of it, in classes that share nothing; classes without a count are left out. */
export function billableUsage(usage: Usage): BillableUsage {
  const reasoned = usage.reasoning ?? 0;
  const main: Pass = { ...usage, output: wholeOutput(usage.output ?? 0, reasoned) };
  const passes = [main, ...(usage.extra ?? [])];
  const sum = (count: keyof Pass): number => passes.reduce((total, pass) => total + (pass[count] ?? 0), 0);
  const input = sum('input');
  const output = sum('output');
  const imageInput = Math.min(sum('imageInput'), input);
  const imageOutput = Math.min(sum('imageOutput'), output);
  const reasoning = Math.min(reasoned, output - imageOutput);
  const classes: [keyof BillableUsage, number][] = [
    ['input', input - imageInput],
    ['cachedInput', sum('cacheRead')],
    ['cacheWrite5m', sum('cacheWrite5m')],
    ['cacheWrite1h', sum('cacheWrite1h')],
    ['cacheWriteUnsplit', sum('cacheWrite')],
    ['output', output - reasoning - imageOutput],
    ['reasoning', reasoning],
    ['imageInput', imageInput],
    ['imageOutput', imageOutput],
    ['images', usage.images ?? 0],
  ];
  return {
    ...Object.fromEntries(classes.filter(([, count]) => count !== 0)),
    ...(usage.meters === undefined ? {} : { meters: boundedMeters(usage.meters) }),
    ...(usage.serviceTier === undefined ? {} : { serviceTier: usage.serviceTier.slice(0, MAX_NAME) }),
  };
}

function boundedMeters(meters: ReadonlyMap<string, number>): ReadonlyMap<string, number> {
  return new Map([...meters].filter(([{ length }]) => length <= MAX_NAME).slice(0, MAX_METERS));
}
