/**
 * The one process that submits and polls video tasks, under a lease of the store. "Submission has begun" is on disk before the first byte
 * goes upstream; what is unclear after that becomes `unknown` and is never submitted again. Every change is fenced by the lease, so a
 * worker that lost it cannot touch a task any more.
 */
import type { Logger } from 'pino';
import type { Clock, Timer } from '../../streams/clock.ts';
import { VIDEO_WORKER } from '../../store/leases.ts';
import type { Store } from '../../store/store.ts';
import type { VideoChange, VideoTask, VideoTaskIn } from '../../store/videos.ts';
import { parseJson, isObject } from '../../codecs/canonical/json.ts';
import { decodeVideoRequest, type VideoRequest } from '../../codecs/videos/request.ts';
import type { Progress } from '../../codecs/videos/upstream.ts';
import type { ConfigSource } from '../config/source.ts';
import { orderChannels } from '../dispatch/candidates.ts';
import type { Upstreams } from '../dispatch/upstream.ts';
import { type CallResult, callVideoUpstream, routeOf, routesFor, type VideoRoute } from './video-channel.ts';

export interface VideoWorkerOptions {
  readonly config: ConfigSource;
  readonly store: Store;
  readonly upstreams: Upstreams;
  readonly clock: Clock;
  /** Uniform in [0, 1): jitter, and the weighted choice of a Channel. */
  readonly random: () => number;
  /** Names this process in the lease. */
  readonly holder: string;
  readonly log: Logger;
  /** Calls under way at once. Default 16. */
  readonly maxCalls?: number;
  /** How often due tasks are looked up. Default 250. */
  readonly tickMs?: number;
}

export interface VideoWorker {
  /** A task was created here: look now. */
  wake(): void;
  /** Starts nothing more, lets calls under way finish (they hold answers that must not be lost), releases the lease. */
  stop(): Promise<void>;
}

const LEASE_TTL_MS = 15_000;
const LEASE_RENEW_MS = 5_000;
const SUBMIT_TIMEOUT_MS = 120_000;
const QUERY_TIMEOUT_MS = 30_000;
/** A task whose outcome is unknown is asked for slowly. */
const UNKNOWN_INTERVAL_MS = 60_000;
const MAX_INTERVAL_MS = 60_000;
const MAX_UNKNOWN_INTERVAL_MS = 900_000;

export function startVideoWorker(options: VideoWorkerOptions): VideoWorker {
  const worker = new Worker(options);
  worker.wake();
  return worker;
}

class Worker implements VideoWorker {
  readonly #options: VideoWorkerOptions;
  readonly #busy = new Map<string, Promise<void>>();
  /** Aborted when the lease is lost: what another worker will do must not be done here too. */
  #held: { readonly token: number; readonly lost: AbortController } | undefined;
  #renewAtMs = 0;
  #timer: Timer | undefined;
  #ticking: Promise<void> | undefined;
  #again = false;
  #stopped = false;

  constructor(options: VideoWorkerOptions) {
    this.#options = options;
  }

