/**
 * Accounts for one exchange: opened when it is dispatched, settled exactly once however it ends, with one log line and one row. Decides what
 * an ending costs (design: "Settlement"). Knows no dialect.
 */
import type { GatewayError } from '../../codecs/canonical/error.ts';
import { isPlaceholder, type Usage } from '../../codecs/canonical/usage.ts';
import { defined } from '../../codecs/defined.ts';
import type { BillableUsage } from '../../store/charge.ts';
import { countsOf } from '../../store/day-usage.ts';
import type { AttemptEntry, RequestLogEntry } from '../../store/request-log.ts';
import { EXCHANGE_PREFIX } from '../../store/settlement.ts';
import type { Admitted } from './admit.ts';
import { billableUsage } from './billable.ts';
import { boundedEntry } from './bounded-entry.ts';
import type { Channel } from '../config/config.ts';
import { attemptReason, failedAttempts, failureOf, isUpstreamFault } from '../dispatch/verdict.ts';
import type { CallContext } from '../gateway.ts';

/** How an exchange ended. `usage` is billed; without it the exchange costs nothing, or what a failed attempt reported. */
export interface Ending {
  readonly status: number;
  readonly error?: GatewayError;
  readonly usage?: Usage;
  readonly clientGone?: boolean;
}

export interface MeterOptions {
  readonly stream: boolean;
  readonly effort?: string;
}

export class Meter {
  /** Every attempt so far, in order. */
  readonly attempts: AttemptEntry[] = [];
  readonly exchangeId: string;
  readonly #call: CallContext;
  readonly #admitted: Admitted;
  readonly #options: MeterOptions;
  readonly #startedAt: number;
  #channel: { readonly channel: Channel; readonly upstreamModel: string; readonly affinityHit: boolean } | undefined;
  #firstOutputAt: number | undefined;
  #lastOutputAt: number | undefined;
  #settled = false;

  constructor(call: CallContext, admitted: Admitted, options: MeterOptions) {
    const { gateway } = call;
    this.#call = call;
    this.#admitted = admitted;
    this.#options = options;
    this.#startedAt = gateway.clock.monotonic();
    this.exchangeId = exchangeIdOf(call);
    call.notes.metered = true;
  }

  /** Called before anything is sent upstream. With `strict` durability it resolves when the row is on disk; otherwise undefined. */
  open(): PromiseLike<void> | undefined {
    const { gateway, config, requestId, route, startedAtMs } = this.#call;
    const { key, account } = this.#admitted.principal;
    const written = gateway.store.settlements.open({
      exchangeId: this.exchangeId,
      requestId,
      accountId: account.id,
      keyId: key.id,
      endpoint: route,
      model: this.#admitted.model.name,
      stream: this.#options.stream,
      startedAtMs,
    });
    // Without `strict` nobody awaits it: the store itself reports rows that it could not write.
    return config.durability === 'strict' ? written : undefined;
  }

  /** The Channel whose answer is used. */
  answeredBy(channel: Channel, upstreamModel: string, affinityHit: boolean): void {
    this.#channel = { channel, upstreamModel, affinityHit };
  }

