/** Runs (`codecs/answers/runs.ts`) as the single events that they stand for. */
import type { CanonicalEvent } from '../../src/codecs/canonical/event.ts';
import { type Frame, framesOf, type OutFrame } from '../../src/codecs/codec.ts';

export function singleEvents(events: readonly CanonicalEvent[]): CanonicalEvent[] {
  return events.flatMap((event): CanonicalEvent[] => {
    if (event.type !== 'item.delta' || event.delta.kind === 'citation' || event.delta.pieces === undefined) return [event];
    const { pieces, ...delta } = event.delta;
    return pieces.map((text) => ({ ...event, delta: { ...delta, text } }));
  });
}

export function singleFrames(frames: readonly OutFrame[]): Frame[] {
  return frames.flatMap(framesOf);
}
