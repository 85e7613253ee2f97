/** The MiniMax video upstream, both versions: v1 with `base_resp` and file links, v2 with `content` and HTTP errors. */
import { type Answer, jsonAnswer } from './answer.ts';
import { videoPrompt } from './ark-video.ts';
import type { ReceivedRequest } from './journal.ts';
import { isArray, isObject, type JsonObject, numberOf, objectOf, stringOf } from './json.ts';
import type { Script } from './script.ts';
import { seedOf } from './random.ts';
import type { VideoJob, VideoState } from './video-jobs.ts';
import type { SimulatorContext } from './context.ts';

const V1_STATES: Record<VideoState, string> = {
  queued: 'Queueing',
  running: 'Processing',
  succeeded: 'Success',
  failed: 'Fail',
};

export function answerMinimax(
  request: ReceivedRequest,
  script: Script | undefined,
  context: SimulatorContext,
): Answer | undefined {
  const { method, path, query } = request;
  if (path === '/v1/video_generation' && method === 'POST') return createV1(request, script, context);
  if (path === '/v1/query/video_generation' && method === 'GET') return queryV1(query.task_id ?? '', context);
  if (path === '/v1/files/retrieve' && method === 'GET') return retrieve(query.file_id ?? '', context);
  if (path === '/v2/video_generation' && method === 'POST') return createV2(request, script, context);
  const [, asked] = /^\/v2\/query\/video_generation\/([^/]+)$/.exec(path) ?? [];
  if (asked !== undefined && method === 'GET') return queryV2(asked, context);
  return undefined;
}

function base(code: number, message: string): JsonObject {
  return { base_resp: { status_code: code, status_msg: message } };
}

const taskId = (context: SimulatorContext) =>
  `1${(seedOf(context.mint('')) % 1e9).toString().padStart(9, '0')}${seedOf(context.mint('')) % 1e5}`;

function createV1(request: ReceivedRequest, script: Script | undefined, context: SimulatorContext): Answer {
  const bad = (message: string) => jsonAnswer(200, JSON.stringify({ task_id: '', ...base(2013, `invalid params, ${message}`) }));
  const { body } = request;
  if (!isObject(body)) return bad('body is not JSON');
  if (stringOf(body.model) === '') return bad('model is required');
  const framed = stringOf(body.first_frame_image) !== '' || isArray(body.subject_reference);
  if (stringOf(body.prompt) === '' && !framed) return bad('prompt is required');
  if (stringOf(body.prompt).length > 2000) return bad('prompt is longer than 2000 characters');
  const duration = numberOf(body.duration);
  if (body.duration !== undefined && duration !== 6 && duration !== 10) return bad('duration must be 6 or 10');
  if (body.resolution !== undefined && !['512P', '720P', '768P', '1080P'].includes(stringOf(body.resolution)))
    return bad('resolution is not supported');
  if (duration === 10 && body.resolution === '1080P') return bad('1080P supports 6 seconds only');
  for (const name of ['prompt_optimizer', 'fast_pretreatment']) {
    if (body[name] !== undefined && typeof body[name] !== 'boolean') return bad(`${name} must be a boolean`);
  }
  const job = context.videos.create(taskId(context), body, script?.video);
  return jsonAnswer(200, JSON.stringify({ task_id: job.id, ...base(0, 'success') }));
}

/** A file id beyond 2^53, as the vendor's are, that leads back to its task. */
const fileIdOf = (job: VideoJob) => `99${job.id}`;

function queryV1(id: string, context: SimulatorContext): Answer {
  const job = context.videos.find(id);
  if (job === undefined)
    return jsonAnswer(
      200,
      JSON.stringify({ task_id: id, status: '', file_id: '', ...base(2013, 'invalid params, task not found') }),
    );
  const state = context.videos.stateOf(job);
  const failed = V1_STATES[state] === 'Fail';
  const done = state === 'succeeded';
  return jsonAnswer(
    200,
    JSON.stringify({
      task_id: id,
      status: V1_STATES[state],
      file_id: done ? fileIdOf(job) : '',
      ...(done ? { video_width: 1366, video_height: 768 } : {}),
      ...(failed ? base(Number(job.course.code) || 1027, job.course.message) : base(0, 'success')),
    }),
  );
}

