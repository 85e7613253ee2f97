/**
 * The tool calls of one streamed answer: finds the call that a delta belongs to and emits it live. Knows the ways in which
 * vendors leave out indices, ids and names; does not know the rest of the answer.
 */
import { grown } from '../canonical/grown.ts';
import { upstreamFault } from '../canonical/error.ts';
import type { CanonicalEvent } from '../canonical/event.ts';
import type { ItemStatus, ToolCallItem, ToolName } from '../canonical/item.ts';
import { isObjectText, type JsonValue } from '../canonical/json.ts';
import type { Opaque } from '../canonical/opaque.ts';
import type { DecodeContext } from '../codec.ts';
import { customToolOf, FreeformReader } from '../tools/freeform.ts';
import { callOpaque } from './call-signatures.ts';
import { type Piece, readPiece } from './tool-pieces.ts';
import { malformed, object } from './wire.ts';

interface Call {
  /** The wire's index, where it was given. */
  readonly wireIndex: number | undefined;
  /** Undefined until the name is known: nothing of the call is said before. */
  index: number | undefined;
  flavour: 'function' | 'custom';
  /** Under which its item is known: that of the upstream, or one of our own where that has none or says one twice. */
  callId: string;
  /** As the upstream says it. */
  givenId: string | undefined;
  name: string;
  /** The name may go on: nothing of the call is said before it is whole. */
  isSpelled: boolean;
  tool: ToolName | undefined;
  /** The arguments as they came. */
  input: string;
  /** Reads the text of a freeform tool out of the arguments of the function that stands for it. */
  freeform: FreeformReader | undefined;
  opaque: Opaque | undefined;
}

export class ToolCalls {
  readonly #context: DecodeContext;
  /** Counts a new item and lets whatever was being said give way. */
  readonly #nextItem: (out: CanonicalEvent[]) => number;
  readonly #calls: Call[] = [];
  readonly #byIndex = new Map<number, Call>();
  readonly #byId = new Map<string, Call>();
  readonly #byPosition = new Map<number, Call>();
  #legacy: Call | undefined;
  #last: Call | undefined;
  /** Calls with a name of which nothing is said yet: the first may still be spelled, the others wait for it. */
  readonly #held: Call[] = [];
  #declared: readonly string[] | undefined;

  constructor(context: DecodeContext, nextItem: (out: CanonicalEvent[]) => number) {
    this.#context = context;
    this.#nextItem = nextItem;
  }

  get any(): boolean {
    return this.#calls.length > 0;
  }

  /** The item index that the latest delta belonged to. */
  get lastItem(): number | undefined {
    return this.#last?.index;
  }

