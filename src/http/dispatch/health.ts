/**
 * Which Channels are fit: one half-open circuit for each Channel and model, and a cooldown for a Channel that refused our
 * credential. State of one process. Knows outcomes, not errors: the attempt loop decides what a failure was.
 */
import type { Clock } from '../../streams/clock.ts';
import {
  CIRCUIT,
  type Circuit,
  type CircuitState,
  isLettingIn,
  isTried,
  keyOf,
  keyOfCircuit,
  newCircuit,
  note,
} from './circuit.ts';

export interface HealthSettings {
  readonly failures: number;
  readonly windowMs: number;
  readonly cooldownMs: number;
  readonly rateLimitCooldownMs: number;
  readonly refusedCooldownMs: number;
}

/** Leave to try a Channel once. One of the methods that report how it ended is called; later calls do nothing. */
export interface Permit {
  /** Its first output is there: a trial then keeps the next one out no longer, however long its answer gets. */
  answering(): void;
  succeeded(): void;
  /** A fault of the upstream: 5xx, 408, network, timeout, an answer that broke. */
  failed(): void;
  /** 429. With `retryAfterMs` the circuit opens at once, for that long. Zero is no time. */
  rateLimited(retryAfterMs: number | undefined): void;
  /** 401, 402: the Channel is cooled for every model. */
  refused(): void;
  /**
   * 403: as {@link refused}, unless the Channel has answered within the window. The credential was good then, so that it may be
   * this request that asked for what nobody may have: it counts as one failure of the model.
   */
  forbidden(): void;
  /** The Channel is cooled for this model, which it does not have. */
  unknownModel(): void;
  /** 404 of something else, by its words: as {@link unknownModel}, unless the model has answered within the window. */
  missing(): void;
  /** Nothing was learnt: the client left, or the client's own request was wrong. */
  nothing(): void;
}

export interface CircuitReport {
  readonly channelId: string;
  /** Absent: the Channel as a whole. */
  readonly model?: string;
  readonly state: CircuitState;
  readonly openForMs: number;
  readonly recentFailures: number;
}

type Finding = Exclude<keyof Permit, 'answering'>;

/** A failure, and for how long the circuit would open. */
interface Counted {
  readonly now: number;
  readonly ms: number;
  readonly isLimited: boolean;
}

interface Attempt {
  readonly channelId: string;
  readonly model: string;
  /** The circuits that this very attempt is the trial of. What it finds out of others that have opened meanwhile is old. */
  readonly trials: readonly Circuit[];
  readonly era: object;
}

interface Learner {
  answering(trials: readonly Circuit[]): void;
  learn(attempt: Attempt, finding: Finding, retryAfterMs?: number): void;
}

class OnePermit implements Permit {
  readonly #attempt: Attempt;
  readonly #learner: Learner;
  #used = false;

  constructor(attempt: Attempt, learner: Learner) {
    this.#attempt = attempt;
    this.#learner = learner;
  }

  answering(): void {
    if (!this.#used) this.#learner.answering(this.#attempt.trials);
  }

  succeeded(): void {
    this.#once('succeeded');
  }

  failed(): void {
    this.#once('failed');
  }

  rateLimited(retryAfterMs: number | undefined): void {
    this.#once('rateLimited', retryAfterMs);
  }

  refused(): void {
    this.#once('refused');
  }

  forbidden(): void {
    this.#once('forbidden');
  }

  unknownModel(): void {
    this.#once('unknownModel');
  }

  missing(): void {
    this.#once('missing');
  }

  nothing(): void {
    this.#once('nothing');
  }

  #once(finding: Finding, retryAfterMs?: number): void {
    if (this.#used) return;
    this.#used = true;
    this.#learner.learn(this.#attempt, finding, retryAfterMs);
  }
}

/** `model` is absent for the Channel as a whole. */
export type CircuitWatch = (channelId: string, model: string | undefined, state: CircuitState) => void;

/** The longest that a Retry-After can keep a Channel out. */
const MAX_RETRY_AFTER_MS = 10 * 60_000;
/** An upstream says 429 at once, not at the end of what it has worked on: a trial that has not had one by then was let in. */
const LIMIT_TRIAL_MS = 1_000;
const PROBE_FAILURES = 2;

export class Health {
  readonly #clock: Clock;
  readonly #settings: () => HealthSettings;
  readonly #onMove: CircuitWatch;
  readonly #circuits = new Map<string, Circuit>();
  /** Probes that failed in a row. */
  readonly #probeFailures = new Map<string, number>();
  /** Since when each Channel is configured as it is: a mark that only its own permits have. */
  readonly #eras = new Map<string, object>();
  /** Channels that probes took out, and a good probe brings back. */
  readonly #outByProbe = new Set<string>();

