/**
 * Reads the events of a responses upstream as the protocol has them, ahead of everything else. What follows, and a client of the
 * same dialect, know one way of counting items (`repair-indices.ts`), no final form that leaves out what was streamed
 * (`backfill.ts`), no item or part without its beginning and its end and no whole text without its pieces (`missing-events.ts`),
 * and no item that stands only in the terminal or not there (`align-terminal.ts`).
 */
import { isObject, type JsonObject } from '../../canonical/json.ts';
import type { Frame } from '../../codec.ts';
import { specOf } from '../lifecycle.ts';
import { alignTerminal } from './align-terminal.ts';
import { backfillEdits } from './backfill.ts';
import {
  emitMissing,
  emitMissingPart,
  emitMissingPiece,
  emitMissingTextDone,
  type Insert,
  InsertedEvent,
  toldItem,
} from './missing-events.ts';
import { IndexRepair } from './repair-indices.ts';
import { closeItem } from './sent-items.ts';
import type { Slot } from './slot.ts';
import { checkId, edited, type EventText, type NamedEvent, nonEmptyString, parseEvent } from '../wire.ts';

export interface NormalEvent extends NamedEvent, EventText {
  /** Its indices are its upstream's own, so that the next event of its shape needs no repair either. */
  readonly isPlain: boolean;
  /** The events that should stand before it and that its upstream left out. */
  readonly missing: readonly InsertedEvent[];
}

/**
 * Events that only keep the connection open: the vendor's own, which some official clients do not know, and a router's. They are
 * dropped.
 */
const KEEP_ALIVES: ReadonlySet<string> = new Set(['keepalive', 'ping', 'response.keep_alive']);

export class Normaliser {
  readonly #indices = new IndexRepair();
  readonly #slots: ReadonlyMap<number, Slot>;

  /** `slots`: the items so far, by their index. */
  constructor(slots: ReadonlyMap<number, Slot>) {
    this.#slots = slots;
  }

  /** Undefined for an event that is dropped. Throws GatewayError blaming the upstream. */
  read(frame: Frame): NormalEvent | undefined {
    const given = parseFrame(frame);
    if (given === undefined) return undefined;
    const name = nameOf(frame, given.json);
    if (KEEP_ALIVES.has(name)) return undefined;
    const repaired = this.#indices.repair(name, given.json);
    const counted = repaired === undefined ? given : edited(given, repaired.edits);
    checkIds(counted.json);
    const missing: InsertedEvent[] = [];
    const insert: Insert = (inserted, body, ending) => missing.push(new InsertedEvent(inserted, body, ending));
    if (repaired?.displaced !== undefined) this.#displace(repaired.displaced, insert);
    const whole =
      specOf(name).stream === 'terminal'
        ? alignTerminal(name, counted, this.#slots, insert)
        : edited(counted, backfillEdits(name, counted.json, this.#slots));
    this.#complete(name, whole.json, insert);
    return { name, ...whole, isPlain: repaired === undefined, missing };
  }

  /** Ends a message whose index another item took: nothing more comes of it. */
  #displace(index: number, insert: Insert): void {
    const slot = this.#slots.get(index);
    if (slot === undefined || slot.closed) return;
    slot.isDisplaced = true;
    closeItem(toldItem(slot), 'completed', (name, body) => insert(name, body, { as: 'streamed', status: 'completed' }));
  }

  /** Inserts what an event within an item, or its end, should have before it. */
  #complete(name: string, json: JsonObject, insert: Insert): void {
    const { item: verb, part, input } = specOf(name);
    const { item, output_index: index } = json;
    if (typeof index !== 'number') return;
    const slot = this.#slots.get(index);
    if (slot?.closed === true) return;
    if (verb === 'done') {
      if (isObject(item) && (slot?.type ?? item['type']) === item['type']) emitMissing(slot, index, item, insert);
    } else if (slot !== undefined) {
      if (part === 'delta' || part === 'textDone') emitMissingPart(slot, name, json, insert);
      if (part === 'textDone' || input === 'done') emitMissingPiece(slot, name, json, insert);
      else if (part === 'done') emitMissingTextDone(slot, json, insert);
    }
  }
}

/** Undefined for data that is not JSON in an event that is not of this protocol: unknown events never fail a stream. */
function parseFrame(frame: Frame): EventText | undefined {
  try {
    return parseEvent(frame.data, frame.json, frame.ends);
  } catch (error) {
    const name = frame.event ?? '';
    if (name === '' || name === 'message' || name === 'error' || name.startsWith('response.')) throw error;
    return undefined;
  }
}

/** The payload's `type`, else the SSE event name; a bare `{error: …}` is an error event. */
function nameOf(frame: Frame, json: JsonObject): string {
  const type = nonEmptyString(json, 'type') ?? frame.event;
  if (type !== undefined && type !== '') return type;
  return isObject(json['error']) ? 'error' : 'message';
}

/** Of the item that an event holds, or of those that a terminal lists. */
function checkIds({ item, response }: JsonObject): void {
  checkId(item);
  const output = isObject(response) ? response['output'] : undefined;
  if (Array.isArray(output)) for (const listed of output) checkId(listed);
}
