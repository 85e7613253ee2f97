/**
 * Canonical items as content blocks, strictly one after another (M4): the open tool call streams live, later items wait for
 * its end and follow in order; text and thinking give way as soon as another item has something to say. Blocks open at
 * their first content (M2). Knows nothing of message_start and endings.
 */
import { grown } from '../canonical/grown.ts';
import type { ItemDelta, ItemHead } from '../canonical/event.ts';
import type { ItemStatus, OutputItem } from '../canonical/item.ts';
import { escapeJson, isObject, isObjectText, type JsonObject } from '../canonical/json.ts';
import type { Frame, ResponseContext } from '../codec.ts';
import {
  attachedSignature,
  checkInput,
  citationBodies,
  isRedacted,
  joinSummary,
  mediaRefused,
  PART_BREAK,
  thinkingText,
  wireInput,
} from './message-parts.ts';
import { saysNoArguments } from './wire.ts';

interface Entry {
  readonly head: ItemHead;
  /** Everything said of this item so far, written or waiting. */
  said: string;
  /** The end of `said` that is not on the wire yet. Kept apart: cutting it out of `said` would copy all of that for every piece. */
  unwritten: string;
  face: 'raw' | 'summary' | undefined;
  part: number;
  readonly citations: JsonObject[];
  citationsWritten: number;
  waiting: boolean;
  end: { readonly item: OutputItem; readonly status: ItemStatus } | undefined;
}

export class BlockWriter {
  readonly #context: ResponseContext;
  readonly #entries: Entry[] = [];
  readonly #queue: Entry[] = [];
  #active: Entry | undefined;
  #next = 0;
  /** How every piece of the open block begins. */
  #pieces: { readonly type: string; readonly index: number; readonly head: string } | undefined;
  /** A tool_use block was said; a refusal was said; a call ended without whole arguments. */
  calledTool = false;
  refused = false;
  leftUnfinished = false;

  constructor(context: ResponseContext) {
    this.#context = context;
  }

  start(head: ItemHead, out: Frame[]): void {
    if (head.kind === 'media') throw mediaRefused();
    if (head.kind === 'refusal') this.refused = true;
    const entry: Entry = {
      head,
      said: '',
      unwritten: '',
      face: undefined,
      part: 0,
      citations: [],
      citationsWritten: 0,
      waiting: false,
      end: undefined,
    };
    this.#entries.push(entry);
    if (head.kind === 'toolCall') this.#advance(entry, out);
  }

  delta(index: number, delta: ItemDelta, out: Frame[]): void {
    const entry = this.#entries[index];
    if (entry === undefined) return;
    if (delta.kind === 'citation') {
      if (delta.citation.kind === 'native' && delta.citation.dialect === 'messages') entry.citations.push(delta.citation.body);
    } else {
      say(entry, sayable(entry, delta));
    }
    if (hasUnwritten(entry)) this.#advance(entry, out);
  }

  /** `item` is authoritative: only what its deltas did not say yet is written. */
  end(index: number, item: OutputItem, status: ItemStatus, out: Frame[]): void {
    const entry = this.#entries[index];
    if (entry === undefined) return;
    if (item.kind === 'media') throw mediaRefused();
    entry.end = { item, status };
    complete(entry, item);
    if (item.kind === 'toolCall') {
      if (status === 'completed') checkInput(item);
      else if (!isObjectText(wireInput(item))) this.leftUnfinished = true;
    }
    if (entry === this.#active || hasMore(entry, item)) this.#advance(entry, out);
  }

  /** Writes what waits and closes what is open: nothing more will be said. */
  finish(out: Frame[]): void {
    for (const entry of this.#entries) {
      if (entry.head.kind === 'toolCall' && entry.end === undefined) {
        this.leftUnfinished = true;
        entry.end = { item: { kind: 'toolCall', ...callOf(entry.head), input: entry.said }, status: 'incomplete' };
      }
    }
    this.#closeActive(out);
    this.#drain(out);
    this.#closeActive(out);
  }

  /** Brings the entry to the wire, now or when its turn comes. */
  #advance(entry: Entry, out: Frame[]): void {
    if (entry === this.#active) this.#write(entry, out);
    else if (this.#active === undefined || !holds(this.#active)) {
      this.#closeActive(out);
      this.#activate(entry, out);
    } else if (!entry.waiting) {
      entry.waiting = true;
      this.#queue.push(entry);
    }
    if (entry === this.#active && entry.end !== undefined) {
      this.#closeActive(out);
      this.#drain(out);
    }
  }

  #drain(out: Frame[]): void {
    while (this.#queue.length > 0 && (this.#active === undefined || !holds(this.#active))) {
      const entry = this.#queue.shift();
      if (entry === undefined) return;
      entry.waiting = false;
      this.#closeActive(out);
      this.#activate(entry, out);
      if (entry.end !== undefined) this.#closeActive(out);
    }
  }

