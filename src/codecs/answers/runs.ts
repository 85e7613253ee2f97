/**
 * Runs: texts that one item grows by, and that came in one read, are one event. Its delta lists them as the upstream sent them,
 * since a client gets each in an event of its own; all else between the two reads their sum.
 */
import { empty } from '../../streams/empty.ts';
import type { CanonicalEvent, ItemDelta, Step } from '../canonical/event.ts';
import type { EventDecoder, Frame } from '../codec.ts';

/** A decoder that knows events which only add to what the one before them added to. */
export abstract class RunDecoder implements EventDecoder {
  abstract ended: boolean;
  /** Events go to a client of the same dialect, one by one and in their own form. */
  protected readonly isPassedOn: boolean;
  /** What is being added: a list of its own would have room for seventeen. */
  protected readonly events: CanonicalEvent[] = [];

  constructor(isPassedOn: boolean) {
    this.isPassedOn = isPassedOn;
  }

  /** The text that such an event adds; undefined for every other one. Changes nothing. */
  protected abstract pieceOf(frame: Frame): string | undefined;
  /** Adds the text. */
  protected abstract add(text: string, events: CanonicalEvent[]): void;
  /** To add texts one by one is to add their sum: each of them is emitted as it is. */
  protected abstract get mayJoin(): boolean;
  /** Reads any other event. */
  protected abstract read(frame: Frame, out: Step[]): void;
  abstract end(out: Step[]): void;

  push(frame: Frame, out: Step[]): void {
    if (this.ended) return;
    const piece = this.isPassedOn ? undefined : this.pieceOf(frame);
    if (piece === undefined) {
      this.read(frame, out);
      return;
    }
    this.add(piece, this.events);
    out.push({ events: this.taken() });
  }

  pushAll(frames: readonly Frame[], out: Step[]): void {
    for (let at = 0; at < frames.length && !this.ended; ) {
      const pieces = !this.isPassedOn && this.mayJoin ? this.#piecesFrom(frames, at) : undefined;
      const frame = frames[at];
      if (pieces !== undefined) {
        this.add(pieces.join(''), this.events);
        out.push({ events: this.taken().map((event) => asRun(event, pieces)) });
      } else if (frame !== undefined) this.push(frame, out);
      at += pieces?.length ?? 1;
    }
  }

  /** The texts of a run that begins there; undefined where none does. */
  #piecesFrom(frames: readonly Frame[], from: number): readonly string[] | undefined {
    let pieces: string[] | undefined;
    for (let at = from; at < frames.length; at++) {
      const frame = frames[at];
      const piece = frame === undefined ? undefined : this.pieceOf(frame);
      if (piece === undefined || piece === '') break;
      if (pieces === undefined) pieces = [piece];
      else pieces.push(piece);
    }
    return pieces === undefined || pieces.length === 1 ? undefined : pieces;
  }

  /** What was added, as a list of its own length. */
  protected taken(): CanonicalEvent[] {
    const events = this.events.slice();
    empty(this.events);
    return events;
  }
}

/** An event of a text that was added, which came in pieces: an item may begin before its delta. */
function asRun(event: CanonicalEvent, pieces: readonly string[]): CanonicalEvent {
  return event.type === 'item.delta' && event.delta.kind !== 'citation' ? { ...event, delta: { ...event.delta, pieces } } : event;
}

/** A delta that may be a run. */
export type TextDelta = Exclude<ItemDelta, { kind: 'citation' }>;

/** Whether the two could be one delta: not texts with logprobs, nor different parts of a summary. */
export function canJoin(first: TextDelta, second: TextDelta): boolean {
  if (first.kind !== second.kind || 'logprobs' in first || 'logprobs' in second) return false;
  return !('part' in first && 'part' in second && first.part !== second.part);
}
