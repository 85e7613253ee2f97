/** Collects the features of one request that the loss table drops or coerces, and throws for those that it refuses. */
import { notConvertible } from '../../canonical/error.ts';
import type { RequestFeature } from '../../canonical/features.ts';
import { requestLosses } from '../losses.ts';

export class LossLog {
  readonly #names = new Set<string>();

  /** Notes a feature that the request holds. Throws `unsupported_conversion` at `path` where the table refuses it. */
  note(feature: RequestFeature, path?: string): void {
    const decision = requestLosses[feature];
    if (decision.does === 'refuse') throw notConvertible(path, decision.why);
    if (decision.does !== 'keep') this.#names.add(feature);
  }

  get names(): readonly string[] {
    return [...this.#names];
  }
}
