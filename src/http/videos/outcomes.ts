/**
 * What an upstream's answer means for a task: pure, so that each rule of the specification's transition table is read in one
 * place.
 */
import type { Progress } from '../../codecs/videos/upstream.ts';
import type { VideoRequest } from '../../codecs/videos/request.ts';
import type { VideoChange, VideoTaskIn } from '../../store/videos.ts';
import type { VideoRoute } from './video-channel.ts';

/** A task whose outcome is unknown is polled slowly; one whose Channel is disabled, or gone, waits as long for its next poll. */
export const UNKNOWN_INTERVAL_MS = 60_000;
const MAX_INTERVAL_MS = 60_000;
const MAX_UNKNOWN_INTERVAL_MS = 900_000;
const BACKOFF = 1.2;

export interface Moment {
  readonly nowMs: number;
  /** Spreads an interval, so that tasks made together are not asked for together. */
  readonly jitter: (ms: number) => number;
}

/** The deadline is the upstream's own, else the Channel's, else none. */
export function afterAcceptance(
  upstreamId: string,
  request: VideoRequest,
  { codec, video }: VideoRoute,
  { nowMs, jitter }: Moment,
): VideoChange {
  const seconds = codec.expiresAfterSeconds(request) ?? video.pollDeadlineS;
  const deadline = seconds === undefined ? {} : { deadlineAtMs: nowMs + seconds * 1000 };
  return { event: 'accept', upstreamId, dueAtMs: nowMs + jitter(video.pollIntervalMs), ...deadline };
}

/** A poll that failed proves nothing, so the task and its hold stay as they are. */
export function afterPoll(
  task: VideoTaskIn<'running' | 'unknown'>,
  progress: Progress,
  intervalMs: number,
  moment: Moment,
): VideoChange {
  const { nowMs, jitter } = moment;
  if (progress.kind === 'succeeded')
    return { event: 'succeed', outputUrl: progress.url, detailsJson: JSON.stringify(progress.report) };
  if (progress.kind === 'failed') return { event: 'fail', error: progress.error };
  const lost = { event: 'lose', dueAtMs: nowMs + jitter(UNKNOWN_INTERVAL_MS) } as const;
  if (task.state === 'running' && progress.kind === 'unclear')
    return { ...lost, why: `the outcome is unclear: ${progress.reason}` };
  if (task.state === 'running' && task.deadlineAtMs !== undefined && nowMs >= task.deadlineAtMs)
    return { ...lost, why: 'no outcome before the deadline' };
  return { event: 'poll', dueAtMs: nextPollAt(task, intervalMs, moment) };
}

/** Later after each poll that decided nothing. */
export function nextPollAt(task: VideoTaskIn<'running' | 'unknown'>, intervalMs: number, { nowMs, jitter }: Moment): number {
  const [base, most] = task.state === 'running' ? [intervalMs, MAX_INTERVAL_MS] : [UNKNOWN_INTERVAL_MS, MAX_UNKNOWN_INTERVAL_MS];
  return nowMs + jitter(Math.min(Math.max(base, most), base * BACKOFF ** Math.min(task.polls, 40)));
}
