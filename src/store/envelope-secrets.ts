/**
 * The secrets from which envelope keys are derived: 32 random bytes each, made at first start, shared by all processes on the
 * store.
 */

export interface EnvelopeSecret {
  /** 1 to 255; part of every envelope. */
  readonly id: number;
  readonly bytes: Uint8Array;
}

export interface EnvelopeSecrets {
  /**
   * What new envelopes are sealed with. Never blocks: the list is small and in memory, and follows changes of other processes.
   */
  current(): EnvelopeSecret;
  /** For opening; undefined for an id that never existed. */
  byId(id: number): EnvelopeSecret | undefined;
  /** Adds a new current secret; old ones still open. The same cause again: the one that it made. */
  rotate(cause: { readonly id: string; readonly by: string }): Promise<EnvelopeSecret>;
}

/** The journal's note of a rotation: which secret it made. */
export const secretNote = ({ id }: Pick<EnvelopeSecret, 'id'>): string => `secret ${id}`;
