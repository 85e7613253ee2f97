/**
 * The readers of content blocks, by block kind: each turns one block of an answer into canonical events. In a whole JSON answer a
 * block is complete at its start and gets no deltas. The order of events was checked before (`lifecycle.ts`).
 */
import type { CanonicalEvent } from '../../canonical/event.ts';
import type { OpenItem } from '../../canonical/fold.ts';
import type { Citation, ItemStatus, Media, MediaItem, MediaSource, NativeItem, ReasoningItem } from '../../canonical/item.ts';
import { headOf, type ItemEmitter } from '../../canonical/item-emitter.ts';
import { isObject, type JsonObject } from '../../canonical/json.ts';
import type { Block, BlockHost } from './block.ts';
import { type BlockKind, blockKind } from '../lifecycle.ts';
import { redactedOpaque, signatureOpaque } from '../opaque.ts';
import { ToolBlock } from './decode-tools.ts';
import { malformed, nullableString, needString, parseObject, needObject } from '../wire.ts';
import { sourceOfUrl } from '../../media.ts';

/**
 * Begins a block. `inputText` returns the exact JSON text of its `input`, or undefined where that is only a placeholder.
 * Throws GatewayError blaming the upstream when a needed member is missing.
 */
export function openBlock(block: JsonObject, inputText: () => string | undefined, host: BlockHost, out: CanonicalEvent[]): Block {
  const kind = blockKind(needString(block, 'type', 'content_block_start'));
  switch (kind) {
    case 'text':
      return new TextBlock(block, host, out);
    case 'thinking':
      return new ThinkingBlock(block, host, out);
    case 'redacted':
      return new WholeBlock(
        kind,
        { kind: 'reasoning', opaque: redactedOpaque(host.context.owner, needString(block, 'data', 'redacted_thinking')) },
        host,
        out,
      );
    case 'tool':
      return new ToolBlock(block, inputText, host, out);
    case 'media': {
      const media = mediaOf(block);
      return media === undefined
        ? new NativeBlock('native', block, host, out)
        : new WholeBlock(kind, { kind: 'media', role: 'assistant', media }, host, out);
    }
    case 'serverTool':
    case 'compaction':
    case 'fixed':
    case 'native':
      return new NativeBlock(kind, block, host, out);
  }
}

/** Starts its item with the first text or citation, since upstreams also open text blocks that stay empty. */
class TextBlock implements Block {
  readonly kind = 'text';
  readonly #host: BlockHost;
  #item: OpenItem | undefined;

  constructor(block: JsonObject, host: BlockHost, out: CanonicalEvent[]) {
    this.#host = host;
    const text = needString(block, 'text', 'text block');
    const citations = block['citations'];
    if (Array.isArray(citations)) for (const citation of citations) if (isObject(citation)) this.#cite(citation, out);
    this.append(text, out);
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
    if (this.#item !== undefined) this.#host.items.end(this.#item, status, out);
    return true;
  }

  cut(out: CanonicalEvent[]): void {
    this.stop('incomplete', out);
  }

  append(text: string, out: CanonicalEvent[]): void {
    if (text !== '') this.#host.items.delta(this.#begin(out), { kind: 'text', text }, out);
  }

  /** Native even where it is of a web page: it points into a source, and has no place in the answer to give. */
  #cite(body: JsonObject, out: CanonicalEvent[]): void {
    const citation: Citation = { kind: 'native', dialect: 'messages', body };
    this.#host.items.delta(this.#begin(out), { kind: 'citation', citation }, out);
  }

  #begin(out: CanonicalEvent[]): OpenItem {
    this.#item ??= this.#host.items.start({ kind: 'text', role: 'assistant' }, out);
    return this.#item;
  }
}

/** Thinking is a readable summary (spec rule 10); its signature is one opaque value, complete when the block stops. */
class ThinkingBlock implements Block {
  readonly kind = 'thinking';
  readonly #host: BlockHost;
  #signature: string;
  #item: OpenItem | undefined;

  constructor(block: JsonObject, host: BlockHost, out: CanonicalEvent[]) {
    this.#host = host;
    const thinking = nullableString(block, 'thinking', 'thinking block') ?? '';
    this.#signature = nullableString(block, 'signature', 'thinking block') ?? '';
    this.append(thinking, out);
  }

  delta(delta: JsonObject, out: CanonicalEvent[]): void {
    if (delta['type'] === 'thinking_delta') this.append(needString(delta, 'thinking', 'thinking_delta'), out);
    if (delta['type'] === 'signature_delta') this.#signature += needString(delta, 'signature', 'signature_delta');
  }

  stop(status: ItemStatus, out: CanonicalEvent[]): boolean {
    const { context, items } = this.#host;
    if (this.#signature !== '')
      items.end(this.#begin(out), status, out, { opaque: signatureOpaque(context.owner, this.#signature) });
    else if (this.#item !== undefined) items.end(this.#item, status, out);
    return true;
  }

  /** The signature of a block without a content_block_stop may be a fragment, so it is left out. */
  cut(out: CanonicalEvent[]): void {
    this.#signature = '';
    this.stop('incomplete', out);
  }

  append(text: string, out: CanonicalEvent[]): void {
    if (text !== '') this.#host.items.delta(this.#begin(out), { kind: 'summary', part: 0, text }, out);
  }

  #begin(out: CanonicalEvent[]): OpenItem {
    this.#item ??= this.#host.items.start({ kind: 'reasoning' }, out);
    return this.#item;
  }
}

/** A block that is complete at its start: redacted thinking, or media. No delta of such a block has a canonical reading. */
class WholeBlock implements Block {
  readonly kind: BlockKind;
  readonly #whole: ReasoningItem | MediaItem;
  readonly #items: ItemEmitter;
  readonly #item: OpenItem;

  constructor(kind: BlockKind, whole: ReasoningItem | MediaItem, { items }: BlockHost, out: CanonicalEvent[]) {
    this.kind = kind;
    this.#whole = whole;
    this.#items = items;
    this.#item = items.start(headOf(whole), out);
  }

  delta(): void {
    // Only unknown deltas fit.
  }

  stop(status: ItemStatus, out: CanonicalEvent[]): boolean {
    this.#items.endAs(this.#item, this.#whole, status, out);
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
  readonly #items: ItemEmitter;
  readonly #item: OpenItem;
  #input = '';
  #compaction: JsonObject | undefined;

  constructor(kind: BlockKind, block: JsonObject, host: BlockHost, out: CanonicalEvent[]) {
    this.kind = kind;
    this.#block = block;
    this.#items = host.items;
    const { type, name } = block;
    if (type === 'server_tool_use' && typeof name === 'string') host.serverToolCalled(name);
    this.#item = host.items.start(headOf(this.#as(block)), out);
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
    this.#items.endAs(this.#item, this.#as(body), status, out);
  }

  #as(body: JsonObject): NativeItem {
    const id = this.#block['id'];
    return { kind: 'native', dialect: 'messages', body, ...(typeof id === 'string' ? { id } : {}) };
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
