/**
 * What a responses upstream answers for the image tool: finished `image_generation_call` items, in a whole object or in a stream.
 */
import { type GatewayError, havingUsed, refusedOutput, upstreamFault } from '../canonical/error.ts';
import { isObject, type JsonObject, type JsonValue } from '../canonical/json.ts';
import { readErrorMembers, refusal, statusOfMembers } from '../errors/upstream.ts';
import { checkedData, type ImageAnswer, type MadeImage, saidOfAll, withoutRepeats } from './answer.ts';
import { readJsonAnswerInSteps } from '../json/answer.ts';
import { endsStep, type Steps, whole } from '../steps.ts';
import { UntilAnswer } from './until-answer.ts';
import { responsesUsage } from './usage.ts';

const FACTS = ['background', 'model', 'output_format', 'quality', 'size'] as const;

const TERMINALS: ReadonlySet<string> = new Set([
  'response.completed',
  'response.incomplete',
  'response.failed',
  'response.cancelled',
  'response.done',
]);

export function* decodeToolAnswerInSteps(text: string): Steps<ImageAnswer> {
  return yield* readResponse(yield* readJsonAnswerInSteps(text), new Told(), '', text);
}

export const decodeToolAnswer = whole(decodeToolAnswerInSteps);

/** What finished items hold. It grows in place: an upstream may send any number of them. */
class Told {
  readonly images: MadeImage[] = [];
  /** The ids of the items that have a picture. */
  readonly drawn = new Set<JsonValue>();
  /** Why a call drew nothing. */
  refused: GatewayError | undefined;

  /** Gives the text beside the pictures. */
  *add(items: readonly (JsonValue | undefined)[]): Steps<string> {
    let text = '';
    for (const [index, item] of items.entries()) {
      if (endsStep(index)) yield;
      text += yield* this.#addItem(item);
    }
    return text;
  }

  isDrawn(item: JsonValue): boolean {
    return isObject(item) && item['id'] !== undefined && this.drawn.has(item['id']);
  }

  *#addItem(value: JsonValue | undefined): Steps<string> {
    if (!isObject(value)) return '';
    if (value['type'] !== 'image_generation_call') return textOf(value);
    if (value['status'] === 'failed' || isObject(value['error'])) this.refused ??= refusalIn(value);
    else {
      this.images.push(yield* readPicture(value));
      if (value['id'] !== undefined) this.drawn.add(value['id']);
    }
    return '';
  }
}

/** Items are taken as they finish; the terminal repeats them, not always with their pictures, and each picture counts once. */
export function toolEvents(): UntilAnswer {
  const told = new Told();
  let words = '';
  return new UntilAnswer('The upstream ended its stream before its answer was complete.', function* (event, type, text) {
    if (type === 'response.output_item.done') words += yield* told.add([event['item']]);
    if (type === 'error') throw failureOf(isObject(event['error']) ? event['error'] : event, text);
    if (!TERMINALS.has(type)) return undefined;
    const response = event['response'];
    if (!isObject(response)) throw upstreamFault('malformed_event', 'The upstream ended its answer without the answer.');
    return yield* readResponse(response, told, words, text);
  });
}

/** `words` stood beside the pictures that were told before. */
function* readResponse(response: JsonObject, told: Told, words: string, text: string): Steps<ImageAnswer> {
  const { status, error, output } = response;
  const usage = responsesUsage(response['usage'], response['tool_usage']);
  const failed = (reason: GatewayError): GatewayError => havingUsed(reason, usage?.billed);
  if (isObject(error) || status === 'failed' || status === 'cancelled')
    throw failed(failureOf(isObject(error) ? error : {}, text));
  // Chosen before any is added: items of one list that share an id are different pictures.
  const repeated = yield* told.add((Array.isArray(output) ? output : []).filter((item) => !told.isDrawn(item)));
  const images = yield* withoutRepeats(told.images);
  if (images.length === 0) {
    if (told.refused !== undefined) throw failed(told.refused);
    if (isFiltered(response))
      throw failed(failureOf({ code: 'content_filter', message: 'The picture was refused by a filter.' }, text));
    throw failed(refusedOutput('empty', 'The upstream answered without an image.', { text: text.slice(0, 16_384) }));
  }
  const created = response['created_at'];
  return {
    images: describe(images, repeated === '' ? words : repeated),
    ...(typeof created === 'number' && created > 0 ? { created } : {}),
    ...(usage === undefined ? {} : { usage }),
  };
}

function isFiltered({ status, incomplete_details: details }: JsonObject): boolean {
  return status === 'incomplete' && isObject(details) && details['reason'] === 'content_filter';
}

/** What the model wrote beside a picture stands for the prompt that it drew, where the picture brings none of its own. */
function describe(images: readonly MadeImage[], text: string): readonly MadeImage[] {
  if (text === '') return images;
  const textAt = saidOfAll(text, text.length, images.length);
  return images.map((image, index) => {
    const revisedPrompt = image.revisedPrompt ?? textAt(index);
    return revisedPrompt === undefined ? image : { ...image, revisedPrompt };
  });
}

function refusalIn(item: JsonObject): GatewayError {
  const { error } = item;
  return failureOf(isObject(error) ? error : {}, JSON.stringify(item).slice(0, 4096));
}

/** An upstream's `generating` in a finished item with a picture is finished. */
function* readPicture(item: JsonObject): Steps<MadeImage> {
  const { result, revised_prompt: revised } = item;
  const facts = FACTS.flatMap((name) => (typeof item[name] === 'string' ? [[name, item[name]] as const] : []));
  return {
    data: yield* checkedData(result),
    ...(typeof revised === 'string' && revised !== '' ? { revisedPrompt: revised } : {}),
    facts: Object.fromEntries(facts),
    beside: {},
  };
}

function textOf(item: JsonObject): string {
  if (item['type'] !== 'message' || !Array.isArray(item['content'])) return '';
  return item['content'].map((part) => (isObject(part) && typeof part['text'] === 'string' ? part['text'] : '')).join('');
}

function failureOf(error: JsonObject, text: string): GatewayError {
  const members = readErrorMembers({ error });
  return refusal(statusOfMembers(members), members, { reason: 'error_event', text: text.slice(0, 16_384) });
}
