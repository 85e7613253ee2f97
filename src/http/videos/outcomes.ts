/** What an upstream's answer means for a task: pure, so that each rule of the specification's transition table is read in one place. */
import type { Progress, VideoUpstream } from '../../codecs/videos/upstream.ts';
import type { VideoRequest } from '../../codecs/videos/request.ts';
import type { VideoChange, VideoTaskIn } from '../../store/videos.ts';
import type { CallResult } from './video-channel.ts';

/** A task whose outcome is unknown is asked for slowly; one whose Channel is disabled, or gone, waits as long to be looked at again. */
export const UNKNOWN_INTERVAL_MS = 60_000;
const MAX_INTERVAL_MS = 60_000;
const MAX_UNKNOWN_INTERVAL_MS = 900_000;
const BACKOFF = 1.2;

export interface Moment {
  readonly nowMs: number;
  /** Spreads an interval, so that tasks made together are not asked for together. */
  readonly jitter: (ms: number) => number;
}

/** How a Channel is asked. */
export interface Asking {
  readonly codec: VideoUpstream;
  readonly pollIntervalMs: number;
  readonly pollDeadlineS?: number;
}

/** This Channel certainly took nothing: the next may be tried, or this one again after the time that it named. */
export interface Passed {
  readonly event: 'pass';
  readonly retryAfterMs?: number;
}

/** `pass` where another Channel may be asked; everything else changes the task. */
export function afterSubmission(
  result: CallResult,
  request: VideoRequest,
  { codec, pollIntervalMs, pollDeadlineS }: Asking,
  { nowMs, jitter }: Moment,
): VideoChange | Passed {
  if (!result.answered) {
    if (!result.sent) return { event: 'pass' };
    return { event: 'lose', why: `the answer to the submission was lost: ${result.reason}` };
  }
  const submission = codec.readSubmission(result.answer);
  switch (submission.said) {
    case 'accepted': {
      const seconds = codec.expiresAfterSeconds(request) ?? pollDeadlineS;
      const deadline = seconds === undefined ? {} : { deadlineAtMs: nowMs + seconds * 1000 };
      return { event: 'accept', upstreamId: submission.upstreamId, dueAtMs: nowMs + jitter(pollIntervalMs), ...deadline };
    }
    case 'refused':
      return { event: 'fail', error: submission.error };
    case 'notTaken':
      return { event: 'pass', ...(submission.retryAfterMs === undefined ? {} : { retryAfterMs: submission.retryAfterMs }) };
    case 'unclear':
      return { event: 'lose', why: `the answer to the submission was unclear: ${submission.reason}` };
  }
}

/** A query that failed says nothing, so the task and its hold stay as they are. */
export function afterQuery(
  task: VideoTaskIn<'running' | 'unknown'>,
  progress: Progress,
  intervalMs: number,
  moment: Moment,
): VideoChange {
  const { nowMs, jitter } = moment;
  if (progress.said === 'succeeded')
    return { event: 'succeed', outputUrl: progress.url, detailsJson: JSON.stringify(progress.report) };
  if (progress.said === 'failed') return { event: 'fail', error: progress.error };
  const lost = { event: 'lose', dueAtMs: nowMs + jitter(UNKNOWN_INTERVAL_MS) } as const;
  if (task.state === 'running' && progress.said === 'unclear')
    return { ...lost, why: `the outcome is unclear: ${progress.reason}` };
  if (task.state === 'running' && task.deadlineAtMs !== undefined && nowMs >= task.deadlineAtMs)
    return { ...lost, why: 'no outcome before the deadline' };
  return { event: 'poll', dueAtMs: nextLook(task, intervalMs, moment) };
}

/** Later after each look that decided nothing. */
export function nextLook(task: VideoTaskIn<'running' | 'unknown'>, intervalMs: number, { nowMs, jitter }: Moment): number {
  const [base, most] = task.state === 'running' ? [intervalMs, MAX_INTERVAL_MS] : [UNKNOWN_INTERVAL_MS, MAX_UNKNOWN_INTERVAL_MS];
  return nowMs + jitter(Math.min(Math.max(base, most), base * BACKOFF ** Math.min(task.polls, 40)));
}
