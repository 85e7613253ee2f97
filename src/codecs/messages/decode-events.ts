/**
 * A messages upstream's stream: its own order first (`lifecycle.ts`), then meaning. Every step keeps the event's own text for
 * clients of the same dialect. Knows nothing of framing and of what clients may see.
 */
import { type GatewayError, upstreamFault } from '../canonical/error.ts';
import type { CanonicalEvent, Step } from '../canonical/event.ts';
import type { ItemStatus } from '../canonical/item.ts';
import { isObject, type JsonObject, type JsonValue, tryJson } from '../canonical/json.ts';
import type { DecodeContext, Frame } from '../codec.ts';
import { JsonRepeats } from '../json/repeats.ts';
import { holeAt, holeValue, type JsonShape } from '../json/shape.ts';
import { RepeatedNative } from '../json/repeated-native.ts';
import { type JsonPath, jsonSlicer, sliceJson } from '../json/text.ts';
import { advance, LifecycleError } from '../../streams/lifecycle.ts';
import type { Stage } from '../../streams/stage.ts';
import { readErrorMembers, refusal, statusOfMembers } from '../errors/upstream.ts';
import type { Block, BlockHost } from './block.ts';
import { openBlock, readWholeBlock } from './blocks.ts';
import {
  type BlockKind,
  checkFits,
  type DeltaKind,
  deltaKind,
  UPSTREAM,
  type UpstreamState,
  type UpstreamVerb,
} from './lifecycle.ts';
import { decodeStop, endOfLast, type WireStop } from './stop-reason.ts';
import { UsageReader } from './usage.ts';
import { CUTTING_STOPS, malformed, mayString, needObject, needString } from './wire.ts';

/** The deltas that say one more piece of a block, and where. */
const PIECES = [
  { type: 'text_delta', kind: 'text', path: ['delta', 'text'] },
  { type: 'thinking_delta', kind: 'thinking', path: ['delta', 'thinking'] },
  { type: 'input_json_delta', kind: 'tool', path: ['delta', 'partial_json'] },
] as const satisfies readonly { readonly type: DeltaKind; readonly kind: BlockKind; readonly path: JsonPath }[];
/** What differs between two events of one stream. */
const VARIES = PIECES.map(({ path }) => path);

/** The event before, when that was a piece of the open block: the next of its shape moves no table. */
interface Piece {
  readonly shape: JsonShape;
  readonly block: Block;
  /** Which hole of its shape holds the piece. */
  readonly hole: number;
}

export function decodeEvents(context: DecodeContext): Stage<Frame, Step> {
  return new EventDecoder(context);
}

class EventDecoder implements Stage<Frame, Step>, BlockHost {
  ended = false;
  readonly context: DecodeContext;
  readonly #usage = new UsageReader();
  readonly #opened = new Set<number>();
  #state: UpstreamState = 'idle';
  #messageId: string | undefined;
  #items = 0;
  #calledTool = false;
  #open: { readonly index: number; readonly block: Block } | undefined;
  /** The block that stopped last: what follows decides whether it is whole, was cut or is broken. */
  #held: Block | undefined;
  #stop: WireStop | undefined;
  readonly #repeats = new JsonRepeats(VARIES);
  #piece: Piece | undefined;

  constructor(context: DecodeContext) {
    this.context = context;
  }

  nextIndex(): number {
    return this.#items++;
  }

  serverToolCalled(name: string): void {
    this.#usage.called(name);
  }

  push(frame: Frame, out: Step[]): void {
    if (this.ended) return;
    if (frame.data.trim() === '[DONE]') throw truncated();
    const repeat = this.#repeats.match(frame.data);
    const piece = repeat?.shape === this.#piece?.shape ? this.#piece : undefined;
    if (repeat !== undefined && piece !== undefined) {
      const said: CanonicalEvent[] = [];
      piece.block.say?.(String(holeValue(repeat, piece.hole)), said);
      out.push({ native: new RepeatedNative('messages', 'content_block_delta', frame.data, repeat), events: said });
      return;
    }
    this.#piece = undefined;
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
    if (learnt !== undefined && this.#open !== undefined) this.#piece = pieceOf(json, learnt.shape, this.#open.block);
  }

  end(): void {
    if (!this.ended) throw truncated();
  }

  /** Undefined for unreadable data of an event that we do not know, since unknown events never fail, and for one that only keeps a connection. */
  #parse(frame: Frame): JsonObject | undefined {
    const json = tryJson(frame.data);
    if (json === undefined) {
      const name = frame.event ?? 'message';
      if (name !== 'message' && !KNOWN.has(name)) return undefined;
      if (frame.data === '' && (name === 'message' || name === 'ping')) return undefined;
      throw malformed(`${frame.event ?? 'an event'} is not JSON`);
    }
    if (!isObject(json)) throw malformed(`${frame.event ?? 'an event'} is not an object`);
    return json;
  }

