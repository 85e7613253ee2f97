/**
 * How much of a large law a run tries. `npm test` tries a sample, the same for the same seed, and so stays under two minutes; the
 * whole is tried by `npm run test:cases` (`MIZU_CASES=all`), and by `npm run test:clouds` (`MIZU_FORMS`) where a law is over forms
 * of upstreams. `test/scripts.test.ts` wants every file that imports this one in one of the two.
 */
import { createHash } from 'node:crypto';

const { MIZU_CASES, MIZU_FORMS } = process.env;
export const isWhole = MIZU_CASES === 'all' || MIZU_FORMS !== undefined;

/** How many: `some` in a sample. */
export function sized(some: number, all: number): number {
  return isWhole ? all : some;
}

/** All of a list, or so many as the seed draws for this `lot`, in their order. */
export function drawn<T>(all: readonly T[], some: number, lot: string): readonly T[] {
  if (isWhole || all.length <= some) return all;
  const seed = process.env['MIZU_SEED'] ?? String(Math.random());
  const placeOf = (index: number): string => createHash('sha256').update(`${seed} ${lot} ${index}`).digest('hex');
  const places = all.map((_, index) => placeOf(index));
  const last = [...places].sort()[some - 1] ?? '';
  return all.filter((_, index) => (places[index] ?? '') <= last);
}
