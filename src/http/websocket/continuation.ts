/**
 * What the next turn of a connection may continue from: its last completed response, whatever `store` said, and beside it what the key
 * stored anywhere. Holds nothing longer than the connection. Knows no frame and no upstream.
 */
import { GatewayError } from '../../codecs/canonical/error.ts';
import { isObject, type JsonObject, parseJson } from '../../codecs/canonical/json.ts';
import { editJson } from '../../codecs/json-text.ts';
import type { Principal } from '../../store/keys.ts';
import type { Gateway } from '../gateway.ts';
import { findPrevious, previousIdOf } from '../history/recall.ts';
import type { PastTurn } from '../history/past-turn.ts';
import type { Answered } from '../history/remembering.ts';

/** A request as its text and what that says. */
export interface RequestText {
  readonly text: string;
  readonly json: JsonObject;
}

interface Retained {
  readonly id: string;
  readonly turn: PastTurn;
  /** The create without its input, for `response.append`; kept for clients that may send one. */
  readonly controls: Buffer | undefined;
}

const MAX_ITEMS = 4096;

export class Continuation {
  readonly #gateway: Gateway;
  #retained: Retained | undefined;

  constructor(gateway: Gateway) {
    this.#gateway = gateway;
  }

  /** The response that a request continues. Throws `previous_response_not_found`, and `websocket_history_limit_exceeded`. */
  async find(principal: Principal, { text, json }: RequestText): Promise<PastTurn | undefined> {
    const id = previousIdOf(json);
    const isOwn = id !== undefined && this.#retained?.id === id;
    const past = isOwn ? this.#retained?.turn : await findPrevious(this.#gateway, principal, json);
    if (past === undefined) return undefined;
    const { input } = json;
    const items = past.totalItems + (Array.isArray(input) ? input.length : 1);
    if (items > MAX_ITEMS || past.totalBytes + text.length > this.#maxBytes()) {
      throw new GatewayError(
        'websocket_history_limit_exceeded',
        'The conversation is too large to be continued on this connection.',
      );
    }
    return past;
  }

  /** The last create with new input, for the one client that continues so. Throws `previous_response_not_found`. */
  append(input: string): RequestText {
    const { id, controls } = this.#retained ?? {};
    if (id === undefined || controls === undefined) {
      throw new GatewayError('previous_response_not_found', 'There is no response on this connection to append to.', {
        param: 'previous_response_id',
      });
    }
    const text = editJson(controls.toString(), [
      { path: ['previous_response_id'], value: JSON.stringify(id) },
      { path: ['input'], value: input },
    ]);
    const json = parseJson(text);
    if (!isObject(json)) throw new Error('a create is an object');
    return { text, json };
  }

  /** An answer that was cut leaves what could be continued before; one too large to be continued leaves nothing. */
  retain(turn: PastTurn, { responseId: id, status }: Answered, request: string, mayAppend: boolean): void {
    if (status !== 'completed') return;
    const isTooLarge = turn.totalItems > MAX_ITEMS || turn.totalBytes > this.#maxBytes();
    this.#retained = isTooLarge ? undefined : { id, turn, controls: mayAppend ? controlsOf(request) : undefined };
  }

  forget(): void {
    this.#retained = undefined;
  }

  #maxBytes(): number {
    return this.#gateway.config.current().history.entryBytes;
  }
}

function controlsOf(text: string): Buffer {
  return Buffer.from(
    editJson(text, [
      { path: ['input'], value: undefined },
      { path: ['previous_response_id'], value: undefined },
      // A warm-up is followed by a question.
      { path: ['generate'], value: undefined },
    ]),
  );
}
