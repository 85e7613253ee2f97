/**
 * Canonical steps as the stream that a responses client reads. Events of an upstream of the same dialect go out as it wrote
 * them, less what is the gateway's (`splice.ts`), and what clients would miss there is said (ids, ends of parts). All others are
 * said anew (`write-items.ts`). The first step decides which of the two a stream is. Sequence numbers count from 0; the terminal
 * event is the end, `[DONE]` is never said.
 */
import { append } from '../append.ts';
import { grown } from '../canonical/grown.ts';
import type { GatewayError } from '../canonical/error.ts';
import type { CanonicalEvent, Native, Step } from '../canonical/event.ts';
import { escapeJson, isObject, type JsonObject } from '../canonical/json.ts';
import type { Outcome } from '../canonical/outcome.ts';
import { mergeUsage, type Usage } from '../canonical/usage.ts';
import type { ClientEncoder, Frame, ResponseContext } from '../codec.ts';
import { holeAt, holeValue } from '../json/shape.ts';
import { RepeatedEdits } from '../json/repeated-native.ts';
import { editJson, type JsonEdit } from '../json/text.ts';
import { checkRepresentable } from './images.ts';
import { owesItems, settleItems } from './native-ending.ts';
import { emptyResponse, finishedResponse } from './response-object.ts';
import { eventEdits, responseEdits } from './splice.ts';
import { announceItem, sayContent, sayUnsaid } from './say-item.ts';
import {
  beginUnbegun,
  closeItem,
  closeParts,
  type Emit,
  finishedItems,
  noteNative,
  type ToldItem,
  type ToldPart,
  toldText,
} from './told.ts';
import { DELTA, missingId, SEQUENCE_NUMBER } from './wire.ts';
import { ItemWriter } from './write-items.ts';

const DIALECT = 'responses';

export function encodeEvents(context: ResponseContext): ClientEncoder {
  return new ResponsesEncoder(context);
}

/** The delta before, of a native text: where the next like it has its piece and its number. */
interface Running {
  readonly part: ToldPart;
  readonly piece: number;
  readonly number: number;
}

class ResponsesEncoder implements ClientEncoder {
  ended = false;
  readonly #context: ResponseContext;
  readonly #writer: ItemWriter;
  readonly #native = new Map<number, ToldItem>();
  readonly #emit: Emit;
  /** Decided by the first step: as the upstream writes it, or in our own words. */
  #manner: 'spliced' | 'written' | undefined;
  #sequence = 0;
  /** The response object of the latest envelope event; undefined before the first. */
  #response: JsonObject | undefined;
  #usage: Usage | undefined;
  /** What is spliced into a delta, for those that repeat it. */
  readonly #repeated = new RepeatedEdits();
  #running: Running | undefined;
  /** Where `#emit` writes: the batch of the current call. */
  #out: Frame[] = [];

