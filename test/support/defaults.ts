/** The defaults of the configuration that are numbers, by the paths of their options. */
import assert from 'node:assert/strict';
import { CHANNEL_SCHEMAS } from '../../src/http/config/channel-schema.ts';
import { CONFIG_SCHEMA } from '../../src/http/config/schema.ts';
import { optionsOf } from './print-options.ts';

/** A Channel type may have another default than the gateway: the gateway's counts. */
const DEFAULTS = new Map(
  [...Object.values(CHANNEL_SCHEMAS), CONFIG_SCHEMA]
    .flatMap((schema) => optionsOf(schema))
    .filter(({ fallback }) => /^\d+$/.test(fallback))
    .map(({ path, fallback }) => [path, Number(fallback)]),
);

export const hasDefault = (path: string): boolean => DEFAULTS.has(path);

export function defaultOf(path: string): number {
  const found = DEFAULTS.get(path);
  assert.ok(found !== undefined, `${path} has no default that is a number`);
  return found;
}
