/**
 * Streams of the images API and of routers, which speak the same events in two spellings. The gateway asks for one picture
 * without previews, so the first completion is the answer; partial pictures are passed over. Ark and MiniMax tell each picture,
 * or its failure, in an event of its own, and their completion only counts. A stream that ends before it is never a success.
 */
import { type GatewayError, upstreamFault } from '../canonical/error.ts';
import type { JsonObject, JsonValue } from '../canonical/json.ts';
import type { Steps } from '../steps.ts';
import { type ImageAnswer, type ImageUsage, isOpenable, type MadeImage, pictureOf, withoutRepeats } from './answer.ts';
import { UntilAnswer } from './until-answer.ts';
import { errorIn } from './upstream.ts';
import { withClientUsage } from './usage.ts';

export interface NativeEventOptions {
  readonly usageOf: (usage: JsonValue | undefined) => ImageUsage | undefined;
  /** The event is what the client reads: its text may go on as it is. */
  readonly splices: boolean;
}

const COMPLETED = /^(response\.)?image_(generation|edit)\.completed$/;
const ONE_MADE = /^image_(generation|edit)\.partial_succeeded$/;
const ONE_REFUSED = /^image_(generation|edit)\.partial_failed$/;

export function nativeEvents(options: NativeEventOptions): UntilAnswer {
  const told: MadeImage[] = [];
  let refused: GatewayError | undefined;
  return new UntilAnswer('The upstream ended its stream without an image.', function* (json, type, text) {
    const failure = errorIn(json, text);
    if (failure !== undefined && ONE_REFUSED.test(type)) {
      refused ??= failure;
      return undefined;
    }
    if (failure !== undefined) throw failure;
    if (type === 'error') throw upstreamFault('error_event', 'The upstream reported an error.', { text });
    if (ONE_MADE.test(type)) told.push(yield* readImage(json));
    if (!COMPLETED.test(type)) return undefined;
    const counts = !hasPicture(json);
    if (counts && told.length === 0 && refused !== undefined) throw refused;
    return counts && told.length > 0 ? yield* readCount(told, json, options) : yield* readCompletion(told, json, text, options);
  });
}

function* readCompletion(
  told: readonly MadeImage[],
  json: JsonObject,
  text: string,
  options: NativeEventOptions,
): Steps<ImageAnswer> {
  const image = yield* readImage(json);
  const images = yield* withoutRepeats([...told, image]);
  // The text goes on where it is all that a client reads: the picture as it came, and a time.
  const isSame = image.data === undefined || (image.data === json['b64_json'] && isOpenable(json['url']));
  const isNative = options.splices && isSame && images.length === 1 && typeof json['created_at'] === 'number';
  const kept = isNative ? withClientUsage(text, json['usage']) : undefined;
  return {
    images,
    ...readTotals(json, options),
    ...(kept === undefined ? {} : { native: { form: 'event', text: kept } }),
  };
}

/** The completion of a stream whose pictures came before it. */
function* readCount(images: readonly MadeImage[], json: JsonObject, options: NativeEventOptions): Steps<ImageAnswer> {
  return { images: yield* withoutRepeats(images), ...readTotals(json, options) };
}

function readTotals(json: JsonObject, options: NativeEventOptions): Pick<ImageAnswer, 'created' | 'usage'> {
  const created = json['created_at'] ?? json['created'];
  const usage = options.usageOf(json['usage']);
  return {
    ...(typeof created === 'number' && created > 0 ? { created } : {}),
    ...(usage === undefined ? {} : { usage }),
  };
}

function hasPicture({ b64_json: data, result, url }: JsonObject): boolean {
  return data != null || result != null || url != null;
}

/** Members of the event that are no fact of the picture. */
const ENVELOPE: ReadonlySet<string> = new Set([
  'type',
  'b64_json',
  'result',
  'url',
  'revised_prompt',
  'created',
  'created_at',
  'usage',
  'media_type',
  'sequence_number',
  'image_index',
  'request_id',
]);

function* readImage(json: JsonObject): Steps<MadeImage> {
  const { b64_json: b64, result, url, revised_prompt: revised, media_type: mediaType } = json;
  const data = b64 ?? result;
  return {
    ...(yield* pictureOf(data, url)),
    ...(typeof revised === 'string' ? { revisedPrompt: revised } : {}),
    facts: Object.fromEntries(Object.entries(json).filter(([name]) => !ENVELOPE.has(name))),
    beside: mediaType === undefined ? {} : { media_type: mediaType },
  };
}
