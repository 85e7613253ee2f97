/**
 * `mizu videos [list] [--state S] | show ID | resolve ID --succeeded URL | --failed MESSAGE`: the operator's view of video tasks,
 * and the decision about one whose outcome is unknown. A resolution settles or refunds in the same transaction and is journaled.
 */
import { parseJson } from '../codecs/canonical/json.ts';
import { formatUsd } from '../store/money.ts';
import { VIDEO, type VideoState, type VideoTask } from '../store/videos.ts';
import { CAUSE, causeOf, countOption } from './operator-input.ts';
import {
  argument,
  oneLine,
  RefusedError,
  report,
  table,
  allowOnly,
  textOption,
  UsageError,
  type Verb,
  type VerbContext,
} from './verb.ts';

export const videos: Verb = async (context) => {
  switch (context.args[0]) {
    case undefined:
    case 'list':
      return await list(context);
    case 'show':
      return await show(context);
    case 'resolve':
      return await resolve(context);
    default:
      throw new UsageError('videos [list] | show ID | resolve ID --succeeded URL | --failed MESSAGE');
  }
};

async function list(context: VerbContext): Promise<number> {
  allowOnly(context, 'videos list', 0, 'state', 'limit');
  const state = textOption(context, 'state');
  if (state !== undefined && !isState(state)) throw new UsageError(`--state must be one of ${Object.keys(VIDEO).join(', ')}`);
  const limit = countOption(context, 'limit', 1, 1000) ?? 50;
  const tasks = await (await context.store()).videos.all({ limit, ...(state === undefined ? {} : { state }) });
  const rows = tasks.map((task) => [
    task.id,
    task.state,
    task.model,
    new Date(task.createdAtMs).toISOString(),
    `$${formatUsd(task.frozenNanos)}`,
    task.keyId,
  ]);
  report(context, tasks.map(taskJson), table([['ID', 'STATE', 'MODEL', 'CREATED', 'PRICE', 'KEY'], ...rows]));
  return 0;
}

async function show(context: VerbContext): Promise<number> {
  allowOnly(context, 'videos show', 1);
  const id = argument(context, 1, 'ID');
  const task = await (await context.store()).videos.inspect(id);
  if (task === undefined) throw new RefusedError(`there is no video task ${id}`);
  report(context, taskJson(task), describe(task));
  return 0;
}

async function resolve(context: VerbContext): Promise<number> {
  allowOnly(context, 'videos resolve', 1, 'succeeded', 'failed', ...CAUSE);
  const id = argument(context, 1, 'ID');
  const url = textOption(context, 'succeeded');
  const failed = textOption(context, 'failed');
  if ((url === undefined) === (failed === undefined)) throw new UsageError('give --succeeded URL or --failed MESSAGE');
  if (url !== undefined && !/^https?:$/.test(URL.parse(url)?.protocol ?? ''))
    throw new UsageError('--succeeded needs the HTTP(S) URL of the result');
  const verdict =
    url === undefined
      ? ({
          event: 'fail',
          error: {
            code: 'resolved_by_operator',
            message: failed === undefined || failed === '' ? 'The generation failed.' : failed,
          },
        } as const)
      : ({ event: 'succeed', outputUrl: url } as const);
  const store = await context.store();
  const changed = await store.videos.resolve(id, verdict, causeOf(context), context.clock.now());
  if (!changed.ok) {
    const { refusal } = changed;
    throw new RefusedError(
      refusal.reason === 'illegal' ? `the task is ${refusal.task.state}, not unknown` : `there is no video task ${id}`,
    );
  }
  report(context, taskJson(changed.value), describe(changed.value));
  return 0;
}

/** The record as JSON for scripts: money in USD, and the request and the upstream's report as objects. */
function taskJson(task: VideoTask): object {
  const { frozenNanos, requestJson, number: _number, ...facts } = task;
  const json = new Map<string, unknown>(Object.entries(facts));
  json.delete('leaseToken');
  json.set('price', formatUsd(frozenNanos)).set('request', parseJson(requestJson));
  if (task.state === 'succeeded' && task.detailsJson !== undefined) json.set('details', parseJson(task.detailsJson));
  json.delete('detailsJson');
  return Object.fromEntries(json);
}

function isState(word: string): word is VideoState {
  return Object.hasOwn(VIDEO, word);
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
