/**
 * Who is calling: the socket's peer or, when that is a trusted proxy, the nearest address of the forwarding headers that is not one.
 * A header that cannot be read is ignored as a whole, and the peer counts.
 */
import type { IncomingHttpHeaders } from 'node:http';
import { type BlockList, isIP } from 'node:net';
import { inRanges, plainAddress } from './ip-ranges.ts';

export function clientIp(peer: string | undefined, headers: IncomingHttpHeaders, trusted: BlockList): string {
  const nearest = plainAddress(peer ?? '');
  if (!inRanges(trusted, nearest)) return nearest;
  const chain = forwardedChain(headers);
  if (chain === undefined) return nearest;
  for (let index = chain.length - 1; index >= 0; index--) {
    const address = chain[index] ?? nearest;
    if (index === 0 || !inRanges(trusted, address)) return address;
  }
  return nearest;
}

/** Farthest first. `Forwarded` before `X-Forwarded-For` before `X-Real-IP`: the first that is present decides. */
function forwardedChain(headers: IncomingHttpHeaders): string[] | undefined {
  const forwarded = headers['forwarded'];
  if (forwarded !== undefined) return addresses(forwarded.split(',').map((element) => forParameter(element)));
  const list = headers['x-forwarded-for'];
  if (list !== undefined) return addresses(String(list).split(','));
  const single = headers['x-real-ip'];
  return single === undefined ? undefined : addresses([String(single)]);
}

/** RFC 7239: `for="[2001:db8::1]:4711"`. */
function forParameter(element: string): string {
  const found = /(?:^|;)\s*for\s*=\s*(?:"([^"]*)"|([^;\s]*))/i.exec(element);
  return found?.[1] ?? found?.[2] ?? '';
}

/** Undefined as soon as one of them is no address: a chain with a hole proves nothing. */
function addresses(texts: readonly string[]): string[] | undefined {
  const found: string[] = [];
  for (const text of texts) {
    const address = plainAddress(withoutPort(text.trim()));
    if (isIP(address) === 0) return undefined;
    found.push(address);
  }
  return found;
}

function withoutPort(text: string): string {
  const bracketed = /^\[([^\]]*)\](?::\d+)?$/.exec(text)?.[1];
  if (bracketed !== undefined) return bracketed;
  return /^(\d+\.\d+\.\d+\.\d+):\d+$/.exec(text)?.[1] ?? text;
}
