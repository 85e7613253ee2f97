/** The last line of a task in the log of the process: the request log never has one. */
import type { Logger } from 'pino';
import { HOLD_OF_TASK, type VideoTaskIn } from '../../store/videos.ts';

export function logEnd(log: Logger, task: VideoTaskIn<'succeeded' | 'failed' | 'cancelled'>): void {
  const submission = 'submission' in task ? task.submission : undefined;
  log.info(
    {
      task: task.id,
      key_id: task.keyId,
      account_id: task.accountId,
      model: task.model,
      channel: submission?.channelId,
      state: task.state,
      error_code: task.state === 'failed' ? task.error.code : undefined,
      charge_nanos: HOLD_OF_TASK[task.state] === 'settled' ? task.frozenNanos.toString() : '0',
      duration_ms: task.endedAtMs - task.createdAtMs,
    },
    'video ended',
  );
}
