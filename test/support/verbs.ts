/** A verb on things that a test holds itself: an open store, a clock, files. */
import { randomBytes } from 'node:crypto';
import { find, perform, type Typed } from '../../src/cli/perform.ts';
import { RefusedError } from '../../src/http/admin/refusals.ts';
import type { Verb, VerbContext } from '../../src/cli/verb.ts';
import { systemClock } from '../../src/streams/clock.ts';

const isNotNeeded = (what: string) => () => {
  throw new Error(`no ${what} is needed`);
};

/** Resolves with the exit code. Rejects as the command line would print it. */
export async function typed(
  verbs: readonly Verb[],
  words: readonly string[],
  values: Typed['values'],
  has: Partial<VerbContext> = {},
  print: (text: string) => void = () => undefined,
): Promise<number> {
  const found = find(verbs, words);
  if (found === undefined) throw new Error(`there is no verb ${words.join(' ')}`);
  const context = {
    clock: systemClock,
    mint: (prefix: string) => `${prefix}${randomBytes(16).toString('hex')}`,
    readFile: isNotNeeded('file'),
    config: isNotNeeded('configuration'),
    changeConfig: isNotNeeded('change of the configuration'),
    store: isNotNeeded('store'),
    confirm: () => Promise.reject(new RefusedError('nobody is here to agree')),
    interrupted: () => new AbortController().signal,
    input: ReadableStream.from([]),
    write: () => Promise.resolve(),
    ...has,
  };
  return await perform(found, values, context, print);
}
