/** Which keys of a reloaded configuration do nothing until the next start, so that whoever changed them is told. */
import { isDeepStrictEqual } from 'node:util';
import type { Config } from './config.ts';

const READ_AT_START: Readonly<Record<string, (config: Config) => unknown>> = {
  listen: ({ listen }) => listen,
  operations: ({ operations }) => operations,
  store: ({ storePath, storeUrl }) => [storePath, storeUrl],
  tracing: ({ tracing }) => tracing,
  affinity: ({ affinity }) => affinity,
  'limits.connections': ({ limits }) => limits.connections,
  'limits.body_ms': ({ limits }) => limits.bodyMs,
};

/** The keys whose values differ. */
export function changedAtStartOnly(before: Config, after: Config): string[] {
  return Object.entries(READ_AT_START)
    .filter(([, value]) => !isDeepStrictEqual(value(before), value(after)))
    .map(([key]) => key);
}
