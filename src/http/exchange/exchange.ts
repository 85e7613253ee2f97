/**
 * The one owner of an exchange, from its admission to its row. Whatever throws, rejects or never answers meanwhile: it is settled
 * once, it has one line and one row, and its reservation is given back. Knows no dialect.
 */
import { GatewayError } from '../../codecs/canonical/error.ts';
import type { Usage } from '../../codecs/canonical/usage.ts';
import type { Principal } from '../../store/keys.ts';
import type { Rates } from '../../store/prices.ts';
import type { AttemptEntry, RequestLogEntry } from '../../store/request-log.ts';
import { EXCHANGE_PREFIX } from '../../store/settlement.ts';
import { within } from '../../streams/clock.ts';
import type { Channel, Model } from '../config/config.ts';
import type { Accepted } from '../dispatch/accepted.ts';
import type { Attempt, Plan } from '../dispatch/plan.ts';
import { isClientGone } from '../errors.ts';
import { fromStore } from '../from-store.ts';
import type { CallContext } from '../gateway.ts';
import { type Estimate, estimateNanos, limited, reserve, type Reserved } from './admit.ts';
import { billOf } from '../money/bill.ts';
import { type Candidate, dearestNanos, dispatchInTurn, flagsOf } from './candidates.ts';
import { logExchange, reportExchange, rowOf, tokensOf } from './row.ts';
import { ignoreRejection, keepSettlement, OwnReservation } from './settlement.ts';

/** What is to be admitted. */
export interface Asked {
  readonly principal: Principal;
  readonly model: Model;
  readonly estimate: Estimate;
  readonly stream: boolean;
  readonly effort?: string | undefined;
  /** For the charge, where the model itself answers; see {@link Candidate}. */
  readonly flags?: readonly string[];
  /** Other models, tried in turn when the Channels of this one have failed. All have a price. */
  readonly fallbacks?: readonly Candidate[];
  /** The end user, as the client names it. */
  readonly endUser?: string | undefined;
  /** False where the limits by time are taken for several exchanges at once. */
  readonly isLimited?: false;
}

/** What an attempt resolves with, as far as the exchange reads it. */
export interface Answered {
  /** What the upstream's protocol could not express of the request. */
  readonly losses?: readonly string[];
  readonly usage?: Usage | undefined;
}

/** Where to look for an upstream; how often and how long is the configuration's. */
export type Search = Omit<Plan, 'account' | 'maxAttempts' | 'maxRetryWaitMs' | 'signal'>;

export interface Billing<Answer> {
  /**
   * What the answer has used so far: as reported, else counted. `error` is what ended it; undefined after a good end, and for the
   * estimate of an exchange that nobody ended. Undefined: nothing.
   */
  usageOf(answer: Answer, error: GatewayError | undefined): Usage | undefined | Promise<Usage | undefined>;
  /** The upstream's name of the model, where it is not the one in the Channel's `models`. */
  upstreamModelOf?(channel: Channel): string | undefined;
}

export interface Ending {
  /** What the client is told. Absent: it came to a good end. */
  readonly error?: GatewayError | undefined;
  /** Of the answer. Default: the error's, or 200. After the 200 of a stream it is 200, whatever came then. */
  readonly status?: number;
}

/** An answer that is counted for longer is billed by the estimate of its admission. */
const COUNT_MS = 5_000;

export class Exchange implements AsyncDisposable {
  readonly #call: CallContext;
  readonly #asked: Asked;
  readonly #id: string;
  /** Of the model that was asked for, as they were at admission. */
  readonly #ownRates: Rates;
  readonly #reservation: OwnReservation;
  readonly #startedAt: number;
  /** Every attempt so far, in order. */
  readonly #attempts: AttemptEntry[] = [];
  #accepted: Accepted<unknown> | undefined;
  /** The model that answers; until one does, the one that was asked for. */
  #answering: Model;
  #upstreamModel = '';
  #losses: readonly string[] = [];
  /** What the client's protocol could not express of the answer. */
  readonly answerLosses = new Set<string>();
  #usageOf: ((error: GatewayError | undefined) => Usage | undefined | Promise<Usage | undefined>) | undefined;
  #firstOutputAt: number | undefined;
  #lastOutputAt: number | undefined;
  #ended = false;
  #settling: Promise<void> | undefined;

