/**
 * What the JSON of an upstream's answer may hold at most, beside its bytes. A parsed value takes some fifty bytes however short
 * its text is: what an answer may have in bytes, filled with `{},`, is more memory than a process has.
 */
import { type GatewayError, upstreamFault } from '../canonical/error.ts';

/** Members of one object. Each look at a wide one, and each copy, is one turn. A client may not send a wider one, either. */
export const MOST_MEMBERS = 50_000;

/** Any short answer may be full of them. */
const ALWAYS = 250_000;
/** Lists of logprobs have the most of all that is said: a list and an object to each forty characters. */
const CHARACTERS = 16;

/** Lists and objects, wherever they stand. */
export const mostContainers = ({ length }: string): number => ALWAYS + length / CHARACTERS;

/** The refusal of an answer that is more than these. */
export function tooMuch(what: string): GatewayError {
  return upstreamFault('undecodable', `The upstream answered with too many ${what}.`);
}
