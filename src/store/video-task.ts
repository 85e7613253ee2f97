/**
 * The task after an event: which facts each state carries, in a form that every engine keeps as it is. Pure; whether the event is
 * legal is decided by the table in `videos.ts`.
 */
import { keptRequest } from './kept-request.ts';
import { storable } from './storable.ts';
import type { VideoChange, VideoSubmission, VideoTask } from './videos.ts';

type Core = Pick<
  VideoTask,
  'id' | 'number' | 'accountId' | 'keyId' | 'model' | 'requestJson' | 'createdAtMs' | 'updatedAtMs' | 'frozenNanos'
>;

/** Undefined where the event is not allowed in the task's state, which the table has already refused. */
export function nextTask(
  task: VideoTask,
  change: VideoChange | { readonly event: 'cancel' },
  nowMs: number,
  leaseToken: number,
): VideoTask | undefined {
  const core = coreOf(task, nowMs);
  switch (change.event) {
    case 'cancel':
      return { ...over(core), state: 'cancelled', endedAtMs: nowMs };
    case 'submit':
    case 'retry': {
      const attempt = 'submission' in task && task.submission !== undefined ? task.submission.attempt + 1 : 1;
      const { channelId, upstreamModel } = change;
      return { ...core, state: 'submitting', submission: { attempt, channelId, upstreamModel, startedAtMs: nowMs }, leaseToken };
    }
    case 'accept': {
      if (task.state !== 'submitting') return undefined;
      const { dueAtMs, deadlineAtMs } = change;
      const upstreamId = storable(change.upstreamId);
      const deadline = deadlineAtMs === undefined ? {} : { deadlineAtMs };
      return { ...core, state: 'running', submission: task.submission, upstreamId, dueAtMs, polls: 0, ...deadline };
    }
    case 'poll':
      // That it waits on is no news to its owner: `updated_at` stays.
      if (task.state === 'queued') return { ...task, dueAtMs: change.dueAtMs };
      if (task.state !== 'running' && task.state !== 'unknown') return undefined;
      return { ...task, updatedAtMs: nowMs, dueAtMs: change.dueAtMs, polls: task.polls + 1 };
    case 'succeed': {
      const submission = submissionOf(task);
      if (submission === undefined) return undefined;
      const details = change.detailsJson === undefined ? {} : { detailsJson: storable(change.detailsJson) };
      return {
        ...over(core),
        state: 'succeeded',
        submission,
        ...upstreamIdOf(task),
        outputUrl: storable(change.outputUrl),
        ...details,
        endedAtMs: nowMs,
      };
    }
    case 'fail': {
      const submission = submissionOf(task);
      const known = submission === undefined ? {} : { submission };
      const { upstreamText } = change.error;
      const words = upstreamText === undefined ? {} : { upstreamText: storable(upstreamText) };
      const error = { code: storable(change.error.code), message: storable(change.error.message), ...words };
      return { ...over(core), state: 'failed', ...known, ...upstreamIdOf(task), error, endedAtMs: nowMs };
    }
    case 'lose': {
      const submission = submissionOf(task);
      if (submission === undefined) return undefined;
      const due = change.dueAtMs === undefined ? {} : { dueAtMs: change.dueAtMs };
      return { ...core, state: 'unknown', submission, ...upstreamIdOf(task), reason: storable(change.why), ...due, polls: 0 };
    }
  }
}

function coreOf(task: VideoTask, nowMs: number): Core {
  const { id, number, accountId, keyId, model, requestJson, createdAtMs, frozenNanos } = task;
  return { id, number, accountId, keyId, model, requestJson, createdAtMs, updatedAtMs: nowMs, frozenNanos };
}

function over(core: Core): Core {
  return { ...core, requestJson: keptRequest(core.requestJson) };
}

function submissionOf(task: VideoTask): VideoSubmission | undefined {
  return 'submission' in task ? task.submission : undefined;
}

function upstreamIdOf(task: VideoTask): { upstreamId?: string } {
  return 'upstreamId' in task && task.upstreamId !== undefined ? { upstreamId: task.upstreamId } : {};
}
