/**
 * Encodes steps as the stream of a responses client. The events of a responses upstream go out as it wrote them, behind those
 * that it left out, with the gateway's own values spliced in (`splice.ts`) and with the ids that clients need. For other
 * upstreams the events are written (`encode-items.ts`). The first step decides which of the two a stream is. Sequence numbers
 * count from 0. The terminal event is the last one; `[DONE]` is never sent.
 */
import { append } from '../../append.ts';
import type { GatewayError } from '../../canonical/error.ts';
import type { CanonicalEvent, Native, Step } from '../../canonical/event.ts';
import { escapeJson, isObject, type JsonObject } from '../../canonical/json.ts';
import type { Outcome } from '../../canonical/outcome.ts';
import { mergeUsage, type Usage } from '../../canonical/usage.ts';
import { hasLineEnd } from '../../../streams/sse-encode.ts';
import { LONG_CHARS } from '../../../streams/text-pieces.ts';
import { AnswerLosses } from '../../answers/losses.ts';
import type { ClientEncoder, Frame, OutFrame, ResponseContext } from '../../codec.ts';
import { holeAt, holeValue } from '../../json/shape.ts';
import { RepeatedEdits } from '../../json/repeated-native.ts';
import { editJson, type JsonEdit } from '../../json/edit.ts';
import { type Ends, sliceJson } from '../../json/text.ts';
import { writeInSteps } from '../../json/write-in-steps.ts';
import type { Steps } from '../../steps.ts';
import { checkRepresentable } from './encode-images.ts';
import { isSentOtherwise, recordNative, sentTextPart } from './record-native.ts';
import { askedTier, emptyResponse, finishedMembers } from './response-object.ts';
import { eventEdits, responseEdits } from './splice.ts';
import { closeItem, type Emit, finalText, finishedItems, type SentItem, type SentPart } from './sent-items.ts';
import { arrayOrEmpty, DELTA, missingId, SEQUENCE_NUMBER } from '../wire.ts';
import { responseLosses } from '../losses.ts';
import { ItemWriter } from './encode-items.ts';

const DIALECT = 'responses';
const NONE: readonly CanonicalEvent[] = [];

export function encodeEvents(context: ResponseContext): ClientEncoder {
  return new ResponsesEncoder(context);
}

/** What the events repeat of the request is written ahead: instructions can be long, and tools many. */
export function* encodeEventsInSteps(context: ResponseContext): Steps<ClientEncoder> {
  const response = yield* writeInSteps(emptyResponse(context));
  yield;
  // A look at a text that was put together copies it, once: here, and not at the end of the stream.
  response.charCodeAt(0);
  return new ResponsesEncoder(context, response);
}

/** A run of text deltas of one shape that need no edits: which holes hold the text and the sequence number. */
interface DeltaRun {
  readonly part: SentPart;
  readonly textHole: number;
  readonly numberHole: number;
}

/** A response object that was sent: its text is read when it is needed. */
interface SentResponse {
  /** Its text, or that of the upstream's event that it stands in. */
  readonly text: string;
  /** What it is in that event; undefined for one that the gateway wrote. */
  readonly native: JsonObject | undefined;
  /** Of the event: where its long values end. */
  readonly ends?: Ends | undefined;
}

class ResponsesEncoder implements ClientEncoder {
  ended = false;
  readonly #context: ResponseContext;
  readonly #writer: ItemWriter;
  /** The items of a spliced stream, by output index. Those of a written one are the writer's. */
  readonly #native = new Map<number, SentItem>();
  readonly #emit: Emit = (name, body) => this.#send(name, JSON.stringify(body).slice(1));
  /** Decided by the first step. */
  #mode: 'spliced' | 'written' | undefined;
  #sequence = 0;
  /** The text of `emptyResponse`, where it was written ahead. */
  readonly #ahead: string | undefined;
  /** The response object as it was sent last; undefined before the first. */
  #response: SentResponse | undefined;
  readonly #losses: AnswerLosses;
  #usage: Usage | undefined;
  /** The edits of a delta, for those that repeat its shape. */
  readonly #repeated = new RepeatedEdits();
  #run: DeltaRun | undefined;
  /** Where `#emit` writes: the batch of the current call. */
  #out: OutFrame[] = [];

