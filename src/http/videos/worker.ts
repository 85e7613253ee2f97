/**
 * The one process that submits and polls video tasks, under a lease of the store. "Submission has begun" is on disk before the
 * first byte goes upstream; what is unclear after that becomes `unknown` and is never submitted again. Every change is fenced by
 * the lease, so a worker that lost it cannot touch a task any more. It shares its event loop with the requests of clients: calls
 * are begun one by one with a pause between, however many tasks are due.
 */
import { pause, type Timer } from '../../streams/clock.ts';
import { fromStore } from '../from-store.ts';
import { VIDEO_WORKER } from '../../store/leases.ts';
import { isEngineFailure } from '../../store/settlements/lost-row.ts';
import type { NextPoll, VideoChange, VideoTask, VideoTaskIn } from '../../store/videos.ts';
import { madeBefore } from '../../store/video-rules.ts';
import type { Progress } from '../../codecs/videos/upstream.ts';
import { Lanes } from './lanes.ts';
import { logEnd } from './log-end.ts';
import { afterPoll, type Moment, nextPollAt, UNKNOWN_INTERVAL_MS } from './outcomes.ts';
import { PollBatch } from './poll-batch.ts';
import { Submission, type SubmissionOptions } from './submission.ts';
import { UpstreamTasks } from './upstream-tasks.ts';
import { pollTask, routeOf } from './video-channel.ts';

export interface VideoWorkerOptions extends SubmissionOptions {
  /** Uniform in [0, 1): jitter. */
  readonly random: () => number;
  /** Names this process in the lease. */
  readonly holder: string;
  /** How often due tasks are looked up. Default 250. */
  readonly tickMs?: number;
}

export interface VideoWorker {
  /** A task was created here: look now. */
  wake(): void;
  /** Starts nothing more, lets submissions under way finish (their answers must not be lost), releases the lease. */
  stop(): Promise<void>;
  /** Before or while it stops: nobody waits for submissions under way any more. What was sent is `unknown`, as after a crash. */
  cut(): void;
}

const LEASE_TTL_MS = 15_000;
const LEASE_RENEW_MS = 5_000;
/** Between the beginnings of two calls. */
const PAUSE_MS = 2;
/** The pause before a store that did not take what became of a submission is tried again. */
const KEEP_MS = 500;
/** As many are taken up before due tasks are looked up again: what is most overdue then may be another. */
const MOST_AT_ONCE = 16;

export function startVideoWorker(options: VideoWorkerOptions): VideoWorker {
  const worker = new Worker(options);
  worker.wake();
  return worker;
}

/** The lease, and what ends with it: what another worker will do must not be done here too. */
interface Held {
  readonly token: number;
  readonly submissions: AbortController;
  readonly polls: AbortController;
}

class Worker implements VideoWorker {
  readonly #options: VideoWorkerOptions;
  readonly #lanes = new Lanes();
  readonly #polls: PollBatch;
  readonly #upstreamTasks: UpstreamTasks;
  readonly #moment = (): Moment => ({ nowMs: this.#options.clock.now(), jitter: this.#jitter });
  readonly #jitter = (ms: number): number => Math.round(ms * (0.8 + 0.4 * this.#options.random()));
  #held: Held | undefined;
  #renewAtMs = 0;
  #timer: Timer | undefined;
  #ticking: Promise<void> | undefined;
  #again = false;
  #stopped = false;
  /** A store that is away fails every look for due tasks: that is logged once, until one goes well. */
  #failing = false;

  constructor(options: VideoWorkerOptions) {
    this.#options = options;
    this.#polls = new PollBatch({ clock: options.clock, write: (polls) => this.#reschedule(polls) });
    const { store, clock } = options;
    this.#upstreamTasks = new UpstreamTasks((id) => fromStore(clock, store.videos.inspect(id)));
  }

