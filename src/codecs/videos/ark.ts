/** Ark (Seedance) video tasks: https://ark.cn-beijing.volces.com/api/v3, `/contents/generations/tasks`. */
import type { UpstreamAnswer } from '../codec.ts';
import { aboutAnother, bodyOf, idText, readTask, submissionRefusal } from './answers.ts';
import { contentOf } from './content.ts';
import { boolean, checkProviderOptions, integer, type OptionRule, oneOf } from './provider-options.ts';
import type { VideoRequest } from './request.ts';
import type { Progress, Submission, VideoCall, VideoUpstream } from './upstream.ts';

const TASKS = '/contents/generations/tasks';
const DEFAULT_EXPIRES_AFTER_S = 172_800;

const OPTIONS: ReadonlyMap<string, OptionRule> = new Map([
  ['seed', integer(-1, 4_294_967_295)],
  ['generate_audio', boolean],
  ['watermark', boolean],
  ['camera_fixed', boolean],
  ['return_last_frame', boolean],
  ['service_tier', oneOf('default', 'flex')],
  ['execution_expires_after', integer(3600, 259_200)],
  ['output_format', oneOf('mp4', 'mov')],
]);

export const arkVideo: VideoUpstream = {
  check: (request) => checkProviderOptions(request.providerOptions, OPTIONS),
  submit,
  readSubmission,
  query: (upstreamId) => ({ method: 'GET', path: `${TASKS}/${encodeURIComponent(upstreamId)}` }),
  readProgress,
  readLookup: readProgress,
  expiresAfterSeconds: ({ providerOptions }) => {
    const seconds = providerOptions['execution_expires_after'];
    return typeof seconds === 'number' ? seconds : DEFAULT_EXPIRES_AFTER_S;
  },
};

function submit(request: VideoRequest, upstreamModel: string): VideoCall {
  const body = {
    model: upstreamModel,
    content: contentOf(request),
    resolution: request.resolution,
    ratio: request.aspectRatio,
    duration: request.duration,
    ...request.providerOptions,
  };
  return { method: 'POST', path: TASKS, body: JSON.stringify(body) };
}

function readSubmission(answer: UpstreamAnswer): Submission {
  if (answer.status < 200 || answer.status > 299) return submissionRefusal(answer);
  const id = bodyOf(answer) === undefined ? undefined : idText(answer.text, ['id']);
  return id !== undefined ? { kind: 'accepted', upstreamId: id } : { kind: 'unclear', reason: 'an answer without a task id' };
}

function readProgress(answer: UpstreamAnswer, upstreamId: string): Progress {
  const body = bodyOf(answer);
  if (answer.status < 200 || answer.status > 299 || body === undefined)
    return { kind: 'queryError', reason: `HTTP ${answer.status}` };
  const another = aboutAnother(answer, ['id'], upstreamId);
  if (another !== undefined) return another;
  return readTask(body, 'video_url');
}