  #activate(entry: Entry, out: Frame[]): void {
    const block = this.#startForm(entry);
    if (block === undefined) {
      this.#sign(entry, out);
      return;
    }
    this.#active = entry;
    if (entry.head.kind === 'toolCall') this.calledTool = true;
    out.push(frame({ type: 'content_block_start', index: this.#next, content_block: block }));
    this.#write(entry, out);
  }

  /** The block's form at its start; undefined where the item has nothing to say here. */
  #startForm(entry: Entry): JsonObject | undefined {
    const { head, end } = entry;
    switch (head.kind) {
      case 'text':
      case 'refusal':
        if (!hasUnwritten(entry)) return undefined;
        return { type: 'text', ...(entry.citations.length > 0 ? { citations: [] } : {}), text: '' };
      case 'toolCall':
        return { type: 'tool_use', id: head.callId, name: head.tool.name, input: {} };
      case 'reasoning': {
        const opaque = end?.item.kind === 'reasoning' ? end.item.opaque : undefined;
        if (opaque !== undefined && isRedacted(opaque) && entry.said === '') {
          return { type: 'redacted_thinking', data: this.#context.seal(opaque) };
        }
        return { type: 'thinking', thinking: '', signature: '' };
      }
      case 'native': {
        const body = end?.item.kind === 'native' && end.item.dialect === 'messages' ? end.item.body : undefined;
        return isObject(body) ? body : undefined;
      }
      case 'media':
        return undefined;
    }
  }

  #write(entry: Entry, out: Frame[]): void {
    while (entry.citationsWritten < entry.citations.length) {
      this.#delta({ type: 'citations_delta', citation: entry.citations[entry.citationsWritten++] }, out);
    }
    const text = entry.unwritten;
    if (text === '') return;
    entry.unwritten = '';
    switch (entry.head.kind) {
      case 'text':
      case 'refusal':
        this.#piece('text_delta', 'text', text, out);
        return;
      case 'reasoning':
        this.#piece('thinking_delta', 'thinking', text, out);
        return;
      case 'toolCall':
        this.#piece('input_json_delta', 'partial_json', text, out);
        return;
    }
  }

  #closeActive(out: Frame[]): void {
    const entry = this.#active;
    if (entry === undefined) return;
    const item = entry.end?.item;
    if (item?.kind === 'reasoning' && item.opaque !== undefined && !(isRedacted(item.opaque) && entry.said === '')) {
      this.#delta({ type: 'signature_delta', signature: this.#context.seal(item.opaque) }, out);
    }
    this.#stop(out);
    this.#active = undefined;
    this.#sign(entry, out);
  }