  wake(): void {
    if (this.#stopped) return;
    if (this.#ticking !== undefined) {
      this.#again = true;
      return;
    }
    this.#timer?.cancel();
    this.#ticking = this.#tick()
      .then(
        () => {
          this.#failing = false;
        },
        (error: unknown) => {
          if (!this.#failing) this.#options.log.error({ err: error }, 'video worker');
          this.#failing = true;
        },
      )
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
    this.#held?.polls.abort(new Error('stopped'));
    await this.#ticking;
    await this.#lanes.empty(() => this.#polls.flush());
    const held = this.#held;
    this.#held = undefined;
    if (held === undefined) return;
    const { store, clock, log } = this.#options;
    try {
      await fromStore(clock, store.leases.release(VIDEO_WORKER, held.token));
    } catch (error) {
      // It runs out by itself, and a store that is away is no reason to end the others in a hurry.
      log.warn({ err: error }, 'the lease of the video worker could not be given back');
    }
  }

  cut(): void {
    this.#stopped = true;
    this.#held?.submissions.abort(new Error('cut'));
  }

  async #tick(): Promise<void> {
    const { store, clock, config } = this.#options;
    if (config.current().role !== 'primary') return;
    const held = await this.#lease();
    if (held === undefined) return;
    for (const lane of this.#lanes.open()) {
      const asked = { states: lane.states, inHand: this.#lanes.inHand };
      const due = await fromStore(clock, store.videos.due(clock.now(), Math.min(lane.room, MOST_AT_ONCE), asked));
      if (due.length === MOST_AT_ONCE) this.#again = true;
      for (const task of due) {
        if (this.#stopped) return;
        this.#start(task, held);
        await this.#pause();
      }
    }
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => this.#options.clock.setTimeout(resolve, PAUSE_MS));
  }

  /** Under which this process may work; undefined while another holds the lease. */
  async #lease(): Promise<Held | undefined> {
    const { store, clock, holder, log } = this.#options;
    const now = clock.now();
    const held = this.#held;
    if (held !== undefined && now < this.#renewAtMs) return held;
    if (held !== undefined) {
      const renewed = await fromStore(clock, store.leases.renew(VIDEO_WORKER, held.token, LEASE_TTL_MS, now));
      if (renewed.ok) {
        this.#renewAtMs = now + LEASE_RENEW_MS;
        return held;
      }
      this.#lost(held);
    }
    const acquired = await fromStore(clock, store.leases.acquire(VIDEO_WORKER, holder, LEASE_TTL_MS, now));
    if (!acquired.ok) return undefined;
    const { token } = acquired.value;
    const lost = await fromStore(clock, store.videos.loseAbandoned(token, now));
    if (lost.length > 0)
      log.warn({ tasks: lost.map(({ id }) => id) }, 'submissions were under way when their worker ended: unknown');
    // Not before: where the store fails over them, the next tick begins here again.
    this.#held = { token, submissions: new AbortController(), polls: new AbortController() };
    this.#renewAtMs = now + LEASE_RENEW_MS;
    return this.#held;
  }

  /** Whoever began under this lease may learn of it late: one that was taken since is another. */
  #lost(held: Held): void {
    if (this.#held !== held) return;
    this.#held = undefined;
    this.#options.log.warn('the lease of the video worker is lost');
    held.submissions.abort(new Error('lease lost'));
    held.polls.abort(new Error('lease lost'));
  }

  #start(task: VideoTask, held: Held): void {
    const work = this.#process(task, held).catch((error: unknown) =>
      this.#options.log.error({ err: error, task: task.id }, 'video task'),
    );
    this.#lanes.enter(task, work, () => this.wake());
  }

  async #process(task: VideoTask, held: Held): Promise<void> {
    if (task.state === 'queued') await this.#submit(task, held);
    else if (task.state === 'running' || task.state === 'unknown') await this.#poll(task, held);
  }

