/** Ids of calls in a conversation, as this wire takes them: of few characters, and none twice. */
import { shortId } from '../requests/short-id.ts';

const MAX_LENGTH = 64;
const LEGAL = /^[a-zA-Z0-9_-]{1,64}$/;

/**
 * Some models number the calls of each turn anew, so that one id stands in several turns; each later use of an id gets one of its own.
 * The same conversation always gets the same ids.
 */
export class CallIds {
  readonly #uses = new Map<string, number>();

  ofCall(id: string): string {
    const use = (this.#uses.get(id) ?? 0) + 1;
    this.#uses.set(id, use);
    return wireId(id, use);
  }

  /** A result stands behind the turn of its call: it answers the latest one of its id. */
  ofResult(id: string): string {
    return wireId(id, this.#uses.get(id) ?? 1);
  }
}

function wireId(id: string, use: number): string {
  if (use === 1 && LEGAL.test(id)) return id;
  const said = use === 1 ? id : `${id} ${use}`;
  return shortId(said, said.replace(/[^a-zA-Z0-9_-]/g, '_'), MAX_LENGTH);
}
