/** Call ids of a conversation as this wire takes them: short, of a small alphabet, and unique. */
import { shortId } from '../../requests/short-id.ts';

const MAX_LENGTH = 64;
const LEGAL = /^[a-zA-Z0-9_-]{1,64}$/;

/**
 * Some models number the calls of each turn anew, so one id may be in several turns. Each later use of an id gets an id of its
 * own. The same conversation always gets the same ids.
 */
export class CallIds {
  readonly #uses = new Map<string, number>();

  ofCall(id: string): string {
    const use = (this.#uses.get(id) ?? 0) + 1;
    this.#uses.set(id, use);
    return wireId(id, use);
  }

  /** A result belongs to the latest call with its id. */
  ofResult(id: string): string {
    return wireId(id, this.#uses.get(id) ?? 1);
  }
}

function wireId(id: string, use: number): string {
  if (use === 1 && LEGAL.test(id)) return id;
  const unique = use === 1 ? id : `${id} ${use}`;
  return shortId(unique, unique.replace(/[^a-zA-Z0-9_-]/g, '_'), MAX_LENGTH);
}
