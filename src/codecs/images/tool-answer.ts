/** What a responses upstream says of the image tool: finished `image_generation_call` items, in a whole object or in a stream. */
import type { Stage } from '../../streams/stage.ts';
import { type GatewayError, upstreamFault } from '../canonical/error.ts';
import { isObject, type JsonObject, type JsonValue } from '../canonical/json.ts';
import type { Frame } from '../codec.ts';
import { readErrorMembers, refusal, statusOfMembers } from '../errors/upstream.ts';
import { checkedData, type ImageAnswer, type MadeImage, withoutRepeats } from './answer.ts';
import { readEvent } from './native-events.ts';
import { readJsonAnswer } from '../json/answer.ts';
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
  return readResponse(readJsonAnswer(text), { images: [], words: '' }, text);
}

/** What finished items said. */
interface Told {
  readonly images: readonly MadeImage[];
  /** The text beside the pictures. */
  readonly words: string;
}

/** Items are taken as they finish; the terminal repeats them, and each picture counts once. */
export function toolEvents(): Stage<Frame, ImageAnswer> {
  let told: Told = { images: [], words: '' };
  let ended = false;
  const cutOff = (): GatewayError => upstreamFault('truncated', 'The upstream ended its stream before its answer was complete.');
  return {
    get ended() {
      return ended;
    },
    push(frame, out) {
      if (ended) return;
      if (frame.data === '[DONE]') throw cutOff();
      const event = readEvent(frame);
      const type = typeof event['type'] === 'string' ? event['type'] : (frame.event ?? '');
      if (type === 'response.output_item.done') told = add(told, readItems([event['item']]));
      else if (type === 'error') throw failureOf(isObject(event['error']) ? event['error'] : event, frame.data);
      else if (TERMINALS.has(type)) {
        const response = event['response'];
        if (!isObject(response)) throw upstreamFault('malformed_event', 'The upstream ended its answer without the answer.');
        const answer = readResponse(response, told, frame.data);
        ended = true;
        out.push(answer);
      }
    },
    end() {
      if (!ended) throw cutOff();
    },
  };
}

function readResponse(response: JsonObject, told: Told, text: string): ImageAnswer {
  const { status, error, output } = response;
  if (isObject(error) || status === 'failed' || status === 'cancelled') throw failureOf(isObject(error) ? error : {}, text);
  const repeated = readItems(Array.isArray(output) ? output : []);
  const images = withoutRepeats(add(told, repeated).images);
  if (images.length === 0) {
    if (isFiltered(response)) throw failureOf({ code: 'content_filter', message: 'The picture was refused by a filter.' }, text);
    throw upstreamFault('empty', 'The upstream answered without an image.', { text: text.slice(0, 16_384) });
  }
  const created = response['created_at'];
  const usage = responsesUsage(response['usage'], response['tool_usage']);
  return {
    images: describe(images, repeated.words === '' ? told.words : repeated.words),
    ...(typeof created === 'number' && created > 0 ? { created } : {}),
    ...(usage === undefined ? {} : { usage }),
  };
}

function isFiltered({ status, incomplete_details: details }: JsonObject): boolean {
  return status === 'incomplete' && isObject(details) && details['reason'] === 'content_filter';
}

/** What the model wrote beside a picture stands for the prompt that it drew, where the picture brings none of its own. */
function describe(images: readonly MadeImage[], words: string): readonly MadeImage[] {
  return words === '' ? images : images.map((image) => ({ revisedPrompt: words, ...image }));
}

function add(left: Told, right: Told): Told {
  return { images: [...left.images, ...right.images], words: left.words + right.words };
}

function readItems(items: readonly (JsonValue | undefined)[]): Told {
  return { images: items.flatMap(readItem), words: items.map(readWords).join('') };
}

function readWords(item: JsonValue | undefined): string {
  if (!isObject(item) || item['type'] !== 'message' || !Array.isArray(item['content'])) return '';
  return item['content'].map((part) => (isObject(part) && typeof part['text'] === 'string' ? part['text'] : '')).join('');
}

/** One picture, or none: other items are not asked for. An upstream's `generating` in a finished item with a picture is finished. */
function readItem(value: JsonValue | undefined): MadeImage[] {
  if (!isObject(value) || value['type'] !== 'image_generation_call') return [];
  if (value['status'] === 'failed' || isObject(value['error'])) {
    throw failureOf(isObject(value['error']) ? value['error'] : {}, JSON.stringify(value).slice(0, 4096));
  }
  const { result, revised_prompt: revised } = value;
  const facts = FACTS.flatMap((name) => (typeof value[name] === 'string' ? [[name, value[name]] as const] : []));
  return [
    {
      data: checkedData(result),
      ...(typeof revised === 'string' && revised !== '' ? { revisedPrompt: revised } : {}),
      facts: Object.fromEntries(facts),
      beside: {},
    },
  ];
}

function failureOf(error: JsonObject, text: string): GatewayError {
  const members = readErrorMembers({ error });
  return refusal(statusOfMembers(members), members, { reason: 'error_event', text: text.slice(0, 16_384) });
}
