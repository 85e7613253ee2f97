/**
 * The tool calls of one streamed answer: finds the call that a delta belongs to and emits the delta as it arrives. Knows the ways
 * in which vendors leave out indices, ids and names; does not know the rest of the answer.
 */
import { NO_ARGUMENTS } from '../../tools/arguments.ts';
import type { CanonicalEvent } from '../../canonical/event.ts';
import type { ItemEmitter, StartItem } from '../../canonical/item-emitter.ts';
import type { JsonValue } from '../../canonical/json.ts';
import { restOf } from '../../canonical/missing-deltas.ts';
import type { Opaque } from '../../canonical/opaque.ts';
import type { DecodeContext } from '../../codec.ts';
import { customToolOf, FreeformReader } from '../../tools/freeform.ts';
import { callOpaque } from '../opaque.ts';
import { Queue } from '../../queue.ts';
import { DeclaredNames } from './declared-names.ts';
import {
  type Call,
  growInput,
  inputOf,
  introducesAnother,
  isNoInput,
  isUnfinished,
  newInput,
  sameName,
  startsNewInput,
} from './call-input.ts';
import { type Piece, readPiece } from './call-pieces.ts';
import { malformed, objectAt } from '../wire.ts';

interface Asked {
  readonly call: Call;
  readonly piece: Piece;
  /** The call was found by the id of the piece. */
  readonly isKnownId: boolean;
  /** The piece continues the partial name of the call. */
  readonly continuesName: boolean;
}

/**
 * Whether a piece belongs to the call that its id, its index or its place leads to, or begins another one: the first row that
 * fits decides.
 */
const BELONGS: readonly { readonly when: (asked: Asked) => boolean; readonly belongs: (asked: Asked) => boolean }[] = [
  {
    when: ({ isKnownId }) => isKnownId,
    belongs: ({ call, piece, continuesName }) => continuesName || !introducesAnother(call, piece),
  },
  {
    when: ({ call }) => call.name === '',
    belongs: ({ call, piece }) => piece.id === undefined || call.upstreamId === undefined,
  },
  // A named call is continued by pieces that begin no other call. Some servers give every piece an id of its own.
  { when: ({ piece, continuesName }) => piece.name === undefined || continuesName, belongs: () => true },
  { when: ({ call, piece }) => !sameName(call, piece), belongs: () => false },
  // Servers that repeat the name in every piece, with an id, without an index, or with both left out.
  {
    when: ({ call, piece }) => piece.id !== undefined && call.upstreamId !== undefined,
    belongs: ({ call }) => isUnfinished(call),
  },
  { when: ({ piece }) => piece.id !== undefined, belongs: () => true },
  { when: ({ piece }) => piece.index === undefined, belongs: ({ call }) => inputOf(call) === '' },
  { when: () => true, belongs: ({ call, piece }) => !startsNewInput(call, piece) },
];

export class ToolCalls {
  readonly #context: DecodeContext;
  readonly #items: ItemEmitter;
  /** Ends what a new item ends, and starts it. */
  readonly #startItem: StartItem;
  readonly #calls: Call[] = [];
  readonly #byIndex = new Map<number, Call>();
  readonly #byId = new Map<string, Call>();
  readonly #byPosition = new Map<number, Call>();
  #legacy: Call | undefined;
  #last: Call | undefined;
  /** The calls that got a placeholder since other content arrived. */
  readonly #placeholders: Call[] = [];
  /** Named calls whose items have not started: the name of the first may be partial, the others wait for it. */
  readonly #held = new Queue<Call>();
  /** The wire names of the declared tools; made when first needed. */
  #declaredNames: DeclaredNames | undefined;

  constructor(context: DecodeContext, items: ItemEmitter, startItem: StartItem) {
    this.#context = context;
    this.#items = items;
    this.#startItem = startItem;
  }

  get any(): boolean {
    return this.#calls.length > 0;
  }

  /** The item index that the latest delta belonged to. */
  get lastItem(): number | undefined {
    return this.#last?.item?.index;
  }

