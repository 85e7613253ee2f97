/**
 * Writes canonical items as content blocks, one open at a time. The events of different items were put in turn before
 * (`encode.ts`). When another item has content, an open text or thinking block stops, and what its item adds later goes into a
 * new block. A block starts with its first content (M2). Streams and whole bodies differ in the sink alone (`block-sinks.ts`).
 * Knows nothing of message_start and of endings.
 */
import { isEmptyInput } from '../../tools/arguments.ts';
import type { FoldedTexts, ItemDelta, ItemEvent, ItemHead, StreamedTexts } from '../../canonical/event.ts';
import type { ItemStatus, OutputItem, ReasoningItem, ToolCallItem } from '../../canonical/item.ts';
import { isObject, isObjectText, type JsonObject } from '../../canonical/json.ts';
import type { Opaque } from '../../canonical/opaque.ts';
import type { ResponseContext } from '../../codec.ts';
import type { TextDelta } from '../../answers/runs.ts';
import { Written } from '../../answers/written.ts';
import type { BlockSink, Delta, TextDelta as BlockText } from './block-sinks.ts';
import {
  attachedSignature,
  checkInput,
  mediaRefused,
  PART_BREAK,
  toolUseBlock,
  unsignedSignature,
  wireInput,
} from '../message-parts.ts';
import { isRedacted } from '../opaque.ts';

/** What was written of one canonical item. */
interface Entry {
  readonly head: ItemHead;
  /** Something of its text, thinking or input was written. */
  hasText: boolean;
  /** Of reasoning: the kind that came first, which is the one that is written. */
  shown: 'raw' | 'summary' | undefined;
  /** The summary part that was written last. */
  part: number;
  /** A citation was written. */
  cites: boolean;
  readonly texts: StreamedTexts | undefined;
  /** Of reasoning: what was written since its last signature, paragraph by paragraph. */
  unsigned: Written[];
  /** Of reasoning: how much of its raw text, or of each part of its summary, was written. */
  readonly lengths: number[];
  /** Of reasoning: another item took the place of its block, which was signed with what it held. */
  isSplit: boolean;
}

/** A signature in a block of its own. */
interface OpaqueBlock {
  readonly entry: Entry;
  readonly block: JsonObject;
  readonly signature?: string;
}

/** The deltas that append to the block of an item. */
const DELTA_TYPES = {
  text: 'text_delta',
  refusal: 'text_delta',
  reasoning: 'thinking_delta',
  toolCall: 'input_json_delta',
  media: undefined,
  native: undefined,
} as const satisfies Record<ItemHead['kind'], BlockText | undefined>;

const EMPTY_THINKING = { type: 'thinking', thinking: '', signature: '' } as const;

export class BlockWriter {
  /** The fold of the answer, once an item has begun. */
  fold: FoldedTexts | undefined;
  readonly #context: ResponseContext;
  readonly #sink: BlockSink;
  readonly #entries: Entry[] = [];
  /** The item whose block is open. */
  #active: Entry | undefined;
  /** The index of the open block, else of the next one. */
  #index = 0;
  /** The last block is a text. */
  #isBehindText = false;
  readonly #waiting: OpaqueBlock[] = [];
  /** A tool_use block was written; a refusal began; a call ended without whole arguments. */
  calledTool = false;
  refused = false;
  leftUnfinished = false;

  constructor(context: ResponseContext, sink: BlockSink) {
    this.#context = context;
    this.#sink = sink;
  }

  write(event: ItemEvent): void {
    switch (event.type) {
      case 'item.start':
        this.#start(event.index, event.head);
        return;
      case 'item.delta': {
        const entry = this.#entries[event.index];
        if (entry !== undefined) this.#delta(entry, event.delta);
        return;
      }
      case 'item.end': {
        const entry = this.#entries[event.index];
        if (entry !== undefined) this.#end(entry, event.item, event.status);
        return;
      }
    }
  }

