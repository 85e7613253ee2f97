/**
 * `npm run bench -- guard`: fails when the conversion has become clearly slower. Compares work with work of the same run in the
 * same process (what `JSON.parse` and `JSON.stringify` of the same events cost), so a slow or busy machine does not trip it; the
 * best of many short rounds, floor and subject by turns. Bounds are about twice what is measured: it catches a mistake, not a
 * percent.
 */
import { decode, DIALECTS, encode, pairOf, sseEventsOf } from './harness/pipeline.ts';
import { microsOf } from './harness/timing.ts';
import { textFrames, tokens } from './fixtures.ts';

const ROUNDS = 5;
/** Rounds of this process, floor and subject by turns: one of them is undisturbed. */
const TURNS = 3;
const BOUND = 3;

/** True when every ratio is within its bound. Takes about half a minute. */
export function guard(): boolean {
  let good = true;
  for (const upstream of DIALECTS) {
    const events = sseEventsOf([Buffer.from(textFrames(upstream, tokens(96)).join(''))]);
    const texts = events.map(({ data }) => data).filter((data) => data !== '[DONE]');
    for (const client of DIALECTS) {
      const pair = pairOf(client, upstream);
      const ratios = Array.from({ length: TURNS }, () => {
        const floor = microsOf(() => void texts.map((text) => JSON.stringify(JSON.parse(text))), ROUNDS).best;
        return microsOf(() => void encode(pair, decode(pair, events)), ROUNDS).best / floor;
      });
      const best = Math.min(...ratios);
      good &&= best <= BOUND;
      console.log(`${best <= BOUND ? 'ok  ' : 'SLOW'} ${upstream} to ${client}: ${best.toFixed(2)} of ${BOUND}`);
    }
  }
  return good;
}
