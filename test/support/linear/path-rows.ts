/** The linearity law over the targets of requests, which everybody may send: no key is asked for them. */
import { matchRoute, pathOfTarget } from '../../../src/http/server/route-table.ts';
import type { Case } from './growth.ts';

/** Within 32 KiB. */
const PATHS: Readonly<Record<string, (count: number) => string>> = {
  slashes: (count) => '/'.repeat(count * 4),
  segments: (count) => '/a'.repeat(count * 2),
  'segments beneath an endpoint': (count) => `/v1/messages${'/a'.repeat(count * 2)}`,
  'slashes in the name of a model': (count) => `/v1/models/${'/'.repeat(count * 4)}`,
  'a name of a model in percent signs': (count) => `/v1/models/${'%41'.repeat(count)}`,
  'percent signs that belong to no code': (count) => `/v1/models/${'%'.repeat(count * 4)}`,
  'slashes behind an authority': (count) => `http://${'a.'.repeat(count)}${'/'.repeat(count * 2)}`,
};

export const PATH_CASES: readonly Case[] = Object.entries(PATHS).map(
  ([what, path]): Case => ({
    name: `a path: ${what}`,
    // The engine reads no more than the first 16,383 characters of a name that is looked up.
    own: { count: 1_000, times: 4, limit: 6 },
    work(count) {
      const target = path(count);
      return { json: [], run: () => void matchRoute('GET', pathOfTarget(target)) };
    },
  }),
);
