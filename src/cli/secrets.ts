/** `mizu secrets rotate`: a new secret for the envelopes of opaque values. Old envelopes still open. */
import { Nothing } from '../http/admin/requests.ts';
import { type Verb, verb } from './verb.ts';

export const SECRETS: readonly Verb[] = [
  verb({
    name: 'secrets rotate',
    usage: 'rotate',
    options: Nothing,
    changes: true,
    // The bytes are shown to nobody.
    run: async (context) => ({ secret: (await (await context.store()).secrets.rotate(context.cause)).id }),
    text: ({ secret }) => `new envelopes are sealed with secret ${secret}; those of the ${secret - 1} before it still open`,
  }),
];
