/** Which changed keys of a reloaded configuration take effect only at the next start, so that a warning can name them. */
import { isDeepStrictEqual } from 'node:util';
import type { Config } from './config.ts';

export const READ_AT_START: Readonly<Record<string, (config: Config) => unknown>> = {
  listen: ({ listen }) => listen,
  operations: ({ operations }) => operations,
  store: ({ storePath, storeUrl }) => [storePath, storeUrl],
  tracing: ({ tracing }) => tracing,
  affinity: ({ affinity }) => affinity,
  warm_up_ms: ({ warmUpMs }) => warmUpMs,
  'limits.connections': ({ limits }) => limits.connections,
  'limits.body_ms': ({ limits }) => limits.bodyMs,
};

/** The keys whose values differ. */
export function changedAtStartOnly(before: Config, after: Config): string[] {
  return Object.entries(READ_AT_START)
    .filter(([, value]) => !isDeepStrictEqual(value(before), value(after)))
    .map(([key]) => key);
}
