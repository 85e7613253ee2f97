/**
 * Decodes the stream of a responses upstream. An event is read as the protocol has it (`normalise.ts`), its order is checked
 * (`lifecycle.ts`), and its meaning goes into the items (`assemble.ts`). Every step keeps the event's own text for a client of
 * the same dialect. Only a terminal event ends a stream well; `[DONE]` means nothing.
 */
import { LifecycleError } from '../../../streams/lifecycle.ts';
import type { Stage } from '../../../streams/stage.ts';
import { upstreamFault } from '../../canonical/error.ts';
import type { CanonicalEvent, Native, Step } from '../../canonical/event.ts';
import { isObject, type JsonObject, type JsonValue } from '../../canonical/json.ts';
import type { DecodeContext, Frame } from '../../codec.ts';
import { JsonRepeats } from '../../json/repeats.ts';
import { holeAt, holeValue, type JsonShape, type Repeat } from '../../json/shape.ts';
import { RepeatedNative } from '../../json/repeated-native.ts';
import { Assembler } from './assemble.ts';
import { type ItemTrack, specOf, ResponsesOrder } from '../lifecycle.ts';
import { DetachedMedia } from './detached-media.ts';
import { Normaliser } from './normalise.ts';
import { cutStatusOf, statusOf } from './decode-items.ts';
import { errorOf, type FinalStatus, finalStatus, readOutcome, readUsage, startOf } from './outcome.ts';
import type { Slot } from './slot.ts';
import { checkRestated, matchOutput, unusedIndices } from './match-output.ts';
import { DELTA, malformed, OBFUSCATION, SEQUENCE_NUMBER, needString } from '../wire.ts';

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

export function decodeEvents(context: DecodeContext): Stage<Frame, Step> {
  return new ResponsesDecoder(context);
}

class ResponsesDecoder implements Stage<Frame, Step> {
  ended = false;
  readonly #order = new ResponsesOrder();
  readonly #items: Assembler;
  readonly #normaliser: Normaliser;
  #started = false;
  readonly #repeats = new JsonRepeats(VARYING);
  readonly #detached = new DetachedMedia();
  #run: DeltaRun | undefined;

  constructor(context: DecodeContext) {
    this.#items = new Assembler(context);
    this.#normaliser = new Normaliser(this.#items.slots);
  }