  /** `whole`: the entries are complete calls, each its own. `last`: no more pieces follow. */
  push(entries: readonly JsonValue[], form: 'piece' | 'last' | 'whole', out: CanonicalEvent[]): void {
    for (const [position, value] of entries.entries()) {
      const piece = readPiece(object(value, 'tool_calls'));
      const call = (form === 'whole' ? undefined : this.#find(piece, position, entries.length)) ?? this.#open(piece, position);
      const input = unsaid(call, piece.input, form === 'last');
      this.#extend(call, input === piece.input ? piece : { ...piece, input }, out);
    }
  }

  /** One more piece of the arguments of the latest call; undefined where it says nothing. */
  extend(piece: string): CanonicalEvent | undefined {
    const call = this.#last;
    if (call?.index === undefined || isNothing(call, piece) || unsaid(call, piece, false) === '') return undefined;
    call.input = grown(call.input, piece);
    const text = call.freeform === undefined ? piece : call.freeform.push(piece);
    return text === '' ? undefined : { type: 'item.delta', index: call.index, delta: { kind: 'input', text } };
  }

  /** The legacy single call (`function_call`). False where the member is there but has said nothing yet: that is no call. */
  pushLegacy(value: JsonValue, out: CanonicalEvent[]): boolean {
    const body = object(value, 'function_call');
    const piece = readPiece({ function: body });
    if (this.#legacy === undefined && piece.name === undefined && piece.input === '') return false;
    this.#legacy ??= this.#open({ ...piece, id: undefined, index: undefined }, 0);
    this.#extend(this.#legacy, piece, out);
    return true;
  }

  /** Final values of the whole message: only what was not said yet is added. */
  complete(entries: readonly JsonValue[], out: CanonicalEvent[]): void {
    for (const [position, value] of entries.entries()) {
      const piece = readPiece(object(value, 'tool_calls'));
      const known = piece.id === undefined ? this.#calls[position] : (this.#byId.get(piece.id) ?? this.#calls[position]);
      if (known === undefined) {
        this.#extend(this.#open(piece, position), piece, out);
        continue;
      }
      if (!piece.input.startsWith(known.input)) {
        throw upstreamFault('illegal_lifecycle', "The upstream's final tool call contradicts what it streamed.");
      }
      this.#extend(known, { ...piece, input: piece.input.slice(known.input.length) }, out);
    }
  }

  /** Ties a signature to the call with this id. */
  sign(callId: string, opaque: Opaque): boolean {
    const call = this.#byId.get(callId);
    if (call === undefined) return false;
    call.opaque ??= opaque;
    return true;
  }

  /** Something else is said: names that may stand for themselves do, all but that of `but`. Begins calls in their order. */
  settle(out: CanonicalEvent[], but?: Call): void {
    for (let call = this.#held[0]; call !== undefined; call = this.#held[0]) {
      if (call.isSpelled && (call === but || !this.#names.includes(call.name))) return;
      this.#beginHeld(call, out);
    }
  }

  /** Nothing more is said: every name is whole. */
  settleAll(out: CanonicalEvent[]): void {
    for (let call = this.#held[0]; call !== undefined; call = this.#held[0]) this.#beginHeld(call, out);
  }

  /** Begins the first of those that were held. */
  #beginHeld(call: Call, out: CanonicalEvent[]): void {
    call.isSpelled = false;
    this.#held.shift();
    this.#begin(call, out);
  }

  /** Ends every call. `cut` is the item that an incomplete answer was cut in. */
  close(cut: number | undefined, out: CanonicalEvent[]): void {
    for (const call of this.#calls) {
      if (call.index === undefined || call.tool === undefined) throw malformed('a tool call without a name');
      if (call.freeform !== undefined) pushInput(call.index, call.freeform.end(), out);
      const isWhole = call.index !== cut && call.freeform?.isWhole !== false;
      const status: ItemStatus = isWhole ? 'completed' : 'incomplete';
      if (call.input.trim() === '' && call.flavour === 'function' && status === 'completed') {
        call.input += '{}';
        out.push({ type: 'item.delta', index: call.index, delta: { kind: 'input', text: '{}' } });
      }
      const item: ToolCallItem = {
        kind: 'toolCall',
        flavour: call.flavour,
        callId: call.callId,
        tool: call.tool,
        input: call.freeform?.text ?? call.input,
        ...(call.opaque === undefined ? {} : { opaque: call.opaque }),
      };
      out.push({ type: 'item.end', index: call.index, item, status });
    }
  }

  #find(piece: Piece, position: number, among: number): Call | undefined {
    const named = piece.id === undefined ? undefined : this.#byId.get(piece.id);
    if (named !== undefined) return introducesAnother(named, piece) && !this.#spellsOn(named, piece) ? undefined : named;
    const call = this.#candidate(piece, position, among);
    if (call === undefined) return undefined;
    if (call.name === '') return piece.id === undefined || call.givenId === undefined ? call : undefined;
    // A named call goes on only with pieces that do not introduce another one. Some servers give every piece an id of its own.
    if (piece.name === undefined || this.#spellsOn(call, piece)) return call;
    if (!sameName(call, piece)) return undefined;
    if (piece.id !== undefined && call.givenId !== undefined) return isCut(call) ? call : undefined;
    const isAnother = piece.index === undefined ? call.input !== '' : beginsAnew(call, piece);
    return piece.id === undefined && isAnother ? undefined : call;
  }

  /** True where the piece goes on with a name that is not whole: the two together are, or begin, what a declared tool is called. */
  #spellsOn(call: Call, piece: Piece): boolean {
    if (!call.isSpelled || piece.name === undefined || (piece.id !== undefined && piece.id !== call.givenId)) return false;
    const name = call.name + piece.name;
    return this.#names.some((declared) => declared.startsWith(name));
  }

  get #names(): readonly string[] {
    const { request, toolNames } = this.#context;
    this.#declared ??= request.tools.flatMap((tool) => (tool.kind === 'native' ? [] : [toolNames.toWire(tool.tool)]));
    return this.#declared;
  }

  #candidate(piece: Piece, position: number, among: number): Call | undefined {
    if (piece.index !== undefined) return this.#byIndex.get(piece.index);
    if (piece.id !== undefined) return this.#last?.name === '' ? this.#last : undefined;
    return among === 1 && piece.name === undefined ? this.#last : this.#byPosition.get(position);
  }

  #open(piece: Piece, position: number): Call {
    const call: Call = {
      wireIndex: piece.index,
      index: undefined,
      flavour: piece.custom ? 'custom' : 'function',
      callId: piece.id ?? '',
      givenId: piece.id,
      name: '',
      isSpelled: false,
      tool: undefined,
      input: '',
      freeform: undefined,
      opaque: undefined,
    };
    this.#calls.push(call);
    this.#byPosition.set(position, call);
    if (piece.index !== undefined) this.#byIndex.set(piece.index, call);
    return call;
  }