  /** Closes the open block at the end of the answer. */
  finish(): void {
    if (this.#active?.head.kind === 'toolCall') this.leftUnfinished = true;
    this.#close();
  }

  #start(index: number, head: ItemHead): void {
    if (head.kind === 'refusal') this.refused = true;
    const texts = this.fold?.texts(index);
    const entry: Entry = {
      ...{ head, texts, hasText: false, shown: undefined, part: 0, cites: false },
      ...{ unsigned: [], lengths: [], isSplit: false },
    };
    this.#entries[index] = entry;
    if (head.kind !== 'toolCall') return;
    this.calledTool = true;
    this.#open(entry, toolUseBlock(head.callId, head.tool.name));
  }

  #delta(entry: Entry, delta: ItemDelta): void {
    if (delta.kind === 'citation') {
      if (delta.citation.kind === 'native' && delta.citation.dialect === 'messages') this.#cite(entry, delta.citation.body);
    } else if (delta.pieces === undefined) this.#writeText(entry, textOf(entry, delta, delta.text));
    else
      this.#writeRun(
        entry,
        delta.pieces.map((piece) => textOf(entry, delta, piece)),
      );
  }

  #end(entry: Entry, item: OutputItem, status: ItemStatus): void {
    if (item.kind === 'media') throw mediaRefused();
    if (item.kind === 'toolCall') {
      if (!entry.hasText) this.#writeText(entry, heldInput(item, status));
      if (status === 'completed') checkInput(item);
      else if (!isObjectText(wireInput(item))) this.leftUnfinished = true;
    }
    if (item.kind === 'reasoning') {
      if (item.opaque !== undefined) this.#sign(entry, item.opaque);
      else if (entry === this.#active) this.#signUnsigned(entry, entry.isSplit ? writtenIn(entry) : item);
    }
    // An item of another dialect is left out, and closes no block.
    if (item.kind === 'native' && item.dialect === 'messages' && isObject(item.body)) this.#open(entry, item.body);
    if (entry === this.#active) this.#close();
    const signature = attachedSignature(item, this.#context);
    if (signature === undefined) return;
    this.#writeOpaque({ entry, block: EMPTY_THINKING, signature });
  }

  #sign(entry: Entry, opaque: Opaque): void {
    const signature = this.#context.seal(opaque);
    entry.unsigned = [];
    if (entry === this.#active) this.#sink.delta(this.#index, signatureDelta(signature));
    else if (isRedacted(opaque) && !entry.hasText)
      this.#writeOpaque({ entry, block: { type: 'redacted_thinking', data: signature } });
    else this.#writeOpaque({ entry, block: EMPTY_THINKING, signature });
  }

  /** Signs the open block with an envelope of what it holds: a client keeps thinking that is signed, and drops the rest. */
  #signUnsigned(entry: Entry, written: Pick<ReasoningItem, 'raw' | 'summary'>): void {
    entry.unsigned = [];
    this.#sink.delta(this.#index, signatureDelta(unsignedSignature(written, this.#context)));
  }

  /** Behind a text it waits for another block: clients take the last block of an answer as its result. */
  #writeOpaque(opaque: OpaqueBlock): void {
    if (this.#isBehindText) this.#waiting.push(opaque);
    else this.#writeOpaqueNow(opaque);
  }

  #writeOpaqueNow({ entry, block, signature }: OpaqueBlock): void {
    this.#begin(entry, block);
    if (signature !== undefined) this.#sink.delta(this.#index, signatureDelta(signature));
    this.#close();
  }

  #writeText(entry: Entry, text: string): void {
    const type = DELTA_TYPES[entry.head.kind];
    if (text === '' || type === undefined) return;
    entry.hasText = true;
    this.#openFor(entry);
    this.#sink.text(type, this.#index, text);
  }

  /** The same for the texts of a run. */
  #writeRun(entry: Entry, pieces: readonly string[]): void {
    const type = DELTA_TYPES[entry.head.kind];
    const texts = pieces.filter((text) => text !== '');
    if (texts.length === 0 || type === undefined) return;
    this.#openFor(entry);
    this.#sink.texts(type, this.#index, texts);
  }

  #cite(entry: Entry, citation: JsonObject): void {
    entry.cites = true;
    this.#openFor(entry);
    this.#sink.delta(this.#index, { type: 'citations_delta', citation });
  }

  /** Makes sure that a block of this text or reasoning item is open. */
  #openFor(entry: Entry): void {
    if (entry === this.#active) return;
    const block =
      entry.head.kind === 'reasoning' ? EMPTY_THINKING : { type: 'text', citations: entry.cites ? [] : null, text: '' };
    this.#open(entry, block);
  }

  #open(entry: Entry, block: JsonObject): void {
    if (this.#waiting.length > 0) for (const opaque of this.#waiting.splice(0)) this.#writeOpaqueNow(opaque);
    this.#begin(entry, block);
    this.#isBehindText = block['type'] === 'text';
  }

  #begin(entry: Entry, block: JsonObject): void {
    const open = this.#active;
    if (open !== undefined && open.unsigned.length > 0) {
      // Its item goes on: what follows of it, perhaps a signature of its upstream, stands in a block of its own.
      open.isSplit = true;
      this.#signUnsigned(open, writtenIn(open));
    }
    this.#close();
    this.#active = entry;
    this.#sink.start(this.#index, block);
  }

  #close(): void {
    if (this.#active === undefined) return;
    this.#active = undefined;
    this.#sink.stop(this.#index);
    this.#index += 1;
  }
}

