/** Operators' controls on LMDB. */
import { controlChanges } from '../books/controls.ts';
import { type Control, type Controls, isControlKind } from '../controls.ts';
import { StoreError } from '../store-error.ts';
import type { Environment } from './environment.ts';

export function createControls(environment: Environment): Controls {
  return {
    ...controlChanges(environment),

    list: async (kind) =>
      environment.look(
        (tables) =>
          [...tables.controls.getRange({ start: [kind, ''] })]
            .filter(({ key }) => key[0] === kind)
            .map(({ key, value }) => controlOf(key, value)),
        // What another process has just decided counts, too.
        true,
      ),
  };
}

/** Throws `corrupt` for a kind that nobody wrote. */
export function controlOf([kind, id]: [string, string], text: string): Control {
  if (!isControlKind(kind)) throw new StoreError('corrupt', `there is no control of the kind ${kind}`);
  return { kind, id, text };
}
