/**
 * Stores an answer on its way to a responses client, before its last event is sent (known failure S13): exactly what the client
 * reads, with sealed envelopes, under the id that the client gets (R24). Changes no byte.
 */
import { setImmediate } from 'node:timers/promises';
import type { GatewayError } from '../../codecs/canonical/error.ts';
import type { Step } from '../../codecs/canonical/event.ts';
import { type JsonValue, parseJson } from '../../codecs/canonical/json.ts';
import type { ClientEncoder, OutFrame } from '../../codecs/codec.ts';
import { endsInSteps } from '../../codecs/json/parse-in-steps.ts';
import { type Ends, sliceElementsInSteps, sliceJson } from '../../codecs/json/text.ts';
import type { Steps } from '../../codecs/steps.ts';
import { LONG_CHARS } from '../../streams/text-pieces.ts';
import type { Channel } from '../config/config.ts';
import type { LargeWork } from '../request/large-work.ts';
import { type ItemTexts, itemTextsInSteps } from './past-turn.ts';

/** A finished answer, as the client reads it. */
export interface Answered {
  readonly responseId: string;
  readonly status: 'completed' | 'incomplete';
  /** The exact texts of the output items. */
  readonly output: ItemTexts;
  /** Of the output items that have one. */
  readonly itemIds: readonly string[];
  /** Items that the Channel stored itself, with its id. */
  readonly storedItems: ReadonlyMap<string, string>;
}

/** Called once, for completed and incomplete answers only. A promise delays the last event until it settles. */
export type Remember = (answered: Answered) => Promise<void> | undefined;

export interface RememberOptions {
  readonly responseId: string;
  readonly channel: Channel;
  /** The `store` member of the request; `never` for an answer that no upstream has. */
  readonly store: boolean | 'never' | undefined;
  /** Large answers are read in turns of it. */
  readonly work: LargeWork;
  readonly remember: Remember;
}

export interface RememberingStage extends ClientEncoder {
  /**
   * Stores the answer if it has come to a good end. To be called before that end is sent, and not if it will not be. Settles when
   * the answer is stored; undefined when there is nothing to wait for.
   */
  remember(): Promise<void> | undefined;
}

/** Characters of a value that is not looked through more than once. */
const LONG_VALUE = 16 * 1024;

export function remembering(encoder: ClientEncoder, options: RememberOptions): RememberingStage {
  return new Remembering(encoder, options);
}

class Remembering implements RememberingStage {
  readonly #encoder: ClientEncoder;
  readonly #options: RememberOptions;
  /** The terminal event of a good end. */
  #ending: { readonly text: string; readonly status: Answered['status'] } | undefined;

  constructor(encoder: ClientEncoder, options: RememberOptions) {
    this.#encoder = encoder;
    this.#options = options;
  }

  get ended(): boolean {
    return this.#encoder.ended;
  }

  get kept(): number | undefined {
    return this.#encoder.kept;
  }

  push(step: Step, out: OutFrame[]): void {
    const from = out.length;
    this.#encoder.push(step, out);
    this.#listen(out, from);
  }

  end(out: OutFrame[]): void {
    const from = out.length;
    this.#encoder.end(out);
    this.#listen(out, from);
  }

  fail(failure: GatewayError, out: OutFrame[]): void {
    this.#encoder.fail(failure, out);
  }

  failInstead(failure: GatewayError, out: OutFrame[]): void {
    this.#encoder.failInstead(failure, out);
  }

  remember(): Promise<void> | undefined {
    const ending = this.#ending;
    return ending && rememberText(ending.text, ['response'], ending.status, this.#options);
  }

  #listen(out: readonly OutFrame[], from: number): void {
    for (let index = from; index < out.length; index++) {
      const frame = out[index];
      const status = statusOf(frame?.event);
      if (frame !== undefined && 'data' in frame && status !== undefined) this.#ending = { text: frame.data, status };
    }
  }
}

/** The same for a whole body. */
export function rememberBody(body: string, status: string, options: RememberOptions): Promise<void> | undefined {
  return status === 'completed' || status === 'incomplete' ? rememberText(body, [], status, options) : undefined;
}

function statusOf(event: string | undefined): Answered['status'] | undefined {
  if (event === 'response.completed') return 'completed';
  return event === 'response.incomplete' ? 'incomplete' : undefined;
}

function rememberText(
  text: string,
  path: readonly string[],
  status: Answered['status'],
  options: RememberOptions,
): Promise<void> | undefined {
  const { responseId, channel, store, remember, work } = options;
  const steps = outputOf(text, path);
  // A text of megabytes was put together in this turn, which took long enough.
  const isLong = text.length > LONG_CHARS;
  const output = isLong ? setImmediate().then(() => work.run(steps)) : work.of(text, steps);
  const keep = ({ items, ids }: Output): Promise<void> | undefined =>
    remember({ responseId, status, output: items, itemIds: ids, storedItems: storedItems(ids, channel, store) });
  return output instanceof Promise ? output.then(keep) : keep(output);
}

interface Output {
  readonly items: ItemTexts;
  /** Of the items that have one. */
  readonly ids: readonly string[];
}

/** The list `output` of the object at `path`. */
function* outputOf(text: string, path: readonly string[]): Steps<Output> {
  const ends = text.length > LONG_CHARS ? yield* endsInSteps(text, LONG_VALUE) : undefined;
  const texts = (yield* sliceElementsInSteps(text, [...path, 'output'], ends)) ?? [];
  const ids: string[] = [];
  for (const item of texts) {
    const id = idOf(item, item.length > LONG_CHARS ? yield* endsInSteps(item, LONG_VALUE) : undefined);
    if (id !== undefined) ids.push(id);
    yield;
  }
  return { items: yield* itemTextsInSteps(texts), ids };
}

const NONE: ReadonlyMap<string, string> = new Map();

/** Items of a call that the Channel was to store. */
function storedItems(itemIds: readonly string[], channel: Channel, store: RememberOptions['store']): ReadonlyMap<string, string> {
  return storesItself(channel, store) ? new Map(itemIds.map((id) => [id, channel.id])) : NONE;
}

/** A responses upstream stores unless the client or the Channel's own parameters set `store` to false. */
function storesItself(channel: Channel, store: RememberOptions['store']): boolean {
  if (channel.type !== 'responses' || store === 'never') return false;
  if (channel.options.dropParameters.includes('store')) return true;
  return (channel.options.parameters.get('store') ?? String(store ?? true)) !== 'false';
}

function idOf(item: string, ends?: Ends): string | undefined {
  const slice = sliceJson(item, ['id'], ends);
  const value: JsonValue = slice === undefined ? null : parseJson(slice);
  return typeof value === 'string' ? value : undefined;
}