function retrieve(fileId: string, context: SimulatorContext): Answer {
  const job = context.videos.find(fileId.slice(2));
  if (job === undefined || fileIdOf(job) !== fileId)
    return jsonAnswer(200, JSON.stringify(base(2013, 'invalid params, file not found')));
  const url = `${context.origin()}/files/${job.id}.mp4`;
  const createdS = Math.floor(job.createdMs / 1000);
  // The id is a bare int64 here: a JSON library would round it.
  return jsonAnswer(
    200,
    `{"file":{"file_id":${fileId},"bytes":0,"created_at":${createdS},"filename":"output.mp4","purpose":"video_generation",` +
      `"download_url":${JSON.stringify(url)}},"base_resp":{"status_code":0,"status_msg":"success"}}`,
  );
}

function failure(status: number, type: string, message: string, code: number, context: SimulatorContext): Answer {
  const error = { type, message: `${message} (${code})`, http_code: String(status) };
  return jsonAnswer(status, JSON.stringify({ type: 'error', error, request_id: context.mint('') }));
}

function createV2(request: ReceivedRequest, script: Script | undefined, context: SimulatorContext): Answer {
  const bad = (message: string) => failure(400, 'bad_request_error', `invalid params, ${message}`, 2013, context);
  const { body } = request;
  if (!isObject(body)) return bad('body is not JSON');
  if (stringOf(body.model) === '') return bad('model is required');
  if (!isArray(body.content)) return bad('content is required');
  const entries = body.content.map(objectOf);
  const texts = entries.filter(({ type }) => type === 'text');
  const roles = new Set(entries.map(({ role }) => stringOf(role)).filter((role) => role !== ''));
  const framed = roles.has('first_frame') || roles.has('last_frame');
  const referenced = [...roles].some((role) => role.startsWith('reference_'));
  if (texts.length !== 1 || videoPrompt(body) === '') return bad('content needs exactly one non-empty text');
  if (videoPrompt(body).length > 7000) return bad('text is longer than 7000 characters');
  if (framed && referenced) return bad('frame roles and reference roles exclude each other');
  if (typeof body.resolution !== 'string') return bad('resolution is required');
  if (!['480P', '768P', '2K'].includes(body.resolution)) return bad('resolution is not supported');
  if (!Number.isInteger(body.duration)) return bad('duration is required');
  const duration = numberOf(body.duration) ?? 0;
  if (duration < 4 || duration > 15) return bad('duration must be between 4 and 15');
  if (entries.length === 1 && (body.ratio === undefined || body.ratio === 'adaptive'))
    return bad('ratio is required for text to video');
  if (framed && body.ratio !== undefined && body.ratio !== 'adaptive') return bad('ratio must be adaptive with frame images');
  const job = context.videos.create(taskId(context), body, script?.video);
  return jsonAnswer(200, JSON.stringify({ task_id: job.id }));
}

function queryV2(id: string, context: SimulatorContext): Answer {
  const job = context.videos.find(id);
  if (job === undefined) return failure(400, 'bad_request_error', 'invalid params, task not found', 2013, context);
  const status = context.videos.stateOf(job);
  const createdS = Math.floor(job.createdMs / 1000);
  const { model, resolution, duration, ratio = 'adaptive' } = job.request;
  const done = {
    content: { url: `${context.origin()}/files/${job.id}.mp4`, prompt: videoPrompt(job.request) },
    usage: { total_seconds: duration, input_seconds: 0, output_seconds: duration, input_image_count: 0 },
  };
  const task = {
    id,
    model,
    status,
    error: status === 'failed' ? { code: job.course.code, message: job.course.message } : null,
    created_at: createdS,
    updated_at: Math.max(createdS, Math.floor(context.now() / 1000)),
    ...(status === 'succeeded' ? done : {}),
    resolution,
    duration,
    ratio,
    task_type: 'generation',
    modality: 'video',
  };
  return jsonAnswer(200, JSON.stringify({ task }));
}
