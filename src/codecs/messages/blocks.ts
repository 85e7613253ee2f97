/**
 * One content block of an answer, from its start to its stop, as canonical events. A whole JSON answer drives the same
 * blocks with complete starts and no deltas, so that stream and non-stream cannot differ. Order is `lifecycle.ts`.
 */
import { grown } from '../canonical/grown.ts';
import type { CanonicalEvent } from '../canonical/event.ts';
import type { Citation, ItemStatus, OutputItem } from '../canonical/item.ts';
import { isObject, type JsonObject, type JsonValue } from '../canonical/json.ts';
import type { Opaque, Owner } from '../canonical/opaque.ts';
import type { Block, BlockHost } from './block.ts';
import { type BlockKind, blockKind } from './lifecycle.ts';
import { MediaBlock, mediaOf } from './media-block.ts';
import { ToolBlock } from './tool-block.ts';
import { malformed, mayString, needString, parseObject } from './wire.ts';

/**
 * The reader of a block. `inputText` gives the exact text of its `input` member, undefined where that is no more than a placeholder.
 * Throws GatewayError blaming the upstream when a needed member is missing.
 */
export function openBlock(block: JsonObject, inputText: () => string | undefined, host: BlockHost): Block {
  const kind = blockKind(needString(block, 'type', 'content_block_start'));
  switch (kind) {
    case 'text':
      return new TextBlock(block, host);
    case 'thinking':
      return new ThinkingBlock(block, host);
    case 'redacted':
      return new RedactedBlock(needString(block, 'data', 'redacted_thinking'), host);
    case 'tool':
      return new ToolBlock(block, inputText, host);
    case 'media': {
      const media = mediaOf(block);
      return media === undefined ? new NativeBlock('native', block, host) : new MediaBlock(media, host);
    }
    case 'serverTool':
    case 'compaction':
    case 'fixed':
    case 'native':
      return new NativeBlock(kind, block, host);
  }
}

/** A block that arrived at once. Throws GatewayError blaming the upstream. */
export function readWholeBlock(
  json: JsonValue,
  status: ItemStatus,
  inputText: () => string | undefined,
  host: BlockHost,
  out: CanonicalEvent[],
): Block {
  if (!isObject(json)) throw malformed('a content block is not an object');
  const block = openBlock(json, inputText, host);
  block.start(out);
  if (!block.stop(status, out)) throw malformed('the input of a tool call is not a JSON object');
  return block;
}

/** The label of `redacted_thinking` data among the opaque values of this dialect. */
export const REDACTED = 'redacted';

export function signatureOpaque(owner: Owner, value: string): Opaque {
  return { owner, value };
}

export function redactedOpaque(owner: Owner, value: string): Opaque {
  return { owner, value, form: REDACTED };
}

/** Says nothing until there is text or a citation: upstreams open empty text blocks. */
class TextBlock implements Block {
  readonly kind = 'text';
  readonly #host: BlockHost;
  readonly #seed: string;
  readonly #seedCitations: readonly JsonObject[];
  readonly #citations: Citation[] = [];
  #index: number | undefined;
  #text = '';

  constructor(block: JsonObject, host: BlockHost) {
    this.#host = host;
    this.#seed = needString(block, 'text', 'text block');
    const citations = block['citations'];
    this.#seedCitations = Array.isArray(citations) ? citations.filter(isObject) : [];
  }