  wake(): void {
    if (this.#stopped) return;
    if (this.#ticking !== undefined) {
      this.#again = true;
      return;
    }
    this.#timer?.cancel();
    this.#ticking = this.#tick()
      .catch((error: unknown) => this.#options.log.error({ err: error }, 'video worker'))
      .finally(() => {
        this.#ticking = undefined;
        const now = this.#again;
        this.#again = false;
        if (this.#stopped) return;
        if (now) this.wake();
        else this.#timer = this.#options.clock.setTimeout(() => this.wake(), this.#options.tickMs ?? 250);
      });
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#timer?.cancel();
    await this.#ticking;
    await Promise.all(this.#busy.values());
    const held = this.#held;
    this.#held = undefined;
    if (held !== undefined) await this.#options.store.leases.release(VIDEO_WORKER, held.token);
  }

  async #tick(): Promise<void> {
    const { store, clock } = this.#options;
    if (this.#options.config.current().role !== 'primary') return;
    const token = await this.#lease();
    if (token === undefined) return;
    const room = (this.#options.maxCalls ?? 16) - this.#busy.size;
    if (room <= 0) return;
    const due = await store.videos.due(clock.now(), room + this.#busy.size);
    for (const task of due) {
      if (this.#stopped || this.#busy.size >= (this.#options.maxCalls ?? 16)) break;
      if (!this.#busy.has(task.id)) this.#start(task, token);
    }
  }

  /** The token under which this process may work; undefined while another holds the lease. */
  async #lease(): Promise<number | undefined> {
    const { store, clock, holder, log } = this.#options;
    const now = clock.now();
    if (this.#held !== undefined && now < this.#renewAtMs) return this.#held.token;
    if (this.#held !== undefined) {
      const renewed = await store.leases.renew(VIDEO_WORKER, this.#held.token, LEASE_TTL_MS, now);
      if (renewed.ok) {
        this.#renewAtMs = now + LEASE_RENEW_MS;
        return this.#held.token;
      }
      log.warn('the lease of the video worker is lost');
      this.#held.lost.abort(new Error('lease lost'));
      this.#held = undefined;
    }
    const acquired = await store.leases.acquire(VIDEO_WORKER, holder, LEASE_TTL_MS, now);
    if (!acquired.ok) return undefined;
    const { token } = acquired.value;
    this.#held = { token, lost: new AbortController() };
    this.#renewAtMs = now + LEASE_RENEW_MS;
    const lost = await store.videos.loseAbandoned(token, now);
    if (lost.length > 0)
      log.warn({ tasks: lost.map(({ id }) => id) }, 'submissions were under way when their worker ended: unknown');
    return token;
  }

  #start(task: VideoTask, token: number): void {
    const work = this.#process(task, token)
      .catch((error: unknown) => this.#options.log.error({ err: error, task: task.id }, 'video task'))
      .finally(() => {
        this.#busy.delete(task.id);
        if (this.#busy.size + 1 >= (this.#options.maxCalls ?? 16)) this.wake();
      });
    this.#busy.set(task.id, work);
  }

  async #process(task: VideoTask, token: number): Promise<void> {
    if (task.state === 'queued') await this.#submit(task, token);
    else if (task.state === 'running' || task.state === 'unknown') await this.#poll(task, token);
  }

  async #submit(task: VideoTaskIn<'queued'>, token: number): Promise<void> {
    const { store, random, config, log } = this.#options;
    const request = requestOf(task);
    const account = await store.accounts.find(task.accountId);
    const { routes } = routesFor(config.current(), request, account?.class ?? '');
    const order = orderChannels(
      routes.map(({ channel }) => channel),
      { random },
    );
    let begun = false;
    for (const channel of order) {
      const route = routes.find((each) => each.channel === channel);
      if (route === undefined) continue;
      const started = await this.#change(
        task.id,
        { event: begun ? 'retry' : 'submit', channelId: channel.id, upstreamModel: route.upstreamModel },
        token,
      );
      // A cancel came first, or the lease is gone: nothing was sent.
      if (started === undefined) return;
      begun = true;
      const change = this.#submitted(
        await this.#call(route, route.codec.submit(request, route.upstreamModel), SUBMIT_TIMEOUT_MS),
        route,
        request,
      );
      if (change === undefined) continue;
      await this.#change(task.id, change, token);
      return;
    }
    log.warn({ task: task.id, channels: order.length }, 'no Channel took the task');
    await this.#change(
      task.id,
      { event: 'fail', error: { code: 'upstream_error', message: 'No upstream took the task.' } },
      token,
    );
  }

  /** Undefined when this Channel certainly took nothing, and the next may be tried. */
  #submitted(result: CallResult, route: VideoRoute, request: VideoRequest): VideoChange | undefined {
    const nowMs = this.#options.clock.now();
    if (!result.answered) {
      if (!result.sent) return undefined;
      return { event: 'lose', why: `the answer to the submission was lost: ${result.reason}` };
    }
    const submission = route.codec.readSubmission(result.answer);
    switch (submission.said) {
      case 'accepted': {
        const seconds = route.codec.expiresAfterSeconds(request) ?? route.channel.video.pollDeadlineS;
        return {
          event: 'accept',
          upstreamId: submission.upstreamId,
          dueAtMs: nowMs + this.#jitter(route.channel.video.pollIntervalMs),
          ...(seconds === undefined ? {} : { deadlineAtMs: nowMs + seconds * 1000 }),
        };
      }
      case 'refused':
        return { event: 'fail', error: submission.error };
      case 'notTaken':
        return undefined;
      case 'unclear':
        return { event: 'lose', why: `the answer to the submission was unclear: ${submission.reason}` };
    }
  }

  async #poll(task: VideoTaskIn<'running' | 'unknown'>, token: number): Promise<void> {
    const channel = this.#options.config.current().channels.find(({ id }) => id === task.submission.channelId);
    const route = channel === undefined ? undefined : routeOf(channel, task.model);
    // Without an id it cannot be asked for; without its Channel, not now.
    if (task.upstreamId === undefined) return;
    const progress = route === undefined ? missingChannel : await this.#query(route, task.upstreamId);
    await this.#change(task.id, this.#polled(task, progress, route?.channel.video.pollIntervalMs ?? UNKNOWN_INTERVAL_MS), token);
  }

  async #query(route: VideoRoute, upstreamId: string): Promise<Progress> {
    const result = await this.#call(route, route.codec.query(upstreamId), QUERY_TIMEOUT_MS);
    if (!result.answered) return { said: 'queryError', reason: result.reason };
    const progress = route.codec.readProgress(result.answer);
    if (progress.said !== 'lookup') return progress;
    const lookup = await this.#call(route, progress.call, QUERY_TIMEOUT_MS);
    return lookup.answered ? route.codec.readLookup(lookup.answer) : { said: 'queryError', reason: lookup.reason };
  }

  #polled(task: VideoTaskIn<'running' | 'unknown'>, progress: Progress, intervalMs: number): VideoChange {
    const nowMs = this.#options.clock.now();
    if (progress.said === 'succeeded')
      return { event: 'succeed', outputUrl: progress.url, detailsJson: JSON.stringify(progress.report) };
    if (progress.said === 'failed') return { event: 'fail', error: progress.error };
    if (progress.said === 'queryError')
      this.#options.log.warn({ task: task.id, reason: progress.reason }, 'video query failed: the hold stays');
    if (task.state === 'running' && task.deadlineAtMs !== undefined && nowMs >= task.deadlineAtMs) {
      return { event: 'lose', why: 'no outcome before the deadline', dueAtMs: nowMs + this.#jitter(UNKNOWN_INTERVAL_MS) };
    }
    const [base, most] =
      task.state === 'running' ? [intervalMs, MAX_INTERVAL_MS] : [UNKNOWN_INTERVAL_MS, MAX_UNKNOWN_INTERVAL_MS];
    const backoff = Math.min(Math.max(base, most), base * 1.2 ** Math.min(task.polls, 40));
    return { event: 'poll', dueAtMs: nowMs + this.#jitter(backoff) };
  }

  /** Undefined when nothing was changed: a cancel or another worker was first. */
  async #change(id: string, change: VideoChange, token: number): Promise<VideoTask | undefined> {
    const { store, clock, log } = this.#options;
    const changed = await store.videos.change(id, change, token, clock.now());
    if (changed.ok) return changed.value;
    if (changed.refusal.reason === 'lease_lost') {
      this.#held?.lost.abort(new Error('lease lost'));
      this.#held = undefined;
    }
    log.info({ task: id, event: change.event, refusal: changed.refusal.reason }, 'video task unchanged');
    return undefined;
  }

  async #call(route: VideoRoute, call: Parameters<typeof callVideoUpstream>[1], timeoutMs: number): Promise<CallResult> {
    const { upstreams, clock } = this.#options;
    const signal = this.#held?.lost.signal ?? AbortSignal.abort(new Error('lease lost'));
    return await callVideoUpstream(route, call, { upstreams, clock, timeoutMs, signal });
  }

  /** Spread by a fifth to both sides, so that tasks made together are not asked for together. */
  #jitter(ms: number): number {
    return Math.round(ms * (0.8 + 0.4 * this.#options.random()));
  }
}

const missingChannel: Progress = { said: 'queryError', reason: 'its Channel is not configured any more' };

/** The request as it was checked at creation. */
function requestOf(task: VideoTask): VideoRequest {
  const body = parseJson(task.requestJson);
  if (!isObject(body)) throw new Error(`video task ${task.id} holds no request`);
  return decodeVideoRequest(body);
}
