/**
 * One task on its way to an upstream, through the attempt loop that serves every endpoint. "Submission has begun" is on disk
 * before the first byte of an attempt goes out; what is unclear after that becomes `unknown` and is never submitted again.
 */
import { GatewayError } from '../../codecs/canonical/error.ts';
import { isObject, parseJson } from '../../codecs/canonical/json.ts';
import { decodeVideoRequest, type VideoRequest } from '../../codecs/videos/request.ts';
import type { AttemptEntry } from '../../store/request-log.ts';
import type { NextPoll, VideoChange, VideoTask, VideoTaskIn } from '../../store/videos.ts';
import { dispatch } from '../dispatch/dispatch.ts';
import { attemptReason, failedAttempts, verdictOf } from '../dispatch/verdict.ts';
import { toGatewayError } from '../errors.ts';
import { fromStore } from '../from-store.ts';
import type { Gateway } from '../gateway.ts';
import { afterAcceptance, type Moment } from './outcomes.ts';
import { attemptSubmission, routesFor, type VideoRoute } from './video-channel.ts';

export type SubmissionOptions = Pick<Gateway, 'config' | 'store' | 'upstreams' | 'dispatcher' | 'metrics' | 'clock' | 'log'>;

/** The lease under which a task is submitted. */
export interface Submitter {
  /** Aborted when nobody may wait for the upstream any more. */
  readonly signal: AbortSignal;
  moment(): Moment;
  /** Undefined when nothing was changed: a cancel or another worker was first. */
  write(change: VideoChange): Promise<VideoTask | undefined>;
  /** The task that has this one of the upstream's already. Never rejects. */
  claim(channelId: string, upstreamId: string): Promise<string | undefined>;
  /** The task stays queued until then. */
  reschedule(poll: NextPoll): Promise<void>;
}

/** How long a task waits for a Channel that may be asked. After that it fails, and what it held is given back. */
const MOST_WAIT_MS = 10 * 60_000;
/** Between two tries of a task that waits. */
const LEAST_PAUSE_MS = 1_000;
const MOST_PAUSE_MS = 30_000;

const NONE_TOOK_IT = { code: 'upstream_error', message: 'No upstream took the task.' } as const;

export class Submission {
  readonly #task: VideoTaskIn<'queued'>;
  readonly #options: SubmissionOptions;
  readonly #submitter: Submitter;
  readonly #attempts: AttemptEntry[] = [];
  /** Attempts of which the store knows. */
  #begun = 0;
  #isOutOfHand = false;
  /** The store did not take what must be on disk: nothing was sent, and whoever looks at the task next decides. */
  #unwritten: unknown;

  constructor(task: VideoTaskIn<'queued'>, submitter: Submitter, options: SubmissionOptions) {
    this.#task = task;
    this.#submitter = submitter;
    this.#options = options;
  }