  start(out: CanonicalEvent[]): void {
    for (const citation of this.#seedCitations) this.#cite(citation, out);
    this.say(this.#seed, out);
  }

  delta(delta: JsonObject, out: CanonicalEvent[]): void {
    if (delta['type'] === 'text_delta') this.say(needString(delta, 'text', 'text_delta'), out);
    if (delta['type'] === 'citations_delta') {
      const citation = delta['citation'];
      if (!isObject(citation)) throw malformed('citations_delta: citation is not an object');
      this.#cite(citation, out);
    }
  }

  stop(status: ItemStatus, out: CanonicalEvent[]): boolean {
    this.#end(status, out);
    return true;
  }

  cut(out: CanonicalEvent[]): void {
    this.#end('incomplete', out);
  }

  say(text: string, out: CanonicalEvent[]): void {
    if (text === '') return;
    this.#text = grown(this.#text, text);
    out.push({ type: 'item.delta', index: this.#begin(out), delta: { kind: 'text', text } });
  }

  #cite(body: JsonObject, out: CanonicalEvent[]): void {
    const citation: Citation = { kind: 'native', dialect: 'messages', body };
    this.#citations.push(citation);
    out.push({ type: 'item.delta', index: this.#begin(out), delta: { kind: 'citation', citation } });
  }

  #begin(out: CanonicalEvent[]): number {
    if (this.#index === undefined) {
      this.#index = this.#host.nextIndex();
      out.push({ type: 'item.start', index: this.#index, head: { kind: 'text', role: 'assistant' } });
    }
    return this.#index;
  }

  #end(status: ItemStatus, out: CanonicalEvent[]): void {
    if (this.#index === undefined) return;
    const item: OutputItem = { kind: 'text', role: 'assistant', text: this.#text, citations: this.#citations };
    out.push({ type: 'item.end', index: this.#index, item, status });
  }
}

/** Thinking is a readable summary (spec rule 10); its signature is one opaque value, complete when the block stops. */
class ThinkingBlock implements Block {
  readonly kind = 'thinking';
  readonly #host: BlockHost;
  readonly #seed: string;
  #signature: string;
  #index: number | undefined;
  #text = '';

  constructor(block: JsonObject, host: BlockHost) {
    this.#host = host;
    this.#seed = mayString(block, 'thinking', 'thinking block') ?? '';
    this.#signature = mayString(block, 'signature', 'thinking block') ?? '';
  }

  start(out: CanonicalEvent[]): void {
    this.say(this.#seed, out);
  }

  delta(delta: JsonObject, out: CanonicalEvent[]): void {
    if (delta['type'] === 'thinking_delta') this.say(needString(delta, 'thinking', 'thinking_delta'), out);
    if (delta['type'] === 'signature_delta') this.#signature += needString(delta, 'signature', 'signature_delta');
  }

  stop(status: ItemStatus, out: CanonicalEvent[]): boolean {
    this.#end(status, out);
    return true;
  }

  /** A signature of a block that never stopped may be a fragment: it is left out. */
  cut(out: CanonicalEvent[]): void {
    this.#signature = '';
    this.#end('incomplete', out);
  }

  say(text: string, out: CanonicalEvent[]): void {
    if (text === '') return;
    this.#text = grown(this.#text, text);
    out.push({ type: 'item.delta', index: this.#begin(out), delta: { kind: 'summary', part: 0, text } });
  }

  #begin(out: CanonicalEvent[]): number {
    if (this.#index === undefined) {
      this.#index = this.#host.nextIndex();
      out.push({ type: 'item.start', index: this.#index, head: { kind: 'reasoning' } });
    }
    return this.#index;
  }

  #end(status: ItemStatus, out: CanonicalEvent[]): void {
    if (this.#text === '' && this.#signature === '') return;
    const item: OutputItem = {
      kind: 'reasoning',
      ...(this.#text === '' ? {} : { summary: [this.#text] }),
      ...(this.#signature === '' ? {} : { opaque: signatureOpaque(this.#host.context.owner, this.#signature) }),
    };
    out.push({ type: 'item.end', index: this.#begin(out), item, status });
  }
}

class RedactedBlock implements Block {
  readonly kind = 'redacted';
  readonly #host: BlockHost;
  readonly #data: string;
  #index = 0;

  constructor(data: string, host: BlockHost) {
    this.#host = host;
    this.#data = data;
  }

  start(out: CanonicalEvent[]): void {
    this.#index = this.#host.nextIndex();
    out.push({ type: 'item.start', index: this.#index, head: { kind: 'reasoning' } });
  }

  delta(): void {
    // Only unknown deltas fit, and they have no canonical reading.
  }

  stop(status: ItemStatus, out: CanonicalEvent[]): boolean {
    const opaque = redactedOpaque(this.#host.context.owner, this.#data);
    out.push({ type: 'item.end', index: this.#index, item: { kind: 'reasoning', opaque }, status });
    return true;
  }

  cut(out: CanonicalEvent[]): void {
    this.stop('incomplete', out);
  }
}

/** Server tools, their results, compaction and unknown blocks: one native item whose body is the assembled block. */
class NativeBlock implements Block {
  readonly kind: BlockKind;
  readonly #block: JsonObject;
  readonly #host: BlockHost;
  #index = 0;
  #input = '';
  #compaction: JsonObject | undefined;

  constructor(kind: BlockKind, block: JsonObject, host: BlockHost) {
    this.kind = kind;
    this.#block = block;
    this.#host = host;
  }

  start(out: CanonicalEvent[]): void {
    this.#index = this.#host.nextIndex();
    const { id, type, name } = this.#block;
    if (type === 'server_tool_use' && typeof name === 'string') this.#host.serverToolCalled(name);
    const head = { kind: 'native', dialect: 'messages', ...(typeof id === 'string' ? { id } : {}) } as const;
    out.push({ type: 'item.start', index: this.#index, head });
  }

  delta(delta: JsonObject): void {
    if (delta['type'] === 'input_json_delta') this.#input += needString(delta, 'partial_json', 'input_json_delta');
    if (delta['type'] === 'compaction_delta') this.#compaction = delta;
  }

  stop(status: ItemStatus, out: CanonicalEvent[]): boolean {
    if (this.#input !== '' && this.kind === 'serverTool' && parseObject(this.#input) === undefined) return false;
    this.#end(status, out);
    return true;
  }

  cut(out: CanonicalEvent[]): void {
    this.#end('incomplete', out);
  }

  #end(status: ItemStatus, out: CanonicalEvent[]): void {
    const input = this.#input === '' ? undefined : parseObject(this.#input);
    const { type: _, ...compaction } = this.#compaction ?? {};
    const body: JsonObject = { ...this.#block, ...compaction, ...(input === undefined ? {} : { input }) };
    const id = this.#block['id'];
    const item: OutputItem = { kind: 'native', dialect: 'messages', body, ...(typeof id === 'string' ? { id } : {}) };
    out.push({ type: 'item.end', index: this.#index, item, status });
  }
}
