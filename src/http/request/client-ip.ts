/**
 * The client's address: the socket's peer or, when that is a trusted proxy, the nearest untrusted address of the forwarding
 * headers. They are read from the near end, so that entries which the client wrote itself do not matter.
 */
import type { IncomingHttpHeaders } from 'node:http';
import { type BlockList, isIP } from 'node:net';
import { inRanges, plainAddress } from './ip-ranges.ts';

/** RFC 7239's token for an unidentified client. It is no address, so no allow-list contains it. */
const UNKNOWN = 'unknown';

/** The address in its shortest spelling; `unknown` where the proxies' headers contradict each other or name no address. */
export function clientIp(peer: string | undefined, headers: IncomingHttpHeaders, trusted: BlockList): string {
  const nearest = plainAddress(peer ?? '');
  if (!inRanges(trusted, nearest)) return nearest;
  const chains = [forwardedChain(headers['forwarded']), listOf(headers['x-forwarded-for'])].filter((chain) => chain.length > 0);
  const [chain = listOf(headers['x-real-ip']), other = chain] = chains;
  const found = farthestTrusted(chain, trusted) ?? nearest;
  // A proxy writes one of the two headers; the other may come from the client.
  return other === chain || farthestTrusted(other, trusted) === found ? found : UNKNOWN;
}

/** The elements of a list header, farthest first; empty ones are skipped. */
function listOf(header: string | string[] | undefined): string[] {
  return String(header ?? '')
    .split(',')
    .map((text) => text.trim())
    .filter((text) => text !== '');
}

/**
 * One pair of an element, and what comes behind it (RFC 7239, 4): names are tokens, values tokens or quoted strings, without
 * space around `=`.
 */
const PAIR =
  /[ \t]*(?:([!#$%&'*+.^_`|~0-9A-Za-z-]+)=(?:([!#$%&'*+.^_`|~0-9A-Za-z-]+)|"([^"\\]*(?:\\.[^"\\]*)*)")[ \t]*)?(;|,|$)/y;
/** Bounds what a client can make of a header that is read for each of its requests. */
const MAX_PAIRS = 256;

/**
 * The `for` of each element, farthest first. An element that names nobody, or two, stands for an unknown client; a header that
 * breaks the grammar does as a whole, since proxies and this gateway may not read the same in it.
 */
function forwardedChain(header: string | string[] | undefined): string[] {
  const text = String(header ?? '');
  const chain: string[] = [];
  let element: string[] = [];
  let isEmpty = true;
  let at = 0;
  for (let pairs = 0; ; pairs++) {
    PAIR.lastIndex = at;
    const found = PAIR.exec(text);
    if (found === null || pairs === MAX_PAIRS) return [UNKNOWN];
    const [whole, name, token, quoted, end] = found;
    if (name !== undefined) isEmpty = false;
    if (name?.toLowerCase() === 'for') element.push(token ?? (quoted ?? '').replaceAll(/\\(.)/g, '$1'));
    at += whole.length;
    if (end === ';') continue;
    if (!isEmpty) chain.push(element.length === 1 ? (element[0] ?? UNKNOWN) : UNKNOWN);
    element = [];
    isEmpty = true;
    if (end === '') break;
  }
  return chain;
}

/** No chain of proxies is longer. Where a proxy writes another header, or the client stands among them, this one is its own. */
const MAX_HOPS = 256;

/** The address beyond the last trusted one, else the farthest; undefined for an empty chain. */
function farthestTrusted(chain: readonly string[], trusted: BlockList): string | undefined {
  let found: string | undefined;
  for (const [hops, text] of chain.toReversed().entries()) {
    if (hops === MAX_HOPS) return UNKNOWN;
    found = plainAddress(withoutPort(text));
    if (isIP(found) === 0) return UNKNOWN;
    if (!inRanges(trusted, found)) return found;
  }
  return found;
}

/** RFC 7239 also has obfuscated ports: `_port`. */
function withoutPort(text: string): string {
  const bracketed = /^\[([^\]]*)\](?::(?:\d+|_[\w.-]+))?$/.exec(text)?.[1];
  if (bracketed !== undefined) return bracketed;
  return /^(\d+\.\d+\.\d+\.\d+):(?:\d+|_[\w.-]+)$/.exec(text)?.[1] ?? text;
}
