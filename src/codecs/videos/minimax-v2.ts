/** MiniMax video v2 (H3): content parts like Ark's, HTTP error statuses, the result in `task.content.url`. */
import { invalid } from '../canonical/error.ts';
import { isObject } from '../canonical/json.ts';
import type { UpstreamAnswer } from '../codec.ts';
import { aboutAnother, bodyOf, readTask } from './answers.ts';
import { contentOf } from './content.ts';
import { readSubmission } from './minimax-codes.ts';
import { checkProviderOptions, type OptionRule, object } from './provider-options.ts';
import type { VideoRequest } from './request.ts';
import type { Progress, VideoCall, VideoUpstream } from './upstream.ts';

const OPTIONS: ReadonlyMap<string, OptionRule> = new Map([['extra', object]]);

/** Defaults that the specification names for this Channel. */
const DEFAULT_DURATION_S = 6;
const DEFAULT_RESOLUTION = '768P';

export const minimaxVideoV2: VideoUpstream = {
  check(request) {
    checkProviderOptions(request.providerOptions, OPTIONS);
    if ((request.prompt ?? '') === '') throw invalid('prompt', "prompt is required by this model's Channel.");
  },
  submit,
  readSubmission,
  query: (upstreamId) => ({ method: 'GET', path: `/query/video_generation/${encodeURIComponent(upstreamId)}` }),
  readProgress,
  readLookup: readProgress,
  expiresAfterSeconds: () => undefined,
};

function submit(request: VideoRequest, upstreamModel: string): VideoCall {
  const body = {
    model: upstreamModel,
    content: contentOf(request),
    resolution: request.resolution ?? DEFAULT_RESOLUTION,
    duration: request.duration ?? DEFAULT_DURATION_S,
    ratio: request.aspectRatio ?? (request.input.length === 0 ? '16:9' : 'adaptive'),
    ...request.providerOptions,
  };
  return { method: 'POST', path: '/video_generation', body: JSON.stringify(body) };
}

function readProgress(answer: UpstreamAnswer, upstreamId: string): Progress {
  const task = bodyOf(answer)?.['task'];
  if (answer.status < 200 || answer.status > 299 || !isObject(task))
    return { kind: 'queryError', reason: `HTTP ${answer.status}` };
  const another = aboutAnother(answer, ['task', 'id'], upstreamId);
  if (another !== undefined) return another;
  return readTask(task, 'url');
}
