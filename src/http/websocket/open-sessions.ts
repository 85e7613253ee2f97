/** The open sessions of this process: how many each key has, and the pings that detect dead peers. */
import type { GatewayError } from '../../codecs/canonical/error.ts';
import type { Clock, Timer } from '../../streams/clock.ts';
import type { Session } from './session.ts';

const PING_INTERVAL_MS = 30_000;

export class OpenSessions {
  readonly #clock: Clock;
  readonly #sessions = new Set<Session>();
  readonly #perKey = new Map<string, number>();
  #timer: Timer | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  ofKey(keyId: string): number {
    return this.#perKey.get(keyId) ?? 0;
  }

  add(session: Session, keyId: string): void {
    this.#sessions.add(session);
    this.#perKey.set(keyId, this.ofKey(keyId) + 1);
    this.#timer ??= this.#clock.setTimeout(() => this.#heartbeat(), PING_INTERVAL_MS);
  }

  /** Once for each session that was added. */
  remove(session: Session, keyId: string): void {
    this.#sessions.delete(session);
    const left = this.ofKey(keyId) - 1;
    if (left > 0) this.#perKey.set(keyId, left);
    else this.#perKey.delete(keyId);
    if (this.#sessions.size > 0) return;
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  drain(): void {
    for (const session of this.#sessions) session.drain();
  }

  abortAll(error: GatewayError): void {
    for (const session of this.#sessions) session.abortTurn(error);
  }

  cut(): void {
    for (const session of this.#sessions) session.cut();
  }

  #heartbeat(): void {
    this.#timer = undefined;
    const now = this.#clock.monotonic();
    for (const session of this.#sessions) session.heartbeat(now);
    if (this.#sessions.size > 0) this.#timer = this.#clock.setTimeout(() => this.#heartbeat(), PING_INTERVAL_MS);
  }
}
