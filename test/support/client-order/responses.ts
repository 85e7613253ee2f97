/** The order of a responses stream over everything that the gateway wrote. */
import { isObject, type JsonObject, type JsonValue } from '../../../src/codecs/canonical/json.ts';
import { ResponsesOrder } from '../../../src/codecs/responses/lifecycle.ts';
import { malformed, needIndex, needObject, needString } from '../../../src/codecs/responses/wire.ts';
import { LifecycleError } from '../../../src/streams/lifecycle.ts';

/**
 * Checks a whole stream. Beside the order: contiguous sequence numbers and output indices, exactly one terminal, and an output in
 * it that repeats the finished items. Throws on the first fault. `isNative`: the events are an upstream's own, whose terminal may
 * differ from its item events.
 */
export function checkResponsesStream(
  frames: Iterable<{ readonly event: string | undefined; readonly data: string }>,
  isNative = false,
): void {
  const order = new ResponsesOrder();
  const done: JsonObject[] = [];
  let sequence = 0;
  let announced = 0;
  for (const frame of frames) {
    const body: unknown = JSON.parse(frame.data);
    if (!isObject(body)) throw malformed('event');
    const name = needString(body, 'type', 'event');
    if (frame.event !== undefined && frame.event !== name) throw new LifecycleError('frame', frame.event, name, []);
    checkNumber('sequence', sequence++, needIndex(body, 'sequence_number', name));
    const track = order.accept(name, body);
    if (name === 'response.output_item.added') checkNumber('output index', announced++, track?.outputIndex);
    if (name === 'response.output_item.done' && track !== undefined) done[track.outputIndex] = needObject(body, 'item', name);
    if (order.state !== 'ended' || isNative) continue;
    if (order.open().length > 0) throw new LifecycleError('response', 'open item', name, ['response.output_item.done']);
    checkRepeats(done, needObject(body, 'response', name)['output'], name);
  }
  if (order.state !== 'ended') throw new LifecycleError('response', order.state, 'end of stream', ['response.completed']);
}

function checkNumber(subject: string, wanted: number, found: number | undefined): void {
  if (found !== wanted) throw new LifecycleError(subject, String(wanted), String(found), []);
}

/** The terminal repeats the items as their `output_item.done` has them. */
function checkRepeats(done: readonly JsonObject[], output: JsonValue | undefined, name: string): void {
  if (!Array.isArray(output) || output.length !== done.length)
    throw new LifecycleError('response', `${done.length} items`, name, []);
  for (const [index, item] of output.entries()) {
    if (JSON.stringify(item) !== JSON.stringify(done[index])) throw new LifecycleError('response', `item ${index}`, name, []);
  }
}
