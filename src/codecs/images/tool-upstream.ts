/**
 * Images through a responses Channel: one turn that must call the built-in image tool. The Channel option
 * `image_enable_openai_generation_tool` turns it on; the request's parameters beat the Channel's defaults (spec, image rule 5).
 */
import { GatewayError } from '../canonical/error.ts';
import type { JsonObject, JsonValue } from '../canonical/json.ts';
import type { BodyPiece } from '../bodies/pieces.ts';
import { decodeJsonError } from '../errors/upstream.ts';
import { dataUrlOf } from './inline.ts';
import { createSlots } from './json-template.ts';
import { type ImageInput, type ImageRequest, isInline } from './request.ts';
import { decodeToolAnswer, decodeToolAnswerInSteps, toolEvents } from './tool-answer.ts';
import {
  defaultsOf,
  type ImageChannel,
  type ImageTarget,
  type ImageUpstream,
  type ImageUpstreamRequest,
  refuseStrayImages,
} from './upstream.ts';

/** What configures the tool. `background` here is the picture's; the responses boolean of that name is another thing. */
const TOOL_MEMBERS: ReadonlySet<string> = new Set([
  'size',
  'quality',
  'background',
  'output_format',
  'output_compression',
  'moderation',
  'input_fidelity',
]);

/** What belongs to the whole request there as here. */
const SHARED_MEMBERS: ReadonlySet<string> = new Set(['user', 'safety_identifier']);

export const toolImages: ImageUpstream = {
  channelType: 'responses',
  refuse,
  encode,
  decodeWhole: decodeToolAnswer,
  decodeWholeInSteps: decodeToolAnswerInSteps,
  decodeEvents: toolEvents,
  decodeError: decodeJsonError,
};

function refuse(request: ImageRequest, channel: ImageChannel): GatewayError | undefined {
  if (!channel.generationTool) {
    return unsupported('model', 'The upstream of this model is not set up to make images (image_enable_openai_generation_tool).');
  }
  if (request.parameters.has('style')) return unsupported('style', 'The upstream of this model does not support style.');
  if (request.parameters.get('response_format') === 'url') {
    return unsupported('response_format', 'The upstream of this model returns images as content, not as links.');
  }
  return refuseStrayImages(request, TOOL_MEMBERS);
}

function unsupported(param: string, message: string): GatewayError {
  return new GatewayError('unsupported_parameter', message, { param });
}

function encode(request: ImageRequest, target: ImageTarget): ImageUpstreamRequest {
  const refused = refuse(request, target);
  if (refused !== undefined) throw refused;
  const slots = createSlots(target.mint('slot'));
  const losses: string[] = [];
  const tool = new Map<string, JsonValue>([['type', 'image_generation']]);
  for (const [name, value] of defaultsOf(request, target)) tool.set(name, value);
  const shared: [string, JsonValue][] = [];
  for (const [name, value] of request.parameters) {
    if (TOOL_MEMBERS.has(name)) tool.set(name, value);
    else if (SHARED_MEMBERS.has(name)) shared.push([name, value]);
    else if (name !== 'response_format') losses.push(`image parameter ${name}`);
  }
  if (request.mask !== undefined) tool.set('input_image_mask', reference(request.mask, slots.hold));
  const content: JsonObject[] = [{ type: 'input_text', text: request.prompt }];
  for (const image of request.images) content.push({ type: 'input_image', ...reference(image, slots.hold) });
  const body: JsonObject = {
    model: target.upstreamModel,
    input: [{ role: 'user', content }],
    tools: [Object.fromEntries(tool)],
    tool_choice: { type: 'image_generation' },
    store: false,
    ...Object.fromEntries(shared),
    ...(target.stream ? { stream: true } : {}),
  };
  const json = target.override(JSON.stringify(body));
  return { path: '/responses', contentType: 'application/json', body: slots.fill(json), stream: target.stream, losses };
}

function reference(image: ImageInput, hold: (content: readonly BodyPiece[]) => string): JsonObject {
  if (isInline(image)) return { image_url: hold(dataUrlOf(image)) };
  return image.from === 'url' ? { image_url: image.url } : { file_id: image.fileId };
}
