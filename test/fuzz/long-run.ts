/** The slices of the long run that is recorded: how long each target was fuzzed, over how many inputs, with how many findings. */
import { existsSync, readFileSync } from 'node:fs';
import { keepFigures } from '../support/figures.ts';

export const LONG_RUN = new URL('./runs.jsonl', import.meta.url);

export interface Slice {
  readonly target: string;
  readonly minutes: number;
  readonly inputs: number;
  readonly findings: number;
}

/** What each target has had so far. */
export function longRun(): ReadonlyMap<string, Slice> {
  const sums = new Map<string, Slice>();
  if (!existsSync(LONG_RUN)) return sums;
  for (const line of readFileSync(LONG_RUN, 'utf8').split('\n')) {
    if (line === '') continue;
    const slice: Slice = JSON.parse(line);
    const { minutes = 0, inputs = 0, findings = 0 } = sums.get(slice.target) ?? {};
    sums.set(slice.target, {
      target: slice.target,
      minutes: minutes + slice.minutes,
      inputs: inputs + slice.inputs,
      findings: findings + slice.findings,
    });
  }
  return sums;
}

/** Puts its sums into docs/reliability.json. */
export function keepLongRun(): void {
  const all = [...longRun().values()];
  const sum = (of: (slice: Slice) => number): number => all.reduce((total, slice) => total + of(slice), 0);
  const least = Math.min(...all.map(({ minutes }) => minutes));
  const figure = `${sum(({ inputs }) => inputs)} over ${all.length} targets of ${least} minutes each at least, ${sum(({ findings }) => findings)} findings`;
  keepFigures([{ suite: 'fuzz', claim: 'inputs of one long run', figure }]);
}
