/**
 * The law of a video task: whatever throws, rejects or never answers at any await between the request and the end of the task,
 * the client is told or has left, the task is made once or not at all, it is submitted at most once, and its hold is settled
 * once. The points are found by running.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request } from 'node:http';
import type { VideoTask } from '../../src/store/videos.ts';
import type { Rig } from './exchange-rig.ts';
import type { Mode, Point } from './injector.ts';

/** The members of the store that a task needs beside those of every exchange. */
export const VIDEO_MEMBERS = ['videos', 'leases', 'accounts'] as const;

/** The longest deadline of ours (that of the store) and 5 s. */
const CLIENT_SECONDS = 15;
/** What a store that is away for one call delays, and an upstream that is silent until its deadline. */
const TASK_SECONDS = 180;
const SUBMIT = '/v1/contents/generations/tasks';
/** What the worker does with a store: each may be done and its answer lost, as by a connection that breaks behind the commit. */
const OF_THE_WORKER = /^store\.(videos\.(change|reschedule|loseAbandoned)|leases\.\w+)#/;
const OVER: ReadonlySet<VideoTask['state']> = new Set(['succeeded', 'failed', 'unknown', 'cancelled']);

/** The points whose answer may be lost, of those that a run found. */
export function unsaidOf(points: readonly Point[]): readonly string[] {
  return points.map(({ id }) => id).filter((id) => OF_THE_WORKER.test(id));
}

/** Runs one task with these faults, checks the law, and returns what was called meanwhile. */
export async function runVideo(rig: Rig, faults: ReadonlyMap<string, Mode>): Promise<readonly Point[]> {
  const { injector, store } = rig;
  const { key, secret } = await rig.newKey();
  rig.takeLines();
  const asked = rig.asked.length;
  injector.start(faults);
  let said: { readonly status: number; readonly body: string } | undefined;
  let left = false;
  const sending = request(`${rig.url}/v1/videos`, {
    method: 'POST',
    headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json', 'idempotency-key': key.id },
    agent: false,
  });
  injector.onLeave = () => {
    left = true;
    sending.destroy();
  };
  const answered = once(sending, 'response').then(async ([response]) => {
    let body = '';
    for await (const bytes of response) body += String(bytes);
    said = { status: response.statusCode, body };
  });
  answered.catch(() => undefined);
  sending.end(JSON.stringify({ model: 'v', prompt: 'a hill' }));
  await rig.pass(() => said === undefined && !left, CLIENT_SECONDS);

  const owner = { accountId: key.accountId, keyId: key.id };
  let tasks: readonly Pick<VideoTask, 'state'>[] = [];
  let isReading = false;
  const look = async (): Promise<void> => {
    isReading = true;
    const page = await store.videos.list(owner, { limit: 10 });
    if (page.ok) tasks = page.value.tasks;
    isReading = false;
  };
  // Of a client that has left, the task may only now be made.
  await rig.pass(() => injector.outstanding > 0, CLIENT_SECONDS);
  await look();
  await rig.pass(() => {
    if (!isReading) void look();
    return injector.outstanding > 0 || tasks.some(({ state }) => !OVER.has(state));
  }, TASK_SECONDS);
  const lines = [...rig.takeLines()];
  // The line of an end whose answer was lost comes when it is tried again.
  if ([...faults.values()].includes('unsaid'))
    await rig.pass(() => {
      lines.push(...rig.takeLines());
      return !lines.some(({ msg }) => /^video (ended|succeeded|failed)/.test(msg));
    }, 10);
  const points = [...injector.points.values()];
  injector.stop();
  rig.jumpBack();
  await look();

  lines.push(...rig.takeLines());
  const count = (what: RegExp): number => lines.filter(({ msg }) => what.test(msg)).length;
  const what = JSON.stringify({ said, lines: lines.map(({ msg }) => msg), tasks: tasks.map(({ state }) => state) });
  const isUnknown = !injector.points.has('store.keys.authenticate#0');
  assert.equal(count(/^video created$/), tasks.length, what);
  assert.ok(tasks.length <= 1, what);
  // A client that has left is answered nothing: its refusal may be a line, its task is one.
  if (!left) assert.equal(count(/^refused$/) + tasks.length, isUnknown ? 0 : 1, what);
  assert.ok(rig.asked.slice(asked).filter((path) => path === SUBMIT).length <= tasks.length, `submitted once: ${what}`);
  const ended = tasks.filter(({ state }) => state === 'succeeded' || state === 'failed').length;
  assert.equal(count(/^video (ended|succeeded|failed)/), ended, what);
  const holds = await store.ledger.holds({ keyId: key.id });
  assert.equal(holds.length, tasks.length, what);
  const [task] = tasks;
  const states = { succeeded: 'settled', failed: 'refunded', unknown: 'held' };
  if (task !== undefined)
    assert.equal(holds[0]?.state, Object.entries(states).find(([state]) => state === task.state)?.[1], what);
  if ([...faults.values()].every((mode) => mode === 'jump')) assert.equal(task?.state, 'succeeded', what);
  if (left) return points;
  assert.ok(said !== undefined, what);
  if (said.status === 202) assert.equal(tasks.length, 1, what);
  else assert.match(said.body, /^\{"error":\{"message":/, what);
  return points;
}
