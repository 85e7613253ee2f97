/** The order of a responses stream over everything that the gateway wrote. */
import { isObject, type JsonObject, type JsonValue } from '../../../src/codecs/canonical/json.ts';
import { type ItemTrack, ResponsesOrder, specOf } from '../../../src/codecs/responses/lifecycle.ts';
import { malformed, needIndex, needObject, needString } from '../../../src/codecs/responses/wire.ts';
import { LifecycleError } from '../../../src/streams/lifecycle.ts';

/**
 * Checks a whole stream. Beside the order: contiguous sequence numbers and output indices, pieces that add up to the whole texts and
 * inputs, exactly one terminal, and an output in it that repeats the finished items. Throws on the first fault. `isNative`: the events are an upstream's own, whose terminal may
 * differ from its item events.
 */
export function checkResponsesStream(
  frames: Iterable<{ readonly event: string | undefined; readonly data: string }>,
  isNative = false,
): void {
  const order = new ResponsesOrder();
  const done: JsonObject[] = [];
  const pieces = new Pieces(isNative);
  let sequence = 0;
  let announced = 0;
  for (const frame of frames) {
    const body: unknown = JSON.parse(frame.data);
    if (!isObject(body)) throw malformed('event');
    const name = needString(body, 'type', 'event');
    if (frame.event !== undefined && frame.event !== name) throw new LifecycleError('frame', frame.event, name, []);
    checkNumber('sequence', sequence++, needIndex(body, 'sequence_number', name));
    const track = order.accept(name, body);
    if (track !== undefined) pieces.take(track, name, body);
    if (name === 'response.output_item.added') checkNumber('output index', announced++, track?.outputIndex);
    if (name === 'response.output_item.done' && track !== undefined) done[track.outputIndex] = needObject(body, 'item', name);
    if (order.state !== 'ended') continue;
    if (isNative) {
      checkIds(done, needObject(body, 'response', name)['output'], name);
      continue;
    }
    if (order.open().length > 0) throw new LifecycleError('response', 'open item', name, ['response.output_item.done']);
    checkRepeats(done, needObject(body, 'response', name)['output'], name);
  }
  if (order.state !== 'ended') throw new LifecycleError('response', order.state, 'end of stream', ['response.completed']);
}

/**
 * The texts and inputs of a stream by their pieces, which are all that many clients read of them. The input of an upstream's own
 * call may come without any (LM Studio).
 */
class Pieces {
  readonly #isNative: boolean;
  readonly #streamed = new Map<string, string>();

  constructor(isNative: boolean) {
    this.#isNative = isNative;
  }

  take(track: ItemTrack, name: string, body: JsonObject): void {
    const { textMember, input, part, isSummary = false } = specOf(name);
    if (name === 'response.output_item.added') this.#announce(track, needObject(body, 'item', name));
    if (textMember === undefined) return;
    const text = needString(body, textMember, name);
    const place = isSummary ? 'summary_index' : 'content_index';
    const key = `${track.outputIndex} ${input === undefined ? `${place} ${needIndex(body, place, name)}` : 'input'}`;
    const streamed = this.#streamed.get(key) ?? '';
    if ((input ?? part) === 'delta') this.#streamed.set(key, streamed + text);
    else if (streamed === '' && input !== undefined && this.#isNative) return;
    // Only a summary may be worded anew in the end.
    else if (streamed !== text && (!isSummary || text.startsWith(streamed)))
      throw new LifecycleError('whole text', streamed, `${name} ${text}`, []);
  }

  /** A call may be announced with its whole input. */
  #announce({ outputIndex }: ItemTrack, { arguments: given, input = given }: JsonObject): void {
    if (typeof input === 'string' && input !== '') this.#streamed.set(`${outputIndex} input`, input);
  }
}

function checkNumber(subject: string, wanted: number, found: number | undefined): void {
  if (found !== wanted) throw new LifecycleError(subject, String(wanted), String(found), []);
}

/** An upstream's own terminal may say more or less of its items, and has them under the ids that were announced. */
function checkIds(done: readonly JsonObject[], output: JsonValue | undefined, name: string): void {
  if (!Array.isArray(output)) return;
  for (const [index, item] of output.entries()) {
    const id = done[index]?.['id'];
    if (id !== undefined && (!isObject(item) || item['id'] !== id))
      throw new LifecycleError('response', `id of item ${index}`, name, []);
  }
}

/** The terminal repeats the items as their `output_item.done` has them. */
function checkRepeats(done: readonly JsonObject[], output: JsonValue | undefined, name: string): void {
  if (!Array.isArray(output) || output.length !== done.length)
    throw new LifecycleError('response', `${done.length} items`, name, []);
  for (const [index, item] of output.entries()) {
    if (JSON.stringify(item) !== JSON.stringify(done[index])) throw new LifecycleError('response', `item ${index}`, name, []);
  }
}
