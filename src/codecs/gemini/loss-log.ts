/** Gathers which features of one request the loss table dropped or coerced, and raises what it refuses. */
import { notConvertible } from '../canonical/error.ts';
import type { RequestFeature } from '../canonical/features.ts';
import { requestLosses } from './losses.ts';

export class LossLog {
  readonly #names = new Set<string>();

  /** Looks up what happens to `feature`. Throws `unsupported_conversion` with `path` where the table refuses it. */
  meet(feature: RequestFeature, path?: string): void {
    const decision = requestLosses[feature];
    if (decision.does === 'refuse') throw notConvertible(path, decision.why);
    if (decision.does !== 'keep') this.#names.add(feature);
  }

  get names(): readonly string[] {
    return [...this.#names];
  }
}
