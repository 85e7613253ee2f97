/**
 * A router's image API: one endpoint for drawing and editing. Reference images as links or inline; no masks, no file ids, and
 * edits without a stream (spec, image rule 4 and "Image-router upstream Channel").
 */
import { GatewayError, notConvertible, refusedOutput, upstreamFault } from '../canonical/error.ts';
import { isObject, type JsonObject, type JsonValue } from '../canonical/json.ts';
import type { BodyPiece } from '../bodies/pieces.ts';
import { decodeJsonError } from '../errors/upstream.ts';
import { checkedData, factsOfAll, type ImageAnswer, isOpenable, type MadeImage, withoutRepeats } from './answer.ts';
import { dataUrlOf } from './inline.ts';
import { createSlots } from './json-template.ts';
import { nativeEvents } from './native-events.ts';
import { readJsonAnswerInSteps } from '../json/answer.ts';
import { endsStep, type Steps, whole } from '../steps.ts';
import { type ImageRequest, isInline } from './request.ts';
import {
  defaultsOf,
  type ImageTarget,
  type ImageUpstream,
  type ImageUpstreamRequest,
  refuseStrayImages,
  errorIn,
} from './upstream.ts';
import { routerUsage } from './usage.ts';

/** What the router's own document names; it refuses every other member. */
const KNOWN: ReadonlySet<string> = new Set([
  'size',
  'quality',
  'background',
  'output_format',
  'output_compression',
  'resolution',
  'aspect_ratio',
  'seed',
  'provider',
  'user',
  'session_id',
  'trace',
  // An edit says it of its own images; a client may say it in a generation.
  'input_references',
]);

/** Its only form of an answer: saying so changes nothing. */
const IMPLIED = { response_format: 'b64_json' } as const;

export const routerImages: ImageUpstream = {
  channelType: 'openrouter_image',
  refuse,
  encode,
  decodeWhole: whole(decodeWholeInSteps),
  decodeWholeInSteps,
  decodeEvents: () => nativeEvents({ usageOf: routerUsage, splices: false }),
  decodeError: decodeJsonError,
};

function refuse(request: ImageRequest): GatewayError | undefined {
  if (request.mask !== undefined) return notConvertible('mask', 'The upstream of this model does not take a mask.');
  const reference = request.images.find(({ from }) => from === 'reference');
  if (reference !== undefined) return notConvertible(reference.at, 'The upstream of this model does not take file ids.');
  if (request.parameters.get('response_format') === 'url') {
    return new GatewayError('unsupported_parameter', 'The upstream of this model returns images as content, not as links.', {
      param: 'response_format',
    });
  }
  return refuseStrayImages(request, KNOWN);
}

function encode(request: ImageRequest, target: ImageTarget): ImageUpstreamRequest {
  const refused = refuse(request);
  if (refused !== undefined) throw refused;
  const stream = target.stream && request.operation === 'generation';
  const slots = createSlots(target.mint('slot'));
  const losses: string[] = [];
  const members: [string, JsonValue][] = [
    ['model', target.upstreamModel],
    ['prompt', request.prompt],
  ];
  if (request.countGiven) members.push(['n', 1]);
  for (const [name, value] of request.parameters) {
    if (KNOWN.has(name)) members.push([name, value]);
    else if (name !== 'response_format' || value !== IMPLIED.response_format) losses.push(`image parameter ${name}`);
  }
  for (const [name, value] of defaultsOf(request, target)) if (KNOWN.has(name)) members.push([name, value]);
  if (request.images.length > 0) members.push(['input_references', request.images.map((image) => reference(image, slots.hold))]);
  if (stream) members.push(['stream', true]);
  const json = target.override(JSON.stringify(Object.fromEntries(members)));
  return { path: '/images', contentType: 'application/json', body: slots.fill(json), stream, losses };
}

/** The router nests what clients of the images API write flat (known failure I11). */
function reference(image: ImageRequest['images'][number], hold: (content: readonly BodyPiece[]) => string): JsonObject {
  if (isInline(image)) return { type: 'image_url', image_url: { url: hold(dataUrlOf(image)) } };
  if (image.from === 'url') return { type: 'image_url', image_url: { url: image.url } };
  throw notConvertible(image.at, 'The upstream of this model does not take file ids.');
}

/** `{created, data: [{b64_json, media_type?}], usage: {prompt_tokens, completion_tokens, …}}`; `created` may be 0. */
function* decodeWholeInSteps(text: string): Steps<ImageAnswer> {
  const json = yield* readJsonAnswerInSteps(text);
  const failure = errorIn(json, text);
  if (failure !== undefined) throw failure;
  const { created, data, usage, object: _object, ...facts } = json;
  if (!Array.isArray(data))
    throw upstreamFault('undecodable', 'The upstream answered without a list of images.', { text: text.slice(0, 4096) });
  const factsAt = factsOfAll(facts, data.length);
  const images: MadeImage[] = [];
  for (const [index, entry] of data.entries()) {
    if (endsStep(index)) yield;
    if (!isObject(entry)) throw upstreamFault('undecodable', 'The upstream returned an image that is no object.');
    const { b64_json: image, ...rest } = entry;
    const { url: _url, ...beside } = rest;
    const made = yield* checkedData(image);
    images.push({ data: made, facts: factsAt(index), beside: isOpenable(rest['url']) ? rest : beside });
  }
  if (images.length === 0) throw refusedOutput('empty', 'The upstream returned no image.');
  const read = routerUsage(usage);
  return {
    images: yield* withoutRepeats(images),
    ...(typeof created === 'number' && created > 0 ? { created } : {}),
    ...(read === undefined ? {} : { usage: read }),
  };
}
