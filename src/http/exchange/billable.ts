/** Canonical usage as what the store prices: disjoint classes (spec rule 9: what is reported on top is added once). */
import { type Usage, type UsageIteration, wholeOutput } from '../../codecs/canonical/usage.ts';
import type { BillableUsage } from '../../store/charge.ts';

/** The counts that the main generation and a pass on top of it share; the main one may lack some. */
type Pass = Partial<Omit<UsageIteration, 'type'>>;

/** Meter names come from the upstream and are written to every log row. No price has more of them, or longer ones. */
const MAX_METERS = 32;
const MAX_NAME = 64;

/** The main generation and every pass on top of it, in disjoint classes; classes without a count are left out. */
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
    ['cacheWrite30m', usage.cacheWrite30m ?? 0],
    ['cacheWrite1h', sum('cacheWrite1h')],
    ['cacheWrite12h', usage.cacheWrite12h ?? 0],
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
    ...(usage.speed === undefined ? {} : { speed: usage.speed.slice(0, MAX_NAME) }),
    ...(usage.geo === undefined ? {} : { geo: usage.geo.slice(0, MAX_NAME) }),
  };
}

function boundedMeters(meters: ReadonlyMap<string, number>): ReadonlyMap<string, number> {
  return new Map([...meters].filter(([{ length }]) => length <= MAX_NAME).slice(0, MAX_METERS));
}
