/**
 * The order of a responses stream. Rule: whatever decides which event may follow which lives in this file. The same tables
 * check upstream streams before their meaning is decoded and, in tests, every stream that the gateway emits.
 *
 * Joint rules beside the tables: items are keyed by `output_index` (ids may rotate), else by item id; several items may be
 * open at once; `output_item.done` closes the parts that are still open; a `completed` or `incomplete` terminal needs every
 * item closed or repeated in its output; a contradiction in text is the decoder's to find.
 */
import { advance, illegal, LifecycleError, type Transitions } from '../../streams/lifecycle.ts';
import { isObject, type JsonObject, type JsonValue } from '../canonical/json.ts';
import { needIndex, malformed, needObject, needString } from './wire.ts';

const no = illegal;

export type StreamState = 'idle' | 'open' | 'ended';
export type StreamVerb = 'created' | 'progress' | 'item' | 'other' | 'terminal' | 'error';

export const STREAM = {
  //        created          progress          item          other          terminal          error
  idle: { created: 'open', progress: 'open', item: no, other: 'idle', terminal: 'ended', error: 'ended' },
  open: { created: no, progress: 'open', item: 'open', other: 'open', terminal: 'ended', error: 'ended' },
  ended: { created: no, progress: no, item: no, other: no, terminal: no, error: no },
} as const satisfies Transitions<StreamState, StreamVerb>;

export type ItemState = 'unseen' | 'open' | 'closed';
export type ItemVerb = 'added' | 'child' | 'done';

export const ITEM = {
  //          added          child          done (alone: an upstream that announces nothing)
  unseen: { added: 'open', child: no, done: 'closed' },
  open: { added: no, child: 'open', done: 'closed' },
  closed: { added: no, child: no, done: no },
} as const satisfies Transitions<ItemState, ItemVerb>;

/** A part: message content, reasoning content, a summary part. */
export type PartState = 'unseen' | 'open' | 'said' | 'closed' | 'bare';
export type PartVerb = 'added' | 'delta' | 'note' | 'said' | 'done' | 'bare';

export const PART = {
  //          added          delta          note (annotation)          said (text.done)          done (part.done)
  unseen: { added: 'open', delta: no, note: no, said: no, done: no, bare: 'bare' },
  open: { added: no, delta: 'open', note: 'open', said: 'said', done: 'closed', bare: no },
  said: { added: no, delta: no, note: 'said', said: no, done: 'closed', bare: no },
  closed: { added: no, delta: no, note: no, said: no, done: no, bare: no },
  // Text of reasoning whose parts are neither begun nor ended (Ollama, llama.cpp); a part that has one of the two has both.
  bare: { added: no, delta: no, note: no, said: no, done: no, bare: 'bare' },
} as const satisfies Transitions<PartState, PartVerb>;

/** The argument text of a function call, the input of a custom call. */
export type InputState = 'open' | 'said';
export type InputVerb = 'delta' | 'said';

export const INPUT = {
  //        delta          said
  open: { delta: 'open', said: 'said' },
  said: { delta: no, said: no },
} as const satisfies Transitions<InputState, InputVerb>;

/** What an event says: about the response, about an item, about a part of one. */
interface Meaning {
  readonly stream: StreamVerb;
  readonly item?: ItemVerb;
  readonly part?: PartVerb;
  readonly input?: InputVerb;
  /** The item types that the event fits; absent: any. */
  readonly fits?: readonly string[];
  /** `summary_index` instead of `content_index`. */
  readonly isSummary?: true;
  /** The member that must be a string. */
  readonly text?: string;
}

const message = ['message'];
const reasoning = ['reasoning'];
const messageOrReasoning = ['message', 'reasoning'];
const content = (part: PartVerb, fits: readonly string[], text?: string): Meaning => ({
  stream: 'item',
  item: 'child',
  part,
  fits,
  ...(text === undefined ? {} : { text }),
});
const summary = (part: PartVerb, text?: string): Meaning => ({ ...content(part, reasoning, text), isSummary: true });
const input = (verb: InputVerb, type: string, text: string): Meaning => ({
  stream: 'item',
  item: 'child',
  input: verb,
  fits: [type],
  text,
});