  push(frame: Frame, out: Step[]): void {
    if (this.ended || frame.data === '' || frame.data === '[DONE]') return;
    const events: CanonicalEvent[] = [];
    const repeat = this.#repeats.match(frame.data);
    if (repeat !== undefined && repeat.shape === this.#run?.shape && this.#continues(repeat, this.#run, events)) {
      out.push({ native: new RepeatedNative(DIALECT, this.#run.name, frame.data, repeat), events });
      return;
    }
    this.#run = undefined;
    const event = this.#normaliser.read(frame);
    if (event === undefined) return;
    const { name, text, json } = event;
    // A repaired event is not learnt: the next of its shape needs its own repair.
    const learnt = event.isPlain ? (repeat ?? this.#repeats.learn(text, json)) : undefined;
    const native: Native = { dialect: DIALECT, name, text, json, ...(learnt === undefined ? {} : { repeat: learnt }) };
    this.#displace(event.displaced, events);
    const track = this.#accept(name, json);
    if (track !== undefined) this.#item(name, json, track, events);
    else this.#response(name, json, frame.data, events);
    out.push({ native, events });
    if (track !== undefined && learnt !== undefined) this.#run = this.#deltaRunOf(name, json, track, learnt.shape);
  }

  /** Ends a message whose index another item took: nothing more comes of it. */
  #displace(index: number | undefined, events: CanonicalEvent[]): void {
    const slot = index === undefined ? undefined : this.#items.slots.get(index);
    if (index === undefined || slot === undefined) return;
    this.#order.close(index);
    slot.isDisplaced = true;
    this.#items.cut(slot, 'completed', events);
  }

  #deltaRunOf(name: string, json: JsonObject, { outputIndex }: ItemTrack, shape: JsonShape): DeltaRun | undefined {
    const slot = this.#items.slots.get(outputIndex);
    const hole = specOf(name).textMember === 'delta' ? holeAt(shape, DELTA) : -1;
    const isPlain = !Array.isArray(json['logprobs']) || json['logprobs'].length === 0;
    return slot === undefined || hole === -1 || !isPlain ? undefined : { ...subjectOf(name, json, slot), shape, hole };
  }

  #continues(repeat: Repeat, run: DeltaRun, events: CanonicalEvent[]): boolean {
    const text = holeValue(repeat, run.hole);
    if (typeof text !== 'string') return false;
    this.#delta(run, text, undefined, events);
    return true;
  }

  end(): void {
    if (!this.ended) throw upstreamFault('truncated', 'The upstream ended before its terminal event.');
  }

  #accept(name: string, json: JsonObject): ItemTrack | undefined {
    try {
      const track = this.#order.accept(name, json);
      this.ended = this.#order.state === 'ended';
      return track;
    } catch (error) {
      if (!(error instanceof LifecycleError)) throw error;
      throw upstreamFault(
        'illegal_lifecycle',
        `The upstream's stream is out of order at ${placeOf(name, json)} (${error.message}).`,
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

  #item(name: string, json: JsonObject, track: ItemTrack, events: CanonicalEvent[]): void {
    const items = this.#items;
    if (name === 'response.output_item.added') {
      items.added(track.outputIndex, track.type, itemOf(json), events);
      return;
    }
    if (name === 'response.output_item.done') {
      const item = itemOf(json);
      const slot = items.slots.get(track.outputIndex) ?? items.added(track.outputIndex, track.type, item, events);
      items.finish(slot, item, statusOf(item), events);
      return;
    }
    const slot = items.slots.get(track.outputIndex);
    if (slot !== undefined) this.#child(name, json, slot, events);
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
    const isAlone = name === 'response.done' && json['response'] === undefined;
    const response = isAlone ? {} : responseOf(json, name);
    // Spec rule 15: an empty object is no answer. That holds for a stream too.
    if (!isAlone && Object.keys(response).length === 0) throw malformed(name);
    const status = statusOfTerminal(name, response);
    this.#start(response, events);
    this.#matchOutput(response['output'], status, events);
    const items = [...this.#items.slots.values()].map(({ item }) => item);
    const images = this.#detached.images(items);
    for (const image of images) this.#items.whole(image, 'completed', events);
    const audio = this.#items.hasAudio ? undefined : this.#detached.audio();
    if (audio !== undefined) this.#items.emitWhole(audio, 'completed', events);
    const usage = readUsage(response, [...items, ...images]);
    if (usage !== undefined) events.push({ type: 'usage.report', usage });
    events.push({ type: 'response.end', outcome: readOutcome(status, response, this.#items.hasCalls, text) });
  }

  /** Compares the terminal's output with what was streamed. It may add items and end open ones, but never contradict. */
  #matchOutput(output: JsonValue | undefined, status: FinalStatus, events: CanonicalEvent[]): void {
    const items = this.#items;
    const isFailure = status === 'failed' || status === 'cancelled';
    if (output !== undefined && output !== null && !Array.isArray(output)) throw malformed('response output');
    const match = matchOutput(output ?? [], items.slots);
    const indexAt = unusedIndices(items.slots);
    for (const { item, type, streamed: slot, position } of match.found) {
      if (slot?.closed === true) {
        if (!isFailure) checkRestated(slot, item);
      } else {
        const fresh = slot ?? items.added(indexAt(position), type, item, events);
        const isLast = position === match.found.length - 1;
        items.finish(fresh, item, status === 'completed' ? statusOf(item) : cutStatusOf(item, isLast), events);
      }
    }
    for (const slot of items.slots.values()) {
      if (slot.closed) continue;
      if (status === 'incomplete') items.cut(slot, 'incomplete', events);
      else if (status === 'completed') throw upstreamFault('illegal_lifecycle', 'The upstream completed with an open item.');
    }
    if (!isFailure && match.isMissing) {
      throw upstreamFault('illegal_lifecycle', "The upstream's terminal event lacks items that it announced.");
    }
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

/** The response's own status wins over the event's name (some servers end an incomplete answer with `response.completed`). */
function statusOfTerminal(name: string, response: JsonObject): FinalStatus {
  const status = finalStatus(response);
  if (status !== undefined) return status;
  const error = response['error'];
  if (error !== undefined && error !== null) return 'failed';
  const named = name.slice('response.'.length);
  return named === 'incomplete' || named === 'failed' || named === 'cancelled' ? named : 'completed';
}