  /** One for all permits: each open stream has one, and closures of its own would cost it a kilobyte. */
  readonly #learner: Learner = {
    answering: (trials) => this.#answering(trials),
    learn: (attempt, finding, retryAfterMs) => this.#learn(attempt, finding, retryAfterMs),
  };

  /** `onMove` hears every change of a circuit's state. */
  constructor(clock: Clock, settings: () => HealthSettings, onMove: CircuitWatch = () => undefined) {
    this.#clock = clock;
    this.#settings = settings;
    this.#onMove = onMove;
  }

  /** Whether an attempt would be let through now. Takes nothing. */
  isFit(channelId: string, model: string): boolean {
    const now = this.#clock.monotonic();
    return this.#passes(this.#circuits.get(channelId), now) && this.#passes(this.#circuits.get(keyOf(channelId, model)), now);
  }

  /** How long until an attempt is let through again; 0 when one is now, or when that is up to a trial under way. */
  closedForMs(channelId: string, model: string): number {
    const now = this.#clock.monotonic();
    const waits = [this.#circuits.get(channelId), this.#circuits.get(keyOf(channelId, model))].map((circuit) =>
      circuit?.state === 'open' ? circuit.openUntil - now : 0,
    );
    return Math.max(0, ...waits);
  }

  /** Undefined when the circuit is open, or its one trial is taken. */
  enter(channelId: string, model: string): Permit | undefined {
    if (!this.isFit(channelId, model)) return undefined;
    const trials: Circuit[] = [];
    for (const circuit of [this.#circuits.get(channelId), this.#circuits.get(keyOf(channelId, model))]) {
      if (circuit === undefined || circuit.state === 'closed') continue;
      const isOpenToAll = isLettingIn(circuit, this.#clock.monotonic());
      this.#move(circuit, CIRCUIT[circuit.state].try);
      // A long answer that is no stream would keep everybody else out until it is whole.
      const { cooldownMs } = this.#settings();
      const trialMs = circuit.isLimited ? Math.min(cooldownMs, LIMIT_TRIAL_MS) : cooldownMs;
      if (!isOpenToAll) circuit.openUntil = this.#clock.monotonic() + trialMs;
      trials.push(circuit);
    }
    return new OnePermit({ channelId, model, trials, era: this.#eraOf(channelId) }, this.#learner);
  }

  /**
   * What an active probe found. Two failures in a row take the Channel out until a probe is good again or the cooldown is over;
   * what requests found out themselves is theirs to heal.
   */
  probed(channelId: string, good: boolean): void {
    if (good) {
      this.#probeFailures.delete(channelId);
      const circuit = this.#circuits.get(channelId);
      if (this.#outByProbe.delete(channelId) && circuit !== undefined) this.#close(circuit);
      return;
    }
    const failures = (this.#probeFailures.get(channelId) ?? 0) + 1;
    this.#probeFailures.set(channelId, failures);
    const alreadyOut = (this.#circuits.get(channelId)?.state ?? 'closed') !== 'closed' && !this.#outByProbe.has(channelId);
    if (failures < PROBE_FAILURES || alreadyOut) return;
    this.#outByProbe.add(channelId);
    this.#open(this.#circuit(channelId, undefined), this.#clock.monotonic() + this.#settings().cooldownMs);
  }

  /** Every circuit that something was learnt of, for operators. */
  report(): CircuitReport[] {
    const now = this.#clock.monotonic();
    const { windowMs } = this.#settings();
    return [...this.#circuits.values()].map((circuit) => ({
      channelId: circuit.channelId,
      ...(circuit.model === undefined ? {} : { model: circuit.model }),
      state: circuit.state,
      openForMs: circuit.state === 'open' ? Math.max(0, Math.round(circuit.openUntil - now)) : 0,
      recentFailures: circuit.results.filter(({ at, good }) => !good && at > now - windowMs).length,
    }));
  }

  /** Forgets Channels that the configuration no longer has as they were; attempts that run on them teach nothing any more. */
  keepOnly(channelIds: ReadonlySet<string>): void {
    for (const channelId of this.#eras.keys()) if (!channelIds.has(channelId)) this.#eras.delete(channelId);
    for (const [key, { channelId }] of this.#circuits) if (!channelIds.has(channelId)) this.#circuits.delete(key);
    for (const channelId of this.#probeFailures.keys()) if (!channelIds.has(channelId)) this.#probeFailures.delete(channelId);
    for (const channelId of this.#outByProbe) if (!channelIds.has(channelId)) this.#outByProbe.delete(channelId);
  }

  #passes(circuit: Circuit | undefined, now: number): boolean {
    return circuit === undefined || circuit.state === 'closed' || now >= circuit.openUntil;
  }

  #learn({ channelId, model, trials, era }: Attempt, finding: Finding, retryAfterMs?: number): void {
    if (this.#eras.get(channelId) !== era) return;
    const now = this.#clock.monotonic();
    const { cooldownMs, rateLimitCooldownMs, refusedCooldownMs } = this.#settings();
    if (finding === 'succeeded') {
      for (const circuit of trials) if (isTried(circuit, now)) this.#close(circuit);
      note(this.#circuit(channelId, model), now, true);
      return;
    }
    this.#release(finding === 'nothing' ? trials.filter((circuit) => !isLettingIn(circuit, now)) : trials);
    if (finding === 'nothing') return;
    const isLimited = finding === 'rateLimited';
    const open = (of: string | undefined, ms: number): void => this.#open(this.#circuit(channelId, of), now + ms, isLimited);
    const count = (ms: number): void => this.#count(this.#circuit(channelId, model), { now, ms, isLimited }, trials);
    switch (finding) {
      case 'failed':
        count(cooldownMs);
        break;
      case 'rateLimited':
        // No time at all would keep nobody away, however often it is named.
        if (retryAfterMs === undefined || retryAfterMs <= 0) count(rateLimitCooldownMs);
        else open(model, Math.min(retryAfterMs, MAX_RETRY_AFTER_MS));
        break;
      case 'refused':
        open(undefined, refusedCooldownMs);
        break;
      case 'unknownModel':
        open(model, refusedCooldownMs);
        break;
      case 'forbidden':
      case 'missing': {
        const doubted = finding === 'missing' ? model : undefined;
        if (this.#hasJustAnswered(channelId, doubted, now)) count(cooldownMs);
        else open(doubted, refusedCooldownMs);
        break;
      }
    }
  }

  /** `model`: undefined for any of the Channel's. */
  #hasJustAnswered(channelId: string, model: string | undefined, now: number): boolean {
    const since = now - this.#settings().windowMs;
    const isOf = (circuit: Circuit) => circuit.channelId === channelId && (model ?? circuit.model) === circuit.model;
    return this.#circuits.values().some((circuit) => isOf(circuit) && circuit.results.some(({ at, good }) => good && at > since));
  }

  /** Whoever answers has let the request in: behind a 429 there is nothing else to find out. */
  #answering(trials: readonly Circuit[]): void {
    for (const circuit of trials)
      if (circuit.isLimited && circuit.state === 'trying')
        circuit.openUntil = Math.min(circuit.openUntil, this.#clock.monotonic());
    this.#release(trials.filter(({ isLimited }) => !isLimited));
  }

  #release(trials: readonly Circuit[]): void {
    for (const circuit of trials.filter(({ state }) => state === 'trying')) {
      circuit.openUntil = this.#clock.monotonic();
      this.#move(circuit, CIRCUIT.trying.release);
    }
  }

  #eraOf(channelId: string): object {
    const era = this.#eras.get(channelId) ?? {};
    this.#eras.set(channelId, era);
    return era;
  }

  /** Opens the circuit when failures are many and no exception; a failed trial opens it again at once. */
  #count(circuit: Circuit, { now, ms, isLimited }: Counted, trials: readonly Circuit[]): void {
    if (trials.includes(circuit)) {
      this.#open(circuit, now + ms, isLimited);
      return;
    }
    if (circuit.state !== 'closed') return;
    const { windowMs, failures: most } = this.#settings();
    note(circuit, now, false);
    circuit.results = circuit.results.filter(({ at }) => at > now - windowMs);
    const failures = circuit.results.filter(({ good }) => !good).length;
    if (failures >= most && failures * 2 >= circuit.results.length) this.#open(circuit, now + ms, isLimited);
  }

  /**
   * A trial under way decides for itself (who asks has ended its own); a circuit that is open already is never opened for less
   * long.
   */
  #open(circuit: Circuit, until: number, isLimited = false): void {
    if (circuit.state === 'trying') return;
    circuit.isLimited = isLimited && (circuit.isLimited || circuit.state === 'closed');
    circuit.openUntil = Math.max(circuit.openUntil, until);
    this.#move(circuit, CIRCUIT[circuit.state].open);
  }

  #close(circuit: Circuit): void {
    this.#circuits.delete(keyOfCircuit(circuit));
    this.#move(circuit, CIRCUIT[circuit.state].close);
  }

  #move(circuit: Circuit, state: CircuitState): void {
    if (circuit.state === state) return;
    circuit.state = state;
    this.#onMove(circuit.channelId, circuit.model, state);
  }

  #circuit(channelId: string, model: string | undefined): Circuit {
    const key = model === undefined ? channelId : keyOf(channelId, model);
    let circuit = this.#circuits.get(key);
    if (circuit === undefined) {
      circuit = newCircuit(channelId, model);
      this.#circuits.set(key, circuit);
    }
    return circuit;
  }
}
