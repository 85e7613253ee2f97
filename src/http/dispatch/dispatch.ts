/**
 * The attempt loop, one for every endpoint: it knows Channels, budgets, waits and circuits, and nothing of what an attempt sends
 * or where its commit point is. Until an attempt resolves, nothing of it has reached the client, so the next Channel may be
 * tried.
 */
import { GatewayError } from '../../codecs/canonical/error.ts';
import type { Refusable } from '../../codecs/canonical/request.ts';
import type { AttemptEntry } from '../../store/request-log.ts';
import { pause } from '../../streams/clock.ts';
import { billableUsage } from '../money/billable.ts';
import type { Channel } from '../config/config.ts';
import { goneBecause, toGatewayError, upstreamFailure } from '../errors.ts';
import { orderChannels } from './candidates.ts';
import type { Release } from './concurrency.ts';
import type { Permit } from './health.ts';
import type { Attempt, AttemptNote, Dispatcher, Plan } from './plan.ts';
import { type Accepted, AcceptedAnswer } from './accepted.ts';
import { failureOf, finalError, isStaleConnection, isTransient, noneFit, reportTo, verdictOf } from './verdict.ts';
import { refusedPart, teaches } from './refused-part.ts';

/** A Channel that may be asked again in the same exchange. */
interface Failure {
  readonly channel: Channel;
  /** Not to be asked before, by the monotonic clock. */
  readonly readyAt: number;
  /** The upstream itself named the time, and it is soon enough to wait for. */
  readonly invited: boolean;
  /** How often the upstream itself asks for repeats; absent: as often as the operator wants. */
  readonly repeats?: number;
}

const BACKOFF_MS = 250;
/** No longer than this many doublings of it. */
const MOST_DOUBLINGS = 4;
/**
 * A kept connection that is dead says so within a round trip, and a lost packet. One that breaks later had a request that was
 * being worked on, which the Channel's own `retries` and the other Channels are for.
 */
const STALE_MS = 2_000;

/** What a client is told of a `Retry-After`: quotas come back within a day, and an upstream may name the year 9999. */
const MOST_TOLD_MS = 24 * 3_600_000;

/** Rejects with the one error that the client is told. Every attempt is appended to `attempts`, also the last. */
export function dispatch<Answer>(
  plan: Plan,
  attempt: Attempt<Answer>,
  dispatcher: Dispatcher,
  attempts: AttemptEntry[],
): Promise<Accepted<Answer>> {
  return new AttemptLoop(plan, attempt, dispatcher, attempts).run();
}

class AttemptLoop<Answer> {
  readonly #plan: Plan;
  readonly #attempt: Attempt<Answer>;
  readonly #dispatcher: Dispatcher;
  readonly #attempts: AttemptEntry[];
  /** What the circuits of this exchange are kept under. */
  readonly #circuit: string;
  readonly #errors: GatewayError[] = [];
  /** How often each Channel was asked again without having invited it. */
  readonly #repeats = new Map<string, number>();
  #unsuitable: GatewayError | undefined;
  #crowded = false;
  /** Channels that were not asked because a circuit was open. */
  readonly #shut = new Set<Channel>();
  /** Channels whose own invitation has been used: each is waited for once. */
  readonly #awaited = new Set<Channel>();
  /** What each Channel refused of the request: it is sent none of that any more. */
  readonly #refused = new Map<string, ReadonlySet<Refusable>>();
  /**
   * When each Channel that failed may be asked again, by the monotonic clock: `undefined` where it named no time, infinity after
   * a wrong request.
   */
  readonly #readyAt = new Map<string, number | undefined>();
  /** Attempts of other models before. */
  readonly #earlier: number;
  /** The last attempt failed at once, before the upstream had answered anything. */
  #nothingRead = false;

  constructor(plan: Plan, attempt: Attempt<Answer>, dispatcher: Dispatcher, attempts: AttemptEntry[]) {
    this.#plan = plan;
    this.#circuit = plan.circuit ?? plan.model;
    this.#attempt = attempt;
    this.#dispatcher = dispatcher;
    this.#attempts = attempts;
    this.#earlier = attempts.length;
  }

