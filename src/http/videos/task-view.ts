/** A video task as its owner reads it (design: "video task"). Upstream ids, Channels and the request stay inside. */
import { parseJson } from '../../codecs/canonical/json.ts';
import { lastFrameLink } from '../../codecs/videos/answers.ts';
import { formatUsd } from '../../store/money.ts';
import { HOLD_OF_TASK, type ListedVideo, type VideoTask, type VideoTaskIn } from '../../store/videos.ts';

interface Output {
  readonly url: string;
  readonly last_frame_url?: string;
}

export interface TaskView {
  readonly id: string;
  readonly object: 'video';
  readonly model: string;
  readonly status: VideoTask['state'];
  /** Unix seconds. */
  readonly created_at: number;
  readonly updated_at: number;
  readonly output: Output | null;
  readonly error: { readonly code: string; readonly message: string } | null;
  readonly billing: { readonly status: string; readonly currency: 'USD'; readonly frozen: string; readonly charged: string };
}

export function taskView(task: ListedVideo): TaskView {
  const billing = HOLD_OF_TASK[task.state];
  return {
    id: task.id,
    object: 'video',
    model: task.model,
    status: task.state,
    created_at: Math.floor(task.createdAtMs / 1000),
    updated_at: Math.floor(task.updatedAtMs / 1000),
    output: task.state === 'succeeded' ? outputOf(task) : null,
    error: task.state === 'failed' ? { code: task.error.code, message: task.error.message } : null,
    billing: {
      status: billing,
      currency: 'USD',
      frozen: formatUsd(task.frozenNanos),
      charged: formatUsd(billing === 'settled' ? task.frozenNanos : 0n),
    },
  };
}

function outputOf({ outputUrl, detailsJson }: Pick<VideoTaskIn<'succeeded'>, 'outputUrl' | 'detailsJson'>): Output {
  const lastFrame = detailsJson === undefined ? undefined : lastFrameLink(parseJson(detailsJson));
  return { url: outputUrl, ...(lastFrame === undefined ? {} : { last_frame_url: lastFrame }) };
}

/** The task as it was when it was created: a repeated creation is answered with the very same 202. */
export function createdView(task: VideoTask): TaskView {
  const { id, number, accountId, keyId, model, createdAtMs, frozenNanos } = task;
  return taskView({
    id,
    number,
    accountId,
    keyId,
    model,
    createdAtMs,
    updatedAtMs: createdAtMs,
    frozenNanos,
    state: 'queued',
    dueAtMs: createdAtMs,
  });
}
