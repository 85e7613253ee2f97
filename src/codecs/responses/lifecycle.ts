/**
 * The order of a responses stream. Rule: whatever decides which event may follow which lives in this file. The same tables
 * check upstream streams before their meaning is decoded and, in tests, every stream that the gateway writes.
 *
 * Joint rules beside the tables: items are keyed by `output_index` (ids may rotate), else by item id; several items may be
 * open at once; `output_item.done` closes the parts that are still open; a `completed` or `incomplete` terminal needs every
 * item closed; a contradiction in text is the decoder's to find. An upstream's events are checked as the normaliser has completed
 * them (`answer/normalise.ts`).
 */
import { advance, illegal, LifecycleError, type Transitions } from '../../streams/lifecycle.ts';
import type { JsonObject } from '../canonical/json.ts';
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
  //          added          child          done
  unseen: { added: 'open', child: no, done: no },
  open: { added: no, child: 'open', done: 'closed' },
  closed: { added: no, child: no, done: no },
} as const satisfies Transitions<ItemState, ItemVerb>;

/** A part: message content, reasoning content, a summary part. */
export type PartState = 'unseen' | 'open' | 'textDone' | 'closed' | 'implicit' | 'restated';
/**
 * `implicit`, `ended`: the beginning and the end of a part whose upstream has told neither. Such a part may go on after its whole
 * text was told.
 */
export type PartVerb = 'added' | 'delta' | 'annotation' | 'textDone' | 'done' | 'implicit' | 'ended';

export const PART = {
  //          added          delta          annotation          textDone          done          implicit          ended
  unseen: { added: 'open', delta: no, annotation: no, textDone: no, done: no, implicit: 'implicit', ended: no },
  open: { added: no, delta: 'open', annotation: 'open', textDone: 'textDone', done: 'closed', implicit: no, ended: 'closed' },
  textDone: { added: no, delta: no, annotation: 'textDone', textDone: no, done: 'closed', implicit: no, ended: 'closed' },
  closed: { added: no, delta: no, annotation: no, textDone: no, done: no, implicit: no, ended: no },
  implicit: {
    ...{ added: no, delta: 'implicit', annotation: 'implicit', textDone: 'restated', done: no, implicit: no, ended: 'closed' },
  },
  restated: {
    ...{ added: no, delta: 'restated', annotation: 'restated', textDone: 'restated', done: no, implicit: no, ended: 'closed' },
  },
} as const satisfies Transitions<PartState, PartVerb>;

/** The verb of an event that the upstream left out. */
const INSERTED: Partial<Record<PartVerb, PartVerb>> = { added: 'implicit', done: 'ended' };

/** The argument text of a function call, the input of a custom call. */
export type InputState = 'open' | 'done';
export type InputVerb = 'delta' | 'done';

export const INPUT = {
  //        delta          done
  open: { delta: 'open', done: 'done' },
  done: { delta: no, done: no },
} as const satisfies Transitions<InputState, InputVerb>;

/** What an event does to the stream, to an item, and to a part or the input of that item. */
export interface EventSpec {
  readonly stream: StreamVerb;
  readonly item?: ItemVerb;
  readonly part?: PartVerb;
  readonly input?: InputVerb;
  /** The item types that may have the event; absent: any. */
  readonly fits?: readonly string[];
  /** The part is named by `summary_index` instead of `content_index`. */
  readonly isSummary?: true;
  /** The member that holds its text. */
  readonly textMember?: string;
}

const message = ['message'];
const reasoning = ['reasoning'];
const messageOrReasoning = ['message', 'reasoning'];
const content = (part: PartVerb, fits: readonly string[], textMember?: string): EventSpec => ({
  stream: 'item',
  item: 'child',
  part,
  fits,
  ...(textMember === undefined ? {} : { textMember }),
});
const summary = (part: PartVerb, textMember?: string): EventSpec => ({
  ...content(part, reasoning, textMember),
  isSummary: true,
});
const input = (verb: InputVerb, type: string, textMember: string): EventSpec => ({
  stream: 'item',
  item: 'child',
  input: verb,
  fits: [type],
  textMember,
});

