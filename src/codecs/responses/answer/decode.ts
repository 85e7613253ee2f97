/**
 * Decodes the stream of a responses upstream. An event is read as the protocol has it (`normalise.ts`), its order is checked
 * (`lifecycle.ts`), and its meaning goes into the items (`assemble.ts`). Every step keeps the event's own text for a client of
 * the same dialect. Only a terminal event ends a stream well; `[DONE]` means nothing.
 */
import { LifecycleError } from '../../../streams/lifecycle.ts';
import { upstreamFault } from '../../canonical/error.ts';
import type { CanonicalEvent, Native, Step } from '../../canonical/event.ts';
import { isObject, type JsonObject, type JsonValue } from '../../canonical/json.ts';
import type { DecodeContext, EventDecoder, Frame } from '../../codec.ts';
import { JsonRepeats } from '../../json/repeats.ts';
import { holeAt, holeValue, type JsonShape } from '../../json/shape.ts';
import { RepeatedNative } from '../../json/repeated-native.ts';
import { RunDecoder } from '../../answers/runs.ts';
import { Assembler } from './assemble.ts';
import { type ItemTrack, specOf, ResponsesOrder } from '../lifecycle.ts';
import { DetachedMedia } from './detached-media.ts';
import type { Ending, InsertedEvent } from './missing-events.ts';
import { type NormalEvent, Normaliser } from './normalise.ts';
import { statusOf } from './decode-items.ts';
import { errorOf, readOutcome, readUsage, startOf, statusOfTerminal } from './outcome.ts';
import type { Slot } from './slot.ts';
import { DELTA, hasEffects, malformed, type NamedEvent, OBFUSCATION, SEQUENCE_NUMBER, needString } from '../wire.ts';

const DIALECT = 'responses';
/** The members in which the deltas of one part differ. */
const VARYING = [DELTA, SEQUENCE_NUMBER, OBFUSCATION] as const;

/** What a delta belongs to. */
interface Subject {
  readonly name: string;
  readonly slot: Slot;
  readonly content: number;
  readonly summary: number;
}

/**
 * A run of deltas of one shape, without logprobs. The first of them was checked against the order; the others change no state, so
 * their text goes straight to the item.
 */
interface DeltaRun extends Subject {
  readonly shape: JsonShape;
  /** Which hole of the shape holds the text. */
  readonly hole: number;
}

export function decodeEvents(context: DecodeContext): EventDecoder {
  return new ResponsesDecoder(context);
}

class ResponsesDecoder extends RunDecoder {
  ended = false;
  readonly #order = new ResponsesOrder();
  readonly #items: Assembler;
  readonly #normaliser: Normaliser;
  #started = false;
  readonly #repeats = new JsonRepeats(VARYING);
  readonly #detached = new DetachedMedia();
  #run: DeltaRun | undefined;

  constructor(context: DecodeContext) {
    super(context.request.dialect === DIALECT);
    this.#items = new Assembler(context);
    this.#normaliser = new Normaliser(this.#items.slots);
  }

  protected pieceOf(frame: Frame): string | undefined {
    const run = this.#run;
    const delta = run === undefined ? undefined : this.#repeats.valueIn(frame.data, run.shape, run.hole);
    return typeof delta === 'string' ? delta : undefined;
  }

  /** A part of raw reasoning may begin a paragraph, which is added to its first piece. */
  protected get mayJoin(): boolean {
    return this.#run !== undefined && !/^response\.reasoning(_text)?\.delta$/.test(this.#run.name);
  }

