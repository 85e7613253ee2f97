/** Which opaque values of a history go back to an upstream. */
import type { Dialect } from '../canonical/dialect.ts';
import { mayReceive, type Opaque } from '../canonical/opaque.ts';
import type { Target } from '../codec.ts';

/** True where the value is of the target's own kind, and the target has not just refused such values. `dialect` is the target's. */
export function mayReplay(opaque: Opaque, { owner, without }: Target, dialect: Dialect): boolean {
  return !without.has('opaque') && mayReceive(opaque, { ...owner, dialect });
}
