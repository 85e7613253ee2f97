/** Which opaque values of a history go back to an upstream. */
import type { Dialect } from '../canonical/dialect.ts';
import { mayReceive, type Opaque } from '../canonical/opaque.ts';
import type { Target } from '../codec.ts';

/** True when the target may receive the value and has not just refused such values. `dialect` is the target's. */
export function mayReplay(opaque: Opaque, { owner, without }: Target, dialect: Dialect): boolean {
  return !without.has('opaque') && mayReceive(opaque, { ...owner, dialect });
}