  /** A part of the answer was written to the client, or is about to be. */
  outputWritten(): void {
    if (this.#settled) return;
    const { metrics, clock } = this.#call.gateway;
    const now = clock.monotonic();
    if (this.#lastOutputAt === undefined) {
      this.#firstOutputAt = now;
      // Only streams are observed: the time to a whole answer would distort the histogram.
      if (this.#options.stream) metrics.firstToken(this.#call.route, (now - this.#startedAt) / 1000);
    } else {
      metrics.tokenGap(this.#call.route, (now - this.#lastOutputAt) / 1000);
    }
    this.#lastOutputAt = now;
  }

  /** Called before the end of an answer is sent. Settles then with `strict` durability, as {@link settle} does; otherwise undefined, and nothing is settled. */
  settleFirst(ending: () => Ending | Promise<Ending>): Promise<void> | undefined {
    this.#call.notes.limit?.leave();
    if (this.#call.config.durability !== 'strict') return undefined;
    return Promise.resolve(ending()).then(async (known) => {
      this.outputWritten();
      await this.settle(known);
    });
  }

  /**
   * Settles once; later calls do nothing. With `strict` durability it resolves when the charge is on disk, and rejects if that of a success
   * cannot be written; otherwise undefined.
   */
  settle(ending: Ending): PromiseLike<unknown> | undefined {
    if (this.#settled) return undefined;
    this.#settled = true;
    const { gateway, config } = this.#call;
    const entry = boundedEntry(this.#entry(ending));
    const written = gateway.store.settlements.settle({ entry, reservation: this.#admitted.reservation });
    const { limit } = this.#call.notes;
    limit?.leave();
    limit?.used(tokensOf(entry.usage));
    this.#report(entry, ending);
    if (config.durability !== 'strict') return undefined;
    // A failure is told as it is, whatever becomes of its row.
    return ending.error === undefined ? written : written.then(undefined, () => undefined);
  }

  /** The usage of the last failed attempt that reported one: billed where no attempt was answered. */
  #usageOfFailedAttempts(): BillableUsage | undefined {
    return this.#channel === undefined ? this.attempts.findLast(({ usage }) => usage !== undefined)?.usage : undefined;
  }

  #entry(ending: Ending): RequestLogEntry {
    const { gateway, requestId, clientRequestId, route, startedAtMs, ip } = this.#call;
    const { principal, model, rates } = this.#admitted;
    const usage = isReport(ending.usage) ? ending.usage : undefined;
    const billable = usage === undefined ? this.#usageOfFailedAttempts() : billableUsage(usage);
    const charge = billable === undefined ? undefined : gateway.chargeFor(billable, rates);
    const flagged =
      charge !== undefined && usage?.estimated === true ? { ...charge, flags: [...charge.flags, 'estimated'] } : charge;
    const since = (at: number | undefined): number | undefined =>
      at === undefined ? undefined : Math.round(at - this.#startedAt);
    const firstOutputMs = since(this.#firstOutputAt);
    const optional = {
      clientRequestId,
      upstreamModel: this.#channel?.upstreamModel,
      channelId: this.#channel?.channel.id,
      channelType: this.#channel?.channel.type,
      errorCode: ending.error?.code,
      errorText: ending.error === undefined ? undefined : fullText(ending.error),
      clientGone: ending.clientGone === true ? true : undefined,
      firstByteMs: firstOutputMs,
      firstOutputMs: firstOutputMs,
      lastOutputMs: since(this.#lastOutputAt),
      effort: this.#options.effort,
      usage: billable,
      usageJson: usage?.native === undefined ? undefined : JSON.stringify(usage.native),
      charge: flagged,
      affinity: this.#channel === undefined ? undefined : { hit: this.#channel.affinityHit, target: this.#channel.channel.id },
    };
    return {
      exchangeId: this.exchangeId,
      requestId,
      accountId: principal.account.id,
      keyId: principal.key.id,
      endpoint: route,
      model: model.name,
      stream: this.#options.stream,
      status: ending.error === undefined || ending.clientGone === true ? 'success' : 'error',
      httpStatus: ending.status,
      startedAtMs,
      durationMs: Math.round(gateway.clock.monotonic() - this.#startedAt),
      ip,
      attempts: this.#attemptEntries(ending.error),
      ...defined(optional),
    };
  }

  /** Every attempt. The last one, which was answered, counts as failed where its answer broke off. */
  #attemptEntries(error: GatewayError | undefined): readonly AttemptEntry[] {
    const taken = this.#channel === undefined ? undefined : this.attempts.at(-1);
    if (taken === undefined || error === undefined || !isUpstreamFault(error)) return this.attempts;
    return [...this.attempts.slice(0, -1), { ...taken, ...failureOf(error) }];
  }

  #report(entry: RequestLogEntry, ending: Ending): void {
    const { gateway, notes, trace } = this.#call;
    if (ending.error !== undefined) notes.failure = ending.error.code;
    trace?.exchanged(entry);
    for (const attempt of entry.attempts) gateway.metrics.attemptEnded(attempt.channelId, attemptReason(attempt));
    const { usage } = entry;
    if (usage !== undefined) {
      const counts = countsOf(usage);
      gateway.metrics.tokens('input', counts.inputTokens ?? 0);
      gateway.metrics.tokens('cached_input', counts.cachedInputTokens ?? 0);
      gateway.metrics.tokens('cache_write', counts.cacheWriteTokens ?? 0);
      gateway.metrics.tokens('output', counts.outputTokens ?? 0);
    }
    gateway.log.info(
      {
        request_id: entry.requestId,
        exchange_id: entry.exchangeId,
        trace_id: trace?.traceId,
        key_id: entry.keyId,
        account_id: entry.accountId,
        route: entry.endpoint,
        model: entry.model,
        channel: entry.channelId,
        attempts: entry.attempts.length,
        failed_attempts: failedAttempts(entry.attempts),
        stream: entry.stream,
        status: entry.httpStatus,
        error_code: entry.errorCode,
        client_gone: entry.clientGone,
        ttft_ms: entry.firstByteMs,
        duration_ms: entry.durationMs,
        usage,
        estimated: ending.usage?.estimated,
        charge_nanos: entry.charge?.total.toString(),
      },
      'exchange',
    );
  }
}

/** Input and output, caches included: what counts towards a limit of tokens. */
function tokensOf(usage: BillableUsage | undefined): number {
  if (usage === undefined) return 0;
  const { inputTokens = 0, cachedInputTokens = 0, cacheWriteTokens = 0, outputTokens = 0 } = countsOf(usage);
  return inputTokens + cachedInputTokens + cacheWriteTokens + outputTokens;
}

/** Derived from the request id where the gateway made that id, which saves an index entry. A second exchange of a call gets an id of its own. */
function exchangeIdOf({ gateway, clientRequestId, requestId, notes }: CallContext): string {
  if (clientRequestId !== undefined || notes.metered === true || !requestId.startsWith('req_'))
    return gateway.mint(EXCHANGE_PREFIX);
  return EXCHANGE_PREFIX + requestId.slice('req_'.length);
}

/** Placeholder zeros do not count as a report. */
function isReport(usage: Usage | undefined): usage is Usage {
  return usage !== undefined && !isPlaceholder(usage);
}

/** Our message with the upstream's text, for the request log only. */
function fullText(error: GatewayError): string {
  const { upstream, cause } = error.details;
  const because = upstream?.text ?? (cause instanceof Error ? cause.message : undefined);
  return because === undefined || because === error.message ? error.message : `${error.message} [${because}]`;
}
