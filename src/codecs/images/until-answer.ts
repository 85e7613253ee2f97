/** The events of a stream that makes one answer. */
import type { Stage } from '../../streams/stage.ts';
import { type GatewayError, upstreamFault } from '../canonical/error.ts';
import { isObject, type JsonObject } from '../canonical/json.ts';
import { boundsInSteps, tryInSteps } from '../json/parse-in-steps.ts';
import { atOnce, type Steps } from '../steps.ts';
import { dataOf } from '../answers/large-events.ts';
import type { Frame } from '../codec.ts';
import type { ImageAnswer } from './answer.ts';

/**
 * Gives each event, with its type and its text, to `read` until that has the answer; what follows is not looked at. Throws an
 * upstream fault of these words where the stream ends before, and for an event that is no object.
 */
export class UntilAnswer implements Stage<Frame, ImageAnswer> {
  ended = false;
  readonly #words: string;
  readonly #read: Read;

  constructor(words: string, read: Read) {
    this.#words = words;
    this.#read = read;
  }

  push(frame: Frame, out: ImageAnswer[]): void {
    atOnce(this.pushInSteps(frame, out));
  }

  /** What the gateway calls: an event with a picture has megabytes. */
  *pushInSteps(frame: Frame, out: ImageAnswer[]): Steps<void> {
    if (this.ended) return;
    if (frame.data === '[DONE]') throw this.#cutOff();
    const data = yield* dataOf(frame);
    const event = yield* readEvent(data);
    const type = typeof event['type'] === 'string' ? event['type'] : (frame.event ?? '');
    const answer = yield* this.#read(event, type, data);
    if (answer === undefined) return;
    this.ended = true;
    out.push(answer);
  }

  end(_out: readonly ImageAnswer[] = []): void {
    if (!this.ended) throw this.#cutOff();
  }

  #cutOff(): GatewayError {
    return upstreamFault('truncated', this.#words);
  }
}

type Read = (event: JsonObject, type: string, text: string) => Steps<ImageAnswer | undefined>;

function* readEvent(data: string): Steps<JsonObject> {
  yield* boundsInSteps(data);
  const json = yield* tryInSteps(data);
  if (json === undefined)
    throw upstreamFault('malformed_event', 'The upstream sent an event that is not JSON.', { text: data.slice(0, 4096) });
  if (!isObject(json)) throw upstreamFault('malformed_event', 'The upstream sent an event that is no object.');
  return json;
}
