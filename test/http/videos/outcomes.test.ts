/** What answers, silences and deadlines mean for a task: the rows of the specification's table, one by one. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodeVideoRequest } from '../../../src/codecs/videos/request.ts';
import type { Progress } from '../../../src/codecs/videos/upstream.ts';
import { afterAcceptance, afterPoll, UNKNOWN_INTERVAL_MS } from '../../../src/http/videos/outcomes.ts';
import { routeOf } from '../../../src/http/videos/video-channel.ts';
import type { VideoTaskIn } from '../../../src/store/videos.ts';
import { testConfig } from '../../support/test-gateway.ts';

const NOW = 1_000_000;
const moment = { nowMs: NOW, jitter: (ms: number) => ms };
const request = (options: object = {}) => decodeVideoRequest({ model: 'm', prompt: 'p', provider_options: { ...options } });
const route = (type: string, options: object = {}) => {
  const channels = [{ id: 'v', type, base_url: 'http://127.0.0.1:1', models: ['m'], options }];
  const [channel] = testConfig({ channels, models: { m: { kind: 'video', price: { video: '1' } } } }).channels;
  return (channel === undefined ? undefined : routeOf(channel, 'm')) ?? assert.fail('it makes videos');
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

test('an accepted task has the deadline of the upstream, of the request, or of the Channel', () => {
  const ark = { event: 'accept', upstreamId: 'up-1', dueAtMs: NOW + 5_000 };
  assert.deepEqual(afterAcceptance('up-1', request(), route('ark_video'), moment), { ...ark, deadlineAtMs: NOW + 172_800_000 });
  const sooner = request({ execution_expires_after: 3600 });
  assert.deepEqual(afterAcceptance('up-1', sooner, route('ark_video'), moment), { ...ark, deadlineAtMs: NOW + 3_600_000 });
  const minimax = (options: object) => afterAcceptance('up-1', request(), route('minimax_video', options), moment);
  assert.deepEqual(minimax({}), ark);
  assert.deepEqual(minimax({ poll_deadline_s: 60 }), { ...ark, deadlineAtMs: NOW + 60_000 });
  assert.deepEqual(minimax({ poll_interval_ms: 7 }), { ...ark, dueAtMs: NOW + 7 });
});

const PENDING: Progress = { kind: 'pending' };
const ERROR: Progress = { kind: 'queryError', reason: 'HTTP 500' };
const SUCCESS: Progress = { kind: 'succeeded', url: 'https://r.example/v.mp4', report: {} };
const FAILURE: Progress = { kind: 'failed', error: { code: 'x', message: 'y' } };

test('a query: what decides, decides in running and in unknown; what fails says nothing', () => {
  for (const task of [running(), unknown(), running({ deadlineAtMs: NOW - 1 })]) {
    assert.deepEqual(afterPoll(task, SUCCESS, 5_000, moment), {
      event: 'succeed',
      outputUrl: 'https://r.example/v.mp4',
      detailsJson: '{}',
    });
    assert.deepEqual(afterPoll(task, FAILURE, 5_000, moment), { event: 'fail', error: { code: 'x', message: 'y' } });
  }
  for (const progress of [PENDING, ERROR]) {
    assert.deepEqual(afterPoll(running(), progress, 5_000, moment), { event: 'poll', dueAtMs: NOW + 5_000 });
    assert.deepEqual(afterPoll(unknown(), progress, 5_000, moment), { event: 'poll', dueAtMs: NOW + UNKNOWN_INTERVAL_MS });
  }
});

test('an outcome that is unclear makes a running task unknown at once, and leaves an unknown one as it is', () => {
  const unclear: Progress = { kind: 'unclear', reason: 'status "dreaming"' };
  assert.deepEqual(afterPoll(running(), unclear, 5_000, moment), {
    event: 'lose',
    why: 'the outcome is unclear: status "dreaming"',
    dueAtMs: NOW + UNKNOWN_INTERVAL_MS,
  });
  assert.equal(afterPoll(unknown(), unclear, 5_000, moment).event, 'poll');
});

test('past its deadline a task is unknown, and asked for on; before it, it is not', () => {
  for (const progress of [PENDING, ERROR]) {
    assert.equal(afterPoll(running({ deadlineAtMs: NOW + 1 }), progress, 5_000, moment).event, 'poll');
    assert.deepEqual(afterPoll(running({ deadlineAtMs: NOW }), progress, 5_000, moment), {
      event: 'lose',
      why: 'no outcome before the deadline',
      dueAtMs: NOW + UNKNOWN_INTERVAL_MS,
    });
  }
});

test('each poll that decides nothing puts the next one off, to a minute, and to a quarter of an hour where the outcome is unknown', () => {
  const after = (task: VideoTaskIn<'running' | 'unknown'>, intervalMs: number): number => {
    const change = afterPoll(task, PENDING, intervalMs, moment);
    return change.event === 'poll' ? change.dueAtMs - NOW : assert.fail(change.event);
  };
  const intervals = [0, 1, 2, 5, 14, 1000].map((polls) => Math.round(after(running({ polls }), 5_000)));
  assert.deepEqual(intervals, [5_000, 6_000, 7_200, 12_442, 60_000, 60_000]);
  assert.equal(after(running({ polls: 50 }), 600_000), 600_000, 'an interval of the operator is never shortened');
  assert.deepEqual([after(unknown(), 5_000), after(unknown(1000), 5_000)], [60_000, 900_000]);
});
