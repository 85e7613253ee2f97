/** Canonical usage as what the store prices: disjoint classes (spec rule 9: what is reported on top is added once). */
import { type Usage, wholeOutput } from '../codecs/canonical/usage.ts';
import type { BillableUsage } from '../store/charge.ts';

export function billableUsage(usage: Usage): BillableUsage {
  let input = usage.input ?? 0;
  let cachedInput = usage.cacheRead ?? 0;
  let cacheWrite5m = usage.cacheWrite5m ?? 0;
  let cacheWrite1h = usage.cacheWrite1h ?? 0;
  let cacheWriteUnsplit = usage.cacheWrite ?? 0;
  const reasoned = usage.reasoning ?? 0;
  let output = wholeOutput(usage.output ?? 0, reasoned);
  let pictureInput = usage.imageInput ?? 0;
  let pictureOutput = usage.imageOutput ?? 0;
  for (const pass of usage.extra ?? []) {
    input += pass.input;
    cachedInput += pass.cacheRead;
    cacheWrite5m += pass.cacheWrite5m ?? 0;
    cacheWrite1h += pass.cacheWrite1h ?? 0;
    cacheWriteUnsplit += pass.cacheWrite;
    output += pass.output;
    pictureInput += pass.imageInput ?? 0;
    pictureOutput += pass.imageOutput ?? 0;
  }
  const imageInput = Math.min(pictureInput, input);
  const imageOutput = Math.min(pictureOutput, output);
  const reasoning = Math.min(reasoned, output - imageOutput);
  const classes: [keyof BillableUsage, number][] = [
    ['input', input - imageInput],
    ['cachedInput', cachedInput],
    ['cacheWrite5m', cacheWrite5m],
    ['cacheWrite1h', cacheWrite1h],
    ['cacheWriteUnsplit', cacheWriteUnsplit],
    ['output', output - reasoning - imageOutput],
    ['reasoning', reasoning],
    ['imageInput', imageInput],
    ['imageOutput', imageOutput],
    ['images', usage.images ?? 0],
  ];
  return {
    ...Object.fromEntries(classes.filter(([, count]) => count !== 0)),
    ...(usage.meters === undefined ? {} : { meters: usage.meters }),
    ...(usage.serviceTier === undefined ? {} : { serviceTier: usage.serviceTier }),
  };
}
