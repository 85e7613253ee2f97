/**
 * `response.steer`: input for a response that is being generated. It is passed to the upstream where that is asked over a
 * WebSocket, and what the upstream says of it is passed back under the client's own ids. What the upstream has accepted is
 * answered by a successor, which becomes the next turn; until a response begins with it, the gateway keeps it, and gives it back
 * where none will. Elsewhere a steer is refused at once.
 */
import { isObject, type JsonObject, type JsonValue } from '../../codecs/canonical/json.ts';
import { editJson } from '../../codecs/json/edit.ts';
import { joinTexts } from '../../codecs/join-texts.ts';
import type { Steps } from '../../codecs/steps.ts';
import { inputTexts, inputValues } from '../history/past-turn.ts';
import type { JsonBody } from '../request/body.ts';
import type { KeySlot } from '../request/key-slots.ts';
import type { ClientEvent } from './client-event.ts';
import type { Outlet } from './outlet.ts';
import type { NotableEvent } from './socket-turn.ts';
import type { SteerListener } from './upstream-link.ts';

type SteerCode =
  | 'invalid_input'
  | 'input_too_large'
  | 'response_already_completed'
  | 'response_not_found'
  | 'response_not_active'
  | 'steering_not_supported'
  | 'successor_creation_failed';

const MESSAGES: Readonly<Record<SteerCode, string>> = {
  invalid_input: 'A steer needs previous_response_id, and input: a string or an array of user messages.',
  input_too_large: 'The steers that wait for their answer have too much input.',
  response_already_completed: 'The response is complete and takes no more input.',
  response_not_found: 'There is no such response on this connection.',
  response_not_active: 'The response takes no more input.',
  steering_not_supported: 'Responses cannot be steered here. Send the input as the next turn.',
  successor_creation_failed: 'The response that was to continue with this input could not be created.',
};

type SteerEvent = ClientEvent & { readonly kind: 'steer' };

/** Of an input, as texts and as what they parse to. */
interface Items {
  readonly texts: readonly string[];
  readonly values: readonly JsonValue[];
}

/** A steer that was read from a message, and what the message takes. */
interface ReadSteer {
  readonly event: SteerEvent;
  readonly slot: Pick<KeySlot, 'release'>;
}

interface Steer extends Items {
  /** The client's own text of it. */
  readonly input: string;
  /** The response that it steers, by the client's id. */
  readonly responseId: string;
  readonly lane: string | undefined;
  /** What it takes of its key, for as long as it is kept here. */
  readonly slot: Pick<KeySlot, 'release'>;
  /** The upstream's, once it has accepted it. */
  id?: string | undefined;
  /** The client must answer calls of the response first. */
  isPending?: boolean;
}

export interface SteeringOptions {
  /** The most characters that the inputs of all steers may have that wait for their answer. */
  readonly maxInput: () => number;
  readonly link: {
    /** Whether the upstream got it: false where its response takes no more. Undefined: no upstream can be steered. */
    steer(input: string | undefined): boolean | undefined;
    drop(): void;
  };
  readonly outlet: Pick<Outlet, 'send' | 'relay'>;
  /** Begins the turn of this create, which claims its input. False where the connection takes none. */
  readonly begin: (create: JsonBody, lane: string | undefined) => boolean;
}

export class Steering implements SteerListener {
  readonly #options: SteeringOptions;
  /** What the client reads. */
  #response: { readonly id: string; readonly lane: string | undefined } | undefined;
  #isAnswering = false;
  /** The upstream has not said yet what becomes of these. In order. */
  #sent: Steer[] = [];
  #accepted: Steer[] = [];
  /** The turn that begins says these. */
  #committing: readonly Steer[] = [];
  /** That turn is the upstream's own: the client did not ask for it. */
  #isOwn = false;
  /** Told once the end of the response is out. */
  #late: string[] = [];
  /** The upstream has begun a successor before the end of the response was out. */
  #isWaiting = false;

  constructor(options: SteeringOptions) {
    this.#options = options;
  }

  /** The response that ends now goes on with what was accepted for it, and must be found for that. */
  get goesOn(): boolean {
    return this.#accepted.length > 0;
  }