  constructor(context: ResponseContext) {
    this.#context = context;
    this.#emit = (name, body) => this.#say(name, JSON.stringify(body).slice(1));
    this.#writer = new ItemWriter(context, this.#emit, (name, head, piece, tail) => {
      this.#say(name, `${head}${escapeJson(piece)}${tail}`);
    });
  }

  /** Event names are our own and need no escaping; no event is without members. */
  #say(name: string, members: string): void {
    const data = `{"type":"${name}","sequence_number":${this.#sequence},${members}`;
    this.#sequence += 1;
    this.#out.push({ event: name, data, oneLine: true });
  }

  push(step: Step, out: Frame[]): void {
    if (this.ended) return;
    this.#out = out;
    const native = step.native?.dialect === DIALECT ? step.native : undefined;
    this.#manner ??= native === undefined ? 'written' : 'spliced';
    if (this.#manner === 'spliced' && native !== undefined) this.#splice(native, step.events);
    else this.#write(step.events);
  }

  end(out: Frame[]): void {
    // The decoder's end has thrown before where this would be a truncation; nothing is said twice.
    this.#out = out;
  }

  fail(error: GatewayError, out: Frame[]): void {
    if (this.ended) return;
    this.#out = out;
    this.#terminate({ status: 'failed', error });
  }

  /** The terminal event alone is the ending: what stands before it is said. */
  failInstead(error: GatewayError, out: Frame[]): void {
    out.pop();
    this.#sequence -= 1;
    this.ended = false;
    this.fail(error, out);
  }

  #write(events: readonly CanonicalEvent[]): void {
    // Refusals come before any word of the step, so that what was said and what is remembered stay one.
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
          if (this.#manner === 'written') this.#writer.write(event);
      }
    }
  }

  #begin(createdAt?: number): void {
    if (this.#response !== undefined) return;
    this.#response = emptyResponse(this.#context, createdAt);
    this.#emit('response.created', { response: this.#response });
    this.#emit('response.in_progress', { response: this.#response });
  }

  /** Ends in the gateway's own words: open items first, then the terminal with what was said. */
  #terminate(outcome: Outcome): void {
    this.#begin();
    this.#writer.finish();
    const isCut = outcome.status !== 'completed';
    for (const item of this.#native.values()) closeItem(item, isCut ? 'incomplete' : 'completed', this.#emit);
    const told = this.#manner === 'spliced' ? this.#native.values() : this.#writer.told;
    const response = finishedResponse(this.#context, this.#response ?? {}, finishedItems(told), this.#usage, outcome);
    this.#emit(`response.${String(response['status'])}`, { response });
    this.ended = true;
  }

  #splice(native: Native, events: readonly CanonicalEvent[]): void {
    if (this.#continues(native)) return;
    const { name } = native;
    if (!isObject(native.json)) return;
    const json = this.#identified(native.json);
    for (const event of events) if (event.type === 'usage.report') this.#usage = mergeUsage(this.#usage, event.usage);
    const end = events.find((event) => event.type === 'response.end');
    const response = json['response'];
    if (end !== undefined) {
      // A bare `error` event is no ending that agents understand, nor is a terminal without its response.
      if (isObject(response)) this.#spliceEnd(native.text, json, response, end.outcome);
      else this.#terminate(end.outcome);
      return;
    }
    const edits = eventEdits(name, native.json, this.#context);
    if (json !== native.json && isObject(json['item']))
      edits.push({ path: ['item', 'id'], value: JSON.stringify(json['item']['id']) });
    // Some upstreams say it in the frame alone.
    if (json['type'] !== name) edits.push({ path: ['type'], value: JSON.stringify(name) });
    edits.push(...identityEdits(this.#native.get(Number(json['output_index'])), name, json));
    if (isObject(response)) {
      append(edits, responseEdits(['response'], response, this.#context, undefined));
      const shown = this.#shown(response);
      if (this.#response === undefined && name !== 'response.created') this.#emit('response.created', { response: shown });
      this.#response = shown;
    }
    this.#announce(name, json, events);
    edits.push(...this.#number(json));
    const text = editJson(native.text, edits);
    this.#out.push({ event: name, data: text });
    noteNative(this.#native, name, json, text);
    this.#run(native, json, edits);
  }

  /** An item that its upstream gives no id gets one with its first event: SDKs take no item without. */
  #identified(json: JsonObject): JsonObject {
    const { item, output_index: index } = json;
    if (!isObject(item) || this.#native.has(Number(index))) return json;
    const id = missingId(item, this.#context.mint);
    return id === undefined ? json : { ...json, item: { ...item, id } };
  }

  /** True for a delta like the one before, which is said and noted. */
  #continues(native: Native): boolean {
    const running = this.#running;
    if (running === undefined || native.repeat === undefined) return false;
    const frame = this.#repeated.apply(native, native.name);
    if (frame === undefined || holeValue(native.repeat, running.number) !== this.#sequence) return false;
    running.part.text = grown(running.part.text, String(holeValue(native.repeat, running.piece)));
    this.#sequence += 1;
    this.#out.push(frame);
    return true;
  }

  #run(native: Native, json: JsonObject, edits: readonly JsonEdit[]): void {
    this.#running = undefined;
    this.#repeated.forget();
    const { repeat } = native;
    const part = repeat === undefined || edits.length > 0 ? undefined : toldText(this.#native, native.name, json);
    if (repeat === undefined || part === undefined) return;
    const piece = holeAt(repeat.shape, DELTA);
    const number = holeAt(repeat.shape, SEQUENCE_NUMBER);
    if (piece === -1 || number === -1) return;
    this.#repeated.note(native, edits);
    this.#running = { part, piece, number };
  }

  /** What an upstream leaves out of an item is said first: clients place what follows by the items and parts they know. */
  #announce(name: string, json: JsonObject, events: readonly CanonicalEvent[]): void {
    const { item, output_index: index } = json;
    if (typeof index !== 'number') return;
    const known = this.#native.get(index);
    if (name === 'response.output_item.added') {
      // A message that ends with the beginning of another item has no end of its own (`places.ts`).
      if (events.some((event) => event.type === 'item.end')) this.#closeMessages();
    } else if (name !== 'response.output_item.done') {
      if (known === undefined) return;
      beginUnbegun(known, name, json, this.#emit);
      sayUnsaid(known, name, json, this.#emit);
    } else if (isObject(item)) {
      const told = known ?? announceItem(index, item, this.#emit);
      this.#native.set(index, told);
      if (known?.final === undefined) sayContent(told, item, this.#emit);
      closeParts(told, this.#emit);
    }
  }

  #closeMessages(): void {
    for (const told of this.#native.values()) if (told.type === 'message') closeItem(told, 'completed', this.#emit);
  }

  /** The upstream's own terminal, behind the events that it owes. */
  #spliceEnd(text: string, json: JsonObject, response: JsonObject, outcome: Outcome): void {
    const createdAt = response['created_at'];
    this.#begin(typeof createdAt === 'number' ? createdAt : undefined);
    const shown = `response.${outcome.status === 'cancelled' ? 'failed' : outcome.status}`;
    let edits = responseEdits(['response'], response, this.#context, outcome);
    if (json['type'] !== shown) edits.push({ path: ['type'], value: JSON.stringify(shown) });
    let said = text;
    if (owesItems(this.#native, response, outcome)) {
      said = editJson(text, edits);
      const output = settleItems(this.#native, said, outcome, this.#emit, this.#context.mint);
      edits = output === undefined ? [] : [{ path: ['response', 'output'], value: output }];
    }
    edits.push(...this.#number(json));
    this.#out.push({ event: shown, data: editJson(said, edits) });
    this.ended = true;
  }

  #shown(response: JsonObject): JsonObject {
    const { responseId, model, request } = this.#context;
    const previous = request.previousResponseId;
    return {
      ...response,
      id: responseId,
      model,
      output: response['output'] ?? [],
      ...(previous === undefined ? {} : { previous_response_id: previous }),
    };
  }

  /** Numbers count on from 0, whatever the upstream counts: it may leave them out, or other events came between. */
  #number(json: JsonObject): JsonEdit[] {
    const number = this.#sequence++;
    return json['sequence_number'] === number ? [] : [{ path: ['sequence_number'], value: String(number) }];
  }
}

/** Clients know an item by the id that it was announced with: what is said of it under another (known failure R19) or none says that one. */
function identityEdits(item: ToldItem | undefined, name: string, json: JsonObject): JsonEdit[] {
  if (item === undefined || item.id === '') return [];
  if (name === 'response.output_item.done') {
    const isSame = !isObject(json['item']) || json['item']['id'] === item.id;
    return isSame ? [] : [{ path: ['item', 'id'], value: JSON.stringify(item.id) }];
  }
  // Commands of a shell name their item by its index alone.
  const isSame = json['item_id'] === item.id || name.startsWith('response.shell_call_command.');
  return isSame ? [] : [{ path: ['item_id'], value: JSON.stringify(item.id) }];
}
