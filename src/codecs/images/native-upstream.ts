/**
 * The images API itself. A JSON body of the client goes on as its own text with only the gateway's members changed; inline images
 * go as a form, and JSON is kept whenever any image or the mask is a link or a file id (spec, image rule 6).
 */
import { GatewayError, refusedOutput, upstreamFault } from '../canonical/error.ts';
import { isObject, type JsonObject, type JsonValue, parseJson } from '../canonical/json.ts';
import { readJsonAnswerInSteps } from '../json/answer.ts';
import { decodeJsonError, namingField } from '../errors/upstream.ts';
import { editJson, type JsonEdit } from '../json/edit.ts';
import { type FormEntry, formContentType, writeForm } from '../bodies/multipart-writer.ts';
import { factsOfAll, type ImageAnswer, isOpenable, type MadeImage, pictureOf, withoutRepeats } from './answer.ts';
import { nativeEvents } from './native-events.ts';
import { bytesOf, filenameOf } from './inline.ts';
import { endsStep, type Steps, whole } from '../steps.ts';
import { type ImageRequest, imagesOf, type InlineImage, isInline } from './request.ts';
import { defaultsOf, type ImageTarget, type ImageUpstream, type ImageUpstreamRequest, errorIn } from './upstream.ts';
import { imagesApiUsage, withClientUsage } from './usage.ts';

export const nativeImages: ImageUpstream = {
  channelType: 'openai_image',
  refuse: () => undefined,
  encode(request, target) {
    const path = request.operation === 'edit' ? '/images/edits' : '/images/generations';
    const asForm = request.operation === 'edit' && imagesOf(request).every(isInline);
    return { path, stream: target.stream, losses: [], ...(asForm ? encodeForm(request, target) : encodeJson(request, target)) };
  },
  decodeWhole: whole(decodeNative),
  decodeWholeInSteps: decodeNative,
  decodeEvents: () => nativeEvents({ usageOf: imagesApiUsage, splices: true }),
  decodeError: (answer) => namingField(decodeJsonError(answer)),
};

type Encoded = Pick<ImageUpstreamRequest, 'contentType' | 'body'>;

/** OpenAI's models that answer with content alone and refuse `response_format`, even with the only value that it could have. */
const CONTENT_ALONE = /(^|[/.])(chatgpt|gpt)-image(-|$)/;
const FORMAT = 'response_format';

/** A client that knows the model by a name of the operator's says so by itself, as the AI SDK does. A link stays a refusal. */
function isImplied(request: ImageRequest, target: ImageTarget): boolean {
  return request.parameters.get(FORMAT) === 'b64_json' && CONTENT_ALONE.test(target.upstreamModel);
}

function encodeJson(request: ImageRequest, target: ImageTarget): Encoded {
  // Links and file ids come in JSON only, and so does every generation.
  const { text } = request;
  if (text === undefined) throw new GatewayError('internal_error', 'A form cannot hold a link.');
  const edits: JsonEdit[] = request.unsent.map((name) => ({ path: [name], value: undefined }));
  if (isImplied(request, target)) edits.push({ path: [FORMAT], value: undefined });
  edits.push({ path: ['model'], value: JSON.stringify(target.upstreamModel) });
  edits.push({ path: ['n'], value: request.countGiven ? '1' : undefined });
  edits.push({ path: ['stream'], value: target.stream ? 'true' : undefined });
  for (const [name, value] of defaultsOf(request, target)) edits.push({ path: [name], value: JSON.stringify(value) });
  return { contentType: 'application/json', body: [target.override(editJson(text, edits))] };
}

