/** Call ids of a conversation as this wire takes them: short, of a small alphabet, and unique. */
import { shortId } from '../../requests/short-id.ts';

const MAX_LENGTH = 64;
const LEGAL = /^[a-zA-Z0-9_-]{1,64}$/;

/**
 * Some models number the calls of each turn anew, so one id may be in several turns, and some servers give all calls of a tool
 * one id. Each later use of an id gets an id of its own. The same conversation always gets the same ids.
 */
export class CallIds {
  readonly #uses = new Map<string, number>();
  readonly #latest = new Map<string, SameIdCalls>();
  #answer = 0;

  /** The calls that follow are of another answer of the model than those before. */
  nextAnswer(): void {
    this.#answer += 1;
  }

  ofCall(id: string): string {
    const use = (this.#uses.get(id) ?? 0) + 1;
    this.#uses.set(id, use);
    const known = this.#latest.get(id);
    if (known?.answer === this.#answer && known.answered === 0) known.last = use;
    else this.#latest.set(id, { answer: this.#answer, first: use, last: use, answered: 0 });
    return wireId(id, use);
  }

  /** A result belongs to the latest call with its id. Calls of one answer that share an id take its results in order. */
  ofResult(id: string): string {
    const calls = this.#latest.get(id);
    if (calls === undefined) return wireId(id, 1);
    const use = Math.min(calls.first + calls.answered, calls.last);
    calls.answered += 1;
    return wireId(id, use);
  }
}

/** The calls of one answer that share an id: which uses of it they are, and how many results came. */
interface SameIdCalls {
  readonly answer: number;
  readonly first: number;
  last: number;
  answered: number;
}

function wireId(id: string, use: number): string {
  if (use === 1 && LEGAL.test(id)) return id;
  const unique = use === 1 ? id : `${id} ${use}`;
  return shortId(unique, unique.replace(/[^a-zA-Z0-9_-]/g, '_'), MAX_LENGTH);
}
