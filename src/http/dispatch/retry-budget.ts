/**
 * How many repeats a Channel may be sent: a share of what it is sent anyway, so that an upstream in trouble is never met by a
 * multiple of its load. State of one process. Knows no error.
 */

/** One repeat for five exchanges. */
const SHARE = 0.2;
/** What may be repeated at once: at the start, and at most. */
const START = 3;
const MOST = 10;

export class RetryBudget {
  readonly #tokens = new Map<string, number>();

  /** An exchange asks the Channel for the first time. */
  asked(channelId: string): void {
    this.#tokens.set(channelId, Math.min(MOST, this.#left(channelId) + SHARE));
  }

  /** Takes one repeat; false when there is none left. */
  spend(channelId: string): boolean {
    const left = this.#left(channelId);
    if (left < 1) return false;
    this.#tokens.set(channelId, left - 1);
    return true;
  }

  keepOnly(channelIds: ReadonlySet<string>): void {
    for (const id of this.#tokens.keys()) if (!channelIds.has(id)) this.#tokens.delete(id);
  }

  #left(channelId: string): number {
    return this.#tokens.get(channelId) ?? START;
  }
}