  async run(): Promise<void> {
    const { store, clock, config, metrics } = this.#options;
    const request = requestOf(this.#task);
    const account = await fromStore(clock, store.accounts.find(this.#task.accountId));
    const { routes } = routesFor(config.current(), request, account?.class ?? '');
    // Another gateway on the store took the task, and may have a configuration that this one is about to get.
    const none = new GatewayError('no_healthy_upstream', 'No upstream of this gateway makes the video.');
    const change = await (routes.length === 0 ? this.#wait(none) : this.#dispatch(request, routes));
    for (const attempt of this.#attempts) metrics.attemptEnded(attempt.channelId, attemptReason(attempt));
    if (change !== undefined) await this.#write(change);
  }

  /** A task whose change cannot be written must not stay `submitting`: nobody would look at it again. */
  async #write(change: VideoChange): Promise<void> {
    try {
      await this.#submitter.write(change);
    } catch (thrown) {
      const named = change.event === 'accept' ? ` It is ${change.upstreamId} there.` : '';
      const why = `What the upstream answered could not be written.${named}`;
      // The cause is what was thrown first.
      if (this.#begun > 0) await this.#submitter.write({ event: 'lose', why }).catch(() => undefined);
      throw thrown;
    }
  }

  /** What becomes of the task; undefined where nothing does now. */
  async #dispatch(request: VideoRequest, routes: readonly VideoRoute[]): Promise<VideoChange | undefined> {
    const { config, dispatcher } = this.#options;
    const { signal } = this.#submitter;
    const codecOf = new Map(routes.map((route) => [route.channel, route]));
    const plan = {
      ...config.current().dispatch,
      channels: routes.map(({ channel }) => channel),
      model: this.#task.model,
      signal,
      beforeAttempt: ({ id }: { readonly id: string }, upstreamModel: string) => this.#begin(id, upstreamModel),
    };
    try {
      const taken = await dispatch(
        plan,
        async (target) => {
          const route = codecOf.get(target.channel);
          if (route === undefined) throw new Error('a Channel was asked that is not in the plan');
          return { route, upstreamId: await attemptSubmission(target, route.codec, request, this.#options) };
        },
        dispatcher,
        this.#attempts,
      );
      taken.succeeded();
      this.#log('info', 'video submitted', { channel: taken.channel.id });
      const { upstreamId, route } = taken.answer;
      const other = await this.#submitter.claim(route.channel.id, upstreamId);
      if (other !== undefined) {
        this.#log('warn', 'video submission unclear', { other });
        return { event: 'lose', why: `The upstream answered with its task ${upstreamId}, which ${other} has.` };
      }
      return afterAcceptance(upstreamId, request, route, this.#submitter.moment());
    } catch (thrown) {
      return await this.#afterFailure(thrown);
    }
  }

  async #begin(channelId: string, upstreamModel: string): Promise<void> {
    const event = this.#begun === 0 ? 'submit' : 'retry';
    const written = await this.#submitter.write({ event, channelId, upstreamModel }).catch((error: unknown) => {
      this.#unwritten = error;
      throw error;
    });
    if (written === undefined) {
      this.#isOutOfHand = true;
      throw new GatewayError('internal_error', 'The task was cancelled, or another worker has it.');
    }
    this.#begun += 1;
  }

  async #afterFailure(thrown: unknown): Promise<VideoChange | undefined> {
    if (this.#isOutOfHand) return undefined;
    const error = toGatewayError(thrown);
    if (verdictOf(error) === 'lost') {
      this.#log('warn', 'video submission unclear', wordsOf(error));
      return { event: 'lose', why: [error.message, error.details.upstream?.text].filter(Boolean).join('\n') };
    }
    if (this.#unwritten !== undefined) throw this.#unwritten;
    if (this.#begun > 0) return this.#failure(error);
    // Nothing was sent.
    if (error.code !== 'overloaded' && error.code !== 'no_healthy_upstream') throw error;
    return await this.#wait(error);
  }

  /** No Channel may be asked now: circuits are open, queues are full, or there is none. */
  async #wait(error: GatewayError): Promise<VideoChange | undefined> {
    const { nowMs, jitter } = this.#submitter.moment();
    if (nowMs - this.#task.createdAtMs >= MOST_WAIT_MS) return this.#failure(error);
    const pauseMs = Math.min(Math.max(error.details.retryAfterMs ?? 0, LEAST_PAUSE_MS), MOST_PAUSE_MS);
    await this.#submitter.reschedule({ id: this.#task.id, dueAtMs: nowMs + jitter(pauseMs) });
    return undefined;
  }

  /** Every attempt was refused for certain, or there was none. */
  #failure(error: GatewayError): VideoChange {
    const isWrong = error.code === 'invalid_request';
    this.#log(isWrong ? 'info' : 'warn', 'video refused', wordsOf(error));
    const text = error.details.upstream?.text;
    const upstreamText = text === undefined || text === '' ? {} : { upstreamText: text };
    const failure = isWrong ? { code: error.shownCode, message: error.message } : NONE_TOOK_IT;
    return { event: 'fail', error: { ...failure, ...upstreamText } };
  }

  #log(level: 'info' | 'warn', what: string, facts: object): void {
    const { id, model, accountId, keyId } = this.#task;
    this.#options.log[level](
      {
        task: id,
        key_id: keyId,
        account_id: accountId,
        model,
        attempts: this.#attempts.length,
        failed_attempts: failedAttempts(this.#attempts),
        ...facts,
      },
      what,
    );
  }
}

function wordsOf({ shownCode, message, details: { upstream } }: GatewayError): object {
  return { error_code: shownCode, reason: message, upstream_text: upstream?.text };
}

/** The request as it was checked at creation. */
function requestOf(task: VideoTask): VideoRequest {
  const body = parseJson(task.requestJson);
  if (!isObject(body)) throw new Error(`video task ${task.id} holds no request`);
  return decodeVideoRequest(body);
}
