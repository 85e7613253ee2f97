/** Seeded randomness: the same seed gives the same numbers on every machine. Not for secrets. */
import { createHash } from 'node:crypto';

/** Numbers in [0, 1). */
export type Random = () => number;

/** Mulberry32. */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

export function seedOf(text: string): number {
  return createHash('sha256').update(text).digest().readUInt32LE(0);
}

export function pick<T>(random: Random, list: readonly T[]): T | undefined {
  return list[Math.floor(random() * list.length)];
}
