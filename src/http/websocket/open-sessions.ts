/** The open sessions of this process: how many each key has, the pings that detect dead peers, and when idle ones are closed. */
import type { GatewayError } from '../../codecs/canonical/error.ts';
import type { Clock, Timer } from '../../streams/clock.ts';
import type { Session } from './session.ts';

const PING_INTERVAL_MS = 30_000;

export class OpenSessions {
  readonly #clock: Clock;
  readonly #sessions = new Set<Session>();
  readonly #perKey = new Map<string, number>();
  readonly #idleMs: () => number;
  #timer: Timer | undefined;
  #pingedAt = 0;

  constructor(clock: Clock, idleMs: () => number) {
    this.#clock = clock;
    this.#idleMs = idleMs;
  }

  ofKey(keyId: string): number {
    return this.#perKey.get(keyId) ?? 0;
  }

  add(session: Session, keyId: string): void {
    this.#sessions.add(session);
    this.#perKey.set(keyId, this.ofKey(keyId) + 1);
    if (this.#timer !== undefined) return;
    this.#pingedAt = this.#clock.monotonic();
    this.#beatLater();
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

  /** An idle time under the interval of pings is looked at as often as it is long. */
  #beatLater(): void {
    this.#timer = this.#clock.setTimeout(() => this.#beat(), Math.min(PING_INTERVAL_MS, this.#idleMs()));
  }

  #beat(): void {
    this.#timer = undefined;
    const now = this.#clock.monotonic();
    const isPingDue = now - this.#pingedAt >= PING_INTERVAL_MS;
    if (isPingDue) this.#pingedAt = now;
    for (const session of this.#sessions) session.heartbeat(now, isPingDue);
    if (this.#sessions.size > 0) this.#beatLater();
  }
}
