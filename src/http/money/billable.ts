/** Canonical usage as what the store prices: disjoint classes (spec rule 9: what is reported on top is added once). */
import { type Usage, type UsageIteration, wholeOutput } from '../../codecs/canonical/usage.ts';
import { type BillableUsage, LARGEST_COUNT, type UsagePass } from '../../store/charge.ts';

/** Members of a usage that are counts. */
type CountName = { [Name in keyof BillableUsage]-?: number extends BillableUsage[Name] ? Name : never }[keyof BillableUsage];

/** The counts that the main generation and a pass on top of it share; the main one may lack some. */
type Pass = Partial<Omit<UsageIteration, 'type' | 'model'>>;

/** Meter names come from the upstream and are written to every log row. No price has more of them, or longer ones. */
const MAX_METERS = 32;
const MAX_NAME = 64;
/** So are passes, each of which has a line of its own in the charge; more than that are counted with the answer. */
const MAX_PASSES = 16;
const MAX_MODEL = 128;
const NO_PASSES: readonly UsageIteration[] = [];

/**
 * The main generation and every pass on top of it, in disjoint classes; classes without a count are left out. Passes that name a
 * model of their own stand apart, since that model's price counts.
 */
export function billableUsage(usage: Usage): BillableUsage {
  const { reasoning: reasoned = 0, extra = NO_PASSES } = usage;
  const apart = extra.length === 0 ? NO_PASSES : apartOf(extra);
  const together = apart.length === 0 ? extra : extra.filter((pass) => !apart.includes(pass));
  const sum = (count: keyof Pass, main: number = usage[count] ?? 0): number => {
    let total = main;
    for (const pass of together) total += pass[count] ?? 0;
    return Math.min(total, LARGEST_COUNT);
  };
  const input = sum('input');
  const output = sum('output', wholeOutput(usage.output ?? 0, reasoned));
  const imageInput = Math.min(sum('imageInput'), input);
  const imageOutput = Math.min(sum('imageOutput'), output);
  const audioInput = Math.min(usage.audioInput ?? 0, input - imageInput);
  const audioOutput = Math.min(usage.audioOutput ?? 0, output - imageOutput);
  const reasoning = Math.min(reasoned, output - imageOutput - audioOutput);
  return {
    ...counted({
      input: input - imageInput - audioInput,
      cachedInput: sum('cacheRead'),
      cacheWrite5m: sum('cacheWrite5m'),
      cacheWrite30m: usage.cacheWrite30m ?? 0,
      cacheWrite1h: sum('cacheWrite1h'),
      cacheWrite12h: usage.cacheWrite12h ?? 0,
      cacheWriteUnsplit: sum('cacheWrite'),
      output: output - reasoning - imageOutput - audioOutput,
      reasoning,
      imageInput,
      imageOutput,
      audioInput,
      audioOutput,
      images: usage.images ?? 0,
    }),
    ...(usage.meters === undefined ? {} : { meters: boundedMeters(usage.meters) }),
    ...(usage.serviceTier === undefined ? {} : { serviceTier: usage.serviceTier.slice(0, MAX_NAME) }),
    ...(usage.speed === undefined ? {} : { speed: usage.speed.slice(0, MAX_NAME) }),
    ...(usage.geo === undefined ? {} : { geo: usage.geo.slice(0, MAX_NAME) }),
    ...(usage.servedModel === undefined ? {} : { model: usage.servedModel.slice(0, MAX_MODEL) }),
    ...(apart.length === 0 ? {} : { passes: apart.map(passOf) }),
  };
}

function apartOf(extra: readonly UsageIteration[]): readonly UsageIteration[] {
  return extra.filter(({ model }) => model !== undefined && model.length <= MAX_MODEL).slice(0, MAX_PASSES);
}

function passOf({ type, model = '', ...pass }: UsageIteration): UsagePass {
  return {
    type: type.slice(0, MAX_NAME),
    model,
    ...counted({
      input: pass.input,
      cachedInput: pass.cacheRead,
      cacheWrite5m: pass.cacheWrite5m ?? 0,
      cacheWrite1h: pass.cacheWrite1h ?? 0,
      cacheWriteUnsplit: pass.cacheWrite,
      output: pass.output,
    }),
  };
}

/** Those that count anything. */
function counted(classes: { readonly [Class in CountName]?: number }): { readonly [Class in CountName]?: number } {
  const kept: { [Class in CountName]?: number } = {};
  for (const name in classes) {
    const count = classes[name as CountName];
    if (count !== undefined && count !== 0) kept[name as CountName] = count;
  }
  return kept;
}

function boundedMeters(meters: ReadonlyMap<string, number>): ReadonlyMap<string, number> {
  return new Map([...meters].filter(([{ length }]) => length <= MAX_NAME).slice(0, MAX_METERS));
}
