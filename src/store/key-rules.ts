/** What a key may be: the checks of its fields, and its digest. Pure; shared by every engine. */
import { hash, timingSafeEqual } from 'node:crypto';
import { BlockList, isIP } from 'node:net';
import { defined } from './defined.ts';
import type { NotAccepted, Principal, SpendLimits } from './keys.ts';
import { MAX_NANOS } from './money.ts';
import { done, type Invalid, invalid, refused, type Result } from './result.ts';

/** How every key begins. */
export const KEY_PREFIX = 'sk-mizu-';

/** A new key: the prefix and 32 random bytes as 43 base64url characters. */
export function newSecret(random: Uint8Array): string {
  return KEY_PREFIX + Buffer.from(random).toString('base64url');
}

export const digestOf = (token: string): string => hash('sha256', token, 'hex');

const DIGEST_CHARACTERS = 64;
const [LEFT, RIGHT] = [Buffer.alloc(DIGEST_CHARACTERS), Buffer.alloc(DIGEST_CHARACTERS)];

/** Compares two digests, as {@link digestOf} makes them, in constant time. */
export function sameDigest(a: string, b: string): boolean {
  const areWhole = LEFT.write(a, 'latin1') === DIGEST_CHARACTERS && RIGHT.write(b, 'latin1') === DIGEST_CHARACTERS;
  return areWhole && a.length === b.length && timingSafeEqual(LEFT, RIGHT);
}

/** Whether a key that was found by this digest may be used now. */
export function accepted(digest: string, principal: Principal | undefined, nowMs: number): Result<Principal, NotAccepted> {
  if (principal === undefined || !sameDigest(principal.key.digest, digest)) return refused({ reason: 'unknown' });
  const { key, account } = principal;
  if (key.disabled) return refused({ reason: 'disabled', keyId: key.id });
  if (key.expiresAtMs !== undefined && key.expiresAtMs <= nowMs) return refused({ reason: 'expired', keyId: key.id });
  return account.disabled ? refused({ reason: 'account_disabled', keyId: key.id }) : done(principal);
}

/** The longest token that is looked up at all. */
export const MAX_TOKEN = 512;

// A name is for people; control characters would forge lines in a terminal or a log.
const NAME = /^[^\p{Cc}\p{Cs}]{1,128}$/u;

export function checkName(field: string, name: string): Result<string, Invalid> {
  if (typeof name !== 'string' || !NAME.test(name) || name.trim() !== name) {
    return invalid(field, 'must be 1 to 128 characters, without control characters and outer spaces');
  }
  return done(name);
}

/** Each model once. `known`: the models that there are, where they are at hand. */
export function checkModels(models: readonly string[], known?: ReadonlySet<string>): Result<readonly string[], Invalid> {
  if (models.length === 0) return invalid('models', 'must not be empty: leave it out to allow all models');
  for (const [index, model] of models.entries()) {
    const field = `models[${index}]`;
    if (typeof model !== 'string' || !NAME.test(model)) return invalid(field, 'is not a model name');
    if (known !== undefined && !known.has(model)) return invalid(field, `no such model: ${model}`);
  }
  return done([...new Set(models)]);
}

export function checkIps(ips: readonly string[]): Result<readonly string[], Invalid> {
  if (ips.length === 0) return invalid('ips', 'must not be empty: leave it out to allow all addresses');
  for (const [index, range] of ips.entries()) {
    if (!isRange(range)) return invalid(`ips[${index}]`, 'must be an IP address or a CIDR range, such as "10.0.0.0/8"');
  }
  return done([...new Set(ips)]);
}

/** Limits in nano-dollars, each greater than zero; absent ones stay absent. */
export function checkLimits(limits: SpendLimits): Result<SpendLimits, Invalid> {
  for (const window of ['total', 'hourly', 'daily'] as const) {
    const limit = limits[window];
    if (limit === undefined) continue;
    if (typeof limit !== 'bigint' || limit <= 0n || limit > MAX_NANOS)
      return invalid(`limits.${window}`, 'must be greater than zero');
  }
  const { total, hourly, daily } = limits;
  return done(defined({ total, hourly, daily }));
}

/** A time that is over is allowed: such a key is refused from the start, which is what was asked for. */
export function checkExpiry(expiresAtMs: number): Result<number, Invalid> {
  if (!Number.isSafeInteger(expiresAtMs)) return invalid('expiresAtMs', 'must be a time');
  return done(expiresAtMs);
}

/** IPv4 mapped into IPv6. */
const MAPPED = new BlockList();
MAPPED.addSubnet('::ffff:0:0', 96, 'ipv6');

/** Whoever admits a request reads an address that is mapped as IPv4: a range of mapped ones must lie within them. */
function isRange(text: string): boolean {
  if (typeof text !== 'string') return false;
  const [address = '', bits, ...rest] = text.split('/');
  const version = address.includes('%') ? 0 : isIP(address);
  if (version === 0 || rest.length > 0) return false;
  if (bits === undefined) return true;
  const least = version === 6 && MAPPED.check(address, 'ipv6') ? 96 : 0;
  return /^(0|[1-9][0-9]{0,2})$/.test(bits) && Number(bits) >= least && Number(bits) <= (version === 4 ? 32 : 128);
}
