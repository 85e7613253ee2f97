/**
 * What a responses upstream answers for the image tool: finished `image_generation_call` items, in a whole object or in a stream.
 */
import type { Stage } from '../../streams/stage.ts';
import { type GatewayError, havingUsed, refusedOutput, upstreamFault } from '../canonical/error.ts';
import { isObject, type JsonObject, type JsonValue } from '../canonical/json.ts';
import type { Frame } from '../codec.ts';
import { readErrorMembers, refusal, statusOfMembers } from '../errors/upstream.ts';
import { checkedData, type ImageAnswer, type MadeImage, withoutRepeats } from './answer.ts';
import { readJsonAnswer } from '../json/answer.ts';
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

export function decodeToolAnswer(text: string): ImageAnswer {
  return readResponse(readJsonAnswer(text), NOTHING, text);
}

/** What finished items hold. */
interface Told {
  readonly images: readonly MadeImage[];
  /** The ids of the items that have a picture. */
  readonly drawn: readonly JsonValue[];
  /** Why a call drew nothing. */
  readonly refused?: GatewayError;
  /** The text beside the pictures. */
  readonly text: string;
}

const NOTHING: Told = { images: [], drawn: [], text: '' };

/** Items are taken as they finish; the terminal repeats them, not always with their pictures, and each picture counts once. */
export function toolEvents(): Stage<Frame, ImageAnswer> {
  let told = NOTHING;
  return new UntilAnswer('The upstream ended its stream before its answer was complete.', (event, type, text) => {
    if (type === 'response.output_item.done') told = add(told, readItems([event['item']]));
    if (type === 'error') throw failureOf(isObject(event['error']) ? event['error'] : event, text);
    if (!TERMINALS.has(type)) return undefined;
    const response = event['response'];
    if (!isObject(response)) throw upstreamFault('malformed_event', 'The upstream ended its answer without the answer.');
    return readResponse(response, told, text);
  });
}

function readResponse(response: JsonObject, told: Told, text: string): ImageAnswer {
  const { status, error, output } = response;
  const usage = responsesUsage(response['usage'], response['tool_usage']);
  const failed = (reason: GatewayError): GatewayError => havingUsed(reason, usage?.billed);
  if (isObject(error) || status === 'failed' || status === 'cancelled')
    throw failed(failureOf(isObject(error) ? error : {}, text));
  const repeated = readItems((Array.isArray(output) ? output : []).filter((item) => !isDrawn(item, told)));
  const { images: all, refused } = add(told, repeated);
  const images = withoutRepeats(all);
  if (images.length === 0) {
    if (refused !== undefined) throw failed(refused);
    if (isFiltered(response))
      throw failed(failureOf({ code: 'content_filter', message: 'The picture was refused by a filter.' }, text));
    throw failed(refusedOutput('empty', 'The upstream answered without an image.', { text: text.slice(0, 16_384) }));
  }
  const created = response['created_at'];
  return {
    images: describe(images, repeated.text === '' ? told.text : repeated.text),
    ...(typeof created === 'number' && created > 0 ? { created } : {}),
    ...(usage === undefined ? {} : { usage }),
  };
}

function isFiltered({ status, incomplete_details: details }: JsonObject): boolean {
  return status === 'incomplete' && isObject(details) && details['reason'] === 'content_filter';
}

/** What the model wrote beside a picture stands for the prompt that it drew, where the picture brings none of its own. */
function describe(images: readonly MadeImage[], text: string): readonly MadeImage[] {
  return text === '' ? images : images.map((image) => ({ revisedPrompt: text, ...image }));
}

function isDrawn(item: JsonValue, { drawn }: Told): boolean {
  return isObject(item) && item['id'] !== undefined && drawn.includes(item['id']);
}

function add(left: Told, right: Told): Told {
  const refused = left.refused ?? right.refused;
  return {
    images: [...left.images, ...right.images],
    drawn: [...left.drawn, ...right.drawn],
    ...(refused === undefined ? {} : { refused }),
    text: left.text + right.text,
  };
}

function readItems(items: readonly (JsonValue | undefined)[]): Told {
  return items.map(readItem).reduce(add, NOTHING);
}

/** An upstream's `generating` in a finished item with a picture is finished. */
function readItem(value: JsonValue | undefined): Told {
  if (!isObject(value)) return NOTHING;
  if (value['type'] !== 'image_generation_call') return { ...NOTHING, text: textOf(value) };
  if (value['status'] === 'failed' || isObject(value['error'])) {
    const refused = failureOf(isObject(value['error']) ? value['error'] : {}, JSON.stringify(value).slice(0, 4096));
    return { ...NOTHING, refused };
  }
  const { id, result, revised_prompt: revised } = value;
  const facts = FACTS.flatMap((name) => (typeof value[name] === 'string' ? [[name, value[name]] as const] : []));
  const image = {
    data: checkedData(result),
    ...(typeof revised === 'string' && revised !== '' ? { revisedPrompt: revised } : {}),
    facts: Object.fromEntries(facts),
    beside: {},
  };
  return { images: [image], drawn: id === undefined ? [] : [id], text: '' };
}

function textOf(item: JsonObject): string {
  if (item['type'] !== 'message' || !Array.isArray(item['content'])) return '';
  return item['content'].map((part) => (isObject(part) && typeof part['text'] === 'string' ? part['text'] : '')).join('');
}

function failureOf(error: JsonObject, text: string): GatewayError {
  const members = readErrorMembers({ error });
  return refusal(statusOfMembers(members), members, { reason: 'error_event', text: text.slice(0, 16_384) });
}