  async #submit(task: VideoTaskIn<'queued'>, held: Held): Promise<void> {
    const submitter = {
      signal: held.submissions.signal,
      moment: this.#moment,
      write: (change: VideoChange) => this.#keep(task.id, change, held),
      claim: (channelId: string, upstreamId: string) => this.#upstreamTasks.claim(task.id, channelId, upstreamId),
      reschedule: (poll: NextPoll) => this.#polls.add(poll),
    };
    await new Submission(task, submitter, this.#options).run();
  }

  async #poll(task: VideoTaskIn<'running' | 'unknown'>, held: Held): Promise<void> {
    // Without an id it cannot be polled; without its Channel, not now.
    if (task.upstreamId === undefined) return;
    const { upstreamId } = task;
    const { channelId } = task.submission;
    this.#upstreamTasks.asked(task.id, channelId, upstreamId);
    const channel = this.#options.config.current().channels.find(({ id }) => id === channelId);
    const route = channel === undefined ? undefined : routeOf(channel, task.model);
    const intervalMs = route?.video.pollIntervalMs ?? UNKNOWN_INTERVAL_MS;
    if (route !== undefined && !this.#lanes.admits(channelId)) {
      // A Channel that is slow to answer must not keep the others waiting.
      await this.#polls.add({ id: task.id, dueAtMs: nextPollAt(task, intervalMs, this.#moment()) });
      return;
    }
    const progress =
      route === undefined
        ? missingChannel
        : await this.#lanes.poll(channelId, () => pollTask(route, upstreamId, this.#options, held.polls.signal));
    if (progress.kind === 'queryError' || progress.kind === 'unclear') {
      const what = progress.kind === 'unclear' ? 'video outcome unclear' : 'video query failed';
      this.#options.log.warn({ task: task.id, reason: progress.reason }, `${what}: the hold stays`);
    }
    const change = afterPoll(task, progress, intervalMs, this.#moment());
    if (change.event === 'poll') await this.#polls.add({ id: task.id, dueAtMs: change.dueAtMs });
    else await this.#keep(task.id, change, held);
  }

  /**
   * Undefined when nothing was changed: a cancel or another worker was first. A store that is away is waited for, until this
   * worker ends or loses its lease: what an upstream answered to a submission comes once.
   */
  async #keep(id: string, change: VideoChange, held: Held): Promise<VideoTask | undefined> {
    const { signal } = held.polls;
    for (let tries = 1; ; tries += 1) {
      try {
        return await this.#change(id, change, held, tries > 1);
      } catch (error) {
        if (signal.aborted || !isEngineFailure(error)) throw error;
        if (tries === 1)
          this.#options.log.error({ err: error, task: id, change }, 'a video task cannot be written: it is tried again');
        await pause(this.#options.clock, KEEP_MS, signal);
      }
    }
  }

  /** `isAgain`: the store failed over it before, and may have made it all the same. */
  async #change(id: string, change: VideoChange, held: Held, isAgain: boolean): Promise<VideoTask | undefined> {
    const { store, clock } = this.#options;
    const changed = await fromStore(clock, store.videos.change(id, change, held.token, clock.now()));
    const made = changed.ok ? changed.value : isAgain ? madeBefore(changed.refusal) : undefined;
    if (made !== undefined && 'endedAtMs' in made) logEnd(this.#options, made);
    if (changed.ok || made !== undefined) return made;
    if (changed.refusal.reason === 'lease_lost') this.#lost(held);
    this.#options.log.info({ task: id, event: change.event, refusal: changed.refusal.reason }, 'video task unchanged');
    return undefined;
  }

  async #reschedule(polls: readonly NextPoll[]): Promise<void> {
    const held = this.#held;
    if (held === undefined) return;
    const { store, clock } = this.#options;
    const changed = await fromStore(clock, store.videos.reschedule(polls, held.token, clock.now()));
    if (!changed.ok) this.#lost(held);
  }
}

const missingChannel: Progress = { kind: 'queryError', reason: 'its Channel is disabled, or not configured any more' };
