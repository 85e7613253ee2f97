/**
 * The readers of content blocks, by block kind: each turns one block of an answer into canonical events. In a whole JSON answer a block
 * is complete at its start and gets no deltas. The order of events was checked before (`lifecycle.ts`).
 */
import { grown } from '../../canonical/grown.ts';
import type { CanonicalEvent } from '../../canonical/event.ts';
import type { Citation, ItemStatus, MediaItem, OutputItem, ReasoningItem, Media, MediaSource } from '../../canonical/item.ts';
import { isObject, type JsonObject } from '../../canonical/json.ts';
import type { Block, BlockHost } from './block.ts';
import { type BlockKind, blockKind } from '../lifecycle.ts';
import { redactedOpaque, signatureOpaque } from '../opaque.ts';
import { ToolBlock } from './decode-tools.ts';
import { malformed, nullableString, needString, parseObject, needObject } from '../wire.ts';
import { sourceOfUrl } from '../../media.ts';

/**
 * The reader for a block. `inputText` returns the exact JSON text of its `input`, or undefined where that is only a placeholder.
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
      return new WholeBlock(
        kind,
        { kind: 'reasoning', opaque: redactedOpaque(host.context.owner, needString(block, 'data', 'redacted_thinking')) },
        host,
      );
    case 'tool':
      return new ToolBlock(block, inputText, host);
    case 'media': {
      const media = mediaOf(block);
      return media === undefined
        ? new NativeBlock('native', block, host)
        : new WholeBlock(kind, { kind: 'media', role: 'assistant', media }, host);
    }
    case 'serverTool':
    case 'compaction':
    case 'fixed':
    case 'native':
      return new NativeBlock(kind, block, host);
  }
}

/** Starts its item with the first text or citation, since upstreams also open text blocks that stay empty. */
class TextBlock implements Block {
  readonly kind = 'text';
  readonly #host: BlockHost;
  readonly #initialText: string;
  readonly #initialCitations: readonly JsonObject[];
  readonly #citations: Citation[] = [];
  #index: number | undefined;
  #text = '';

  constructor(block: JsonObject, host: BlockHost) {
    this.#host = host;
    this.#initialText = needString(block, 'text', 'text block');
    const citations = block['citations'];
    this.#initialCitations = Array.isArray(citations) ? citations.filter(isObject) : [];
  }

  start(out: CanonicalEvent[]): void {
    for (const citation of this.#initialCitations) this.#cite(citation, out);
    this.append(this.#initialText, out);
  }

  delta(delta: JsonObject, out: CanonicalEvent[]): void {
    if (delta['type'] === 'text_delta') this.append(needString(delta, 'text', 'text_delta'), out);
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

  append(text: string, out: CanonicalEvent[]): void {
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
  readonly #initialText: string;
  #signature: string;
  #index: number | undefined;
  #text = '';

  constructor(block: JsonObject, host: BlockHost) {
    this.#host = host;
    this.#initialText = nullableString(block, 'thinking', 'thinking block') ?? '';
    this.#signature = nullableString(block, 'signature', 'thinking block') ?? '';
  }

  start(out: CanonicalEvent[]): void {
    this.append(this.#initialText, out);
  }

  delta(delta: JsonObject, out: CanonicalEvent[]): void {
    if (delta['type'] === 'thinking_delta') this.append(needString(delta, 'thinking', 'thinking_delta'), out);
    if (delta['type'] === 'signature_delta') this.#signature += needString(delta, 'signature', 'signature_delta');
  }

  stop(status: ItemStatus, out: CanonicalEvent[]): boolean {
    this.#end(status, out);
    return true;
  }

  /** The signature of a block without a content_block_stop may be a fragment, so it is left out. */
  cut(out: CanonicalEvent[]): void {
    this.#signature = '';
    this.#end('incomplete', out);
  }

  append(text: string, out: CanonicalEvent[]): void {
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

/** A block that is complete at its start: redacted thinking, or media. No delta of such a block has a canonical reading. */
class WholeBlock implements Block {
  readonly kind: BlockKind;
  readonly #item: ReasoningItem | MediaItem;
  readonly #host: BlockHost;
  #index = 0;

  constructor(kind: BlockKind, item: ReasoningItem | MediaItem, host: BlockHost) {
    this.kind = kind;
    this.#item = item;
    this.#host = host;
  }

  start(out: CanonicalEvent[]): void {
    this.#index = this.#host.nextIndex();
    out.push({ type: 'item.start', index: this.#index, head: { kind: this.#item.kind } });
  }

  delta(): void {
    // Only unknown deltas fit.
  }

  stop(status: ItemStatus, out: CanonicalEvent[]): boolean {
    out.push({ type: 'item.end', index: this.#index, item: this.#item, status });
    return true;
  }

  cut(out: CanonicalEvent[]): void {
    this.stop('incomplete', out);
  }
}

/** Server tools, their results, compaction and unknown kinds of block: one native item whose body is the assembled block. */
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

/** Undefined for a source of unknown type. Throws GatewayError blaming the upstream. */
function mediaOf(block: JsonObject): Media | undefined {
  const where = `${String(block['type'])} block`;
  const source = sourceOf(needObject(block, 'source', where), where);
  if (source === undefined) return undefined;
  const filename = nullableString(block, 'title', where);
  return { type: block['type'] === 'image' ? 'image' : 'file', source, ...(filename === undefined ? {} : { filename }) };
}

function sourceOf(source: JsonObject, where: string): MediaSource | undefined {
  switch (source['type']) {
    case 'base64':
      return { from: 'inline', mime: needString(source, 'media_type', where), data: needString(source, 'data', where) };
    case 'url':
      return sourceOfUrl(needString(source, 'url', where));
    case 'file':
      return { from: 'reference', id: needString(source, 'file_id', where) };
    case 'text':
      return { from: 'text', text: needString(source, 'data', where) };
    default:
      return undefined;
  }
}