  async run(): Promise<Accepted<Answer>> {
    const plan = this.#plan;
    const preferred = this.#preferred();
    let round = orderChannels(plan.channels, {
      random: this.#dispatcher.random,
      ...(preferred === undefined ? {} : { preferred }),
    });
    let waiting: Failure[] = [];
    for (let rounds = 0; ; rounds++) {
      const failed: Failure[] = [];
      for (const channel of round) {
        if (this.#attempts.length - this.#earlier >= plan.maxAttempts) throw this.#final();
        const outcome = await this.#try(channel, preferred, rounds === 0);
        if ('accepted' in outcome) return outcome.accepted;
        if (outcome.failure !== undefined) failed.push(outcome.failure);
      }
      // Before the budget is asked: a repeat that is never sent must not be paid from it.
      if (this.#attempts.length - this.#earlier >= plan.maxAttempts) throw this.#final();
      waiting.push(...failed.filter((failure) => this.#isAskedAgain(failure)));
      const [soonest] = waiting.sort((a, b) => a.readyAt - b.readyAt);
      if (soonest === undefined) throw this.#final();
      const jitter = this.#dispatcher.random() * BACKOFF_MS * 2 ** Math.min(rounds, MOST_DOUBLINGS);
      const { clock } = this.#dispatcher;
      await this.#sleep(Math.max(0, soonest.readyAt - clock.monotonic()) + jitter);
      // Each keeps the time that it named; whoever named a later one is asked in a later round.
      const now = Math.max(clock.monotonic(), soonest.readyAt);
      round = waiting.filter(({ readyAt }) => readyAt <= now).map(({ channel }) => channel);
      waiting = waiting.filter(({ readyAt }) => readyAt > now);
    }
  }

  /** `failure`: of a kind that may pass. */
  async #try(
    channel: Channel,
    preferred: string | undefined,
    isFirst: boolean,
  ): Promise<{ readonly accepted: Accepted<Answer> } | { readonly failure: Failure | undefined }> {
    const { health } = this.#dispatcher;
    // Nobody waits in the queue of a Channel that will not be asked.
    if (!health.isFit(channel.id, this.#circuit)) return this.#passOver(channel);
    const taking = this.#slot(channel);
    const release = taking instanceof Promise ? await taking : taking;
    if (release === undefined) {
      this.#crowded = true;
      return { failure: undefined };
    }
    const permit = health.enter(channel.id, this.#circuit);
    if (permit === undefined) {
      release();
      return this.#passOver(channel);
    }
    this.#shut.delete(channel);
    if (isFirst) this.#dispatcher.retries.asked(channel.id);
    try {
      const answer = await this.#send(channel);
      permit.answering();
      return { accepted: this.#accepted(answer, channel, permit, release, preferred === channel.id) };
    } catch (thrown) {
      release();
      return { failure: this.#failed(thrown, channel, permit) };
    }
  }

  #passOver(channel: Channel): { readonly failure: undefined } {
    this.#shut.add(channel);
    return { failure: undefined };
  }

  /** One attempt with its own repeats: without what was refused, and after a kept connection turned out to be dead. */
  async #send(channel: Channel): Promise<Answer> {
    const { unknown } = this.#dispatcher;
    const { account } = this.#plan;
    const model = this.#modelOf(channel);
    const refused = this.#refused.get(channel.id) ?? unknown.of(channel.id, model, account);
    try {
      return await this.#once(channel, refused);
    } catch (thrown) {
      const error = upstreamFailure(thrown);
      if (verdictOf(error) === 'lost') throw error;
      if (this.#plan.signal.aborted) throw goneBecause(this.#plan.signal);
      const more = refusedPart(error);
      if (more !== undefined && this.#plan.carries?.has(more) === true && !refused.has(more)) {
        this.#refused.set(channel.id, new Set([...refused, more]));
        const answer = await this.#send(channel);
        if (teaches(error)) unknown.refused(channel.id, model, more, account);
        return answer;
      }
      if (this.#nothingRead && isStaleConnection(error)) return await this.#once(channel, refused);
      throw error;
    }
  }

  /** No failure of the upstream's, whatever it is: no other Channel is asked. */
  async #prepare(channel: Channel): Promise<void> {
    try {
      await this.#plan.beforeAttempt?.(channel, this.#modelOf(channel));
    } catch (thrown) {
      throw toGatewayError(thrown);
    }
  }

  async #once(channel: Channel, refused: ReadonlySet<Refusable>): Promise<Answer> {
    if (this.#plan.beforeAttempt !== undefined) await this.#prepare(channel);
    const { clock } = this.#dispatcher;
    const note: AttemptNote = {};
    const startedAtMs = clock.now();
    const started = clock.monotonic();
    const record = (error?: GatewayError): void => {
      const usage = error?.details.usage;
      this.#attempts.push({
        channelId: channel.id,
        channelType: channel.type,
        upstreamModel: this.#modelOf(channel),
        startedAtMs,
        durationMs: Math.round(clock.monotonic() - started),
        ...note,
        ...(usage === undefined ? {} : { usage: billableUsage(usage) }),
        ...(this.#plan.isFallback === true ? { model: this.#plan.model } : {}),
        ...(error === undefined ? {} : failureOf(error)),
      });
    };
    try {
      const answer = await this.#attempt({
        channel,
        upstreamModel: this.#modelOf(channel),
        model: this.#plan.model,
        without: refused,
        signal: this.#plan.signal,
        note,
      });
      record();
      return answer;
    } catch (thrown) {
      const error = upstreamFailure(thrown);
      this.#nothingRead = note.upstreamStatus === undefined && clock.monotonic() - started <= STALE_MS;
      if (verdictOf(error) !== 'unsuitable') record(error);
      throw error;
    }
  }

  #failed(thrown: unknown, channel: Channel, permit: Permit): Failure | undefined {
    const error = upstreamFailure(thrown);
    reportTo(permit, error);
    const verdict = verdictOf(error);
    // Also when the exchange was aborted: whoever began it must know that its outcome is unclear.
    if (verdict === 'lost') throw error;
    if (this.#plan.signal.aborted) throw goneBecause(this.#plan.signal);
    if (verdict === 'stop') throw error;
    this.#readyAt.set(channel.id, Number.POSITIVE_INFINITY);
    if (verdict === 'unsuitable') {
      this.#unsuitable ??= error;
      return undefined;
    }
    this.#errors.push(error);
    if (verdict !== 'next') return undefined;
    // Only now: a request that is wrong by itself is no evidence against the Channel, and its prompt cache is still there.
    if (this.#plan.conversation !== undefined) this.#dispatcher.affinity.failed(this.#plan.conversation, channel.id);
    const waitMs = error.details.retryAfterMs ?? error.details.upstream?.retryAfterMs;
    const now = this.#dispatcher.clock.monotonic();
    this.#readyAt.set(channel.id, waitMs === undefined ? undefined : now + Math.min(waitMs, MOST_TOLD_MS));
    // Nobody waits for a Channel whose circuit will not let the repeat through.
    if (this.#dispatcher.health.closedForMs(channel.id, this.#circuit) > (waitMs ?? 0)) return undefined;
    if (waitMs !== undefined)
      return waitMs <= this.#plan.maxRetryWaitMs ? { channel, readyAt: now + waitMs, invited: true } : undefined;
    const { repeats } = error.details;
    return isTransient(error)
      ? { channel, readyAt: now, invited: false, ...(repeats === undefined ? {} : { repeats }) }
      : undefined;
  }

  /**
   * A Channel that named a time is waited for once without being paid for; more than that would be a second layer of the client's
   * own retries.
   */
  #isAskedAgain({ invited, channel, repeats = 0 }: Failure): boolean {
    if (!invited || this.#awaited.has(channel)) return this.#mayRepeat(channel, repeats);
    this.#awaited.add(channel);
    return true;
  }

  /** Only when every Channel has failed, and within the Channel's budget: most clients repeat a request by themselves. */
  #mayRepeat(channel: Channel, asked: number): boolean {
    const used = this.#repeats.get(channel.id) ?? 0;
    if (used >= Math.max(channel.options.retries, asked) || !this.#dispatcher.retries.spend(channel.id)) return false;
    this.#repeats.set(channel.id, used + 1);
    return true;
  }

  #accepted(answer: Answer, channel: Channel, permit: Permit, release: Release, affinityHit: boolean): Accepted<Answer> {
    const accepted = { answer, channel, upstreamModel: this.#modelOf(channel), affinityHit };
    return new AcceptedAnswer(accepted, permit, release, this.#dispatcher.affinity, this.#plan.conversation);
  }

  #modelOf(channel: Channel): string {
    return channel.models.get(this.#plan.model) ?? this.#plan.model;
  }

  #preferred(): string | undefined {
    const { conversation, preferred } = this.#plan;
    return preferred ?? (conversation && this.#dispatcher.affinity.channelOf(conversation));
  }

  #slot(channel: Channel): Release | Promise<Release | undefined> {
    const { maxConcurrency, maxQueue, queueMs } = channel.options;
    if (maxConcurrency === undefined) return () => undefined;
    return this.#dispatcher.concurrency.take(channel.id, { max: maxConcurrency, maxQueue, queueMs }, this.#plan.signal);
  }

  async #sleep(ms: number): Promise<void> {
    const { signal } = this.#plan;
    await pause(this.#dispatcher.clock, ms, signal);
    if (signal.aborted) throw goneBecause(signal);
  }

  /** Until the first Channel may answer the request; undefined where one may now, or none named a time. */
  #comeBackMs(): number | undefined {
    if ([...this.#readyAt.values()].every((at) => at === undefined || at === Number.POSITIVE_INFINITY)) return undefined;
    const { clock, health } = this.#dispatcher;
    const now = clock.monotonic();
    const waits = this.#plan.channels.map(({ id }) =>
      Math.max(0, (this.#readyAt.get(id) ?? now) - now, health.closedForMs(id, this.#circuit)),
    );
    const soonest = Math.min(...waits);
    return soonest === 0 ? undefined : soonest;
  }

  /** The request is called wrong only when no Channel was passed over: one that was may be able to serve it. */
  #final(): GatewayError {
    if (this.#errors.length > 0) return finalError(this.#errors, this.#comeBackMs());
    if (this.#crowded) return new GatewayError('overloaded', 'Every upstream of this model is busy.', { retryAfterMs: 1000 });
    if (this.#unsuitable !== undefined && this.#shut.size === 0) return this.#unsuitable;
    return noneFit([...this.#shut], this.#circuit, this.#dispatcher.health);
  }
}
