/**
 * Decodes the stream of a messages upstream. The order of each event is checked first (`lifecycle.ts`), then its meaning is read.
 * Every step keeps the event's own text for clients of the same dialect; what those may see of it is the encoder's business.
 */
import { type GatewayError, upstreamFault } from '../../canonical/error.ts';
import type { CanonicalEvent, Native, Step } from '../../canonical/event.ts';
import type { ItemStatus } from '../../canonical/item.ts';
import { isObject, type JsonObject, type JsonValue } from '../../canonical/json.ts';
import type { DecodeContext, EventDecoder, Frame } from '../../codec.ts';
import { JsonRepeats } from '../../json/repeats.ts';
import { holeAt, holeValue, type JsonShape } from '../../json/shape.ts';
import { RepeatedNative } from '../../json/repeated-native.ts';
import { type JsonPath, jsonSlicer, sliceJson } from '../../json/text.ts';
import { advance, LifecycleError } from '../../../streams/lifecycle.ts';
import { jsonOf } from '../../json/frame.ts';
import { RunDecoder } from '../../answers/runs.ts';
import { AnswerReader } from './answer-reader.ts';
import type { Block } from './block.ts';
import { reportedError } from '../errors.ts';
import {
  type BlockKind,
  checkFits,
  type DeltaKind,
  deltaKind,
  UPSTREAM,
  type UpstreamState,
  type UpstreamVerb,
} from '../lifecycle.ts';
import { endOfLast, readStop, type WireStop } from './outcome.ts';
import { CUTTING_STOPS, inputRefused, malformed, nullableString, needObject, needString } from '../wire.ts';

/** The deltas that append to a block, and the path of the appended text. */
const TEXT_DELTAS = [
  { type: 'text_delta', kind: 'text', path: ['delta', 'text'] },
  { type: 'thinking_delta', kind: 'thinking', path: ['delta', 'thinking'] },
  { type: 'input_json_delta', kind: 'tool', path: ['delta', 'partial_json'] },
] as const satisfies readonly { readonly type: DeltaKind; readonly kind: BlockKind; readonly path: JsonPath }[];
/** The members in which the deltas of one block differ. */
const VARYING = TEXT_DELTAS.map(({ path }) => path);

/**
 * A run of text deltas of one shape. The first of them was checked against the order; the others change no state, so their text
 * goes straight to the block.
 */
interface DeltaRun {
  readonly shape: JsonShape;
  readonly block: Block;
  /** Which hole of the shape holds the text. */
  readonly hole: number;
}

export function decodeEvents(context: DecodeContext): EventDecoder {
  return new MessagesDecoder(context);
}

class MessagesDecoder extends RunDecoder {
  ended = false;
  readonly #answer: AnswerReader;
  readonly #opened = new Set<number>();
  #state: UpstreamState = 'idle';
  #messageId: string | undefined;
  #open: { readonly index: number; readonly block: Block } | undefined;
  /** The last block that stopped. What follows tells whether it is whole, was cut or is malformed, so its end waits for that. */
  #stopped: Block | undefined;
  #stop: WireStop | undefined;
  readonly #repeats = new JsonRepeats(VARYING);
  #run: DeltaRun | undefined;

  constructor(context: DecodeContext) {
    super(context.request.dialect === 'messages');
    this.#answer = new AnswerReader(context);
  }

  protected pieceOf(frame: Frame): string | undefined {
    const run = this.#run;
    const text = run === undefined ? undefined : this.#repeats.valueIn(frame.data, run.shape, run.hole);
    return text === undefined ? undefined : String(text);
  }

  protected get mayJoin(): boolean {
    return this.#run !== undefined && this.#run.block.rewrites !== true;
  }

  protected add(text: string, events: CanonicalEvent[]): void {
    this.#run?.block.append?.(text, events);
  }

