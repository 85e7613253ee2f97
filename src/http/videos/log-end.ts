/** The last line of a task in the log of the process, and its count: the request log never has one. */
import type { Logger } from 'pino';
import type { Metrics } from '../operations/metrics.ts';
import { HOLD_OF_TASK, type VideoTaskIn } from '../../store/videos.ts';

export function logEnd(
  { log, metrics }: { readonly log: Logger; readonly metrics: Metrics },
  task: VideoTaskIn<'succeeded' | 'failed' | 'cancelled'>,
): void {
  const submission = 'submission' in task ? task.submission : undefined;
  const nanos = HOLD_OF_TASK[task.state] === 'settled' ? task.frozenNanos : 0n;
  metrics.videoEnded(task.model, task.state, nanos);
  log.info(
    {
      task: task.id,
      key_id: task.keyId,
      account_id: task.accountId,
      model: task.model,
      channel: submission?.channelId,
      state: task.state,
      error_code: task.state === 'failed' ? task.error.code : undefined,
      charge_nanos: nanos.toString(),
      duration_ms: task.endedAtMs - task.createdAtMs,
    },
    'video ended',
  );
}
