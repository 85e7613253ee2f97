/**
 * What the next turn of a connection may continue: its last completed response, whatever `store` was, and any response that the
 * key stored. Keeps nothing longer than the connection lives, and counts in the budgets of the history: what was not used for
 * longest is dropped there.
 */
import { GatewayError } from '../../codecs/canonical/error.ts';
import { isObject, type JsonValue } from '../../codecs/canonical/json.ts';
import { readUtf8 } from '../../codecs/bodies/utf8.ts';
import { editJson } from '../../codecs/json/edit.ts';
import { endsFor, parseInSteps } from '../../codecs/json/parse-in-steps.ts';
import { jsonSlicer, skipSpace } from '../../codecs/json/text.ts';
import type { Steps } from '../../codecs/steps.ts';
import { textPieces } from '../../streams/text-pieces.ts';
import type { Principal } from '../../store/keys.ts';
import type { Gateway } from '../gateway.ts';
import type { JsonBody } from '../request/body.ts';
import { findPrevious, previousIdOf } from '../history/recall.ts';
import { ownerOf, type KeptTurn } from '../history/response-history.ts';
import { type PastTurn, TURN_BYTES } from '../history/past-turn.ts';

interface Retained {
  readonly id: string;
  readonly turn: PastTurn;
  readonly controls: Controls;
  readonly kept: KeptTurn;
}

/** The members of a create that later turns inherit where they leave them out. */
interface Controls {
  readonly names: readonly string[];
  /** The object of these members, in bytes of its own (a slice would keep the whole message alive). */
  readonly bytes: readonly Uint8Array[];
  /** How many they are. */
  readonly size: number;
}

const MAX_ITEMS = 4096;
/** Not inherited: `generate` belongs to a warm-up, and `conversation` must not stand beside a continued response. */
const NOT_INHERITED = ['input', 'previous_response_id', 'generate', 'conversation'] as const;

export class Continuation {
  readonly #gateway: Gateway;
  #retained: Retained | undefined;
  #closed = false;

  constructor(gateway: Gateway) {
    this.#gateway = gateway;
  }

  /** The response that the connection would continue next. */
  get lastId(): string | undefined {
    return this.#retained?.id;
  }

  /** The response that a request continues. Throws `previous_response_not_found`, and `websocket_history_limit_exceeded`. */
  async find(principal: Principal, { text, json }: JsonBody): Promise<PastTurn | undefined> {
    const id = previousIdOf(json);
    const isOwn = id !== undefined && this.#retained?.id === id;
    if (isOwn) this.#retained?.kept.touch();
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

  /** The request of a `response.append`: new input for the last response. Throws `previous_response_not_found`. */
  append(input: string): JsonBody | Promise<JsonBody> {
    const id = this.#retained?.id;
    if (id === undefined) {
      throw new GatewayError('previous_response_not_found', 'There is no response on this connection to append to.', {
        param: 'previous_response_id',
      });
    }
    const text = `{"previous_response_id":${JSON.stringify(id)},"input":${input}}`;
    const create = this.#gateway.largeWork.of(text, asRequest(text));
    return create instanceof Promise ? create.then((parsed) => this.resume(parsed)) : this.resume(create);
  }

  /**
   * A create that continues the last response of the connection inherits the members of the create before that it leaves out
   * (semantics 10.5). A create that continues any other response inherits nothing, as over HTTP. A promise where much is
   * inherited.
   */
  resume(create: JsonBody): JsonBody | Promise<JsonBody> {
    const { id, controls } = this.#retained ?? {};
    if (controls === undefined || create.json['previous_response_id'] !== id) return create;
    const missing = controls.names.filter((name) => !Object.hasOwn(create.json, name));
    if (missing.length === 0) return create;
    return this.#gateway.largeWork.of({ length: controls.size }, inheriting(create, controls, missing));
  }

  /**
   * The next turn may continue this response; one that is too large to be continued leaves nothing. A promise where much is to
   * be inherited: it is kept once that settles.
   */
  retain(principal: Principal, turn: PastTurn, id: string, request: JsonBody): Promise<void> | undefined {
    if (this.#closed) return undefined;
    this.#forget();
    if (turn.totalItems > MAX_ITEMS || turn.totalBytes > this.#maxBytes()) return undefined;
    const keep = (controls: Controls | undefined): void => {
      if (controls === undefined || this.#closed) return;
      const onDropped = (): void => {
        if (this.#retained?.id === id) this.#retained = undefined;
      };
      const kept = this.#gateway.memory.keep(ownerOf(principal), turn, TURN_BYTES + controls.size, onDropped);
      if (kept !== undefined) this.#retained = { id, turn, controls, kept };
    };
    const controls = this.#gateway.largeWork.of(request.text, controlsOf(request, this.#maxBytes()));
    if (controls instanceof Promise) return controls.then(keep);
    keep(controls);
    return undefined;
  }

  /**
   * After a turn that failed, the response that it continued is let go: the vendor does the same, and clients then send
   * everything.
   */
  evict(id: JsonValue | undefined): void {
    if (this.#retained?.id === id) this.#forget();
  }

  /** The connection has closed: nothing is kept, now or later. */
  close(): void {
    this.#closed = true;
    this.#forget();
  }

  #forget(): void {
    this.#retained?.kept.release();
    this.#retained = undefined;
  }

  #maxBytes(): number {
    return this.#gateway.config.current().history.entryBytes;
  }
}

/** Undefined where they are longer than `mostBytes`. */
function* controlsOf({ text, json, ends }: JsonBody, mostBytes: number): Steps<Controls | undefined> {
  const controls = editJson(
    text,
    NOT_INHERITED.map((name) => ({ path: [name], value: undefined })),
    ends,
  );
  // What was put together is copied by who looks at it first.
  skipSpace(controls, 0);
  yield;
  if (controls.length > mostBytes) return undefined;
  const bytes: Uint8Array[] = [];
  let size = 0;
  for (const piece of textPieces(controls)) {
    if (size > 0) yield;
    const some = Buffer.from(piece);
    bytes.push(some);
    size += some.length;
  }
  return { names: Object.keys(json).filter((name) => !NOT_INHERITED.some((own) => own === name)), bytes, size };
}

/** The create with the members that it leaves out. */
function* inheriting({ text, ends }: JsonBody, { bytes }: Controls, missing: readonly string[]): Steps<JsonBody> {
  const inherited = yield* readUtf8(bytes, new TextDecoder());
  yield;
  // Of a text that was put together the first look makes a copy.
  skipSpace(inherited, 0);
  yield;
  const slice = jsonSlicer(inherited);
  const whole = editJson(
    text,
    missing.map((name) => ({ path: [name], value: slice([name]) })),
    ends,
  );
  yield;
  return yield* asRequest(whole);
}

function* asRequest(text: string): Steps<JsonBody> {
  const ends = endsFor(text);
  const json = yield* parseInSteps(text, ends);
  if (!isObject(json)) throw new Error('a create is an object');
  return { text, json, ends };
}
