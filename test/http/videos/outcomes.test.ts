/** What answers, silences and deadlines mean for a task: the rows of the specification's table, one by one. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { UpstreamAnswer } from '../../../src/codecs/codec.ts';
import { arkVideo } from '../../../src/codecs/videos/ark.ts';
import { minimaxVideoV1 } from '../../../src/codecs/videos/minimax-v1.ts';
import { decodeVideoRequest } from '../../../src/codecs/videos/request.ts';
import type { Progress } from '../../../src/codecs/videos/upstream.ts';
import { afterQuery, afterSubmission, UNKNOWN_INTERVAL_MS } from '../../../src/http/videos/outcomes.ts';
import type { CallResult } from '../../../src/http/videos/video-channel.ts';
import type { VideoTaskIn } from '../../../src/store/videos.ts';

const NOW = 1_000_000;
const moment = { nowMs: NOW, jitter: (ms: number) => ms };
const asking = { codec: arkVideo, pollIntervalMs: 5_000 };
const request = (options: object = {}) => decodeVideoRequest({ model: 'm', prompt: 'p', provider_options: { ...options } });
const answered = (body: object, status = 200): CallResult => {
  const answer: UpstreamAnswer = { status, headers: {}, text: JSON.stringify(body) };
  return { answered: true, answer };
};

const core = {
  id: 'video_1',
  number: 1,
  accountId: 'a',
  keyId: 'k',
  model: 'm',
  requestJson: '{}',
  createdAtMs: 0,
  updatedAtMs: 0,
  frozenNanos: 1n,
  submission: { attempt: 1, channelId: 'c', upstreamModel: 'u', startedAtMs: 0 },
  upstreamId: 'up',
  dueAtMs: 0,
};
const running = (more: { polls?: number; deadlineAtMs?: number } = {}): VideoTaskIn<'running'> => ({
  ...core,
  state: 'running',
  polls: 0,
  ...more,
});
const unknown = (polls = 0): VideoTaskIn<'unknown'> => ({ ...core, state: 'unknown', reason: 'late', polls });

test('a submission: accepted with the deadline of the upstream, of the request, or of the Channel; refused, passed on, or lost', () => {
  const accepted = afterSubmission(answered({ id: 'up-1' }), request(), asking, moment);
  const ark = { event: 'accept', upstreamId: 'up-1', dueAtMs: NOW + 5_000 };
  assert.deepEqual(accepted, { ...ark, deadlineAtMs: NOW + 172_800_000 });
  const sooner = request({ execution_expires_after: 3600 });
  assert.deepEqual(afterSubmission(answered({ id: 'up-1' }), sooner, asking, moment), { ...ark, deadlineAtMs: NOW + 3_600_000 });
  const minimax = { codec: minimaxVideoV1, pollIntervalMs: 5_000 };
  const made = answered({ task_id: '7', base_resp: { status_code: 0 } });
  const plain = { event: 'accept', upstreamId: '7', dueAtMs: NOW + 5_000 };
  assert.deepEqual(afterSubmission(made, request(), minimax, moment), plain);
  const withDeadline = afterSubmission(made, request(), { ...minimax, pollDeadlineS: 60 }, moment);
  assert.deepEqual(withDeadline, { ...plain, deadlineAtMs: NOW + 60_000 });

  assert.equal(afterSubmission(answered({ error: { code: 'Bad' } }, 400), request(), asking, moment)?.event, 'fail');
  const pass = { event: 'pass' };
  assert.deepEqual(afterSubmission(answered({}, 429), request(), asking, moment), pass, 'the next Channel may take it');
  assert.deepEqual(afterSubmission({ answered: false, sent: false, reason: 'refused' }, request(), asking, moment), pass);
  const busy: CallResult = { answered: true, answer: { status: 429, headers: { 'retry-after': '2' }, text: '' } };
  assert.deepEqual(afterSubmission(busy, request(), asking, moment), { ...pass, retryAfterMs: 2_000 });
  assert.equal(afterSubmission({ answered: false, sent: true, reason: 'cut' }, request(), asking, moment)?.event, 'lose');
  assert.equal(afterSubmission(answered({}, 500), request(), asking, moment)?.event, 'lose');
});

const PENDING: Progress = { said: 'pending' };
const ERROR: Progress = { said: 'queryError', reason: 'HTTP 500' };
const SUCCESS: Progress = { said: 'succeeded', url: 'https://r.example/v.mp4', report: {} };
const FAILURE: Progress = { said: 'failed', error: { code: 'x', message: 'y' } };

test('a query: what decides, decides in running and in unknown; what fails says nothing', () => {
  for (const task of [running(), unknown(), running({ deadlineAtMs: NOW - 1 })]) {
    assert.deepEqual(afterQuery(task, SUCCESS, 5_000, moment), {
      event: 'succeed',
      outputUrl: 'https://r.example/v.mp4',
      detailsJson: '{}',
    });
    assert.deepEqual(afterQuery(task, FAILURE, 5_000, moment), { event: 'fail', error: { code: 'x', message: 'y' } });
  }
  for (const progress of [PENDING, ERROR]) {
    assert.deepEqual(afterQuery(running(), progress, 5_000, moment), { event: 'poll', dueAtMs: NOW + 5_000 });
    assert.deepEqual(afterQuery(unknown(), progress, 5_000, moment), { event: 'poll', dueAtMs: NOW + UNKNOWN_INTERVAL_MS });
  }
});

test('an outcome that is unclear makes a running task unknown at once, and leaves an unknown one as it is', () => {
  const unclear: Progress = { said: 'unclear', reason: 'status "dreaming"' };
  assert.deepEqual(afterQuery(running(), unclear, 5_000, moment), {
    event: 'lose',
    why: 'the outcome is unclear: status "dreaming"',
    dueAtMs: NOW + UNKNOWN_INTERVAL_MS,
  });
  assert.equal(afterQuery(unknown(), unclear, 5_000, moment).event, 'poll');
});

test('past its deadline a task is unknown, and asked for on; before it, it is not', () => {
  for (const progress of [PENDING, ERROR]) {
    assert.equal(afterQuery(running({ deadlineAtMs: NOW + 1 }), progress, 5_000, moment).event, 'poll');
    assert.deepEqual(afterQuery(running({ deadlineAtMs: NOW }), progress, 5_000, moment), {
      event: 'lose',
      why: 'no outcome before the deadline',
      dueAtMs: NOW + UNKNOWN_INTERVAL_MS,
    });
  }
});

test('each look that decides nothing puts the next one off, to a minute, and to a quarter of an hour where the outcome is unknown', () => {
  const after = (task: VideoTaskIn<'running' | 'unknown'>, intervalMs: number): number => {
    const change = afterQuery(task, PENDING, intervalMs, moment);
    return change.event === 'poll' ? change.dueAtMs - NOW : assert.fail(change.event);
  };
  const intervals = [0, 1, 2, 5, 14, 1000].map((polls) => Math.round(after(running({ polls }), 5_000)));
  assert.deepEqual(intervals, [5_000, 6_000, 7_200, 12_442, 60_000, 60_000]);
  assert.equal(after(running({ polls: 50 }), 600_000), 600_000, 'an interval of the operator is never shortened');
  assert.deepEqual([after(unknown(), 5_000), after(unknown(1000), 5_000)], [60_000, 900_000]);
});
