/**
 * Long answers to other workers, one under way at a time: each is written and read as a whole by three processes, and a question
 * of some bytes may be for the whole of a long conversation. The owners take turns, so that nobody is behind the crowd of
 * another. What has waited for as long as anybody waits for an answer is not sent at all.
 */
import type { Clock, Timer } from '../../streams/clock.ts';

interface Waiting {
  readonly name: string;
  readonly since: number;
  readonly send: () => void;
}

export class AnswerLine {
  readonly #clock: Clock;
  readonly #patienceMs: number;
  /** Whose line is first has the next answer, and goes to the end. */
  readonly #lines = new Map<string, Waiting[]>();
  #underWay: { readonly name: string; readonly timer: Timer } | undefined;

  /** `patienceMs`: how long whoever asked waits. */
  constructor(clock: Clock, patienceMs: number) {
    this.#clock = clock;
    this.#patienceMs = patienceMs;
  }

  /** `name`: what {@link arrived} is called with. */
  add(owner: string, name: string, send: () => void): void {
    const waiting = { name, since: this.#clock.monotonic(), send };
    const line = this.#lines.get(owner);
    if (line === undefined) this.#lines.set(owner, [waiting]);
    else line.push(waiting);
    this.#sendNext();
  }

  arrived(name: string): void {
    if (this.#underWay?.name !== name) return;
    this.#underWay.timer.cancel();
    this.#underWay = undefined;
    this.#sendNext();
  }

  close(): void {
    this.#lines.clear();
    this.#underWay?.timer.cancel();
  }

  #sendNext(): void {
    if (this.#underWay !== undefined) return;
    for (const [owner, line] of this.#lines) {
      const waiting = line.shift();
      this.#lines.delete(owner);
      if (line.length > 0) this.#lines.set(owner, line);
      if (waiting === undefined || this.#clock.monotonic() - waiting.since >= this.#patienceMs) continue;
      const { name, send } = waiting;
      // A worker that is gone confirms nothing.
      this.#underWay = { name, timer: this.#clock.setTimeout(() => this.arrived(name), this.#patienceMs) };
      send();
      return;
    }
  }
}