/** Every event with a meaning of its own. Other names: see {@link meaningOf}. */
const MEANINGS: ReadonlyMap<string, Meaning> = new Map<string, Meaning>([
  ['response.created', { stream: 'created' }],
  ['response.queued', { stream: 'progress' }],
  ['response.in_progress', { stream: 'progress' }],
  ['response.completed', { stream: 'terminal' }],
  ['response.incomplete', { stream: 'terminal' }],
  ['response.failed', { stream: 'terminal' }],
  ['response.cancelled', { stream: 'terminal' }],
  ['response.done', { stream: 'terminal' }],
  ['error', { stream: 'error' }],
  ['response.output_item.added', { stream: 'item', item: 'added' }],
  ['response.output_item.done', { stream: 'item', item: 'done' }],
  ['response.content_part.added', content('added', messageOrReasoning)],
  ['response.content_part.done', content('done', messageOrReasoning)],
  // What vLLM and its relatives call the parts of raw reasoning.
  ['response.reasoning_part.added', content('added', reasoning)],
  ['response.reasoning_part.done', content('done', reasoning)],
  ['response.output_text.delta', content('delta', message, 'delta')],
  ['response.output_text.annotation.added', content('note', message)],
  ['response.output_text.done', content('said', message, 'text')],
  ['response.refusal.delta', content('delta', message, 'delta')],
  ['response.refusal.done', content('said', message, 'refusal')],
  ['response.reasoning_text.delta', content('delta', reasoning, 'delta')],
  ['response.reasoning_text.done', content('said', reasoning, 'text')],
  ['response.reasoning_summary_part.added', summary('added')],
  ['response.reasoning_summary_part.done', summary('done')],
  ['response.reasoning_summary_text.delta', summary('delta', 'delta')],
  ['response.reasoning_summary_text.done', summary('said', 'text')],
  ['response.function_call_arguments.delta', input('delta', 'function_call', 'delta')],
  ['response.function_call_arguments.done', input('said', 'function_call', 'arguments')],
  ['response.custom_tool_call_input.delta', input('delta', 'custom_tool_call', 'delta')],
  ['response.custom_tool_call_input.done', input('said', 'custom_tool_call', 'input')],
]);

const OTHER: Meaning = { stream: 'other' };

/** The meaning of an event name; progress events of built-in tools and unknown names have none of their own. */
export function meaningOf(name: string): Meaning {
  return MEANINGS.get(name) ?? OTHER;
}

interface PartTrack {
  state: PartState;
}

/** What the order knows of one item. `content` and `summary` hold the states of its parts. */
export interface ItemTrack {
  readonly outputIndex: number;
  readonly type: string;
  state: ItemState;
  input: InputState;
  readonly content: PartTrack[];
  readonly summary: PartTrack[];
}

/** The order of one stream: feed it every event, in order. Throws LifecycleError; a refused event changes nothing. */
export class ResponsesOrder {
  state: StreamState = 'idle';
  readonly #byIndex = new Map<number, ItemTrack>();
  readonly #byId = new Map<string, ItemTrack>();

  /** The item that an item event speaks of, undefined for other events. Throws GatewayError where needed members are wrong. */
  accept(name: string, body: JsonObject): ItemTrack | undefined {
    const meaning = meaningOf(name);
    const next = advance('stream', STREAM, this.state, meaning.stream);
    const track = meaning.item === undefined ? undefined : this.#acceptItem(name, body, meaning, meaning.item);
    this.state = next;
    return track;
  }

  get(outputIndex: number): ItemTrack | undefined {
    return this.#byIndex.get(outputIndex);
  }

  /** Ends an item that has no end of its own (`places.ts`). */
  close(outputIndex: number): void {
    const track = this.#byIndex.get(outputIndex);
    if (track !== undefined) track.state = advance('output item', ITEM, track.state, 'done');
  }

  /** Items that were announced and not closed, in order of their announcement. */
  open(): ItemTrack[] {
    return [...this.#byIndex.values()].filter((track) => track.state === 'open');
  }

  #acceptItem(name: string, body: JsonObject, meaning: Meaning, verb: ItemVerb): ItemTrack {
    if (verb === 'child') return this.#acceptChild(name, body, meaning);
    const item = needObject(body, 'item', name);
    const type = needString(item, 'type', name);
    const outputIndex = needIndex(body, 'output_index', name);
    const known = this.#byIndex.get(outputIndex);
    const state = advance('output item', ITEM, known?.state ?? 'unseen', verb);
    if (known !== undefined && known.type !== type) throw new LifecycleError('output item', known.type, type, [known.type]);
    const track = known ?? { outputIndex, type, state, input: 'open', content: [], summary: [] };
    track.state = state;
    if (known === undefined) this.#byIndex.set(outputIndex, track);
    const id = item['id'];
    if (typeof id === 'string') this.#byId.set(id, track);
    return track;
  }