function encodeForm(request: ImageRequest, target: ImageTarget): Encoded {
  const implied = isImplied(request, target);
  const fields: [string, JsonValue][] = [
    ['model', target.upstreamModel],
    ['prompt', request.prompt],
    ...(request.countGiven ? [['n', 1] as [string, JsonValue]] : []),
    ...[...request.parameters].filter(([name]) => !(implied && name === FORMAT)),
    ...defaultsOf(request, target),
    ...(target.stream ? [['stream', true] as [string, JsonValue]] : []),
  ];
  // Through JSON, so that the operator's changes are the same in both forms.
  const changed = parseJson(target.override(JSON.stringify(Object.fromEntries(fields))));
  const entries: FormEntry[] = [];
  for (const [name, value] of Object.entries(isObject(changed) ? changed : {})) {
    if (value !== undefined && value !== null) entries.push([name, typeof value === 'string' ? value : JSON.stringify(value)]);
  }
  const files = request.images.filter(isInline);
  const field = files.length === 1 ? 'image' : 'image[]';
  for (const [index, image] of files.entries()) entries.push([field, fileOf(image, `image-${index + 1}`)]);
  const { mask } = request;
  if (mask !== undefined && isInline(mask)) entries.push(['mask', fileOf(mask, 'mask')]);
  const boundary = target.mint('mizu-form-');
  return { contentType: formContentType(boundary), body: writeForm(entries, boundary) };
}

function fileOf(image: InlineImage, stem: string): FormEntry[1] {
  return { filename: filenameOf(image, stem), mime: image.mime, content: bytesOf(image) };
}

/** `{created, data: [{b64_json | url, revised_prompt?}], quality?, …, usage?}`. */
function* decodeNative(text: string): Steps<ImageAnswer> {
  const json = yield* readJsonAnswerInSteps(text);
  const failure = errorIn(json, text);
  if (failure !== undefined) throw failure;
  const data = json['data'];
  if (!Array.isArray(data))
    throw upstreamFault('undecodable', 'The upstream answered without a list of images.', { text: text.slice(0, 4096) });
  const { created, data: _data, usage, ...facts } = json;
  const made = data.filter((entry) => !isRefusal(entry));
  const factsAt = factsOfAll(facts, made.length);
  const read: MadeImage[] = [];
  for (const [index, entry] of made.entries()) {
    if (endsStep(index)) yield;
    read.push(yield* readImage(entry, factsAt(index)));
  }
  const images = yield* withoutRepeats(read);
  if (images.length === 0) {
    const [refused] = data;
    throw (
      (isObject(refused) ? errorIn(refused, text.slice(0, 4096)) : undefined) ??
      refusedOutput('empty', 'The upstream returned no image.')
    );
  }
  const used = imagesApiUsage(usage);
  // The text goes on where it is all that a client reads: every picture as it came, and a time.
  const isSame = images.every(({ data: own }, index) => {
    const { b64_json: told, url } = memberOf(data[index]);
    return own === undefined || (own === told && isOpenable(url));
  });
  const isNative = isSame && typeof created === 'number' && images.length === data.length;
  const kept = isNative ? withClientUsage(text, usage) : undefined;
  return {
    images,
    ...(typeof created === 'number' ? { created } : {}),
    ...(used === undefined ? {} : { usage: used }),
    ...(kept === undefined ? {} : { native: { form: 'json', text: kept } }),
  };
}

/** Ark's word for a picture that it refused among others of the same answer. */
function isRefusal(entry: JsonValue): boolean {
  return isObject(entry) && isObject(entry['error']) && entry['b64_json'] == null && entry['url'] == null;
}

function memberOf(entry: JsonValue | undefined): JsonObject {
  return isObject(entry) ? entry : {};
}

function* readImage(entry: JsonValue, facts: JsonObject): Steps<MadeImage> {
  if (!isObject(entry)) throw upstreamFault('undecodable', 'The upstream returned an image that is no object.');
  const { b64_json: data, url, revised_prompt: revised, ...beside } = entry;
  return {
    ...(yield* pictureOf(data, url)),
    ...(typeof revised === 'string' ? { revisedPrompt: revised } : {}),
    facts,
    beside,
  };
}
