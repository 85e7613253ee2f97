/** Where content blocks are written to: frames of a stream, or the content of a whole body. */
import { escapeJson, type JsonObject, type JsonValue } from '../../canonical/json.ts';
import type { Frame, OutFrame } from '../../codec.ts';
import type { JsonEdit } from '../../json/edit.ts';

/** The deltas that append to a text, and the member that holds it. */
const TEXT_MEMBERS = { text_delta: 'text', thinking_delta: 'thinking', input_json_delta: 'partial_json' } as const;
export type TextDelta = keyof typeof TEXT_MEMBERS;

export type Delta =
  | { readonly type: 'citations_delta'; readonly citation: JsonObject }
  | { readonly type: 'signature_delta'; readonly signature: string };

/** `index`: that of the block. One block is open at a time. */
export interface BlockSink {
  start(index: number, block: JsonObject): void;
  text(type: TextDelta, index: number, text: string): void;
  /** Several deltas of one type. */
  texts(type: TextDelta, index: number, texts: readonly string[]): void;
  delta(index: number, delta: Delta): void;
  stop(index: number): void;
}

const DELTA = 'content_block_delta';
const TAIL = '"}}';

export class FrameSink implements BlockSink {
  /** The batch of the current call. */
  out: OutFrame[] = [];
  /** What text deltas of the open block begin with. */
  #template: { readonly type: TextDelta; readonly index: number; readonly head: string } | undefined;

  start(index: number, block: JsonObject): void {
    this.out.push(frame({ type: 'content_block_start', index, content_block: block }));
  }

  /** Most events of a stream: only the text is serialised each time. */
  text(type: TextDelta, index: number, text: string): void {
    this.out.push({ event: DELTA, data: `${this.#headOf(type, index)}${escapeJson(text)}${TAIL}`, oneLine: true });
  }

  texts(type: TextDelta, index: number, texts: readonly string[]): void {
    this.out.push({ event: DELTA, head: this.#headOf(type, index), pieces: texts.map(escapeJson), tail: TAIL });
  }

  #headOf(type: TextDelta, index: number): string {
    if (this.#template?.type !== type || this.#template.index !== index) {
      const member = TEXT_MEMBERS[type];
      const head = `{"type":"content_block_delta","index":${index},"delta":{"type":"${type}","${member}":"`;
      this.#template = { type, index, head };
    }
    return this.#template.head;
  }

  delta(index: number, delta: Delta): void {
    this.out.push(frame({ type: 'content_block_delta', index, delta }));
  }

  stop(index: number): void {
    this.out.push(frame({ type: 'content_block_stop', index }));
  }
}

export function frame(payload: JsonObject & { readonly type: string }): Frame {
  return { event: payload.type, data: JSON.stringify(payload) };
}

/** Merges the deltas of each block as clients do. */
export class ContentSink implements BlockSink {
  readonly content: Record<string, JsonValue | undefined>[] = [];
  readonly #inputs = new Map<number, string>();

  start(_index: number, block: JsonObject): void {
    this.content.push({ ...block });
  }

  texts(type: TextDelta, index: number, texts: readonly string[]): void {
    this.text(type, index, texts.join(''));
  }

  text(type: TextDelta, index: number, text: string): void {
    const block = this.content[index];
    if (type === 'input_json_delta') this.#inputs.set(index, (this.#inputs.get(index) ?? '') + text);
    else if (block !== undefined) block[TEXT_MEMBERS[type]] = `${block[TEXT_MEMBERS[type]]}${text}`;
  }

  delta(index: number, delta: Delta): void {
    const block = this.content[index];
    if (block === undefined) return;
    if (delta.type === 'signature_delta') block['signature'] = delta.signature;
    else block['citations'] = [...(Array.isArray(block['citations']) ? block['citations'] : []), delta.citation];
  }

  stop(): void {
    // A block of a body has no end of its own.
  }

  /** The inputs of calls in their own text, so that key order and number spelling survive. */
  get inputEdits(): JsonEdit[] {
    return [...this.#inputs].map(([index, value]) => ({ path: ['content', index, 'input'], value }));
  }
}
