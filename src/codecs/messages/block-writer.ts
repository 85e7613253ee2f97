/**
 * Canonical items as content blocks, one open at a time. Items come in their turn (`encode-events.ts`). A text or a thought gives way as soon
 * as another item has something to say, and what it says after that is a block of its own. Blocks open at their first content (M2). Knows
 * nothing of message_start and endings.
 */
import type { ItemEvent } from '../answers/turns.ts';
import { grown } from '../canonical/grown.ts';
import type { ItemDelta, ItemHead } from '../canonical/event.ts';
import type { ItemStatus, OutputItem } from '../canonical/item.ts';
import { escapeJson, isObject, isObjectText, type JsonObject } from '../canonical/json.ts';
import type { Opaque } from '../canonical/opaque.ts';
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
  /** Everything said of this item so far. */
  said: string;
  face: 'raw' | 'summary' | undefined;
  part: number;
  /** How many citations were said of it. */
  citations: number;
}

const EMPTY_THINKING = { type: 'thinking', thinking: '', signature: '' } as const;

export class BlockWriter {
  readonly #context: ResponseContext;
  readonly #entries: Entry[] = [];
  /** Whose block is open. */
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

  write(event: ItemEvent, out: Frame[]): void {
    switch (event.type) {
      case 'item.start':
        this.#start(event.index, event.head, out);
        return;
      case 'item.delta': {
        const entry = this.#entries[event.index];
        if (entry !== undefined) this.#delta(entry, event.delta, out);
        return;
      }
      case 'item.end': {
        const entry = this.#entries[event.index];
        if (entry !== undefined) this.#end(entry, event.item, event.status, out);
        return;
      }
    }
  }

  /** Nothing more is said. */
  finish(out: Frame[]): void {
    if (this.#active?.head.kind === 'toolCall') this.leftUnfinished = true;
    this.#close(out);
  }

  #start(index: number, head: ItemHead, out: Frame[]): void {
    if (head.kind === 'refusal') this.refused = true;
    const entry: Entry = { head, said: '', face: undefined, part: 0, citations: 0 };
    this.#entries[index] = entry;
    if (head.kind !== 'toolCall') return;
    this.calledTool = true;
    this.#open(entry, { type: 'tool_use', id: head.callId, name: head.tool.name, input: {} }, out);
  }

  #delta(entry: Entry, delta: ItemDelta, out: Frame[]): void {
    if (delta.kind !== 'citation') this.#say(entry, sayable(entry, delta), out);
    else if (delta.citation.kind === 'native' && delta.citation.dialect === 'messages')
      this.#cite(entry, [delta.citation.body], out);
  }

  /** `item` is authoritative: only what its deltas did not say yet is written. */
  #end(entry: Entry, item: OutputItem, status: ItemStatus, out: Frame[]): void {
    if (item.kind === 'media') throw mediaRefused();
    if (item.kind === 'text') this.#cite(entry, citationBodies(item).slice(entry.citations), out);
    this.#say(entry, unsaid(entry, item, status), out);
    if (item.kind === 'toolCall') {
      if (status === 'completed') checkInput(item);
      else if (!isObjectText(wireInput(item))) this.leftUnfinished = true;
    }
    if (item.kind === 'reasoning' && item.opaque !== undefined) this.#sign(entry, item.opaque, out);
    // What only another dialect can read is nothing here, and closes nothing.
    if (item.kind === 'native' && item.dialect === 'messages' && isObject(item.body)) this.#open(entry, item.body, out);
    if (entry === this.#active) this.#close(out);
    const signature = attachedSignature(item, this.#context);
    if (signature === undefined) return;
    // The block after a signed text or call.
    this.#open(entry, EMPTY_THINKING, out);
    this.#sayDelta({ type: 'signature_delta', signature }, out);
    this.#close(out);
  }

  #sign(entry: Entry, opaque: Opaque, out: Frame[]): void {
    const sealed = this.#context.seal(opaque);
    if (isRedacted(opaque) && entry.said === '') {
      this.#open(entry, { type: 'redacted_thinking', data: sealed }, out);
      return;
    }
    this.#turnTo(entry, out);
    this.#sayDelta({ type: 'signature_delta', signature: sealed }, out);
  }

  #say(entry: Entry, text: string, out: Frame[]): void {
    if (text === '') return;
    entry.said = grown(entry.said, text);
    this.#turnTo(entry, out);
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

  #cite(entry: Entry, bodies: readonly JsonObject[], out: Frame[]): void {
    for (const citation of bodies) {
      entry.citations += 1;
      this.#turnTo(entry, out);
      this.#sayDelta({ type: 'citations_delta', citation }, out);
    }
  }

  /** Makes the block of a text or a thought the open one. */
  #turnTo(entry: Entry, out: Frame[]): void {
    if (entry === this.#active) return;
    const block =
      entry.head.kind === 'reasoning'
        ? EMPTY_THINKING
        : { type: 'text', ...(entry.citations > 0 ? { citations: [] } : {}), text: '' };
    this.#open(entry, block, out);
  }

  #open(entry: Entry, block: JsonObject, out: Frame[]): void {
    this.#close(out);
    this.#active = entry;
    out.push(frame({ type: 'content_block_start', index: this.#next, content_block: block }));
  }

  /** Most of what a stream says: only the piece is written anew. */
  #piece(type: string, member: string, text: string, out: Frame[]): void {
    if (this.#pieces?.type !== type || this.#pieces.index !== this.#next) {
      const head = `{"type":"content_block_delta","index":${this.#next},"delta":{"type":"${type}","${member}":"`;
      this.#pieces = { type, index: this.#next, head };
    }
    out.push({ event: 'content_block_delta', data: `${this.#pieces.head}${escapeJson(text)}"}}`, oneLine: true });
  }

  #sayDelta(delta: JsonObject, out: Frame[]): void {
    out.push(frame({ type: 'content_block_delta', index: this.#next, delta }));
  }

  #close(out: Frame[]): void {
    if (this.#active === undefined) return;
    this.#active = undefined;
    out.push(frame({ type: 'content_block_stop', index: this.#next }));
    this.#next += 1;
  }
}

export function frame(payload: JsonObject & { readonly type: string }): Frame {
  return { event: payload.type, data: JSON.stringify(payload) };
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

/** What the whole item says beyond its deltas. A summary that was reworded stays as it was streamed. */
function unsaid(entry: Entry, item: OutputItem, status: ItemStatus): string {
  const whole = wholeText(entry, item, status);
  return whole.startsWith(entry.said) ? whole.slice(entry.said.length) : '';
}

function wholeText(entry: Entry, item: OutputItem, status: ItemStatus): string {
  switch (item.kind) {
    case 'text':
    case 'refusal':
      return item.text;
    case 'reasoning':
      return entry.face === 'summary' ? joinSummary(item.summary) : thinkingText(item);
    case 'toolCall':
      return status === 'incomplete' && item.flavour === 'function' ? item.input : wireInput(item);
    default:
      return '';
  }
}
