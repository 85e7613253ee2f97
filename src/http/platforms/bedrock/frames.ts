/**
 * The events of a Bedrock stream
 * (https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_InvokeModelWithResponseStream.html): a `chunk` holds an
 * event of the messages protocol in base64; an exception becomes an error event of that protocol, with its own name.
 */
import { isObject, type JsonObject, tryJson } from '../../../codecs/canonical/json.ts';
import { textOf } from '../../../codecs/errors/upstream.ts';
import type { Framing } from '../../../codecs/pipeline.ts';
import { chain } from '../../../streams/chain.ts';
import { type EventStreamMessage, eventStreamDecode } from '../../../streams/event-stream-decode.ts';
import type { SseEvent } from '../../../streams/sse-decode.ts';
import type { Stage } from '../../../streams/stage.ts';
import { StreamError } from '../../../streams/stream-error.ts';
import { streamErrorBody } from './errors.ts';

/** Base64 makes four bytes of three, and the vendor pads its messages. */
const WIDENED = 2;

export const bedrockFraming: Framing = ({ maxEventBytes }) =>
  chain(eventStreamDecode({ maxEventBytes: maxEventBytes * WIDENED }), new BedrockEvents(maxEventBytes));

class BedrockEvents implements Stage<EventStreamMessage, SseEvent> {
  readonly ended = false;
  readonly #maxEventBytes: number;

  constructor(maxEventBytes: number) {
    this.#maxEventBytes = maxEventBytes;
  }

  push({ headers, payload }: EventStreamMessage, out: SseEvent[]): void {
    const text = Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength).toString('utf8');
    const kind = headers.get(':message-type');
    if (kind === 'event') {
      if (headers.get(':event-type') === 'chunk') this.#chunk(text, out);
    } else if (kind === 'exception') {
      out.push(failure(headers.get(':exception-type') ?? 'exception', tryJson(text)));
    } else if (kind === 'error') {
      out.push(failure(headers.get(':error-code') ?? 'error', { message: headers.get(':error-message') ?? '' }));
    } else throw new StreamError('damaged_event', 'a message of an unknown kind');
  }

  end(): void {
    // What a chunk holds is whole.
  }

  #chunk(text: string, out: SseEvent[]): void {
    const json = tryJson(text);
    const bytes = isObject(json) ? json['bytes'] : undefined;
    if (typeof bytes !== 'string') throw new StreamError('damaged_event', 'a chunk without bytes');
    const data = Buffer.from(bytes, 'base64');
    if (data.length > this.#maxEventBytes)
      throw new StreamError('event_too_large', `an event of more than ${this.#maxEventBytes} bytes`);
    const said = data.toString('utf8');
    const name = nameOf(said);
    // An object without a type is a sign of life.
    if (name !== undefined) out.push({ event: name, data: said });
  }
}

const BEGINNING = /^\{"type":"([a-z_]+)"/;

/**
 * The type of an event; empty for what is no JSON, which its decoder refuses; undefined for an object without one that is no
 * error.
 */
function nameOf(data: string): string | undefined {
  const quick = BEGINNING.exec(data)?.[1];
  if (quick !== undefined) return quick;
  const json = tryJson(data);
  return isObject(json) ? (textOf(json['type']) ?? (json['error'] === undefined ? undefined : 'error')) : '';
}

function failure(name: string, json: unknown): SseEvent {
  const said: JsonObject = isObject(json) ? json : {};
  return { event: 'error', data: streamErrorBody(name, textOf(said['message']) ?? textOf(said['Message']) ?? '') };
}
