/** The OpenAI images upstream: generations and edits (JSON and multipart), whole and streamed, with real pictures. */
import { type Answer, jsonAnswer, streamAnswer, withDone } from './answer.ts';
import { namedFrame } from './frame.ts';
import type { ReceivedRequest } from './journal.ts';
import { isArray, isObject, type JsonObject, type JsonValue, listOf, objectOf, stringOf } from './json.ts';
import { coloursOf, makePng, type PngSize, readPng } from './png.ts';
import { seedOf } from './random.ts';
import { roughTokens } from './reply.ts';
import type { Script } from './script.ts';
import { openAiError, VendorError } from './vendor-error.ts';
import type { SimulatorContext } from './context.ts';

function refuse(message: string, param: string | null, code: string | null = null, type?: string): never {
  throw new VendorError(400, message, type === undefined ? { param, code } : { param, code, type });
}

const SIZES = /^(\d{2,4})x(\d{2,4})$/;
const FIELDS = new Set(
  (
    'prompt model n size quality background output_format output_compression moderation partial_images stream user safety_identifier input_fidelity ' +
    'images mask image image[] markup complexity frame_count frame_duration_ms svg'
  ).split(' '),
);

/** What an edit starts from. */
interface Source {
  readonly images: readonly (Uint8Array | undefined)[];
  readonly mask: Uint8Array | undefined;
}

export function answerImages(
  kind: 'generation' | 'edit',
  request: ReceivedRequest,
  script: Script | undefined,
  context: SimulatorContext,
): Answer {
  try {
    const fields = request.parts.length > 0 ? formFields(request) : isObject(request.body) ? request.body : undefined;
    if (fields === undefined) refuse('We could not parse the JSON body of your request.', null);
    if (script?.reply === undefined) check(fields);
    const source = kind === 'edit' ? sourceOf(request, fields) : undefined;
    return draw(kind, fields, source, script, context);
  } catch (error) {
    if (!(error instanceof VendorError)) throw error;
    return jsonAnswer(error.status, openAiError(error));
  }
}

/** Form values are strings: numbers and booleans become what JSON would have. */
function formFields(request: ReceivedRequest): JsonObject {
  const entries = request.parts
    .filter(({ name, text }) => name !== undefined && text !== undefined)
    .map(({ name = '', text = '' }): [string, JsonValue] => [
      name,
      FORM_VALUES.get(text) ?? (/^\d+$/.test(text) ? Number(text) : text),
    ]);
  return Object.fromEntries(entries);
}

const FORM_VALUES = new Map<string, JsonValue>([
  ['true', true],
  ['false', false],
]);

function check(fields: JsonObject): void {
  if (stringOf(fields.prompt) === '') refuse("Missing required parameter: 'prompt'.", 'prompt', 'missing_required_parameter');
  const unknown = Object.keys(fields).find((name) => !FIELDS.has(name));
  if (unknown !== undefined) refuse(`Unknown parameter: '${unknown}'.`, unknown, 'unknown_parameter');
  const { n, size } = fields;
  if (n !== undefined && n !== null && !(Number.isInteger(n) && Number(n) >= 1 && Number(n) <= 10)) {
    refuse(`Invalid 'n': expected an integer between 1 and 10.`, 'n', 'invalid_value');
  }
  if (size !== undefined && size !== null && size !== 'auto' && !SIZES.test(stringOf(size))) {
    refuse(
      `Invalid value: '${stringOf(size)}'. Supported values are: '1024x1024', '1024x1536', '1536x1024', and 'auto'.`,
      'size',
      'invalid_value',
    );
  }
  if (fields.output_format !== undefined && fields.output_format !== 'png') {
    refuse(
      `Invalid value: '${stringOf(fields.output_format)}'. This simulated upstream draws 'png' only.`,
      'output_format',
      'invalid_value',
    );
  }
  if (fields.partial_images !== undefined && !(Number(fields.partial_images) >= 0 && Number(fields.partial_images) <= 3)) {
    refuse("Invalid 'partial_images': expected an integer between 0 and 3.", 'partial_images', 'invalid_value');
  }
}

function sourceOf(request: ReceivedRequest, fields: JsonObject): Source {
  if (request.parts.length > 0) {
    const files = request.parts.filter(
      ({ name, filename }) => filename !== undefined && (name === 'image' || name === 'image[]'),
    );
    const masks = request.parts.filter(({ name }) => name === 'mask');
    if (files.length === 0) refuse("Missing required parameter: 'image'.", 'image', 'missing_required_parameter');
    if (files.length > 16)
      refuse("Invalid 'image': array too long. Expected an array with maximum length 16.", 'image', 'array_above_max_length');
    return checkSource({ images: files.map(({ bytes }) => bytes), mask: masks[0]?.bytes }, 'image');
  }
  if (!isArray(fields.images) || fields.images.length === 0)
    refuse("Missing required parameter: 'images'.", 'images', 'missing_required_parameter');
  if (fields.images.length > 16)
    refuse("Invalid 'images': array too long. Expected an array with maximum length 16.", 'images', 'array_above_max_length');
  const images = listOf(fields.images).map((entry, index) => referenced(objectOf(entry), `images[${index}]`));
  const mask = isObject(fields.mask) ? referenced(fields.mask, 'mask') : undefined;
  return checkSource({ images, mask }, 'images[0].image_url');
}

