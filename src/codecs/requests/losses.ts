/**
 * What a request loses at an upstream of another dialect, by the loss table of that upstream. Named in the row of the request
 * log.
 */
import { notConvertible } from '../canonical/error.ts';
import type { RequestFeature, RequestLosses } from '../canonical/features.ts';

export class Losses {
  readonly #table: RequestLosses;
  readonly #names = new Set<RequestFeature>();

  constructor(table: RequestLosses) {
    this.#table = table;
  }

  /**
   * The request holds the feature: names it unless it is kept. True where it is to be written. Throws `unsupported_conversion` at
   * `path` where the table refuses it.
   */
  note(feature: RequestFeature, path?: string): boolean {
    const decision = this.#table[feature];
    if (decision.does === 'refuse') throw notConvertible(path, decision.why);
    if (decision.does !== 'keep') this.#names.add(feature);
    return decision.does !== 'drop';
  }

  /** {@link note} before anything is encoded: what is only coerced at times is named where it is. */
  decide(feature: RequestFeature, path?: string): boolean {
    return (this.#table[feature].does === 'coerce' && AT_TIMES.has(feature)) || this.note(feature, path);
  }

  /** Lost whatever the table says: by an option of the Channel, or because the upstream has just refused it. */
  add(feature: RequestFeature): void {
    this.#names.add(feature);
  }

  get names(): readonly RequestFeature[] {
    return [...this.#names];
  }
}

/** Where these are coerced, the encoder names them only if they do not fit as they are. */
const AT_TIMES: ReadonlySet<RequestFeature> = new Set([
  ...([
    'output cap',
    'temperature, top_p',
    'stop sequences',
    'function tool: strict',
    'audio: inline',
    'tool result: text',
    'output modalities',
  ] as const),
  ...(['reasoning: raw text in history', 'cache breakpoint'] as const),
  ...(['call of an undeclared tool', 'assistant turn first', 'system text after the first turn'] as const),
]);
