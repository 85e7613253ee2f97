/**
 * The engines that the tests of the stores run on: LMDB alone in the fast suite, since a database server takes as long as a third
 * of it. `MIZU_STORES` (`lmdb`, `postgres` or both, with a comma) says otherwise: `npm run test:postgres` and `npm run
 * docs:stores` set it.
 */
export const ENGINES = ['lmdb', 'postgres'] as const;
export type EngineName = (typeof ENGINES)[number];

const asked: readonly string[] = (process.env['MIZU_STORES'] ?? 'lmdb').split(',');

/** Why tests on this engine must be skipped, or false. */
export function skipped(engine: EngineName): string | false {
  if (asked.includes(engine)) return false;
  return engine === 'postgres' ? 'PostgreSQL has its own run: npm run test:postgres' : 'only PostgreSQL was asked for';
}
