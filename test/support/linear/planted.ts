/**
 * Cases of which it is known how their cost grows: the law must find the squares, and leave alone what only looks like one in a
 * sample.
 */
import type { Case, Work } from './growth.ts';
import { list } from './schema-shapes.ts';

const of = (run: () => void): Work => ({ json: [], run });

/** Plain steps of work, in a number that the compiler cannot leave out. */
let kept = 0;
function spin(steps: number): void {
  for (let step = 0; step < steps; step += 1) kept = (Math.imul(kept, 31) + step) | 0;
}

export const SQUARES: readonly Case[] = [
  { name: 'planted: a square behind a line', work: (count) => of(() => spin(4 * count + (count * count) / 50)) },
  {
    name: 'planted: a list that is searched for each of its entries',
    work: (count) => {
      const entries = list(count, (at) => at);
      return of(() => {
        for (const entry of entries) kept += entries.indexOf(entry);
      });
    },
  },
];

/** A step of the engine between the sizes of a sample makes this seven times as slow there, and never again. */
const STEP = 1020;

export const LINES: readonly Case[] = [
  { name: 'planted: a line of plain steps', work: (count) => of(() => spin(count * 200)) },
  { name: 'planted: a line with a step in it', work: (count) => of(() => spin(count * (count > STEP ? 700 : 100))) },
];

const later = (run: () => void): Work => ({
  json: [],
  run: async () => {
    await new Promise(setImmediate);
    run();
  },
});

/** In sizes and limits of their own, as what is asked of a gateway has them. */
export const OWN_SIZES: readonly Case[] = [
  {
    name: 'planted: a square in a later turn',
    own: { count: 500, times: 4, limit: 6 },
    work: (count) => later(() => spin(4 * count + (count * count) / 10)),
  },
  {
    name: 'planted: a line where nothing should grow',
    own: { count: 500, times: 4, limit: 2 },
    work: (count) => later(() => spin(count * 200)),
  },
];

export const PLANTED: readonly Case[] = [...SQUARES, ...LINES, ...OWN_SIZES];