  /** Reserves, or throws a refusal of {@link reserve} or {@link limited}. For `await using`, before anything can throw. */
  static async admit(call: CallContext, asked: Asked): Promise<Exchange> {
    const id = exchangeIdOf(call);
    const startedAt = call.gateway.clock.monotonic();
    const { principal, model, estimate } = asked;
    const fallbacks = (asked.fallbacks ?? []).map(({ model: { rates }, estimate: its }) => ({ estimate: its, rates }));
    const most = (rates: Rates): bigint => dearestNanos([{ estimate, rates }, ...fallbacks]);
    const reserved = await reserve(call.gateway, principal, model, most);
    try {
      const demand = { requests: 1, tokens: estimate.input };
      const limiting = asked.isLimited === false ? undefined : limited(call, principal, model, demand);
      if (limiting !== undefined) await limiting;
    } catch (thrown) {
      reserved.reservation.release();
      throw thrown;
    }
    return new Exchange(call, asked, id, startedAt, reserved);
  }

  private constructor(call: CallContext, asked: Asked, id: string, startedAt: number, { rates, reservation }: Reserved) {
    this.#call = call;
    this.#asked = asked;
    this.#id = id;
    this.#ownRates = rates;
    this.#answering = asked.model;
    this.#reservation = new OwnReservation(reservation);
    this.#startedAt = startedAt;
    call.notes.admitted = true;
  }

  /** Of the model that answers. */
  get rates(): Rates {
    return this.#ratesOf(this.#answering);
  }