/** The events that the order knows. Other names: see {@link specOf}. */
const EVENTS: ReadonlyMap<string, EventSpec> = new Map<string, EventSpec>([
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
  ['response.output_text.annotation.added', content('annotation', message)],
  ['response.output_text.done', content('textDone', message, 'text')],
  ['response.refusal.delta', content('delta', message, 'delta')],
  ['response.refusal.done', content('textDone', message, 'refusal')],
  ['response.reasoning_text.delta', content('delta', reasoning, 'delta')],
  ['response.reasoning_text.done', content('textDone', reasoning, 'text')],
  // What Open Responses calls the same.
  ['response.reasoning.delta', content('delta', reasoning, 'delta')],
  ['response.reasoning.done', content('textDone', reasoning, 'text')],
  ['response.reasoning_summary_part.added', summary('added')],
  ['response.reasoning_summary_part.done', summary('done')],
  ['response.reasoning_summary_text.delta', summary('delta', 'delta')],
  ['response.reasoning_summary_text.done', summary('textDone', 'text')],
  ['response.function_call_arguments.delta', input('delta', 'function_call', 'delta')],
  ['response.function_call_arguments.done', input('done', 'function_call', 'arguments')],
  ['response.custom_tool_call_input.delta', input('delta', 'custom_tool_call', 'delta')],
  ['response.custom_tool_call_input.done', input('done', 'custom_tool_call', 'input')],
]);

const OTHER: EventSpec = { stream: 'other' };

/** The spec of an event name. Progress events of built-in tools and unknown names may come anywhere. */
export function specOf(name: string): EventSpec {
  return EVENTS.get(name) ?? OTHER;
}

export interface PartTrack {
  /** The event that began it. */
  readonly begunBy: string;
  state: PartState;
}

/** The states of one item, of its parts and of its input. */
export interface ItemTrack {
  readonly outputIndex: number;
  readonly type: string;
  state: ItemState;
  input: InputState;
  readonly content: PartTrack[];
  readonly summary: PartTrack[];
}

/** The states of an item that was not seen yet. */
export function newTrack(outputIndex: number, type: string): ItemTrack {
  return { outputIndex, type, state: 'unseen', input: 'open', content: [], summary: [] };
}

/** The order of one stream: feed it every event, in order. Throws LifecycleError; a refused event changes nothing. */
export class ResponsesOrder {
  state: StreamState = 'idle';
  readonly #byIndex = new Map<number, ItemTrack>();
  readonly #byId = new Map<string, ItemTrack>();

  /**
   * The item of an item event; undefined for other events. Throws GatewayError where a needed member is missing or malformed.
   * `isInserted`: the upstream left the event out.
   */
  accept(name: string, body: JsonObject, isInserted = false): ItemTrack | undefined {
    const spec = isInserted ? insertedSpec(specOf(name)) : specOf(name);
    const next = advance('stream', STREAM, this.state, spec.stream);
    const track = spec.item === undefined ? undefined : this.#acceptItem(name, body, spec, spec.item);
    this.state = next;
    return track;
  }

  get(outputIndex: number): ItemTrack | undefined {
    return this.#byIndex.get(outputIndex);
  }

  /** Items that were added and not closed, in the order in which they were added. */
  open(): ItemTrack[] {
    return [...this.#byIndex.values()].filter((track) => track.state === 'open');
  }

  #acceptItem(name: string, body: JsonObject, spec: EventSpec, verb: ItemVerb): ItemTrack {
    if (verb === 'child') return this.#acceptChild(name, body, spec);
    const item = needObject(body, 'item', name);
    const type = needString(item, 'type', name);
    const outputIndex = needIndex(body, 'output_index', name);
    const known = this.#byIndex.get(outputIndex);
    const state = advance('output item', ITEM, known?.state ?? 'unseen', verb);
    if (known !== undefined && known.type !== type) throw new LifecycleError('output item', known.type, type, [known.type]);
    const track = known ?? newTrack(outputIndex, type);
    track.state = state;
    if (known === undefined) this.#byIndex.set(outputIndex, track);
    const id = item['id'];
    if (typeof id === 'string') this.#byId.set(id, track);
    return track;
  }

  #acceptChild(name: string, body: JsonObject, spec: EventSpec): ItemTrack {
    const track = this.#itemOf(name, body);
    const subject = 'output item';
    advance(subject, ITEM, track.state, 'child');
    if (spec.fits !== undefined && !spec.fits.includes(track.type)) throw new LifecycleError(subject, track.type, name, []);
    if (spec.textMember !== undefined) needString(body, spec.textMember, name);
    if (spec.input !== undefined) track.input = advance(subject, INPUT, track.input, spec.input);
    if (spec.part !== undefined) {
      const index = needIndex(body, spec.isSummary === true ? 'summary_index' : 'content_index', name);
      const parts = spec.isSummary === true ? track.summary : track.content;
      const before = parts[index]?.state ?? 'unseen';
      const state = advance('part', PART, before, spec.part);
      if (spec.part === 'added' || spec.part === 'done') needString(needObject(body, 'part', name), 'type', name);
      if (index > parts.length) throw new LifecycleError(subject, `${parts.length} parts`, `part ${index}`, []);
      const part = parts[index];
      if (part === undefined) parts.push({ begunBy: name, state });
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

function insertedSpec(spec: EventSpec): EventSpec {
  const part = spec.part === undefined ? undefined : INSERTED[spec.part];
  return part === undefined ? spec : { ...spec, part };
}
