/**
 * Which API key a request carries, and whether it may be used from this address. Every refused key gets the same message (spec,
 * "Authentication").
 */
import type { IncomingMessage } from 'node:http';
import { GatewayError } from '../../codecs/canonical/error.ts';
import type { Keys, Principal } from '../../store/keys.ts';
import type { Clock } from '../../streams/clock.ts';
import { fromStore } from '../from-store.ts';
import type { CallContext } from '../gateway.ts';
import { headerValues } from './header-values.ts';
import { inRanges, ipRanges } from './ip-ranges.ts';

const BEARER = 'bearer';
/** Longer ones are refused without a lookup. */
const MAX_KEY_BYTES = 512;

/**
 * Rejects with `unauthorized` or `ip_not_allowed`; a store that fails, or does not answer in time, rejects with its own error,
 * which is a 503 and never a 401.
 */
export async function authenticate(request: IncomingMessage, ip: string, keys: Keys, clock: Clock): Promise<Principal> {
  const token = tokenOf(request);
  if (token === undefined) throw unauthorized();
  const asked = fromStore(clock, keys.authenticate(token, clock.now()));
  const found = asked instanceof Promise ? await asked : asked;
  if (!found.ok) throw unauthorized();
  const { ips } = found.value.key;
  if (ips !== undefined && !inRanges(ipRanges(ips), ip)) {
    throw new GatewayError('ip_not_allowed', 'This API key may not be used from this address.');
  }
  return found.value;
}

export function principalOf({ gateway, request, ip }: Pick<CallContext, 'gateway' | 'request' | 'ip'>): Promise<Principal> {
  return authenticate(request, ip, gateway.store.keys, gateway.clock);
}

/**
 * {@link principalOf} for an exchange: a refusal from here on is written to the request log of the key. Throws
 * `rate_limit_exceeded`, too, for a key that causes too many of them.
 */
export async function identify(call: CallContext): Promise<Principal> {
  const principal = await principalOf(call);
  call.gateway.refusals.check(principal.key.id);
  call.notes.principal = principal;
  return principal;
}

function unauthorized(): GatewayError {
  return new GatewayError('unauthorized', 'The API key is missing or not valid.');
}

/**
 * `Authorization: Bearer` or `x-api-key`; undefined for none, for an unusable one, and for two that differ. An empty header is
 * ignored: agents that are configured with a token send an empty key beside it.
 */
function tokenOf(request: IncomingMessage): string | undefined {
  const tokens = new Set<string>();
  for (const value of headerValues(request, 'authorization')) {
    const scheme = value.trim();
    // Another scheme (Basic, for a proxy) is not meant for us: `x-api-key` may still hold the key.
    if (/^bearer(?: |$)/i.test(scheme)) tokens.add(scheme.slice(BEARER.length).trim());
  }
  for (const value of headerValues(request, 'x-api-key')) tokens.add(value.trim());
  tokens.delete('');
  const [token] = tokens;
  if (tokens.size !== 1 || token === undefined) return undefined;
  return Buffer.byteLength(token) <= MAX_KEY_BYTES && /^[\x21-\x7e]+$/.test(token) ? token : undefined;
}
