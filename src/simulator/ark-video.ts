/** The Ark video upstream: tasks are created and looked at, in the vendor's words. */
import { type Answer, jsonAnswer } from './answer.ts';
import type { ReceivedRequest } from './journal.ts';
import { isArray, isObject, type JsonObject, listOf, numberOf, objectOf, stringOf } from './json.ts';
import type { Script } from './script.ts';
import type { VideoJob } from './video-jobs.ts';
import type { SimulatorContext } from './context.ts';

export const ARK_TASKS = '/api/v3/contents/generations/tasks';

export function answerArk(request: ReceivedRequest, script: Script | undefined, context: SimulatorContext): Answer {
  const id = request.path.slice(ARK_TASKS.length + 1);
  if (request.method === 'POST' && id === '') return create(request, script, context);
  const job = context.videos.find(id);
  if (job === undefined) return failure(404, 'ResourceNotFound', `The specified task ${id} is not found.`, 'NotFound');
  if (request.method === 'GET') return jsonAnswer(200, JSON.stringify(view(job, context)));
  return failure(405, 'MethodNotAllowed', 'The method is not allowed.', 'BadRequest');
}

function failure(status: number, code: string, message: string, type: string, param = ''): Answer {
  return jsonAnswer(status, JSON.stringify({ error: { code, message, param, type } }));
}

const FIELDS = new Set(
  (
    'model content callback_url return_last_frame service_tier execution_expires_after generate_audio draft resolution ratio duration frames seed ' +
    'camera_fixed watermark output_format priority safety_identifier tools omni_reference_task_type'
  ).split(' '),
);
const PLACES = new Map([
  ['text', 'text'],
  ['image_url', 'image_url'],
  ['video_url', 'video_url'],
  ['audio_url', 'audio_url'],
  ['draft_task', 'draft_task'],
]);
const ROLES = new Set(['first_frame', 'last_frame', 'reference_image', 'reference_video', 'reference_audio']);

function create(request: ReceivedRequest, script: Script | undefined, context: SimulatorContext): Answer {
  const bad = (param: string, message: string, code = 'InvalidParameter') => failure(400, code, message, 'BadRequest', param);
  const { body } = request;
  if (!isObject(body)) return bad('', 'The request body is not valid JSON.');
  if (stringOf(body.model) === '') return bad('model', 'The request is missing the parameter model.', 'MissingParameter');
  const unknown = Object.keys(body).find((name) => !FIELDS.has(name));
  if (unknown !== undefined) return bad(unknown, `The parameter ${unknown} specified in the request is not valid.`);
  if (!isArray(body.content) || body.content.length === 0)
    return bad('content', 'The request is missing the parameter content.', 'MissingParameter');
  for (const [index, entry] of body.content.map(objectOf).entries()) {
    const place = PLACES.get(stringOf(entry.type));
    if (place === undefined || entry[place] === undefined)
      return bad(`content[${index}].type`, `The parameter content[${index}] specified in the request is not valid.`);
    if (entry.role !== undefined && !ROLES.has(stringOf(entry.role)))
      return bad(`content[${index}].role`, `The parameter content[${index}].role specified in the request is not valid.`);
    if (place.endsWith('_url') && stringOf(objectOf(entry[place]).url) === '')
      return bad(`content[${index}].${place}.url`, 'The url must not be empty.');
  }
  const roles = new Set(body.content.map((entry) => stringOf(objectOf(entry).role)));
  const framed = roles.has('first_frame') || roles.has('last_frame');
  if (framed && [...roles].some((role) => role.startsWith('reference_')))
    return bad('content', 'first/last frame content cannot be mixed with reference media content.');
  const expires = numberOf(body.execution_expires_after);
  if (expires !== undefined && (expires < 3600 || expires > 259200))
    return bad('execution_expires_after', 'execution_expires_after must be between 3600 and 259200.');
  const job = context.videos.create(context.mint('cgt-'), body, script?.video);
  return jsonAnswer(200, JSON.stringify({ id: job.id }));
}

function view(job: VideoJob, context: SimulatorContext): JsonObject {
  const state = context.videos.stateOf(job);
  const { request } = job;
  const created = Math.floor(job.createdMs / 1000);
  const failed = state === 'failed' ? { code: job.course.code, message: job.course.message } : null;
  const common = {
    id: job.id,
    model: request.model,
    status: state,
    error: failed,
    created_at: created,
    updated_at: Math.max(created, Math.floor(context.now() / 1000)),
    service_tier: request.service_tier ?? 'default',
    execution_expires_after: request.execution_expires_after ?? 172800,
  };
  if (state !== 'succeeded') return common;
  const lastFrame = request.return_last_frame === true ? { last_frame_url: `${context.origin()}/files/${job.id}.png` } : {};
  return {
    ...common,
    content: { video_url: `${context.origin()}/files/${job.id}.mp4`, ...lastFrame },
    seed: request.seed ?? 11,
    resolution: request.resolution ?? '720p',
    ratio: request.ratio ?? '16:9',
    duration: request.duration ?? 5,
    framespersecond: 24,
    generate_audio: request.generate_audio ?? true,
    draft: false,
    usage: { completion_tokens: 108900, total_tokens: 108900 },
  };
}

/** The text of a video prompt in any vendor's request. */
export function videoPrompt(request: JsonObject): string {
  return (
    stringOf(request.prompt) ||
    listOf(request.content)
      .map((entry) => stringOf(objectOf(entry).text))
      .join('')
  );
}