  protected add(text: string, events: CanonicalEvent[]): void {
    if (this.#run !== undefined) this.#delta(this.#run, text, undefined, events);
  }

  protected read(frame: Frame, out: Step[]): void {
    if (frame.data === '' || frame.data === '[DONE]') return;
    const run = this.#run;
    const repeat = this.#repeats.match(frame.data);
    if (repeat !== undefined && repeat.shape === run?.shape) {
      const delta = holeValue(repeat, run.hole);
      if (typeof delta === 'string') {
        this.add(delta, this.events);
        out.push({ native: new RepeatedNative(DIALECT, run.name, frame.data, repeat), events: this.taken() });
        return;
      }
    }
    this.#run = undefined;
    const events: CanonicalEvent[] = [];
    const given = this.#normaliser.read(frame);
    if (given === undefined) return;
    const { name, text, json, ends, isPlain, missing } = given;
    if (missing.length > 0) this.#beginWith(given, events);
    for (const event of missing) this.#insert(event, given, events);
    // A repaired event is not learnt: the next of its shape needs its own repair.
    const learnt = isPlain ? (repeat ?? this.#repeats.learn(text, json)) : undefined;
    const track = this.#accept(given, given);
    if (track !== undefined) this.#item(given, track, events);
    else this.#response(name, json, frame.data, events);
    const more = { ...(learnt === undefined ? {} : { repeat: learnt }), ...(missing.length === 0 ? {} : { missing }) };
    const native: Native = { dialect: DIALECT, name, text, json, ...more };
    const step: Step = { native: ends === undefined ? native : { ...native, ends }, events };
    out.push(track !== undefined && hasEffects(track.type) ? { ...step, acts: true } : step);
    if (track !== undefined && learnt !== undefined) this.#run = this.#deltaRunOf(name, json, track, learnt.shape);
  }

  /** A terminal that comes alone is the beginning of its items, too. */
  #beginWith({ name, json }: NormalEvent, events: CanonicalEvent[]): void {
    if (this.#order.state !== 'idle' || specOf(name).stream !== 'terminal') return;
    this.#order.accept('response.created', json);
    this.#start(responseOf(json, name), events);
  }

  /** What an event within an item tells is read where its upstream told it: at the end of the part or of the item. */
  #insert(event: InsertedEvent, given: NormalEvent, events: CanonicalEvent[]): void {
    const track = this.#accept(event, given, true);
    if (track !== undefined && specOf(event.name).item !== 'child') this.#item(event, track, events, event.ending);
  }

  #deltaRunOf(name: string, json: JsonObject, { outputIndex }: ItemTrack, shape: JsonShape): DeltaRun | undefined {
    const slot = this.#items.slots.get(outputIndex);
    const hole = specOf(name).textMember === 'delta' ? holeAt(shape, DELTA) : -1;
    const isPlain = !Array.isArray(json['logprobs']) || json['logprobs'].length === 0;
    return slot === undefined || hole === -1 || !isPlain ? undefined : { ...subjectOf(name, json, slot), shape, hole };
  }

  end(): void {
    if (!this.ended) throw upstreamFault('truncated', 'The upstream ended before its terminal event.');
  }

