/** What an image route is to the gateway: one for each Channel type that can draw. Each encoder and decoder is pure. */
import type { BodyPiece } from '../bodies/pieces.ts';
import type { ChannelType } from '../canonical/dialect.ts';
import { type GatewayError, notConvertible } from '../canonical/error.ts';
import { isObject, type JsonObject, type JsonValue, tryJson } from '../canonical/json.ts';
import type { Mint, UpstreamAnswer } from '../codec.ts';
import { readErrorMembers, refusal, statusOfMembers } from '../errors/upstream.ts';
import type { ImageAnswer } from './answer.ts';
import type { Steps } from '../steps.ts';
import type { ImageRequest } from './request.ts';
import type { UntilAnswer } from './until-answer.ts';

/** What a Channel may set for a client that does not. */
const IMAGE_DEFAULTS = ['size', 'quality', 'background', 'output_format', 'moderation'] as const;
export type ImageDefaults = { readonly [Name in (typeof IMAGE_DEFAULTS)[number]]?: string };

/** Facts of the Channel that an image route reads. */
export interface ImageChannel {
  /** `image_enable_openai_generation_tool`. */
  readonly generationTool: boolean;
  /** `image_defaults`. */
  readonly defaults: ImageDefaults;
}

export interface ImageTarget extends ImageChannel {
  readonly upstreamModel: string;
  /** Asked of the upstream; not always what the client asked of the gateway. */
  readonly stream: boolean;
  /** The operator's changes of a JSON body. */
  override(json: string): string;
  readonly mint: Mint;
}

export interface ImageUpstreamRequest {
  /** Appended to the Channel's versioned base URL. */
  readonly path: string;
  readonly contentType: string;
  readonly body: readonly BodyPiece[];
  /** Whether the upstream was asked for a stream: some routes have none for some requests. */
  readonly stream: boolean;
  /** Members that the route cannot express and that the client can do without, for the log. */
  readonly losses: readonly string[];
}

export interface ImageUpstream {
  readonly channelType: ChannelType;
  /** Why this Channel can never serve the request; undefined when it can. Known before anything is forwarded. */
  refuse(request: ImageRequest, channel: ImageChannel): GatewayError | undefined;
  encode(request: ImageRequest, target: ImageTarget): ImageUpstreamRequest;
  /** Throws GatewayError blaming the upstream. */
  decodeWhole(text: string): ImageAnswer;
  /** What the gateway calls: a picture has megabytes. */
  decodeWholeInSteps(text: string): Steps<ImageAnswer>;
  /** Events of a stream to one answer; `end` throws where the stream broke off before its completion. */
  decodeEvents(): UntilAnswer;
  decodeError(answer: UpstreamAnswer): GatewayError;
}

/**
 * True when a refusal explicitly says that the upstream does not stream (spec, image rule 4). Network failures, other statuses
 * and other complaints are none, even those about a picture of a stream.
 */
export function rejectsStreaming(error: GatewayError): boolean {
  const { upstream, reason } = error.details;
  if (reason !== 'http_status' || upstream === undefined || (upstream.status !== 400 && upstream.status !== 422)) return false;
  const { param = '', code = '' } = upstream;
  if (/\bstream$/.test(param)) return true;
  if (OF_CONTENT.test(param) || FILTERED.test(code)) return false;
  const text = `${code} ${messageOf(upstream.text ?? '')}`.replace(QUOTED, withoutWords).replace(STREAMS_OF_BYTES, '');
  return /\bstream(s|ed|ing)?\b/i.test(text) && REFUSING.test(text);
}

const OF_CONTENT = /^(prompt|images?|mask)\b/;
const FILTERED = /moderation|content_?(policy|filter)|sensitivecontent/i;

const QUOTED = /(?<!\w)(["'`])[^"'`]*\1(?!\w)/g;

/**
 * Several words in quotes are a prompt, while members are quoted alone. A pattern of both would be tried from each space again.
 */
function withoutWords(quoted: string): string {
  return /\s/.test(quoted) ? '' : quoted;
}

/** What decoders of pictures call the picture's own bytes. */
const STREAMS_OF_BYTES =
  /\b(bit|byte|data|png|jpe?g|webp|zlib|deflate|truncated|corrupt\w*|broken|end of(?: the)?)\s+streams?\b|\bstreams?\s+of\b/gi;

const REFUSING =
  /\b(unsupported|unknown|unrecogni[sz]ed|unexpected|invalid|disabled|unavailable|cannot|disallowed|forbidden|false)\b|\bextra (inputs|fields)\b|(\bnot|n't|\bno|\bnever)\b.{0,40}\b(support\w*|allow\w*|available|enabled|accept\w*|permit\w*|implement\w*|possible|stream\w*)/i;

function messageOf(text: string): string {
  const json = tryJson(text);
  return json === undefined ? text : (readErrorMembers(json).message ?? text);
}

/** An error that an upstream wrote into a 200: as an event, or as a body. */
export function errorIn(json: JsonObject, text: string): GatewayError | undefined {
  const error = json['error'];
  if (!isObject(error) && typeof error !== 'string') return undefined;
  const members = readErrorMembers(json);
  return refusal(statusOfMembers(members), members, { reason: 'error_event', text });
}

/** How vendors take images for a generation, each in its own way (Ark `image`, routers `input_references`). */
const DRAWN_FROM = ['image', 'images', 'mask', 'input_references'] as const;

/**
 * The refusal of a route that has no member for images which a generation is to draw from: without them it would draw something
 * else.
 */
export function refuseStrayImages(request: ImageRequest, known: ReadonlySet<string>): GatewayError | undefined {
  if (request.operation !== 'generation') return undefined;
  const stray = DRAWN_FROM.find((name) => !known.has(name) && holdsImages(request.parameters.get(name)));
  return stray === undefined ? undefined : notConvertible(stray, 'The upstream of this model takes images at /v1/images/edits.');
}

function holdsImages(value: JsonValue | undefined): boolean {
  return value !== undefined && !(Array.isArray(value) && value.length === 0);
}

/** The Channel's defaults for what the client leaves out: the request beats them (spec, image rule 5). */
export function defaultsOf(request: ImageRequest, { defaults }: Pick<ImageChannel, 'defaults'>): [string, string][] {
  return IMAGE_DEFAULTS.flatMap((name) => {
    const value = defaults[name];
    return value === undefined || request.parameters.has(name) ? [] : [[name, value] as [string, string]];
  });
}
