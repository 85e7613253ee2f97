/**
 * The body of `POST /v1/videos`, checked as far as the specification says ("POST /v1/videos"): fields, types, 1 to 60 seconds, at
 * most 50 inputs with HTTP(S) URLs and known roles. What a model can do is the upstream's to judge; what a Channel can say, its
 * codec's.
 */
import { createHash } from 'node:crypto';
import { invalid } from '../canonical/error.ts';
import { isObject, type JsonObject, type JsonValue } from '../canonical/json.ts';

const VIDEO_ROLES = {
  first_frame: 'image',
  last_frame: 'image',
  reference_image: 'image',
  reference_video: 'video',
  reference_audio: 'audio',
} as const;
export type VideoRole = keyof typeof VIDEO_ROLES;
export type VideoInputType = (typeof VIDEO_ROLES)[VideoRole];

export interface VideoInput {
  readonly type: VideoInputType;
  readonly url: string;
  /** Absent: the upstream's default for a lone input of this type. */
  readonly role?: VideoRole;
  /** Path in the client's body, for errors. */
  readonly at: string;
}

export interface VideoRequest {
  readonly model: string;
  readonly prompt?: string;
  /** Seconds, 1 to 60. */
  readonly duration?: number;
  readonly resolution?: string;
  readonly aspectRatio?: string;
  readonly input: readonly VideoInput[];
  readonly providerOptions: JsonObject;
}

const FIELDS = new Set(['model', 'prompt', 'duration', 'resolution', 'aspect_ratio', 'input', 'provider_options']);
const MAX_INPUTS = 50;
const MAX_URL_CHARS = 8192;

/** Throws `invalid_request` naming the field. */
export function decodeVideoRequest(body: JsonObject): VideoRequest {
  for (const field of Object.keys(body)) if (!FIELDS.has(field)) throw invalid(field, `Unknown field: ${JSON.stringify(field)}.`);
  const model = text(body, 'model');
  if (model === undefined) throw invalid('model', 'model is required.');
  const prompt = text(body, 'prompt', true);
  const resolution = text(body, 'resolution');
  const aspectRatio = text(body, 'aspect_ratio');
  const duration = body['duration'] ?? undefined;
  if (
    duration !== undefined &&
    !(typeof duration === 'number' && Number.isInteger(duration) && duration >= 1 && duration <= 60)
  ) {
    throw invalid('duration', 'duration must be an integer from 1 to 60 (seconds).');
  }
  const input = inputs(body['input'] ?? undefined);
  if ((prompt ?? '') === '' && input.length === 0) throw invalid('prompt', 'prompt is required where no input is given.');
  const providerOptions = body['provider_options'] ?? {};
  if (!isObject(providerOptions)) throw invalid('provider_options', 'provider_options must be an object.');
  return {
    model,
    ...(prompt === undefined ? {} : { prompt }),
    ...(duration === undefined ? {} : { duration }),
    ...(resolution === undefined ? {} : { resolution }),
    ...(aspectRatio === undefined ? {} : { aspectRatio }),
    input,
    providerOptions,
  };
}

function text(body: JsonObject, field: string, emptyAllowed = false): string | undefined {
  const value = body[field] ?? undefined;
  if (value === undefined) return undefined;
  if (typeof value !== 'string' || (value === '' && !emptyAllowed))
    throw invalid(field, `${field} must be a ${emptyAllowed ? '' : 'non-empty '}string.`);
  return value;
}

function inputs(value: JsonValue | undefined): VideoInput[] {
  if (value === undefined) return [];
  if (!Array.isArray(value)) throw invalid('input', 'input must be an array.');
  if (value.length > MAX_INPUTS) throw invalid('input', `input may hold at most ${MAX_INPUTS} items.`);
  return (value as readonly JsonValue[]).map(input);
}

function input(value: JsonValue, index: number): VideoInput {
  const at = `input[${index}]`;
  if (!isObject(value)) throw invalid(at, `${at} must be an object.`);
  for (const field of Object.keys(value)) {
    if (field !== 'type' && field !== 'url' && field !== 'role')
      throw invalid(`${at}.${field}`, `Unknown field: ${JSON.stringify(field)}.`);
  }
  const { type, url } = value;
  if (type !== 'image' && type !== 'video' && type !== 'audio')
    throw invalid(`${at}.type`, 'type must be image, video or audio.');
  if (typeof url !== 'string' || !isHttpUrl(url)) throw invalid(`${at}.url`, 'url must be an HTTP(S) URL.');
  const role = value['role'] ?? undefined;
  if (role === undefined) return { type, url, at };
  if (typeof role !== 'string' || !Object.hasOwn(VIDEO_ROLES, role)) {
    throw invalid(`${at}.role`, `role must be one of ${Object.keys(VIDEO_ROLES).join(', ')}.`);
  }
  const known = role as VideoRole;
  if (VIDEO_ROLES[known] !== type) throw invalid(`${at}.role`, `role ${known} needs type ${VIDEO_ROLES[known]}.`);
  return { type, url, role: known, at };
}

function isHttpUrl(url: string): boolean {
  if (url.length > MAX_URL_CHARS || !URL.canParse(url)) return false;
  const { protocol } = new URL(url);
  return protocol === 'http:' || protocol === 'https:';
}

/** A digest of what the body means: key order and white space do not count, so a retried request is the same request. */
export function videoRequestDigest(body: JsonObject): string {
  return createHash('sha256').update(sortedJson(body)).digest('hex');
}

function sortedJson(value: JsonValue): string {
  if (Array.isArray(value)) return `[${(value as readonly JsonValue[]).map(sortedJson).join(',')}]`;
  if (!isObject(value)) return JSON.stringify(value);
  const members = Object.keys(value)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${sortedJson(value[key] ?? null)}`);
  return `{${members.join(',')}}`;
}
