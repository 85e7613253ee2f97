/**
 * Reads the events of a responses upstream as the protocol has them, ahead of everything else: what follows, and a client of the
 * same dialect, know one way of counting items (`repair-indices.ts`) and no final form that leaves out what was streamed
 * (`backfill.ts`).
 */
import { isObject, type JsonObject, tryJson } from '../../canonical/json.ts';
import type { Frame } from '../../codec.ts';
import { editJson } from '../../json/edit.ts';
import { backfillEdits } from './backfill.ts';
import { IndexRepair } from './repair-indices.ts';
import type { Slot } from './slot.ts';
import { malformed, nonEmptyString } from '../wire.ts';

export interface NormalEvent {
  readonly name: string;
  readonly text: string;
  readonly json: JsonObject;
  /** Its indices are its upstream's own, so that the next event of its shape needs no repair either. */
  readonly isPlain: boolean;
  /** The index of the open message whose index this event's item took: nothing more comes of it. */
  readonly displaced: number | undefined;
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
    const name = nameOf(frame, given);
    if (KEEP_ALIVES.has(name)) return undefined;
    const repaired = this.#indices.repair(name, given);
    const counted = repaired === undefined ? { text: frame.data, json: given } : edited(frame.data, repaired.edits);
    const missing = backfillEdits(name, counted.json, this.#slots);
    const whole = missing.length === 0 ? counted : edited(counted.text, missing);
    return { name, ...whole, isPlain: repaired === undefined, displaced: repaired?.displaced };
  }
}

function edited(text: string, edits: Parameters<typeof editJson>[1]): { readonly text: string; readonly json: JsonObject } {
  const result = editJson(text, edits);
  return { text: result, json: parseJsonObject(result) };
}

/** Undefined for data that is not JSON in an event that is not of this protocol: unknown events never fail a stream. */
function parseFrame(frame: Frame): JsonObject | undefined {
  try {
    return parseJsonObject(frame.data);
  } catch (error) {
    const name = frame.event ?? '';
    if (name === '' || name === 'message' || name === 'error' || name.startsWith('response.')) throw error;
    return undefined;
  }
}

function parseJsonObject(text: string): JsonObject {
  const json = tryJson(text);
  if (!isObject(json)) throw malformed('event');
  return json;
}

/** The payload's `type`, else the SSE event name; a bare `{error: …}` is an error event. */
function nameOf(frame: Frame, json: JsonObject): string {
  const type = nonEmptyString(json, 'type') ?? frame.event;
  if (type !== undefined && type !== '') return type;
  return isObject(json['error']) ? 'error' : 'message';
}
