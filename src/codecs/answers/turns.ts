/**
 * Whose turn it is to speak. Upstreams have items open side by side (chat ends its calls with the answer, responses may say two texts piece
 * by piece); clients read some of them one after another. What runs goes on live. An item that may not be said beside it waits with all
 * that is said of it, and what begins behind one that waits keeps its place. Knows no protocol: which items keep which waiting is each
 * encoder's own table.
 */
import type { CanonicalEvent, ItemDelta, ItemHead } from '../canonical/event.ts';
import { grown } from '../canonical/grown.ts';

export type ItemEvent = Extract<CanonicalEvent, { type: 'item.start' | 'item.delta' | 'item.end' }>;

type Kind = ItemHead['kind'];

/** By the kind of an item that has begun, the kinds that wait for its end. Its own is always one of them. */
export type Holds = Readonly<Partial<Record<Kind, readonly Kind[]>>>;

/** Items whose pieces clients join into one text wait for their own kind. */
export const OWN_KIND = { text: ['text'], refusal: ['refusal'], reasoning: ['reasoning'] } as const satisfies Holds;

interface Waiting {
  readonly kind: Kind;
  readonly events: ItemEvent[];
}

/** `Out`: where what is said goes, if it goes anywhere but to the writer itself. */
export class Turns<Out = void> {
  readonly #holds: Holds;
  readonly #begin: 'start' | 'word';
  readonly #write: (event: ItemEvent, out: Out) => void;
  /** The item that was said last: nothing has begun since, so its next piece need not ask. */
  #running = -1;
  /** Items that have begun and not ended. */
  readonly #begun = new Map<number, Kind>();
  /** Those of them that keep others waiting: one of each kind at most. */
  readonly #holders = new Map<number, readonly Kind[]>();
  /** Items that have started and not begun. */
  readonly #silent = new Map<number, Kind>();
  /** Items that had begun before another that keeps them waiting. */
  readonly #interrupted = new Map<number, Waiting>();
  /** Items that have not begun, in their order. */
  readonly #line = new Map<number, Waiting>();

  /** `begin`: whether texts and thoughts take their turn with their start or with their first word. All others do with their start. */
  constructor(holds: Holds, begin: 'start' | 'word', write: (event: ItemEvent, out: Out) => void) {
    this.#holds = holds;
    this.#begin = begin;
    this.#write = write;
  }

  /** Says the event, and after the end of an item what waited for it, or keeps it until its turn. */
  push(event: ItemEvent, out: Out): void {
    const { index } = event;
    if (index === this.#running && event.type === 'item.delta') {
      this.#write(event, out);
      return;
    }
    const waiting = this.#line.get(index) ?? this.#interrupted.get(index);
    if (waiting !== undefined) {
      keep(waiting.events, event);
      return;
    }
    const begun = this.#begun.get(index);
    const kind = begun ?? (event.type === 'item.start' ? event.head.kind : this.#silent.get(index));
    if (kind === undefined) return;
    if (this.#isHeld(index, kind) || (begun === undefined && this.#line.size > 0)) {
      this.#silent.delete(index);
      (begun === undefined ? this.#line : this.#interrupted).set(index, { kind, events: [event] });
      return;
    }
    this.#say(event, kind, out);
    if (event.type !== 'item.end') return;
    for (let next = this.#next(); next !== undefined; next = this.#next())
      for (const released of next.events) this.#say(released, next.kind, out);
  }

  /** Nothing more comes: what still waits, item by item, as far as it came. */
  rest(): readonly ItemEvent[] {
    const waiting = [...this.#interrupted.values(), ...this.#line.values()];
    this.#interrupted.clear();
    this.#line.clear();
    return waiting.flatMap(({ events }) => events);
  }

  /** One whose turn it is. Who was interrupted goes on before another begins, and the line moves when nobody keeps anybody waiting. */
  #next(): Waiting | undefined {
    for (const [index, interrupted] of this.#interrupted) {
      if (this.#isHeld(index, interrupted.kind)) continue;
      this.#interrupted.delete(index);
      return interrupted;
    }
    const [first] = this.#holders.size === 0 ? this.#line : [];
    if (first === undefined) return undefined;
    this.#line.delete(first[0]);
    return first[1];
  }

  #isHeld(index: number, kind: Kind): boolean {
    for (const [holder, kinds] of this.#holders) if (holder !== index && kinds.includes(kind)) return true;
    return false;
  }

  #say(event: ItemEvent, kind: Kind, out: Out): void {
    this.#write(event, out);
    const { index } = event;
    if (event.type === 'item.end') {
      this.#silent.delete(index);
      this.#begun.delete(index);
      this.#holders.delete(index);
    } else if (event.type === 'item.start' && this.#begin === 'word' && kind in OWN_KIND) {
      this.#silent.set(index, kind);
    } else {
      this.#running = index;
      if (this.#begun.has(index)) return;
      this.#silent.delete(index);
      this.#begun.set(index, kind);
      const kinds = this.#holds[kind];
      if (kinds !== undefined) this.#holders.set(index, kinds);
    }
  }
}

/** Pieces that wait are one piece. */
function keep(events: ItemEvent[], event: ItemEvent): void {
  const last = events.at(-1);
  const delta = last?.type === 'item.delta' && event.type === 'item.delta' ? joined(last.delta, event.delta) : undefined;
  if (delta === undefined) events.push(event);
  else events[events.length - 1] = { type: 'item.delta', index: event.index, delta };
}

/** Undefined where the two are no one piece: citations, scored texts, parts of a summary. */
function joined(first: ItemDelta, second: ItemDelta): ItemDelta | undefined {
  if (first.kind === 'citation' || second.kind === 'citation' || first.kind !== second.kind) return undefined;
  if ('logprobs' in first || 'logprobs' in second) return undefined;
  if ('part' in first && 'part' in second && first.part !== second.part) return undefined;
  return { ...first, text: grown(first.text, second.text) };
}
