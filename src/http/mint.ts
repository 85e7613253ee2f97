/**
 * Ids: 12 hex digits of the time, then 20 random ones. Ids made in sequence are neighbours in every index, so writing many of
 * them touches few pages.
 */
import type { Mint } from '../codecs/codec.ts';

const TIME_DIGITS = 12;
const RANDOM_DIGITS = 20;
/** Random bytes are drawn for many ids at once: the call costs more than the rest of making an id. */
const IDS_A_DRAW = 256;

export function createMint(now: () => number, randomBytes: (size: number) => Buffer): Mint {
  let digits = '';
  let at = 0;
  let nowMs = -1;
  let time = '';
  return (prefix) => {
    if (at === digits.length) {
      digits = randomBytes((IDS_A_DRAW * RANDOM_DIGITS) / 2).toString('hex');
      at = 0;
    }
    const ms = now();
    if (ms !== nowMs) {
      nowMs = ms;
      time = ms.toString(16).padStart(TIME_DIGITS, '0');
    }
    at += RANDOM_DIGITS;
    return prefix + time + digits.slice(at - RANDOM_DIGITS, at);
  };
}
