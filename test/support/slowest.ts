/** What took most of the processor, of what `costs.ts` wrote. */
import { readFileSync } from 'node:fs';
import type { Cost } from './costs.ts';

const MOST_SHOWN = 30;

/** The files and the tests that cost most, a line each. */
export function dearest(written: string): string[] {
  const costs: Cost[] = readFileSync(written, 'utf8')
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line));
  const byFile = Map.groupBy(costs, ({ file }) => file);
  const sum = (of: readonly Cost[]): number => of.reduce((all, { ms }) => all + ms, 0);
  const line = ([name, ms]: readonly [string, number]): string => `${Math.round(ms).toString().padStart(7)} ms  ${name}`;
  const shown = (rows: (readonly [string, number])[]): string[] =>
    rows
      .sort(([, a], [, b]) => b - a)
      .slice(0, MOST_SHOWN)
      .map(line);
  return [
    line(['of the processor, all tests together', sum(costs)]),
    ...shown([...byFile].map(([file, of]) => [`${file} (${of.length})`, sum(of)])),
    ...shown(costs.map(({ file, name, ms }) => [`${file} ${name}`, ms])),
  ];
}