  #extend(call: Call, said: Piece, out: CanonicalEvent[]): void {
    const piece = isNothing(call, said.input) ? { ...said, input: '' } : said;
    this.#last = call;
    if (piece.id !== undefined && call.givenId === undefined) call.givenId = piece.id;
    if (call.givenId !== undefined && !this.#byId.has(call.givenId)) this.#byId.set(call.givenId, call);
    call.input = grown(call.input, piece.input);
    if (piece.signature !== undefined) call.opaque ??= callOpaque(piece.signature, this.#context.owner);
    if (piece.custom && call.index === undefined) call.flavour = 'custom';
    if (call.name === '') {
      if (piece.name === undefined) return;
      call.name = piece.name;
      this.#held.push(call);
    } else if (this.#spellsOn(call, piece)) call.name += piece.name ?? '';
    else if (!sameName(call, piece)) throw malformed('a tool call that changes its name');
    if (call.index !== undefined) {
      say(call, piece.input, out);
      return;
    }
    call.isSpelled = this.#mayGoOn(call);
    this.settle(out, call);
  }

  /** True for what a longer declared name begins with; arguments end a name that is declared itself. */
  #mayGoOn({ name, input }: Call): boolean {
    if (!this.#names.some((declared) => declared !== name && declared.startsWith(name))) return false;
    return input === '' || !this.#names.includes(name);
  }

  /** Says the call as far as it came. */
  #begin(call: Call, out: CanonicalEvent[]): void {
    // Two calls of one answer are never the same call, though the upstream gave them one id.
    const isOwn = call.givenId !== undefined && this.#byId.get(call.givenId) === call;
    call.callId = isOwn && call.givenId !== undefined ? call.givenId : this.#context.mint('call_');
    call.tool = this.#context.toolNames.fromWire(call.name);
    // A custom tool that was declared as a function comes back as what it was; models also answer so on their own.
    const custom = customToolOf(this.#context.request.tools, call.tool);
    if (custom !== undefined && custom.inputSchema === undefined && call.flavour === 'function')
      call.freeform = new FreeformReader();
    if (custom !== undefined) call.flavour = 'custom';
    call.index = this.#nextItem(out);
    const { flavour, callId, tool } = call;
    out.push({ type: 'item.start', index: call.index, head: { kind: 'toolCall', flavour, callId, tool } });
    say(call, call.input, out);
  }
}

function say({ index, freeform }: Call, piece: string, out: CanonicalEvent[]): void {
  if (index !== undefined) pushInput(index, freeform === undefined ? piece : freeform.push(piece), out);
}

function pushInput(index: number, text: string, out: CanonicalEvent[]): void {
  if (text !== '') out.push({ type: 'item.delta', index, delta: { kind: 'input', text } });
}

/** A known id with another name, or with a name and an index or whole arguments of its own, is not the call that it names. */
function introducesAnother(known: Call, piece: Piece): boolean {
  if (piece.name === undefined || known.name === '') return false;
  if (!sameName(known, piece)) return true;
  if (piece.index !== undefined && known.wireIndex !== undefined && piece.index !== known.wireIndex) return true;
  return piece.input !== known.input && beginsAnew(known, piece);
}

/** `null` where an object begins is how some models call without arguments (Groq). */
function isNothing({ flavour, input }: Call, piece: string): boolean {
  return piece === 'null' && input === '' && flavour === 'function';
}

/** Arguments that are no object yet go on, under whatever id. */
function isCut({ flavour, input }: Call): boolean {
  return flavour === 'function' && input !== '' && !isObjectText(input);
}

/** Whole arguments are followed by others: with a name beside them these are another call's, though index and name are the same. */
function beginsAnew(call: Call, piece: Piece): boolean {
  return piece.input.trimStart().startsWith('{') && isObjectText(call.input);
}

/**
 * What a piece adds. Some servers (vLLM) flush whole arguments at the end though they were said in pieces before: where only that makes
 * them an object, the beginning is not said again. Elsewhere only a repetition of all is known for certain.
 */
function unsaid({ input: said, flavour, freeform }: Call, piece: string, isLast: boolean): string {
  if (flavour === 'custom' && freeform === undefined) return piece;
  if (said === '' || piece.length < said.length || (piece.length > said.length && !isLast)) return piece;
  if (!piece.startsWith(said) || !isObjectText(piece) || isObjectText(said + piece)) return piece;
  return piece.slice(said.length);
}

function sameName(call: Call, piece: Piece): boolean {
  return piece.name === undefined || piece.name === call.name;
}
