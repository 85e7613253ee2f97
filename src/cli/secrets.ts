/** `mizu secrets rotate`: a new secret for the envelopes of opaque values. Old envelopes still open. */
import { Nothing } from '../http/admin/requests.ts';
import { type Verb, type VerbContext, verb } from './verb.ts';

/** The number of the new one; its bytes are shown to nobody. The same cause again: the one that it made. */
export async function rotateSecret(context: VerbContext): Promise<{ readonly secret: number }> {
  return { secret: (await (await context.store()).secrets.rotate(context.cause)).id };
}

export const SECRETS: readonly Verb[] = [
  verb({
    name: 'secrets rotate',
    usage: 'rotate',
    does: 'Makes a new secret for the envelopes of opaque values. Old envelopes still open.',
    options: Nothing,
    changes: true,
    run: rotateSecret,
    text: ({ secret }) => `new envelopes are sealed with secret ${secret}; those of the ${secret - 1} before it still open`,
  }),
];