  /** False for an event that nobody may see: the echo of message_start. */
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
        if (this.#held?.stop('completed', out) === false) this.#held.cut(out);
        out.push({ type: 'response.end', outcome: { status: 'failed', error: saidError(json, text) } });
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
    const id = mayString(message, 'id', 'message_start');
    if (this.#state !== 'idle' && id !== undefined && id === this.#messageId) return false;
    const reason = mayString(message, 'stop_reason', 'message_start');
    this.#advance(reason === undefined ? 'start' : 'startWhole');
    if (reason !== undefined) this.#stop = wireStop(reason, message);
    this.#messageId = id;
    const model = mayString(message, 'model', 'message_start');
    out.push({ type: 'response.start', ...(id === undefined ? {} : { id }), ...(model === undefined ? {} : { model }) });
    const content = message['content'] ?? [];
    if (!Array.isArray(content)) throw malformed('message_start: content is not an array');
    const slice = jsonSlicer(text);
    content.forEach((block: JsonValue, at) => {
      const { kind } = readWholeBlock(block, 'completed', () => slice(['message', 'content', at, 'input']), this, out);
      this.#calledTool ||= kind === 'tool';
    });
    this.#readUsage(message, out);
    return true;
  }

  #openBlock(json: JsonObject, text: string, out: CanonicalEvent[]): void {
    const index = blockIndex(json, 'content_block_start');
    this.#endHeld('completed', out);
    const content = needObject(json, 'content_block', 'content_block_start');
    const state = this.#state;
    this.#advance('open');
    if (this.#opened.has(index))
      throw new LifecycleError('content block', `${state}, index ${index} seen`, 'content_block_start', []);
    const block = openBlock(
      content,
      () => (isEmpty(content['input']) ? undefined : sliceJson(text, ['content_block', 'input'])),
      this,
    );
    this.#opened.add(index);
    this.#open = { index, block };
    this.#calledTool ||= block.kind === 'tool';
    block.start(out);
  }

  #delta(json: JsonObject, out: CanonicalEvent[]): void {
    const block = this.#openAt(json, 'content_block_delta', 'delta');
    const delta = needObject(json, 'delta', 'content_block_delta');
    checkFits(block.kind, deltaKind(needString(delta, 'type', 'content_block_delta')));
    block.delta(delta, out);
  }

  #closeBlock(json: JsonObject): void {
    this.#held = this.#openAt(json, 'content_block_stop', 'close');
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
    const reason = mayString(delta, 'stop_reason', 'message_delta');
    const cut = reason !== undefined && CUTTING_STOPS.has(reason);
    this.#advance(reason === undefined ? 'usage' : cut ? 'cut' : 'stop');
    if (reason !== undefined) this.#stop = wireStop(reason, delta);
    if (cut) this.#cutOpen(out);
    else if (reason !== undefined) this.#endHeld(endOfLast(reason), out);
    this.#readUsage(json, out);
  }

  #cutOpen(out: CanonicalEvent[]): void {
    const held = this.#held;
    // A block that stopped has said all of its opaque value; only unfinished JSON has to be cut.
    if (held?.stop('incomplete', out) === false) held.cut(out);
    this.#open?.block.cut(out);
    this.#held = undefined;
    this.#open = undefined;
  }

  #endMessage(out: CanonicalEvent[]): void {
    this.#endHeld('completed', out);
    this.#advance('end');
    const stop = this.#stop;
    if (stop === undefined) throw malformed('message_stop without a stop reason');
    out.push({ type: 'response.end', outcome: decodeStop(stop, this.#calledTool) });
  }

  #endHeld(status: ItemStatus, out: CanonicalEvent[]): void {
    const held = this.#held;
    this.#held = undefined;
    if (held === undefined || held.stop(status, out)) return;
    // A filter may speak before the arguments do; begun ones that no limit cut are malformed (spec rule 11).
    if (status === 'completed' || held.isUnbegun !== true) throw malformed('the input of a tool call is not a JSON object');
    held.cut(out);
  }

  #readUsage(parent: JsonObject, out: CanonicalEvent[]): void {
    const report = parent['usage'];
    if (report === undefined || report === null) return;
    if (!isObject(report)) throw malformed('usage is not an object');
    const usage = this.#usage.read(report);
    if (usage !== undefined) out.push({ type: 'usage.report', usage });
  }
}

function pieceOf({ delta }: JsonObject, shape: JsonShape, block: Block): Piece | undefined {
  const piece = PIECES.find(({ type, kind }) => isObject(delta) && type === delta['type'] && kind === block.kind);
  const hole = piece === undefined ? -1 : holeAt(shape, piece.path);
  return hole === -1 ? undefined : { shape, block, hole };
}

const KNOWN: ReadonlySet<string> = new Set([
  'message_start',
  'content_block_start',
  'content_block_delta',
  'content_block_stop',
  'message_delta',
  'message_stop',
  'error',
]);

/** The event's own word; some servers write an error as every other protocol does, without one. */
function nameOf(json: JsonObject, frame: Frame): string {
  const { type, error } = json;
  if (typeof type === 'string') return type;
  return error === undefined || error === null ? (frame.event ?? '') : 'error';
}

export function wireStop(reason: string, parent: JsonObject): WireStop {
  return { reason, sequence: mayString(parent, 'stop_sequence', 'stop'), details: parent['stop_details'] };
}

/** The error that an upstream says inside a 200. */
export function saidError(json: JsonObject, text: string): GatewayError {
  const members = readErrorMembers(json);
  return refusal(statusOfMembers(members), members, { reason: 'error_event', text });
}

/** `input: {}` at the start of a call says nothing yet. */
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