  /** What the client is told of the Channel and the model that answered. */
  answerHeaders(): Record<string, string> {
    const channel = this.#accepted?.channel;
    if (channel === undefined) return {};
    return {
      ...(this.#call.config.channelHeader ? { 'x-mizu-channel': channel.id } : {}),
      ...(this.#asked.model.fallbacks.length > 0 ? { 'x-mizu-model': headerText(this.#answering.name) } : {}),
    };
  }

  /**
   * Opens the exchange in the store and finds an upstream that answers, once. Rejects with the one error that the client is told;
   * with `strict` durability also where the opening is not on disk.
   */
  async dispatch<Answer extends Answered>(
    search: Search,
    attempt: Attempt<Answer>,
    billing: Billing<Answer>,
  ): Promise<Accepted<Answer>> {
    const { gateway, config, gone: signal } = this.#call;
    const opened = this.#open();
    if (opened !== undefined) await opened;
    const { maxAttempts, maxRetryWaitMs } = config.dispatch;
    const { principal, model, fallbacks = [] } = this.#asked;
    const plan = { ...search, account: principal.account.id, maxAttempts, maxRetryWaitMs, signal };
    const candidates = [{ model, channels: search.channels }, ...fallbacks];
    const { accepted, model: answering } = await dispatchInTurn(plan, candidates, attempt, gateway.dispatcher, this.#attempts);
    const { answer, channel } = accepted;
    this.#answering = answering;
    this.#accepted = accepted;
    this.#upstreamModel = billing.upstreamModelOf?.(channel) ?? accepted.upstreamModel;
    const usageOf = (error: GatewayError | undefined) => billing.usageOf(answer, error);
    this.#usageOf = usageOf;
    this.#losses = answer.losses ?? [];
    return accepted;
  }

  /** Something of the answer was written to the client: the whole of it, or a part of a stream. */
  outputWritten(): void {
    if (this.#ended) return;
    const { metrics, clock } = this.#call.gateway;
    const now = clock.monotonic();
    if (this.#lastOutputAt === undefined) {
      this.#firstOutputAt = now;
      // Only streams are observed: the time to a whole answer would distort the histogram.
      if (this.#asked.stream) metrics.firstToken(this.#call.route, (now - this.#startedAt) / 1000);
    } else {
      metrics.tokenGap(this.#call.route, (now - this.#lastOutputAt) / 1000);
    }
    this.#lastOutputAt = now;
  }

  /** Called before the end of an answer is sent. With `strict` durability it is {@link end}; otherwise undefined. */
  endFirst(ending: Ending = {}): Promise<void> | undefined {
    this.#call.notes.limit?.leave();
    if (this.#call.config.durability !== 'strict' || this.#ended) return undefined;
    this.outputWritten();
    return this.end(ending);
  }

  /**
   * Settles once; later calls do nothing. Undefined where nobody has to wait. Never throws. With `strict` durability it resolves
   * when the charge is on disk; it rejects only where that of a success is not there within 10 seconds, or cannot be written.
   */
  end(ending: Ending = {}): Promise<void> | undefined {
    if (this.#ended) return undefined;
    this.#ended = true;
    this.#tellChannel(ending.error);
    const usage = this.#usage(ending.error);
    this.#settling = usage instanceof Promise ? usage.then((known) => this.#settle(ending, known)) : this.#settle(ending, usage);
    return this.#settling;
  }

  /** Ends it without a row: nothing of it was dispatched, and the request that it is a part of is refused as a whole. */
  withdraw(): void {
    this.#ended = true;
    this.#reservation.release();
  }

  /** Where nobody ended it: a mistake of ours, so it is settled by estimate, flagged, and told at error. */
  async [Symbol.asyncDispose](): Promise<void> {
    try {
      if (!this.#ended) await this.#abandoned();
      // Who ended it was told how that went.
      if (this.#settling !== undefined) await ignoreRejection(this.#settling);
    } finally {
      this.#reservation.release();
    }
  }

  /** With `strict` durability it resolves when the row is on disk; otherwise undefined. */
  #open(): Promise<void> | undefined {
    const { gateway, config, requestId, route, startedAtMs } = this.#call;
    const { principal, model, stream } = this.#asked;
    const isStrict = config.durability === 'strict';
    try {
      const names = { exchangeId: this.#id, accountId: principal.account.id, keyId: principal.key.id };
      const opening = { ...names, requestId, endpoint: route, model: model.name, stream, startedAtMs };
      const opened = gateway.store.settlements.open(opening, isStrict);
      if (isStrict) return fromStore(gateway.clock, opened);
      // The store itself tells of rows that it could not write. Ours makes no promise until somebody waits.
      if (opened instanceof Promise) ignoreRejection(opened);
    } catch (thrown) {
      if (isStrict) throw thrown;
      this.#tell(thrown, 'an exchange could not be opened');
    }
    return undefined;
  }

  async #abandoned(): Promise<void> {
    const error = new GatewayError('internal_error', 'The exchange was left without an end.');
    this.#tell(error, 'an exchange was left without an end: it is settled by estimate');
    const usageOf = this.#usageOf;
    const byEstimate = async (): Promise<Usage | undefined> => {
      const usage = await usageOf?.(undefined);
      return usage === undefined ? undefined : { ...usage, estimated: true };
    };
    this.#usageOf = byEstimate;
    await this.end({ error });
  }

  #tellChannel(error: GatewayError | undefined): void {
    try {
      if (error === undefined) this.#accepted?.succeeded();
      else this.#accepted?.failed(error);
    } catch (thrown) {
      this.#tell(thrown, 'a circuit could not be told how an exchange ended');
    }
  }

  #usage(error: GatewayError | undefined): Usage | undefined | Promise<Usage | undefined> {
    try {
      const usage = this.#usageOf?.(error);
      if (!(usage instanceof Promise)) return usage;
      const late = (): Error => new Error(`not counted within ${COUNT_MS} ms`);
      return within(this.#call.gateway.clock, COUNT_MS, usage, late).catch((thrown: unknown) => this.#uncounted(thrown));
    } catch (thrown) {
      return this.#uncounted(thrown);
    }
  }

  #uncounted(thrown: unknown): Usage {
    this.#tell(thrown, 'an answer could not be counted: it is billed by the estimate of its admission');
    const { input, output, imageOutput = 0 } = this.#asked.estimate;
    return { input, output: output + imageOutput, imageOutput, estimated: true };
  }

  #settle(ending: Ending, usage: Usage | undefined): Promise<void> | undefined {
    const { error } = ending;
    if (error !== undefined) this.#call.notes.failure = error.code;
    const entry = this.#entry(ending, usage);
    const kept = keepSettlement(this.#call.gateway, entry, this.#reservation);
    try {
      const { limit } = this.#call.notes;
      limit?.leave();
      limit?.used(tokensOf(entry.usage));
      reportExchange(this.#call, entry);
      if ((entry.charge?.total ?? 0n) > 0n) this.#call.gateway.alerts.charged(this.#asked.principal);
    } catch (thrown) {
      this.#tell(thrown, 'an exchange could not be counted in metrics and traces');
    }
    logExchange(this.#call, entry, 'exchange', usage?.estimated === true ? { estimated: true } : {});
    if (this.#call.config.durability === 'strict' && error === undefined) return kept;
    // A failure is told as it is, whatever becomes of its row.
    const ignored = ignoreRejection(kept);
    return this.#call.config.durability === 'strict' ? ignored : undefined;
  }

  #entry(ending: Ending, usage: Usage | undefined): RequestLogEntry {
    const { error, status = error?.status ?? 200 } = ending;
    const { principal, model, stream, effort, estimate } = this.#asked;
    const facts = {
      ...{ call: this.#call, exchangeId: this.#id, principal, model: model.name, stream, effort, error, status },
      clientGone: error !== undefined && isClientGone(error),
      attempts: this.#attempts,
      servedModel: this.#answering === model ? undefined : this.#answering.name,
      endUser: this.#asked.endUser,
      losses: { request: this.#losses, answer: this.answerLosses },
    };
    const { gateway } = this.#call;
    const accepted = this.#accepted;
    try {
      const bill = billOf({
        ...{ config: this.#call.config, chargeFor: gateway.chargeFor, rates: this.rates, channel: accepted?.channel },
        ...{ usage, attempts: this.#attempts, flags: flagsOf(this.#answering, this.#asked) },
        ratesOf: (name) => this.#ratesOf(this.#call.config.models.get(name)),
      });
      return rowOf({
        ...facts,
        durationMs: Math.round(gateway.clock.monotonic() - this.#startedAt),
        accepted: accepted && {
          channel: accepted.channel,
          upstreamModel: this.#upstreamModel,
          affinityHit: accepted.affinityHit,
        },
        firstOutputMs: this.#since(this.#firstOutputAt),
        lastOutputMs: this.#since(this.#lastOutputAt),
        ...bill,
      });
    } catch (thrown) {
      this.#tell(thrown, 'an exchange could not be priced: it is billed by the estimate of its admission');
      const total = estimateNanos(estimate, this.rates);
      const charge = accepted === undefined ? undefined : { lines: [], total, flags: ['estimated' as const] };
      return rowOf({ ...facts, durationMs: 0, charge });
    }
  }

  /** Fallbacks have a price, or they would not be tried. */
  #ratesOf(model: Model | undefined): Rates {
    return model === this.#asked.model ? this.#ownRates : (model?.rates ?? this.#ownRates);
  }

  #since(at: number | undefined): number | undefined {
    return at === undefined ? undefined : Math.round(at - this.#startedAt);
  }

  #tell(err: unknown, what: string): void {
    this.#call.gateway.log.error({ request_id: this.#call.requestId, exchange_id: this.#id, err }, what);
  }
}

/** From the request id where the gateway made it, which saves an index entry. A second exchange of a call has its own. */
function exchangeIdOf({ gateway, clientRequestId, requestId, notes }: CallContext): string {
  if (clientRequestId !== undefined || notes.admitted === true || !requestId.startsWith('req_'))
    return gateway.mint(EXCHANGE_PREFIX);
  return EXCHANGE_PREFIX + requestId.slice('req_'.length);
}

/** Names of models are the operator's: what no header can hold is left out. */
function headerText(name: string): string {
  return name.replace(/[^ -~]/g, '?');
}