  /** The block after a signed text or call. */
  #sign(entry: Entry, out: Frame[]): void {
    const signature = entry.end === undefined ? undefined : attachedSignature(entry.end.item, this.#context);
    if (signature === undefined) return;
    const block = { type: 'thinking', thinking: '', signature: '' };
    out.push(frame({ type: 'content_block_start', index: this.#next, content_block: block }));
    this.#delta({ type: 'signature_delta', signature }, out);
    this.#stop(out);
  }

  /** Most of what a stream says: only the piece is written anew. */
  #piece(type: string, member: string, text: string, out: Frame[]): void {
    if (this.#pieces?.type !== type || this.#pieces.index !== this.#next) {
      const head = `{"type":"content_block_delta","index":${this.#next},"delta":{"type":"${type}","${member}":"`;
      this.#pieces = { type, index: this.#next, head };
    }
    out.push({ event: 'content_block_delta', data: `${this.#pieces.head}${escapeJson(text)}"}}`, oneLine: true });
  }

  #delta(delta: JsonObject, out: Frame[]): void {
    out.push(frame({ type: 'content_block_delta', index: this.#next, delta }));
  }

  #stop(out: Frame[]): void {
    out.push(frame({ type: 'content_block_stop', index: this.#next }));
    this.#next += 1;
  }
}

export function frame(payload: JsonObject & { readonly type: string }): Frame {
  return { event: payload.type, data: JSON.stringify(payload) };
}

/** A call in progress may still say more: nothing may come between its deltas. */
function holds(entry: Entry): boolean {
  return entry.head.kind === 'toolCall' && entry.end === undefined;
}

function say(entry: Entry, text: string): void {
  entry.said = grown(entry.said, text);
  entry.unwritten += text;
}

/** The part of a delta that goes on the wire. Of raw text and summary the face that speaks first is shown. */
function sayable(entry: Entry, delta: Exclude<ItemDelta, { kind: 'citation' }>): string {
  switch (delta.kind) {
    case 'text':
      return delta.text;
    case 'input':
      if (entry.head.kind === 'toolCall' && entry.head.flavour === 'custom') return '';
      // No beginning of an object: what it means is said when the call ends.
      return entry.said === '' && saysNoArguments(delta.text) ? '' : delta.text;
    case 'raw':
      entry.face ??= delta.text === '' ? undefined : 'raw';
      return entry.face === 'raw' ? delta.text : '';
    case 'summary': {
      entry.face ??= delta.text === '' ? undefined : 'summary';
      if (entry.face !== 'summary' || delta.text === '') return '';
      const breaks = entry.said !== '' && delta.part !== entry.part;
      entry.part = delta.part;
      return breaks ? PART_BREAK + delta.text : delta.text;
    }
  }
}

/** Adds what the whole item says beyond its deltas. A summary that was reworded stays as it was streamed. */
function complete(entry: Entry, item: OutputItem): void {
  const whole = wholeText(entry, item);
  if (whole.length > entry.said.length && whole.startsWith(entry.said)) say(entry, whole.slice(entry.said.length));
  if (item.kind === 'text') {
    for (const body of citationBodies(item).slice(entry.citations.length)) entry.citations.push(body);
  }
}

function wholeText(entry: Entry, item: OutputItem): string {
  switch (item.kind) {
    case 'text':
    case 'refusal':
      return item.text;
    case 'reasoning':
      return entry.face === 'summary' ? joinSummary(item.summary) : thinkingText(item);
    case 'toolCall':
      return entry.end?.status === 'incomplete' && item.flavour === 'function' ? item.input : wireInput(item);
    default:
      return '';
  }
}

function hasUnwritten(entry: Entry): boolean {
  return entry.unwritten !== '' || entry.citationsWritten < entry.citations.length;
}

/** True when an ended item still has something for the wire: text, a whole native block, an opaque value. */
function hasMore(entry: Entry, item: OutputItem): boolean {
  if (hasUnwritten(entry) || item.kind === 'toolCall') return true;
  // What only another dialect can read is nothing here, and closes nothing.
  if (item.kind === 'native') return item.dialect === 'messages';
  return (item.kind === 'reasoning' || item.kind === 'text') && item.opaque !== undefined;
}

function callOf(head: Extract<ItemHead, { kind: 'toolCall' }>) {
  return { flavour: head.flavour, callId: head.callId, tool: head.tool };
}