  /**
   * `isBusy`: a response is being generated; `lastId`: the last one that was completed. False where the steer is refused;
   * otherwise its slot is released here, once nothing of it is kept any more.
   */
  steer({ event, slot }: ReadSteer, isBusy: boolean, lastId: string | undefined): boolean {
    const { input, items: texts, envelope } = event;
    const code = this.#pass(envelope, { input, texts, values: inputValues(envelope['input']), slot }, isBusy, lastId);
    if (code !== undefined) this.#options.outlet.send(refusal(event, code));
    return code === undefined;
  }

  /** Why it is refused; undefined where the upstream has it. */
  #pass(
    { previous_response_id: id, input }: JsonObject,
    own: Omit<Steer, 'responseId' | 'lane'>,
    isBusy: boolean,
    lastId?: string,
  ): SteerCode | undefined {
    if (typeof id !== 'string' || !isSteerInput(input)) return 'invalid_input';
    const ended = id === lastId ? 'response_already_completed' : 'response_not_found';
    if (!isBusy) return ended;
    const waiting = [...this.#sent, ...this.#accepted, own].reduce((sum, each) => sum + each.input.length, 0);
    if (waiting > this.#options.maxInput()) return 'input_too_large';
    const response = this.#response?.id === id ? this.#response : undefined;
    const isPassed = this.#options.link.steer(response && own.input);
    if (isPassed === undefined) return 'steering_not_supported';
    if (response === undefined) return ended;
    if (!isPassed) return 'response_not_active';
    this.#sent.push({ ...own, responseId: id, lane: response.lane });
    return undefined;
  }

  turnBegan(): void {
    this.#isAnswering = true;
  }

  /** What was accepted for the response that the turn which begins continues: it is said in front of its own input. */
  claim({ json }: JsonBody): Items | undefined {
    if (this.#isOwn) return itemsOf(this.#committing);
    if (this.#accepted.length === 0 && this.#sent.length === 0) return undefined;
    // The upstream would answer the same input a second time.
    this.#options.link.drop();
    this.#isWaiting = false;
    const isContinued = this.#accepted[0]?.responseId === json['previous_response_id'];
    this.#giveBack(this.#sent.splice(0), isContinued ? [] : this.#accepted.splice(0));
    this.#committing = this.#accepted.splice(0);
    return this.#committing.length === 0 ? undefined : itemsOf(this.#committing);
  }

  /** The client is sent the beginning of a response: what it was begun with is said. */
  responding(id: string, lane: string | undefined): void {
    this.#response = { id, lane };
    release(this.#committing);
    this.#committing = [];
    this.#isOwn = false;
  }

  /** True where the turn was the upstream's own and the client was told, in words of its steer, that it came to nothing. */
  turnEnded(): boolean {
    this.#isAnswering = false;
    const steers = this.#committing;
    const isTold = this.#isOwn;
    this.#committing = [];
    this.#isOwn = false;
    if (isTold) this.#giveBack([], steers);
    else this.#accepted.push(...steers);
    this.#options.outlet.send(...this.#late.splice(0));
    return isTold;
  }

  /** No turn of the client's waits: the successor that does may begin. */
  goOn(): void {
    if (this.#isWaiting) this.#begin();
  }

  /** It repeats the input of its steer, so a client that reads slowly holds up the upstream: several would be too much for it. */
  onSteer({ text, json, ends }: NotableEvent, isLate: boolean): Promise<void> | undefined {
    const steer = this.#steerOf(json);
    if (steer === undefined) return undefined;
    const edits = [{ path: ['steer', 'previous_response_id'], value: JSON.stringify(steer.responseId) }];
    const lane = steer.lane === undefined ? [] : [{ path: ['stream_id'], value: JSON.stringify(steer.lane) }];
    const own = editJson(text, [...edits, ...lane], ends);
    if (!isLate || !this.#isAnswering) return this.#options.outlet.relay(own);
    this.#late.push(own);
    return undefined;
  }

  onSuccessor(): boolean {
    if (this.#accepted.length === 0) return false;
    this.#isWaiting = true;
    if (!this.#isAnswering) this.#begin();
    return true;
  }

  /** What waits for results of the client is continued all the same; nobody will answer the rest. */
  onLost(): void {
    this.#isWaiting = false;
    const [pending, rest] = [
      this.#accepted.filter(({ isPending }) => isPending),
      this.#accepted.filter((each) => !each.isPending),
    ];
    this.#accepted = pending;
    this.#giveBack(this.#sent.splice(0), rest);
  }

  /** The connection of the client has closed: nobody hears what becomes of them. */
  close(): void {
    release([...this.#sent.splice(0), ...this.#accepted.splice(0), ...this.#committing]);
  }

  #steerOf({ type, steer }: JsonObject): Steer | undefined {
    const id = isObject(steer) ? steer['id'] : undefined;
    const known = this.#accepted.findIndex((each) => each.id === id && id !== undefined);
    if (type === 'response.steer.pending') {
      const waits = this.#accepted[known];
      if (waits !== undefined) waits.isPending = true;
      return waits;
    }
    if (type === 'response.steer.failed' && known >= 0) return release(this.#accepted.splice(known, 1))[0];
    const answered = this.#sent.shift();
    if (answered === undefined) return undefined;
    if (type === 'response.steer.accepted') {
      if (typeof id === 'string') answered.id = id;
      this.#accepted.push(answered);
    } else release([answered]);
    return answered;
  }

  #begin(): void {
    this.#isWaiting = false;
    const steers = this.#accepted.splice(0);
    const [{ responseId, lane } = { responseId: '', lane: undefined }] = steers;
    this.#committing = steers;
    this.#isOwn = true;
    const json = { type: 'response.create', previous_response_id: responseId };
    if (this.#options.begin({ text: JSON.stringify(json), json }, lane)) return;
    this.#options.link.drop();
    this.turnEnded();
  }

  /** What the upstream has not answered, and what it had accepted, in order: together, since each carries its input. */
  #giveBack(sent: readonly Steer[], accepted: readonly Steer[]): void {
    release([...sent, ...accepted]);
    const failures = [
      ...accepted.map((steer) => givenBack(steer, 'successor_creation_failed')),
      ...sent.map((steer) => givenBack(steer, 'response_not_active')),
    ];
    this.#options.outlet.send(...failures);
  }
}

/** Nothing of them is kept from here on. */
function release(steers: readonly Steer[]): readonly Steer[] {
  for (const { slot } of steers) slot.release();
  return steers;
}

function itemsOf(steers: readonly Steer[]): Items {
  return { texts: steers.flatMap(({ texts }) => texts), values: steers.flatMap(({ values }) => values) };
}

/** The request with these items in front of its own input. */
export function* withItemsBefore(body: JsonBody, { texts, values }: Items): Steps<JsonBody> {
  const { text, json, ends } = body;
  const own = yield* inputTexts(body);
  yield;
  const input = [...values, ...inputValues(json['input'])];
  const items = `[${joinTexts([...texts, ...own])}]`;
  return { text: editJson(text, [{ path: ['input'], value: items }], ends), json: { ...json, input } };
}

function givenBack({ id, responseId, input, lane }: Steer, code: SteerCode): string {
  return failed({ code, input, id, responseId: JSON.stringify(responseId), lane });
}

/** Before anything was passed on. */
function refusal({ input, envelope }: SteerEvent, code: SteerCode): string {
  const { previous_response_id: id, stream_id: lane } = envelope;
  const responseId = JSON.stringify(id ?? null);
  return failed({ code, input, id: undefined, responseId, lane: typeof lane === 'string' ? lane : undefined });
}

interface Failed extends Pick<Steer, 'input' | 'responseId' | 'lane' | 'id'> {
  readonly code: SteerCode;
}

/** The `response.steer.failed` event; `responseId` is JSON. */
function failed({ code, input, id, responseId, lane }: Failed): string {
  const told = code === 'input_too_large' ? 'invalid_input' : code;
  const error = JSON.stringify({ type: 'invalid_request_error', code: told, message: MESSAGES[code] });
  const steer = `{"input":${input},"previous_response_id":${responseId}${id === undefined ? '' : `,"id":${JSON.stringify(id)}`}}`;
  const at = lane === undefined ? '' : `,"stream_id":${JSON.stringify(lane)}`;
  return `{"type":"response.steer.failed","sequence_number":0,"error":${error},"steer":${steer}${at}}`;
}

/** A text, or messages of the user, and results that the response waits for. */
function isSteerInput(input: JsonValue | undefined): boolean {
  if (typeof input === 'string') return input !== '';
  if (!Array.isArray(input) || input.length === 0) return false;
  return input.every((item) => {
    if (!isObject(item)) return false;
    return item['type'] === 'function_call_output' || (item['role'] === 'user' && (item['type'] ?? 'message') === 'message');
  });
}