  protected read(frame: Frame, out: Step[]): void {
    if (frame.data.trim() === '[DONE]') throw truncated();
    const run = this.#run;
    const repeat = this.#repeats.match(frame.data);
    if (repeat !== undefined && repeat.shape === run?.shape) {
      this.add(String(holeValue(repeat, run.hole)), this.events);
      out.push({ native: new RepeatedNative('messages', 'content_block_delta', frame.data, repeat), events: this.taken() });
      return;
    }
    this.#run = undefined;
    const json = this.#parse(frame);
    if (json === undefined) return;
    const name = nameOf(json, frame);
    if (name === '' || (KNOWN.has(name) && json['type'] !== name && name !== 'error')) throw malformed('an event without type');
    const events: CanonicalEvent[] = [];
    try {
      if (!this.#accept(name, json, frame.data, events)) return;
    } catch (error) {
      throw error instanceof LifecycleError ? outOfOrder(error) : error;
    }
    const learnt = name === 'content_block_delta' ? (repeat ?? this.#repeats.learn(frame.data, json)) : undefined;
    out.push({
      native: { dialect: 'messages', name, text: frame.data, json, ...(learnt === undefined ? {} : { repeat: learnt }) },
      events,
    });
    if (learnt !== undefined && this.#open !== undefined) this.#run = deltaRun(json, learnt.shape, this.#open.block);
  }

  end(): void {
    if (!this.ended) throw truncated();
  }

  /** Behind the stop reason only `message_stop` is left to come. */
  endInside(out: Step[]): boolean {
    if (this.#state !== 'stopped') return false;
    const events: CanonicalEvent[] = [];
    this.#endMessage(events);
    out.push({ native: MESSAGE_STOP, events });
    return true;
  }

  /**
   * Undefined for what is skipped: data that is not JSON in an event of an unknown name, and an empty event that only keeps the
   * connection open.
   */
  #parse(frame: Frame): JsonObject | undefined {
    const json = jsonOf(frame);
    if (json === undefined) {
      const name = frame.event ?? 'message';
      if (name !== 'message' && !KNOWN.has(name)) return undefined;
      if (frame.data === '' && (name === 'message' || name === 'ping')) return undefined;
      throw malformed(`${frame.event ?? 'an event'} is not JSON`);
    }
    if (!isObject(json)) throw malformed(`${frame.event ?? 'an event'} is not an object`);
    return json;
  }

  /** False for an event that is dropped: a proxy's echo of message_start. */
  #accept(name: string, json: JsonObject, text: string, out: CanonicalEvent[]): boolean {
    switch (name) {
      case 'message_start':
        return this.#startMessage(json, text, out);
      case 'content_block_start':
        this.#openBlock(json, text, out);
        return true;
      case 'content_block_delta':
        this.#delta(json, out);
        return true;
      case 'content_block_stop':
        this.#closeBlock(json);
        return true;
      case 'message_delta':
        this.#messageDelta(json, out);
        return true;
      case 'message_stop':
        this.#endMessage(out);
        return true;
      case 'error':
        this.#advance('error');
        if (this.#stopped?.stop('completed', out) === false) this.#stopped.cut(out);
        out.push({ type: 'response.end', outcome: { status: 'failed', error: reportedError(json, text) } });
        return true;
      case 'ping':
        return true;
      default:
        out.push({ type: 'native.event', dialect: 'messages', name, body: json });
        return true;
    }
  }

  #advance(verb: UpstreamVerb): void {
    this.#state = advance('message', UPSTREAM, this.#state, verb);
    this.ended = this.#state === 'ended';
  }

  #startMessage(json: JsonObject, text: string, out: CanonicalEvent[]): boolean {
    const message = needObject(json, 'message', 'message_start');
    const id = nullableString(message, 'id', 'message_start');
    if (this.#state !== 'idle' && id !== undefined && id === this.#messageId) return false;
    const reason = nullableString(message, 'stop_reason', 'message_start');
    this.#advance(reason === undefined ? 'start' : 'startWhole');
    if (reason !== undefined) this.#stop = readStop(reason, message);
    this.#messageId = id;
    this.#answer.start(message, 'message_start', out);
    const content = message['content'] ?? [];
    if (!Array.isArray(content)) throw malformed('message_start: content is not an array');
    const slice = jsonSlicer(text);
    content.forEach((block: JsonValue, at) => {
      this.#answer.readBlock(block, 'completed', () => slice(['message', 'content', at, 'input']), out);
    });
    this.#readUsage(message, reason === undefined, out);
    return true;
  }

  #openBlock(json: JsonObject, text: string, out: CanonicalEvent[]): void {
    const index = blockIndex(json, 'content_block_start');
    this.#endStopped('completed', out);
    const content = needObject(json, 'content_block', 'content_block_start');
    const state = this.#state;
    this.#advance('open');
    if (this.#opened.has(index))
      throw new LifecycleError('content block', `${state}, index ${index} seen`, 'content_block_start', []);
    const inputText = () => (isEmpty(content['input']) ? undefined : sliceJson(text, ['content_block', 'input']));
    const block = this.#answer.open(content, inputText, out);
    this.#opened.add(index);
    this.#open = { index, block };
  }

  #delta(json: JsonObject, out: CanonicalEvent[]): void {
    const block = this.#openAt(json, 'content_block_delta', 'delta');
    const delta = needObject(json, 'delta', 'content_block_delta');
    checkFits(block.kind, deltaKind(needString(delta, 'type', 'content_block_delta')));
    block.delta(delta, out);
  }

  #closeBlock(json: JsonObject): void {
    this.#stopped = this.#openAt(json, 'content_block_stop', 'close');
    this.#open = undefined;
  }