  /** `piece`: the entries are pieces of calls. `last`: they are, and no more follow. `whole`: each entry is a complete call. */
  push(entries: readonly JsonValue[], form: 'piece' | 'last' | 'whole', out: CanonicalEvent[]): void {
    for (const [position, value] of entries.entries()) {
      const piece = readPiece(objectAt(value, 'tool_calls'));
      const call = (form === 'whole' ? undefined : this.#find(piece, position, entries.length)) ?? this.#open(piece, position);
      const input = newInput(call, piece.input, form === 'last');
      this.#extend(call, input === piece.input ? piece : { ...piece, input }, out);
    }
  }

  /** One more piece of the arguments of the latest call; undefined where there is nothing to emit. */
  extend(piece: string): CanonicalEvent | undefined {
    const call = this.#last;
    if (call?.item === undefined) return undefined;
    if (isNoInput(call, piece)) {
      this.#placeholders.push(call);
      return undefined;
    }
    if (newInput(call, piece, false) === '') return undefined;
    growInput(call, piece);
    const text = call.freeform === undefined ? piece : call.freeform.push(piece);
    return text === '' ? undefined : this.#items.piece(call.item, { kind: 'input', text });
  }

  /** The deprecated single call (`function_call`). False where the member is still empty: that is no call. */
  pushLegacy(value: JsonValue, out: CanonicalEvent[]): boolean {
    const body = objectAt(value, 'function_call');
    const piece = readPiece({ function: body });
    if (this.#legacy === undefined && piece.name === undefined && piece.input === '') return false;
    this.#legacy ??= this.#open({ ...piece, id: undefined, index: undefined }, 0);
    this.#extend(this.#legacy, piece, out);
    return true;
  }

  /** The calls of the whole message: adds only what was not streamed yet. */
  complete(entries: readonly JsonValue[], out: CanonicalEvent[]): void {
    for (const [position, value] of entries.entries()) {
      const piece = readPiece(objectAt(value, 'tool_calls'));
      const known = piece.id === undefined ? this.#calls[position] : (this.#byId.get(piece.id) ?? this.#calls[position]);
      if (known === undefined) {
        this.#extend(this.#open(piece, position), piece, out);
        continue;
      }
      this.#extend(known, { ...piece, input: restOf(piece.input, known.input, 'tool call') }, out);
    }
  }

  /** Gives the signature to the call with this id; false where there is none. */
  sign(callId: string, opaque: Opaque): boolean {
    const call = this.#byId.get(callId);
    if (call === undefined) return false;
    call.opaque ??= opaque;
    return true;
  }

  /**
   * Starts held calls in their order, because other content arrives. It stops at a partial name that is no declared name by
   * itself, and at the partial name of `current`.
   */
  beginHeld(out: CanonicalEvent[], current?: Call): void {
    if (current === undefined) this.#endPlaceholders(out);
    for (let call = this.#held.first; call !== undefined; call = this.#held.first) {
      if (call.isNamePartial && (call === current || !this.#names.has(call.name))) return;
      this.#beginFirstHeld(call, out);
    }
  }

  /** Starts every held call: no more content arrives, so every name is whole. */
  beginAllHeld(out: CanonicalEvent[]): void {
    for (let call = this.#held.first; call !== undefined; call = this.#held.first) this.#beginFirstHeld(call, out);
    this.#endPlaceholders(out);
  }

  /** Other content follows, or nothing: an empty object that stands for itself is the arguments of its call. */
  #endPlaceholders(out: CanonicalEvent[]): void {
    if (this.#placeholders.length === 0) return;
    for (const call of this.#placeholders.splice(0)) {
      if (call.item === undefined || call.input !== '' || !call.hasPlaceholder) continue;
      growInput(call, NO_ARGUMENTS);
      this.#emit(call, NO_ARGUMENTS, out);
    }
  }

  #beginFirstHeld(call: Call, out: CanonicalEvent[]): void {
    call.isNamePartial = false;
    this.#held.take();
    this.#begin(call, out);
  }

  /** Ends every call; the one with the item index `cut` is incomplete. */
  close(cut: number | undefined, out: CanonicalEvent[]): void {
    for (const call of this.#calls) {
      const { item, freeform, opaque } = call;
      if (item === undefined) throw malformed('a tool call without a name');
      if (freeform !== undefined) this.#emit(call, freeform.end(), out);
      const isWhole = item.index !== cut && freeform?.isWhole !== false;
      const isNone = call.input.trim() === '' && call.toolType === 'function';
      if (isNone && (isWhole || call.hasPlaceholder)) this.#emit(call, NO_ARGUMENTS, out);
      this.#items.end(item, isWhole ? 'completed' : 'incomplete', out, opaque === undefined ? {} : { opaque });
    }
  }

  /**
   * The call that the piece belongs to; undefined for a new one. `position` and `count`: its place among the entries of its
   * delta.
   */
  #find(piece: Piece, position: number, count: number): Call | undefined {
    const known = piece.id === undefined ? undefined : this.#byId.get(piece.id);
    const call = known ?? this.#candidate(piece, position, count);
    if (call === undefined) return undefined;
    const asked = { call, piece, isKnownId: known !== undefined, continuesName: this.#continuesName(call, piece) };
    return BELONGS.find(({ when }) => when(asked))?.belongs(asked) === true ? call : undefined;
  }

  /** True where the piece continues a partial name: the two joined are, or begin, the name of a declared tool. */
  #continuesName(call: Call, piece: Piece): boolean {
    if (!call.isNamePartial || piece.name === undefined || (piece.id !== undefined && piece.id !== call.upstreamId)) return false;
    const name = call.name + piece.name;
    return this.#names.has(name) || this.#names.hasLonger(name);
  }

  get #names(): DeclaredNames {
    const { request, toolNames } = this.#context;
    this.#declaredNames ??= new DeclaredNames(
      request.tools.flatMap((tool) => (tool.kind === 'native' ? [] : [toolNames.toWire(tool.tool)])),
    );
    return this.#declaredNames;
  }

  #candidate(piece: Piece, position: number, count: number): Call | undefined {
    if (piece.index !== undefined) return this.#byIndex.get(piece.index);
    if (piece.id !== undefined) return this.#last?.name === '' ? this.#last : undefined;
    return count === 1 && piece.name === undefined ? this.#last : this.#byPosition.get(position);
  }

