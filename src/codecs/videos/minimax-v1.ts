/** MiniMax video v1 (Hailuo): text, first and last frame. Errors come as HTTP 200 with `base_resp.status_code`. */
import { GatewayError, invalid } from '../canonical/error.ts';
import { isObject } from '../canonical/json.ts';
import type { UpstreamAnswer } from '../codec.ts';
import { aboutAnother, bodyOf, idText, resultLink, unreadStatus } from './answers.ts';
import { failureByCode, readSubmission, statusCode } from './minimax-codes.ts';
import { boolean, checkProviderOptions, type OptionRule } from './provider-options.ts';
import type { VideoRequest } from './request.ts';
import type { Progress, VideoCall, VideoUpstream } from './upstream.ts';

const OPTIONS: ReadonlyMap<string, OptionRule> = new Map([
  ['prompt_optimizer', boolean],
  ['fast_pretreatment', boolean],
]);

export const minimaxVideoV1: VideoUpstream = {
  check,
  submit,
  readSubmission,
  query: (upstreamId) => ({ method: 'GET', path: `/query/video_generation?task_id=${encodeURIComponent(upstreamId)}` }),
  readProgress,
  readLookup,
  expiresAfterSeconds: () => undefined,
};

function check(request: VideoRequest): void {
  checkProviderOptions(request.providerOptions, OPTIONS);
  if (request.aspectRatio !== undefined) {
    throw new GatewayError('unsupported_parameter', "This model's Channel has no aspect_ratio.", { param: 'aspect_ratio' });
  }
  const seen = new Set<string>();
  for (const { role, type, at } of request.input) {
    const frame = role ?? (type === 'image' ? 'first_frame' : undefined);
    if (frame !== 'first_frame' && frame !== 'last_frame') {
      throw new GatewayError(
        'unsupported_parameter',
        "This model's Channel takes a first and a last frame only, no reference materials.",
        { param: at },
      );
    }
    if (seen.has(frame)) throw invalid(at, `There may be only one ${frame}.`);
    seen.add(frame);
  }
}

function submit(request: VideoRequest, upstreamModel: string): VideoCall {
  const frame = (wanted: string): string | undefined => request.input.find(({ role }) => (role ?? 'first_frame') === wanted)?.url;
  const body = {
    model: upstreamModel,
    prompt: request.prompt,
    duration: request.duration,
    resolution: request.resolution,
    first_frame_image: frame('first_frame'),
    last_frame_image: frame('last_frame'),
    ...request.providerOptions,
  };
  return { method: 'POST', path: '/video_generation', body: JSON.stringify(body) };
}

function readProgress(answer: UpstreamAnswer, upstreamId: string): Progress {
  const body = bodyOf(answer);
  if (answer.status < 200 || answer.status > 299 || body === undefined)
    return { kind: 'queryError', reason: `HTTP ${answer.status}` };
  const another = aboutAnother(answer, ['task_id'], upstreamId);
  if (another !== undefined) return another;
  switch (body['status']) {
    case 'Preparing':
    case 'Queueing':
    case 'Processing':
      return { kind: 'pending' };
    case 'Fail':
      return { kind: 'failed', error: failureByCode(body) };
    case 'Success': {
      const fileId = idText(answer.text, ['file_id']);
      if (fileId === undefined) return { kind: 'unclear', reason: 'a success without a file id' };
      const path = `/files/retrieve?file_id=${encodeURIComponent(fileId)}`;
      return { kind: 'lookup', call: { method: 'GET', path }, id: fileId };
    }
    default:
      return unreadStatus(body['status'], `, status_code ${statusCode(body) ?? 'missing'}`);
  }
}

function readLookup(answer: UpstreamAnswer, id: string): Progress {
  const body = bodyOf(answer);
  const file = body?.['file'];
  const url = isObject(file) ? (resultLink(file['download_url']) ?? resultLink(file['backup_download_url'])) : undefined;
  const isGood = answer.status >= 200 && answer.status <= 299 && (statusCode(body) ?? 0) === 0;
  if (!isGood || !isObject(file)) return { kind: 'queryError', reason: `file lookup, HTTP ${answer.status}` };
  const another = aboutAnother(answer, ['file', 'file_id'], id);
  if (another !== undefined) return another;
  if (url === undefined) return { kind: 'unclear', reason: 'a success without a result link' };
  return { kind: 'succeeded', url, report: {} };
}