  #openAt(json: JsonObject, name: string, verb: 'delta' | 'close'): Block {
    const index = blockIndex(json, name);
    this.#advance(verb);
    if (this.#open?.index === index) return this.#open.block;
    throw new LifecycleError('content block', `open index ${this.#open?.index}`, `${name} of index ${index}`, []);
  }

  #messageDelta(json: JsonObject, out: CanonicalEvent[]): void {
    const delta = needObject(json, 'delta', 'message_delta');
    const reason = nullableString(delta, 'stop_reason', 'message_delta');
    const cut = reason !== undefined && CUTTING_STOPS.has(reason);
    this.#advance(reason === undefined ? 'usage' : cut ? 'cut' : 'stop');
    if (reason !== undefined) this.#stop = readStop(reason, delta);
    if (cut) this.#cutOpen(out);
    else if (reason !== undefined) this.#endStopped(endOfLast(reason), out);
    this.#readUsage(json, false, out);
  }

  #cutOpen(out: CanonicalEvent[]): void {
    const stopped = this.#stopped;
    // A stopped block has its whole opaque value; only unfinished JSON has to be cut.
    if (stopped?.stop('incomplete', out) === false) stopped.cut(out);
    this.#open?.block.cut(out);
    this.#stopped = undefined;
    this.#open = undefined;
  }

  #endMessage(out: CanonicalEvent[]): void {
    this.#endStopped('completed', out);
    this.#advance('end');
    const stop = this.#stop;
    if (stop === undefined) throw malformed('message_stop without a stop reason');
    this.#answer.end(stop, out);
  }

  #endStopped(status: ItemStatus, out: CanonicalEvent[]): void {
    const stopped = this.#stopped;
    this.#stopped = undefined;
    if (stopped === undefined || stopped.stop(status, out)) return;
    // A filter may end the answer before any input came; input that began and that no limit cut is malformed (spec rule 11).
    if (status === 'completed' || stopped.hasNoInput !== true) throw inputRefused();
    stopped.cut(out);
  }

  #readUsage(parent: JsonObject, isStart: boolean, out: CanonicalEvent[]): void {
    const report = parent['usage'];
    if (report !== undefined && report !== null) this.#answer.readUsage(report, isStart, out);
  }
}

/** Undefined for a delta that does not append to the text of its block. */
function deltaRun({ delta }: JsonObject, shape: JsonShape, block: Block): DeltaRun | undefined {
  const found = TEXT_DELTAS.find(({ type, kind }) => isObject(delta) && type === delta['type'] && kind === block.kind);
  const hole = found === undefined ? -1 : holeAt(shape, found.path);
  return hole === -1 ? undefined : { shape, block, hole };
}

const MESSAGE_STOP: Native = {
  dialect: 'messages',
  name: 'message_stop',
  text: '{"type":"message_stop"}',
  json: { type: 'message_stop' },
};

const KNOWN: ReadonlySet<string> = new Set([
  'message_start',
  'content_block_start',
  'content_block_delta',
  'content_block_stop',
  'message_delta',
  'message_stop',
  'error',
]);

/** The event's `type`, else its SSE name. Some servers send an error object without either, as other protocols do. */
function nameOf(json: JsonObject, frame: Frame): string {
  const { type, error } = json;
  if (typeof type === 'string') return type;
  return error === undefined || error === null ? (frame.event ?? '') : 'error';
}

/** `input: {}` at the start of a call is a placeholder. */
function isEmpty(input: JsonValue | undefined): boolean {
  return isObject(input) && Object.keys(input).length === 0;
}

function blockIndex(json: JsonObject, name: string): number {
  const index = json['index'];
  if (typeof index !== 'number' || !Number.isInteger(index) || index < 0) throw malformed(`${name}: index is not a number`);
  return index;
}

function truncated(): GatewayError {
  return upstreamFault('truncated', 'The upstream ended before its answer was complete.');
}

function outOfOrder(error: LifecycleError): GatewayError {
  return upstreamFault('illegal_lifecycle', `The upstream's stream is out of order (${error.message}).`);
}
