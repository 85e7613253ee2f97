/**
 * The order of a canonical response: this file alone decides which canonical event may follow which.
 *
 * `canonical/order.ts` also checks what tables cannot hold: items are numbered 0, 1, 2, … as they start; `end` needs every item
 * closed (one that fails or is cancelled may leave items open, which encoders close as incomplete); a delta fits the kind of its
 * item; the text of a whole item begins with that of its deltas.
 */
import { illegal, type Transitions } from '../../streams/lifecycle.ts';
import type { ItemDelta, ItemHead } from './event.ts';

const no = illegal;

export type ResponseState = 'idle' | 'open' | 'ended';
export type ResponseVerb = 'start' | 'item' | 'usage' | 'native' | 'end' | 'fail';

export const RESPONSE = {
  //        start          item          usage          native          end           fail
  idle: { start: 'open', item: no, usage: no, native: 'idle', end: no, fail: 'ended' },
  open: { start: no, item: 'open', usage: 'open', native: 'open', end: 'ended', fail: 'ended' },
  ended: { start: no, item: no, usage: no, native: no, end: no, fail: no },
} as const satisfies Transitions<ResponseState, ResponseVerb>;

export type ItemState = 'unseen' | 'open' | 'closed';
export type ItemVerb = 'start' | 'delta' | 'end';

export const ITEM = {
  //          start          delta          end
  unseen: { start: 'open', delta: no, end: no },
  open: { start: no, delta: 'open', end: 'closed' },
  closed: { start: no, delta: no, end: no },
} as const satisfies Transitions<ItemState, ItemVerb>;

/** Which deltas each kind of item takes. */
export const FITS = {
  //            text        citation         raw         summary         input
  text: { text: true, citation: true, raw: false, summary: false, input: false },
  refusal: { text: true, citation: false, raw: false, summary: false, input: false },
  reasoning: { text: false, citation: false, raw: true, summary: true, input: false },
  toolCall: { text: false, citation: false, raw: false, summary: false, input: true },
  media: { text: false, citation: false, raw: false, summary: false, input: false },
  native: { text: false, citation: false, raw: false, summary: false, input: false },
} as const satisfies Record<ItemHead['kind'], Record<ItemDelta['kind'], boolean>>;