  /** `given`: the upstream's event, where it is another one. */
  #accept({ name, json }: NamedEvent, given: NamedEvent, isInserted = false): ItemTrack | undefined {
    try {
      const track = this.#order.accept(name, json, isInserted);
      this.ended = this.#order.state === 'ended';
      return track;
    } catch (error) {
      if (!(error instanceof LifecycleError)) throw error;
      throw upstreamFault(
        'illegal_lifecycle',
        `The upstream's stream is out of order at ${placeOf(given.name, given.json)} (${error.message}).`,
      );
    }
  }

  #response(name: string, json: JsonObject, text: string, events: CanonicalEvent[]): void {
    switch (specOf(name).stream) {
      case 'created':
      case 'progress':
        this.#start(responseOf(json, name), events);
        return;
      case 'terminal':
        this.#terminal(name, json, text, events);
        return;
      case 'error':
        events.push({ type: 'response.end', outcome: { status: 'failed', error: errorOf(json, text) } });
        return;
      default:
        this.#detached.take(name, json);
        events.push({ type: 'native.event', dialect: DIALECT, name, body: json });
    }
  }

  #start(response: JsonObject, events: CanonicalEvent[]): void {
    if (this.#started) return;
    this.#started = true;
    this.#items.tools = response['tools'];
    events.push(startOf(response));
  }

  #item({ name, json }: NamedEvent, track: ItemTrack, events: CanonicalEvent[], ending?: Ending): void {
    const items = this.#items;
    if (name === 'response.output_item.added') {
      items.added(track, itemOf(json), events);
      return;
    }
    const slot = items.slots.get(track.outputIndex);
    if (slot === undefined) return;
    if (name !== 'response.output_item.done') this.#child(name, json, slot, events);
    else if (ending?.as === 'streamed') items.cut(slot, itemOf(json), ending.status, events);
    else if (ending?.as !== 'open') items.finish(slot, itemOf(json), ending?.status ?? statusOf(itemOf(json)), events);
  }

  #child(name: string, json: JsonObject, slot: Slot, events: CanonicalEvent[]): void {
    const items = this.#items;
    const { textMember } = specOf(name);
    // The order has checked that the members which the event needs are there.
    const text = textMember === undefined ? '' : needString(json, textMember, name);
    const subject = subjectOf(name, json, slot);
    const { content, summary } = subject;
    switch (name) {
      case 'response.output_text.done':
      case 'response.refusal.done':
        items.textDone(slot, content, text, json['logprobs'], events);
        break;
      case 'response.reasoning_text.done':
      case 'response.reasoning.done':
        items.rawDone(slot, content, text, events);
        break;
      case 'response.reasoning_summary_text.done':
        items.summaryDone(slot, summary, text, events);
        break;
      case 'response.function_call_arguments.done':
      case 'response.custom_tool_call_input.done':
        items.inputDone(slot, text, events);
        break;
      case 'response.content_part.added':
        items.partAdded(slot, content, partOf(json, name), events);
        break;
      case 'response.content_part.done':
        items.partDone(slot, content, partOf(json, name), events);
        break;
      case 'response.output_text.annotation.added':
        items.annotation(slot, content, json['annotation'] ?? null, events);
        break;
      default:
        if (textMember === 'delta') this.#delta(subject, text, json['logprobs'], events);
    }
  }

  #delta(
    { name, slot, content, summary }: Subject,
    text: string,
    logprobs: JsonValue | undefined,
    events: CanonicalEvent[],
  ): void {
    const items = this.#items;
    switch (name) {
      case 'response.output_text.delta':
      case 'response.refusal.delta':
        items.textDelta(slot, content, text, logprobs, events);
        break;
      case 'response.reasoning_text.delta':
      case 'response.reasoning.delta':
        items.rawDelta(slot, content, text, events);
        break;
      case 'response.reasoning_summary_text.delta':
        items.summaryDelta(slot, summary, text, events);
        break;
      case 'response.function_call_arguments.delta':
      case 'response.custom_tool_call_input.delta':
        items.inputDelta(slot, text, events);
        break;
    }
  }

  #terminal(name: string, json: JsonObject, text: string, events: CanonicalEvent[]): void {
    const isAlone = name === 'response.done' && json['response'] === undefined && this.#started;
    const response = isAlone ? {} : responseOf(json, name);
    // Spec rule 15: an empty object is no answer. That holds for a stream too.
    if (!isAlone && Object.keys(response).length === 0) throw malformed(name);
    const status = statusOfTerminal(name, response);
    this.#start(response, events);
    if (status === 'completed' && this.#order.open().length > 0)
      throw upstreamFault('illegal_lifecycle', 'The upstream completed with an open item.');
    const items = [...this.#items.slots.values()].map(({ item }) => item);
    const images = this.#detached.images(items);
    for (const image of images) this.#items.whole(image, 'completed', events);
    const audio = this.#items.hasAudio ? undefined : this.#detached.audio();
    if (audio !== undefined) this.#items.emitWhole(audio, 'completed', events);
    const usage = readUsage(response, [...items, ...images]);
    if (usage !== undefined) events.push({ type: 'usage.report', usage });
    events.push({ type: 'response.end', outcome: readOutcome(status, response, this.#items.hasCalls, text) });
  }
}

function subjectOf(name: string, json: JsonObject, slot: Slot): Subject {
  return { name, slot, content: Number(json['content_index']), summary: Number(json['summary_index']) };
}

/** Where a stream went wrong, for error messages: known names and indices, never upstream text. */
function placeOf(name: string, json: JsonObject): string {
  const event = specOf(name).stream === 'other' ? 'an event' : name;
  const index = json['output_index'];
  return typeof index === 'number' ? `${event} of item ${index}` : event;
}

function responseOf(json: JsonObject, name: string): JsonObject {
  const response = json['response'];
  if (!isObject(response)) throw malformed(name);
  return response;
}

function itemOf(json: JsonObject): JsonObject {
  const item = json['item'];
  if (!isObject(item)) throw malformed('output item');
  return item;
}

function partOf(json: JsonObject, name: string): JsonObject {
  const part = json['part'];
  if (!isObject(part)) throw malformed(name);
  return part;
}
