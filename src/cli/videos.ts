/**
 * `mizu videos …`: the operator's view of video tasks, and the decision about one whose outcome is unknown. A resolution settles
 * or refunds in the same transaction and is journaled.
 */
import type { Static } from 'typebox';
import { parseJson } from '../codecs/canonical/json.ts';
import { defined } from '../codecs/defined.ts';
import { InputError, RefusedError } from '../http/admin/refusals.ts';
import { OneVideo, ResolveVideo, VideoQuery } from '../http/admin/requests.ts';
import { formatUsd } from '../store/money.ts';
import type { VideoTask } from '../store/videos.ts';
import { oneLine, table, type Verb, type VerbContext, verb } from './verb.ts';

export async function listVideos(context: VerbContext, { state, limit = 50 }: Static<typeof VideoQuery>): Promise<VideoTask[]> {
  return await (await context.store()).videos.all({ limit, ...defined({ state }) });
}

export async function showVideo(context: VerbContext, { id }: Static<typeof OneVideo>): Promise<VideoTask> {
  const task = await (await context.store()).videos.inspect(id);
  if (task === undefined) throw unknown(id);
  return task;
}

export async function resolveVideo(
  context: VerbContext,
  { id, succeeded: url, failed }: Static<typeof ResolveVideo>,
): Promise<VideoTask> {
  if ((url === undefined) === (failed === undefined))
    throw new InputError((name) => `give ${name('succeeded')} URL or ${name('failed')} MESSAGE`);
  if (url !== undefined && !/^https?:$/.test(URL.parse(url)?.protocol ?? ''))
    throw new InputError((name) => `${name('succeeded')} needs the HTTP(S) URL of the result`);
  const message = failed === undefined || failed === '' ? 'The generation failed.' : failed;
  const verdict =
    url === undefined
      ? ({ event: 'fail', error: { code: 'resolved_by_operator', message } } as const)
      : ({ event: 'succeed', outputUrl: url } as const);
  const store = await context.store();
  const changed = await store.videos.resolve(id, verdict, context.cause, context.clock.now());
  if (changed.ok) return changed.value;
  const { refusal } = changed;
  throw refusal.reason === 'illegal' ? new RefusedError(`the task is ${refusal.task.state}, not unknown`) : unknown(id);
}

const unknown = (id: string): RefusedError => new RefusedError(`there is no video task ${id}`, 'unknown', 'unknown_video');

/** The record as JSON for programs: money in USD, and the request and the upstream's report as objects. */
export function videoJson(task: VideoTask): object {
  const { frozenNanos, requestJson, number: _number, ...facts } = task;
  const json = new Map<string, unknown>(Object.entries(facts));
  json.delete('leaseToken');
  json.set('price', formatUsd(frozenNanos)).set('request', parseJson(requestJson));
  if (task.state === 'succeeded' && task.detailsJson !== undefined) json.set('details', parseJson(task.detailsJson));
  json.delete('detailsJson');
  return Object.fromEntries(json);
}

function describe(task: VideoTask): string {
  const lines = [
    `${task.id}  ${task.state}`,
    `  model     ${task.model}`,
    `  account   ${task.accountId}  key ${task.keyId}`,
    `  created   ${new Date(task.createdAtMs).toISOString()}`,
    `  updated   ${new Date(task.updatedAtMs).toISOString()}`,
    `  price     $${formatUsd(task.frozenNanos)}`,
  ];
  if ('submission' in task && task.submission !== undefined) {
    lines.push(`  channel   ${task.submission.channelId} (${task.submission.upstreamModel}), attempt ${task.submission.attempt}`);
  }
  if ('upstreamId' in task && task.upstreamId !== undefined) lines.push(`  upstream  ${task.upstreamId}`);
  if (task.state === 'unknown') lines.push(`  reason    ${task.reason}`);
  if (task.state === 'succeeded') lines.push(`  output    ${task.outputUrl}`);
  if (task.state === 'failed') {
    lines.push(`  error     ${task.error.code}: ${task.error.message}`);
    if (task.error.upstreamText !== undefined) lines.push(`  it said   ${task.error.upstreamText}`);
  }
  return lines.map(oneLine).join('\n');
}

export const VIDEOS: readonly Verb[] = [
  verb({
    name: 'videos list',
    usage: '[list] [--state S] [--limit N]',
    does: 'Video tasks, newest first.',
    options: VideoQuery,
    isDefault: true,
    run: listVideos,
    json: (tasks) => tasks.map(videoJson),
    text: (tasks) =>
      table([
        ['ID', 'STATE', 'MODEL', 'CREATED', 'PRICE', 'KEY'],
        ...tasks.map((task) => [
          task.id,
          task.state,
          task.model,
          new Date(task.createdAtMs).toISOString(),
          `$${formatUsd(task.frozenNanos)}`,
          task.keyId,
        ]),
      ]),
  }),
  verb({
    name: 'videos show',
    usage: 'show ID',
    does: 'One task with its upstream, its hold and what the upstream said.',
    options: OneVideo,
    arguments: ['id'],
    run: showVideo,
    json: videoJson,
    text: describe,
  }),
  verb({
    name: 'videos resolve',
    usage: 'resolve ID --succeeded URL | --failed MESSAGE',
    does: 'Decides a task of unknown outcome: its hold is charged, or given back.',
    options: ResolveVideo,
    arguments: ['id'],
    changes: true,
    run: resolveVideo,
    json: videoJson,
    text: describe,
  }),
];