  constructor(context: ResponseContext, ahead?: string) {
    this.#context = context;
    this.#ahead = ahead;
    this.#losses = new AnswerLosses(DIALECT, responseLosses, context);
    this.#writer = new ItemWriter(context, this.#emit, (name, head, said, tail) => {
      if (said.pieces === undefined) this.#send(name, `${head}${escapeJson(said.text)}${tail}`);
      else this.#sendRun(name, head, said.pieces, tail);
    });
  }

  /** Event names are our own and need no escaping; no event is without members. */
  #send(name: string, members: string): void {
    const data = `{"type":"${name}","sequence_number":${this.#sequence},${members}`;
    this.#sequence += 1;
    this.#out.push({ event: name, data, oneLine: true });
  }

  /** Each of them is an event with a number of its own. */
  #sendRun(event: string, head: string, texts: readonly string[], tail: string): void {
    const first = this.#sequence;
    const pieces = texts.map((text, at) => `${first + at},${head}${escapeJson(text)}`);
    this.#sequence += texts.length;
    this.#out.push({ event, head: `{"type":"${event}","sequence_number":`, pieces, tail });
  }

  push(step: Step, out: OutFrame[]): void {
    if (this.ended) return;
    this.#out = out;
    this.#writer.fold ??= step.fold;
    const native = step.native?.dialect === DIALECT ? step.native : undefined;
    this.#mode ??= native === undefined ? 'written' : 'spliced';
    if (this.#mode === 'spliced' && native !== undefined) this.#splice(native, step.events);
    else this.#write(this.#mode === 'written' ? this.#losses.kept(step.events) : step.events);
  }

  end(out: OutFrame[]): void {
    // The terminal came with a step. For a truncated stream the decoder has thrown, and `fail` was called instead.
    this.#out = out;
  }

  fail(error: GatewayError, out: OutFrame[]): void {
    if (this.ended) return;
    this.#out = out;
    this.#terminate({ status: 'failed', error });
  }

  /** The terminal event alone is the ending: what stands before it was written. */
  failInstead(error: GatewayError, out: OutFrame[]): void {
    out.pop();
    this.#sequence -= 1;
    this.ended = false;
    this.fail(error, out);
  }

  #write(events: readonly CanonicalEvent[]): void {
    // A refusal comes before anything of the step is written, so that the sent items match what the client has got.
    for (const event of events) if (event.type === 'item.end') checkRepresentable(event.item);
    for (const event of events) {
      switch (event.type) {
        case 'response.start':
          this.#begin(event.createdAt);
          break;
        case 'usage.report':
          this.#usage = mergeUsage(this.#usage, event.usage);
          break;
        case 'response.end':
          this.#terminate(event.outcome);
          break;
        case 'native.event':
          break;
        default:
          if (this.#mode === 'written') this.#writer.write(event);
      }
    }
  }

  #begin(createdAt?: number): void {
    if (this.#response !== undefined) return;
    const text = this.#ahead ?? JSON.stringify(emptyResponse(this.#context, createdAt));
    this.#response = { text, native: undefined };
    this.#sendResponse('response.created', text);
    this.#sendResponse('response.in_progress', text);
  }

  /** `response`: its text. */
  #sendResponse(name: string, response: string): void {
    this.#send(name, `"response":${response}}`);
  }

  /** Ends the stream with the gateway's own terminal event, which repeats the sent items. Open items end first. */
  #terminate(outcome: Outcome): void {
    this.#begin();
    this.#writer.finish();
    const isCut = outcome.status !== 'completed';
    for (const item of this.#native.values()) closeItem(item, isCut ? 'incomplete' : 'completed', this.#emit);
    const sent = this.#mode === 'spliced' ? this.#native.values() : this.#writer.sent;
    const begun = this.#response ?? { text: '{}', native: undefined };
    const tier = begun.native === undefined ? askedTier(this.#context) : begun.native['service_tier'];
    const members = finishedMembers(this.#context, tier, finishedItems(sent), this.#usage, outcome);
    const edits = Object.entries(members).map(([member, value]) => ({ path: [member], value: JSON.stringify(value) }));
    this.#sendResponse(`response.${String(members['status'])}`, this.#shown(begun, edits));
    this.ended = true;
  }

  #splice(native: Native, events: readonly CanonicalEvent[]): void {
    if (this.#continueRun(native)) return;
    if (native.missing !== undefined) {
      // A terminal that comes alone is the beginning of its items, too.
      for (const event of events) if (event.type === 'response.start') this.#begin(event.createdAt);
      for (const inserted of native.missing) this.#splice(inserted, NONE);
    }
    const { name } = native;
    if (!isObject(native.json)) return;
    const json = this.#withId(native.json);
    for (const event of events) if (event.type === 'usage.report') this.#usage = mergeUsage(this.#usage, event.usage);
    const end = events.find((event) => event.type === 'response.end');
    const response = json['response'];
    if (end !== undefined) {
      // Agents understand neither a bare `error` event nor a terminal event without a response.
      if (isObject(response)) this.#spliceEnd(native, json, response, end.outcome);
      else this.#terminate(end.outcome);
      return;
    }
    const edits = eventEdits(name, native.json, this.#context);
    if (json !== native.json && isObject(json['item']))
      edits.push({ path: ['item', 'id'], value: JSON.stringify(json['item']['id']) });
    // Some upstreams name the event in the SSE frame alone.
    if (json['type'] !== name) edits.push({ path: ['type'], value: JSON.stringify(name) });
    edits.push(...identityEdits(this.#native.get(Number(json['output_index'])), name, json));
    if (isObject(response)) {
      append(edits, responseEdits(['response'], response, this.#context, undefined));
      const shown: SentResponse = { text: native.text, native: response, ends: native.ends };
      if (this.#response === undefined && name !== 'response.created')
        this.#sendResponse('response.created', this.#shown(shown, []));
      this.#response = shown;
    }
    edits.push(...this.#numberEdits(json));
    const text = editJson(native.text, edits, native.ends);
    this.#out.push(editedFrame(name, text, native.text, edits));
    recordNative(this.#native, name, json, text, { events, fold: this.#writer.fold });
    this.#startRun(native, json, edits);
  }

  /** Gives an item without an id one, in its first event: SDKs need it. */
  #withId(json: JsonObject): JsonObject {
    const { item, output_index: index } = json;
    if (!isObject(item) || this.#native.has(Number(index))) return json;
    const id = missingId(item, this.#context.mint);
    return id === undefined ? json : { ...json, item: { ...item, id } };
  }

  /** True for a delta that goes on with the run: it is sent and recorded. */
  #continueRun(native: Native): boolean {
    const run = this.#run;
    if (run === undefined || native.repeat === undefined) return false;
    const frame = this.#repeated.apply(native, native.name);
    if (frame === undefined || holeValue(native.repeat, run.numberHole) !== this.#sequence) return false;
    run.part.written.add(String(holeValue(native.repeat, run.textHole)).length);
    this.#sequence += 1;
    this.#out.push(frame);
    return true;
  }

  #startRun(native: Native, json: JsonObject, edits: readonly JsonEdit[]): void {
    this.#run = undefined;
    this.#repeated.forget();
    const { repeat } = native;
    const part = repeat === undefined || edits.length > 0 ? undefined : sentTextPart(this.#native, native.name, json);
    if (repeat === undefined || part === undefined) return;
    const textHole = holeAt(repeat.shape, DELTA);
    const numberHole = holeAt(repeat.shape, SEQUENCE_NUMBER);
    if (textHole === -1 || numberHole === -1) return;
    this.#repeated.note(native, edits);
    this.#run = { part, textHole, numberHole };
  }

  /** Sends the upstream's own terminal event, with its items as the client was sent them where it knows them under other ids. */
  #spliceEnd({ text, ends }: Native, json: JsonObject, response: JsonObject, outcome: Outcome): void {
    const createdAt = response['created_at'];
    this.#begin(typeof createdAt === 'number' ? createdAt : undefined);
    const shown = `response.${outcome.status === 'cancelled' ? 'failed' : outcome.status}`;
    const edits = responseEdits(['response'], response, this.#context, outcome);
    if (json['type'] !== shown) edits.push({ path: ['type'], value: JSON.stringify(shown) });
    const sent = [...this.#native.values()].sort((a, b) => a.outputIndex - b.outputIndex);
    for (const [at, item] of arrayOrEmpty(response, 'output', 'response').entries()) {
      const known = sent[at];
      if (known === undefined) continue;
      const path = ['response', 'output', at];
      if (isSentOtherwise(item, known, outcome.status !== 'completed')) edits.push({ path, value: finalText(known) });
      else if (known.id !== '' && isObject(item) && item['id'] !== known.id)
        edits.push({ path: [...path, 'id'], value: JSON.stringify(known.id) });
    }
    edits.push(...this.#numberEdits(json));
    this.#out.push(editedFrame(shown, editJson(text, edits, ends), text, edits));
    this.ended = true;
  }

  /** The text of a response object as the client gets it, with those edits. A large one is read twice, which takes a while. */
  #shown({ text, native, ends }: SentResponse, edits: readonly JsonEdit[]): string {
    if (native === undefined) return editJson(text, edits);
    const { responseId, model, request } = this.#context;
    const previous = request.previousResponseId;
    const own: JsonEdit[] = [
      { path: ['id'], value: JSON.stringify(responseId) },
      { path: ['model'], value: JSON.stringify(model) },
    ];
    if (native['output'] === undefined || native['output'] === null) own.push({ path: ['output'], value: '[]' });
    if (previous !== undefined) own.push({ path: ['previous_response_id'], value: JSON.stringify(previous) });
    // White space between members may hold line ends, which no event of ours does.
    return editJson(sliceJson(text, ['response'], ends) ?? '{}', [...own, ...edits]).replaceAll(/[\r\n]/g, ' ');
  }

  /** The sequence number is the gateway's: upstreams may leave it out, and events were added. */
  #numberEdits(json: JsonObject): JsonEdit[] {
    const number = this.#sequence++;
    return json['sequence_number'] === number ? [] : [{ path: ['sequence_number'], value: String(number) }];
  }
}

/** A look for line ends in a long text that was put together of pieces would copy it: the pieces are looked at. */
function editedFrame(event: string, data: string, given: string, edits: readonly JsonEdit[]): Frame {
  if (data.length < LONG_CHARS) return { event, data };
  return { event, data, oneLine: !hasLineEnd(given) && !edits.some(({ value = '' }) => hasLineEnd(value)) };
}

/**
 * Clients know an item by the id that it was announced with, so events with another id (known failure R19) or none get that one.
 */
function identityEdits(item: SentItem | undefined, name: string, json: JsonObject): JsonEdit[] {
  if (item === undefined || item.id === '') return [];
  if (name === 'response.output_item.done') {
    const isSame = !isObject(json['item']) || json['item']['id'] === item.id;
    return isSame ? [] : [{ path: ['item', 'id'], value: JSON.stringify(item.id) }];
  }
  // Events about shell commands have no `item_id` in the protocol.
  const isSame = json['item_id'] === item.id || name.startsWith('response.shell_call_command.');
  return isSame ? [] : [{ path: ['item_id'], value: JSON.stringify(item.id) }];
}