  #open(piece: Piece, position: number): Call {
    const call: Call = {
      wireIndex: piece.index,
      item: undefined,
      toolType: piece.custom ? 'custom' : 'function',
      upstreamId: piece.id,
      name: '',
      isNamePartial: false,
      input: '',
      hasPlaceholder: false,
      scan: undefined,
      freeform: undefined,
      opaque: undefined,
    };
    this.#calls.push(call);
    this.#byPosition.set(position, call);
    if (piece.index !== undefined) this.#byIndex.set(piece.index, call);
    return call;
  }

  #extend(call: Call, given: Piece, out: CanonicalEvent[]): void {
    const isNone = isNoInput(call, given.input);
    if (isNone) this.#placeholders.push(call);
    const piece = isNone ? { ...given, input: '' } : given;
    this.#last = call;
    if (piece.id !== undefined && call.upstreamId === undefined) call.upstreamId = piece.id;
    if (call.upstreamId !== undefined && !this.#byId.has(call.upstreamId)) this.#byId.set(call.upstreamId, call);
    growInput(call, piece.input);
    if (piece.signature !== undefined) call.opaque ??= callOpaque(piece.signature, this.#context.owner);
    if (piece.custom && call.item === undefined) call.toolType = 'custom';
    if (call.name === '') {
      if (piece.name === undefined) return;
      call.name = piece.name;
      this.#held.add(call);
    } else if (this.#continuesName(call, piece)) call.name += piece.name ?? '';
    else if (!sameName(call, piece)) throw malformed('a tool call that changes its name');
    if (call.item !== undefined) {
      this.#emitInput(call, piece.input, out);
      return;
    }
    call.isNamePartial = this.#isNamePrefix(call);
    this.beginHeld(out, call);
  }

  /** True for a proper prefix of a declared name. A name that is declared itself is whole once arguments arrive. */
  #isNamePrefix({ name, input }: Call): boolean {
    return this.#names.hasLonger(name) && (input === '' || !this.#names.has(name));
  }

  /** Starts the item of the call and emits the arguments so far. */
  #begin(call: Call, out: CanonicalEvent[]): void {
    // An id that the upstream gave to an earlier call, too, does not identify this one.
    const isOwn = call.upstreamId !== undefined && this.#byId.get(call.upstreamId) === call;
    const callId = isOwn && call.upstreamId !== undefined ? call.upstreamId : this.#context.mint('call_');
    const tool = this.#context.toolNames.fromWire(call.name);
    // A custom tool that was declared as a function is returned as a custom call; models also call custom tools as functions by
    // themselves.
    const custom = customToolOf(this.#context.request.tools, tool);
    if (custom !== undefined && custom.inputSchema === undefined && call.toolType === 'function')
      call.freeform = new FreeformReader();
    if (custom !== undefined) call.toolType = 'custom';
    if (call.freeform !== undefined && call.input === '') growInput(call, inputOf(call));
    call.item = this.#startItem({ kind: 'toolCall', toolType: call.toolType, callId, tool }, out);
    this.#emitInput(call, call.input, out);
  }

  #emitInput(call: Call, piece: string, out: CanonicalEvent[]): void {
    this.#emit(call, call.freeform === undefined ? piece : call.freeform.push(piece), out);
  }

  #emit({ item }: Call, text: string, out: CanonicalEvent[]): void {
    if (item !== undefined && text !== '') this.#items.delta(item, { kind: 'input', text }, out);
  }
}