/** The bytes of a data URL; `undefined` for a link or a file id, which this upstream does not open. */
function referenced(entry: JsonObject, at: string): Uint8Array | undefined {
  const { image_url, file_id } = entry;
  if ((image_url === undefined) === (file_id === undefined) || Object.keys(entry).length !== 1) {
    refuse(`Invalid '${at}': exactly one of 'image_url' and 'file_id' must be given.`, at, 'invalid_value');
  }
  const [, data] = /^data:[^;,]+;base64,(.*)$/s.exec(stringOf(image_url)) ?? [];
  return data === undefined ? undefined : Buffer.from(data, 'base64');
}

function checkSource(source: Source, param: string): Source {
  const [first] = source.images;
  if (source.images.some((bytes) => bytes !== undefined && !isPicture(bytes))) {
    refuse('Invalid image data.', param, 'invalid_image_file', 'image_generation_user_error');
  }
  if (source.mask === undefined) return source;
  const mask = readPng(source.mask);
  if (mask === undefined)
    refuse('Invalid mask image format: the mask must be a PNG.', 'mask', 'invalid_image_file', 'image_generation_user_error');
  if (!mask.alpha)
    refuse(
      'Invalid mask image format: the mask has no alpha channel.',
      'mask',
      'invalid_mask_image_format',
      'image_generation_user_error',
    );
  const image = first === undefined ? undefined : readPng(first);
  if (image !== undefined && (image.width !== mask.width || image.height !== mask.height)) {
    refuse(
      'Invalid mask image format - mask size does not match image size.',
      'mask',
      'invalid_mask_image_format',
      'image_generation_user_error',
    );
  }
  return source;
}

/** PNG, JPEG, GIF or WebP by its first bytes. */
function isPicture(bytes: Uint8Array): boolean {
  const head = Buffer.from(bytes.subarray(0, 12)).toString('latin1');
  return (
    readPng(bytes) !== undefined ||
    head.startsWith('\xff\xd8\xff') ||
    head.startsWith('GIF8') ||
    (head.startsWith('RIFF') && head.slice(8) === 'WEBP')
  );
}

function sizeFor(asked: JsonValue | undefined, source: Source | undefined): PngSize {
  const [, width, height] = SIZES.exec(stringOf(asked)) ?? [];
  if (width !== undefined && height !== undefined) return { width: Number(width), height: Number(height) };
  const [first] = source?.images ?? [];
  const given = first === undefined ? undefined : readPng(first);
  return given ?? { width: 1024, height: 1024 };
}

function draw(
  kind: 'generation' | 'edit',
  fields: JsonObject,
  source: Source | undefined,
  script: Script | undefined,
  context: SimulatorContext,
): Answer {
  const createdS = Math.floor(context.now() / 1000);
  const prompt = stringOf(fields.prompt);
  const size = sizeFor(fields.size, source);
  const transparent = fields.background === 'transparent';
  const count = typeof fields.n === 'number' ? fields.n : 1;
  const scripted = (script?.reply?.pieces ?? []).flatMap((piece) => (piece.type === 'image' ? [piece] : []));
  const pictures =
    scripted.length > 0
      ? scripted.map(({ data }) => data)
      : Array.from({ length: count }, (_, index) =>
          makePng(size, seedOf(`${prompt}\n${index}`), transparent, coloursOf(prompt)).toString('base64'),
        );
  const meta = {
    background: transparent ? 'transparent' : 'opaque',
    output_format: 'png',
    quality: fields.quality === undefined || fields.quality === 'auto' ? 'medium' : fields.quality,
    size: scripted[0]?.size ?? `${size.width}x${size.height}`,
  };
  const usage = imageUsage(prompt, source, pictures.length, script?.reply?.usage);
  const headers = { 'x-request-id': context.mint('req_') };
  if (fields.stream !== true) {
    const data = pictures.map((b64_json) => ({ b64_json }));
    return jsonAnswer(
      200,
      JSON.stringify({ created: createdS, ...meta, data, ...(usage === null ? {} : { usage }) }, null, 2),
      headers,
    );
  }
  const stem = kind === 'generation' ? 'image_generation' : 'image_edit';
  const partials = typeof fields.partial_images === 'number' ? fields.partial_images : 0;
  const frames = pictures.flatMap((b64_json) => {
    const event = (type: string, more: JsonObject) => JSON.stringify({ type, b64_json, created_at: createdS, ...meta, ...more });
    return [
      ...Array.from({ length: partials }, (_, partial_image_index) =>
        namedFrame('content', `${stem}.partial_image`, event(`${stem}.partial_image`, { partial_image_index })),
      ),
      namedFrame('terminal', `${stem}.completed`, event(`${stem}.completed`, usage === null ? {} : { usage })),
    ];
  });
  const answer = streamAnswer(withDone(frames), 'text/event-stream; charset=utf-8', headers);
  return {
    ...answer,
    failureFrame: (
      _before,
      error = {
        type: 'image_generation_server_error',
        code: 'server_error',
        message: 'The image could not be drawn.',
        param: null,
      },
    ) => namedFrame('content', 'error', JSON.stringify({ type: 'error', error })),
  };
}

type ScriptedUsage = NonNullable<Script['reply']>['usage'];

function imageUsage(prompt: string, source: Source | undefined, count: number, scripted: ScriptedUsage): JsonObject | null {
  if (scripted === null) return null;
  const text = scripted?.input ?? Math.max(1, roughTokens(prompt));
  const image = scripted === undefined ? (source?.images.length ?? 0) * 388 : 0;
  const output = scripted?.output ?? count * 1056;
  return {
    input_tokens: text + image,
    input_tokens_details: { image_tokens: image, text_tokens: text },
    output_tokens: output,
    output_tokens_details: { image_tokens: output, text_tokens: 0 },
    total_tokens: text + image + output,
  };
}
