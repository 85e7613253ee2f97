/** The id of a request: that which its client gave it, or one of ours. The gateway's exchange id is always its own. */
import type { IncomingMessage } from 'node:http';
import type { Mint } from '../../codecs/codec.ts';

/** Statuses that agents try again after. */
const RETRIED = /429|5\d\d/g;
const LETTERS = 'abcdef';

/**
 * A new id, `req_` and 32 hex digits, none of whose digits read as a status. It stands in the text of errors, where agents (pi)
 * look for the numbers of such statuses: about one refusal in thirty was sent again for the digits of its id.
 */
export function newRequestId(mint: Mint): string {
  return mint('req_').replace(RETRIED, (digits) => digits.replace(/\d/g, (digit) => LETTERS.charAt(Number(digit) % 6)));
}

/** Undefined for none, and for one that is too long or holds other characters. */
export function clientRequestId({ headers }: IncomingMessage): string | undefined {
  const id = headers['x-request-id'];
  return typeof id === 'string' && /^[\w.:-]{1,128}$/.test(id) ? id : undefined;
}