/** What a piece of a delta adds on the wire, noted as written. */
function textOf(entry: Entry, delta: TextDelta, piece: string): string {
  const text = wireText(entry, delta, piece);
  if (text === '') return text;
  entry.hasText = true;
  if (entry.head.kind === 'reasoning') noteUnsigned(entry, delta, piece, text);
  return text;
}

/** Notes what was written of a piece of reasoning. `text`: as it was written, behind a break where it begins a paragraph. */
function noteUnsigned({ texts, unsigned, lengths }: Entry, delta: TextDelta, piece: string, text: string): void {
  const part = delta.kind === 'summary' ? delta.part : 0;
  const record = delta.kind === 'summary' ? () => texts?.summary[part] ?? '' : () => texts?.text ?? '';
  const from = lengths[part] ?? 0;
  const { length } = piece;
  lengths[part] = from + length;
  const isParagraph = text.length > length;
  // A block may begin with the break: then nothing stands before it.
  if (isParagraph && unsigned.length === 0) unsigned.push(new Written(record));
  if (isParagraph || unsigned.length === 0) unsigned.push(new Written(record));
  unsigned.at(-1)?.add(length, from);
}

/** What an open block of reasoning holds. */
function writtenIn({ shown, unsigned }: Entry): Pick<ReasoningItem, 'raw' | 'summary'> {
  const text = unsigned.map((written) => written.text).join(PART_BREAK);
  return shown === 'summary' ? { summary: [text] } : { raw: text };
}

function signatureDelta(signature: string): Delta {
  return { type: 'signature_delta', signature };
}

/** The text of a piece on the wire. Where reasoning has both raw text and a summary, the kind that came first is shown. */
function wireText(entry: Entry, delta: TextDelta, piece: string): string {
  switch (delta.kind) {
    case 'text':
      return piece;
    case 'input':
      if (entry.head.kind === 'toolCall' && entry.head.toolType === 'custom') return '';
      // Not the beginning of an object: the end of the call decides what it means.
      return !entry.hasText && isEmptyInput(piece) ? '' : piece;
    case 'raw':
      entry.shown ??= piece === '' ? undefined : 'raw';
      return entry.shown === 'raw' ? piece : '';
    case 'summary': {
      entry.shown ??= piece === '' ? undefined : 'summary';
      if (entry.shown !== 'summary' || piece === '') return '';
      const isNewPart = entry.hasText && delta.part !== entry.part;
      entry.part = delta.part;
      return isNewPart ? PART_BREAK + piece : piece;
    }
  }
}

/** The input of a call of which nothing was written: none, or what the end of the call decides. */
function heldInput(item: ToolCallItem, status: ItemStatus): string {
  return status === 'incomplete' && item.toolType === 'function' ? item.input : wireInput(item);
}
