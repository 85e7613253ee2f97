/** The events of a stream that makes one answer. */
import type { Stage } from '../../streams/stage.ts';
import { type GatewayError, upstreamFault } from '../canonical/error.ts';
import { isObject, type JsonObject, tryJson } from '../canonical/json.ts';
import { checkBounds } from '../json/answer.ts';
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
    if (this.ended) return;
    if (frame.data === '[DONE]') throw this.#cutOff();
    const event = readEvent(frame);
    const type = typeof event['type'] === 'string' ? event['type'] : (frame.event ?? '');
    const answer = this.#read(event, type, frame.data);
    if (answer === undefined) return;
    this.ended = true;
    out.push(answer);
  }

  end(): void {
    if (!this.ended) throw this.#cutOff();
  }

  #cutOff(): GatewayError {
    return upstreamFault('truncated', this.#words);
  }
}

type Read = (event: JsonObject, type: string, text: string) => ImageAnswer | undefined;

function readEvent(frame: Frame): JsonObject {
  checkBounds(frame.data);
  const json = tryJson(frame.data);
  if (json === undefined)
    throw upstreamFault('malformed_event', 'The upstream sent an event that is not JSON.', { text: frame.data.slice(0, 4096) });
  if (!isObject(json)) throw upstreamFault('malformed_event', 'The upstream sent an event that is no object.');
  return json;
}
