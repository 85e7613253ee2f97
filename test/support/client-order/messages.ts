/** The order of a messages stream over everything that the gateway wrote. */
import { isObject, type JsonObject, type JsonValue } from '../../../src/codecs/canonical/json.ts';
import type { Frame } from '../../../src/codecs/codec.ts';
import {
  type BlockKind,
  blockKind,
  checkFits,
  CLIENT,
  type ClientState,
  type ClientVerb,
  deltaKind,
} from '../../../src/codecs/messages/lifecycle.ts';
import { advance, LifecycleError } from '../../../src/streams/lifecycle.ts';

/**
 * Checks a finished client stream: the table above, contiguous indices, deltas that fit, `event` equal to the payload's type,
 * no empty signature, exactly one ending. Throws LifecycleError (or SyntaxError for data that is no JSON).
 */
export function checkMessagesStream(frames: Iterable<Frame>): void {
  const stream = new ClientStream();
  for (const frame of frames) stream.accept(frame);
  stream.end();
}

class ClientStream {
  #state: ClientState = 'idle';
  /** Blocks that have begun. */
  #blocks = 0;
  /** The kind of the latest of them. */
  #kind: BlockKind = 'fixed';
  /** The stop reason that message_start brought. */
  #stopReason: JsonValue | undefined;

  accept(frame: Frame): void {
    const json: JsonValue = JSON.parse(frame.data);
    if (!isObject(json)) throw this.#illegal(`${frame.event}: ${frame.data}`);
    const { verb, delta } = clientVerb(json);
    if (verb !== 'other' && json['type'] !== frame.event) throw this.#illegal(`event ${frame.event}: ${frame.data}`);
    if (verb === 'end' && this.#state === 'between' && typeof this.#stopReason !== 'string') throw this.#illegal('message_stop');
    this.#state = advance('message', CLIENT, this.#state, verb);
    switch (verb) {
      case 'start':
        this.#start(isObject(json['message']) ? json['message'] : {});
        break;
      case 'open':
        checkIndex(this.#blocks, json);
        this.#blocks += 1;
        this.#kind = blockKind(isObject(json['content_block']) ? String(json['content_block']['type']) : '');
        break;
      case 'delta':
      case 'sign':
        checkIndex(this.#blocks - 1, json);
        checkFits(this.#kind, deltaKind(String(delta?.['type'])));
        if (delta?.['signature'] === '') throw new LifecycleError('content block', this.#kind, 'empty signature', []);
        break;
      case 'close':
        checkIndex(this.#blocks - 1, json);
        break;
      case 'stop':
      case 'end':
      case 'error':
      case 'other':
        break;
    }
  }

  end(): void {
    if (this.#state !== 'ended') throw new LifecycleError('message', this.#state, 'end of stream', ['message_stop', 'error']);
  }

  #start({ stop_reason: stopReason, content }: JsonObject): void {
    this.#stopReason = stopReason;
    this.#blocks = Array.isArray(content) ? content.length : 0;
  }

  #illegal(event: string): LifecycleError {
    return new LifecycleError('message', this.#state, event, []);
  }
}

function checkIndex(wanted: number, { type, index }: JsonObject): void {
  if (index === wanted) return;
  throw new LifecycleError('content block', `index ${wanted}`, `${String(type)} of ${JSON.stringify(index)}`, []);
}

function clientVerb(json: JsonObject): { verb: ClientVerb; delta?: JsonObject } {
  switch (json['type']) {
    case 'message_start':
      return { verb: 'start' };
    case 'content_block_start':
      return { verb: 'open' };
    case 'content_block_delta': {
      const delta = isObject(json['delta']) ? json['delta'] : {};
      return { verb: delta['type'] === 'signature_delta' ? 'sign' : 'delta', delta };
    }
    case 'content_block_stop':
      return { verb: 'close' };
    case 'message_delta':
      return { verb: 'stop' };
    case 'message_stop':
      return { verb: 'end' };
    case 'error':
      return { verb: 'error' };
    default:
      return { verb: 'other' };
  }
}