  #acceptChild(name: string, body: JsonObject, meaning: Meaning): ItemTrack {
    const track = this.#itemOf(name, body);
    const subject = 'output item';
    advance(subject, ITEM, track.state, 'child');
    if (meaning.fits !== undefined && !meaning.fits.includes(track.type)) throw new LifecycleError(subject, track.type, name, []);
    if (meaning.text !== undefined) needString(body, meaning.text, name);
    if (meaning.input !== undefined) track.input = advance(subject, INPUT, track.input, meaning.input);
    if (meaning.part !== undefined) {
      const index = needIndex(body, meaning.isSummary === true ? 'summary_index' : 'content_index', name);
      const parts = meaning.isSummary === true ? track.summary : track.content;
      const before = parts[index]?.state ?? 'unseen';
      const state = advance('part', PART, before, partVerb(meaning, meaning.part, before));
      if (meaning.part === 'added' || meaning.part === 'done') needString(needObject(body, 'part', name), 'type', name);
      if (index > parts.length) throw new LifecycleError(subject, `${parts.length} parts`, `part ${index}`, []);
      const part = parts[index];
      if (part === undefined) parts.push({ state });
      else part.state = state;
    }
    return track;
  }

  /** By `output_index`, since some servers rotate ids (known failure R19); by item id where the index is absent. */
  #itemOf(name: string, body: JsonObject): ItemTrack {
    const index = body['output_index'];
    if (index !== undefined && index !== null) {
      const track = this.#byIndex.get(needIndex(body, 'output_index', name));
      if (track !== undefined) return track;
      throw new LifecycleError('output item', 'unseen', name, ['response.output_item.added']);
    }
    const id = body['item_id'];
    if (typeof id !== 'string') throw malformed(name);
    const track = this.#byId.get(id);
    if (track === undefined) throw new LifecycleError('output item', 'unseen', name, ['response.output_item.added']);
    return track;
  }
}

/** What an event does to its part: text of reasoning whose part was not announced is `bare`. */
function partVerb({ fits }: Meaning, verb: PartVerb, state: PartState): PartVerb {
  const isText = verb === 'delta' || verb === 'said';
  return fits === reasoning && isText && (state === 'unseen' || state === 'bare') ? 'bare' : verb;
}

/**
 * Checks whole streams that the gateway emits, beside the order: contiguous sequence numbers and output indices, the
 * terminal's output repeating the items, exactly one terminal. Throws on the first fault. For tests. `isNative`: an upstream's
 * own events, whose terminal may differ from its item events and may end what only the vendor reads.
 */
export function checkResponsesStream(
  frames: Iterable<{ readonly event: string | undefined; readonly data: string }>,
  isNative = false,
): void {
  const order = new ResponsesOrder();
  const done: JsonObject[] = [];
  let sequence = 0;
  let announced = 0;
  for (const frame of frames) {
    const body: unknown = JSON.parse(frame.data);
    if (!isObject(body)) throw malformed('event');
    const name = needString(body, 'type', 'event');
    if (frame.event !== undefined && frame.event !== name) throw new LifecycleError('frame', frame.event, name, []);
    checkNumber('sequence', sequence++, needIndex(body, 'sequence_number', name));
    const track = order.accept(name, body);
    if (name === 'response.output_item.added') checkNumber('output index', announced++, track?.outputIndex);
    if (name === 'response.output_item.done' && track !== undefined) done[track.outputIndex] = needObject(body, 'item', name);
    if (order.state !== 'ended' || isNative) continue;
    if (order.open().length > 0) throw new LifecycleError('response', 'open item', name, ['response.output_item.done']);
    checkRepeats(done, needObject(body, 'response', name)['output'], name);
  }
  if (order.state !== 'ended') throw new LifecycleError('response', order.state, 'end of stream', ['response.completed']);
}

function checkNumber(subject: string, wanted: number, found: number | undefined): void {
  if (found !== wanted) throw new LifecycleError(subject, String(wanted), String(found), []);
}

/** A terminal repeats the items as they ended. */
function checkRepeats(done: readonly JsonObject[], output: JsonValue | undefined, name: string): void {
  if (!Array.isArray(output) || output.length !== done.length)
    throw new LifecycleError('response', `${done.length} items`, name, []);
  for (const [index, item] of output.entries()) {
    if (JSON.stringify(item) !== JSON.stringify(done[index])) throw new LifecycleError('response', `item ${index}`, name, []);
  }
}
