/**
 * Seals opaque values for their way through clients (design: "Opaque values"). An envelope is `mz2.` + base64url of
 *
 *     version 1 · key id 1 · nonce 12 · AES-256-GCM ciphertext of (flags 1 · content) · tag 16
 *
 * The nonce is an HMAC of account and content, so that sealing is deterministic (prompt caches) and no two contents share a
 * nonce. Version, key id and account are bound in as additional data. Content over 1 KiB is deflated. Knows no dialect and never
 * reads `value`.
 */
import { createCipheriv, createDecipheriv, createHmac, hkdfSync } from 'node:crypto';
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { CHANNEL_TYPES } from './canonical/dialect.ts';
import { GatewayError } from './canonical/error.ts';
import { type JsonValue, parseJson } from './canonical/json.ts';
import { ENVELOPE_PREFIX, isEnvelope, type Opaque, type Owner } from './canonical/opaque.ts';

export interface EnvelopeSecret {
  /** 1 to 255. */
  readonly id: number;
  readonly bytes: Uint8Array;
}

/** The source of secrets. Old ones still open envelopes. */
export interface EnvelopeSecrets {
  current(): EnvelopeSecret;
  byId(id: number): EnvelopeSecret | undefined;
}

export interface Envelopes {
  /**
   * Makes an envelope of this account. A value that is one already is returned as it is. An envelope of another gateway, which is
   * an upstream of this one, is sealed like any other value, so that it can find its way back.
   */
  seal(opaque: Opaque, accountId: string): string;
  /**
   * Opens the envelopes of one request: undefined for anything that this gateway did not seal for this account, or that was
   * changed. Throws `request_too_large` once they inflate to more than {@link MAX_OPENED_BYTES} together: a few bytes may stand
   * for thousands of times as many.
   */
  opener(accountId: string): (sealed: string) => Opaque | undefined;
}

const VERSION = 1;
const HEADER_BYTES = 2;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const DEFLATED = 1;
const DEFLATE_ABOVE_BYTES = 1024;
/** Limits what a deflated value may inflate to. No vendor's value is nearly as long. */
const MAX_CONTENT_BYTES = 32 * 1024 * 1024;
/** Limits what all values of one request may inflate to. */
const MAX_OPENED_BYTES = 64 * 1024 * 1024;

export function createEnvelopes(secrets: EnvelopeSecrets): Envelopes {
  const keys = new Map<number, Keys>();
  const keysOf = (secret: EnvelopeSecret): Keys => {
    const known = keys.get(secret.id);
    if (known !== undefined) return known;
    const made = deriveKeys(secret.bytes);
    keys.set(secret.id, made);
    return made;
  };

  /** Whether this gateway sealed it for this account; its content is not inflated for that. */
  const isOurs = (value: string, accountId: string): boolean => isEnvelope(value) && decrypted(value, accountId) !== undefined;

  const decrypted = (sealed: string, accountId: string): Buffer | undefined => {
    const bytes = decodeBase64url(sealed);
    if (bytes === undefined || bytes.length <= HEADER_BYTES + NONCE_BYTES + TAG_BYTES || bytes[0] !== VERSION) return undefined;
    const secret = secrets.byId(bytes[1] ?? 0);
    if (secret === undefined) return undefined;
    const nonceEnd = HEADER_BYTES + NONCE_BYTES;
    const decipher = createDecipheriv('aes-256-gcm', keysOf(secret).cipherKey, bytes.subarray(HEADER_BYTES, nonceEnd));
    decipher.setAAD(additionalData(bytes.subarray(0, HEADER_BYTES), accountId));
    decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
    try {
      return Buffer.concat([decipher.update(bytes.subarray(nonceEnd, -TAG_BYTES)), decipher.final()]);
    } catch {
      // Tampered, truncated or of another account: the same answer for all, so that it reveals nothing.
      return undefined;
    }
  };

  return {
    seal(opaque, accountId) {
      if (isOurs(opaque.value, accountId)) return opaque.value;
      const secret = secrets.current();
      const { cipherKey, nonceKey } = keysOf(secret);
      const content = encodeContent(opaque);
      const header = Buffer.from([VERSION, secret.id]);
      const nonce = createHmac('sha256', nonceKey)
        .update(`${accountId.length}:${accountId}`)
        .update(content)
        .digest()
        .subarray(0, NONCE_BYTES);
      const cipher = createCipheriv('aes-256-gcm', cipherKey, nonce);
      cipher.setAAD(additionalData(header, accountId));
      const ciphertext = Buffer.concat([cipher.update(content), cipher.final()]);
      return ENVELOPE_PREFIX + Buffer.concat([header, nonce, ciphertext, cipher.getAuthTag()]).toString('base64url');
    },

    opener(accountId) {
      let left = MAX_OPENED_BYTES;
      return (sealed) => {
        const content = decrypted(sealed, accountId);
        const plain = content === undefined ? undefined : plainOf(content, left);
        if (plain === undefined) return undefined;
        left -= plain.length;
        const opaque = readContent(plain);
        return opaque === undefined ? undefined : { ...opaque, sealed };
      };
    },
  };
}

interface Keys {
  readonly cipherKey: Buffer;
  readonly nonceKey: Buffer;
}

function deriveKeys(secret: Uint8Array): Keys {
  const derive = (label: string): Buffer => Buffer.from(hkdfSync('sha256', secret, Buffer.alloc(0), label, 32));
  return { cipherKey: derive('mizu/envelope/2/cipher'), nonceKey: derive('mizu/envelope/2/nonce') };
}

function additionalData(header: Uint8Array, accountId: string): Buffer {
  return Buffer.concat([header, Buffer.from(accountId)]);
}

/** Strict: accepts the canonical encoding only, so that no changed character is ignored. */
function decodeBase64url(sealed: string): Buffer | undefined {
  if (!sealed.startsWith(ENVELOPE_PREFIX)) return undefined;
  const text = sealed.slice(ENVELOPE_PREFIX.length);
  const bytes = Buffer.from(text, 'base64url');
  return bytes.toString('base64url') === text ? bytes : undefined;
}

function encodeContent(opaque: Opaque): Buffer {
  const { owner } = opaque;
  const who: JsonValue = 'client' in owner ? [owner.client] : [owner.channelType, owner.scope, owner.model];
  const head = Buffer.from(JSON.stringify([who, opaque.itemId ?? null, opaque.form ?? null]));
  const length = Buffer.alloc(4);
  length.writeUInt32BE(head.length);
  const plain = Buffer.concat([length, head, Buffer.from(opaque.value)]);
  if (plain.length > DEFLATE_ABOVE_BYTES) {
    const deflated = deflateRawSync(plain);
    if (deflated.length < plain.length) return Buffer.concat([Buffer.from([DEFLATED]), deflated]);
  }
  return Buffer.concat([Buffer.from([0]), plain]);
}

/** Inflated; undefined for a value that is larger than any may be. Throws `request_too_large` where only `left` is in the way. */
function plainOf(content: Buffer, left: number): Buffer | undefined {
  const body = content.subarray(1);
  const bound = Math.min(MAX_CONTENT_BYTES, left);
  const plain = content[0] === DEFLATED ? inflated(body, bound) : body;
  if (plain !== undefined && plain.length <= bound) return plain;
  if (bound === MAX_CONTENT_BYTES) return undefined;
  throw new GatewayError('request_too_large', `The encrypted values of the request are over ${MAX_OPENED_BYTES} bytes together.`);
}

/** Undefined for what is larger than `bound`: what was authenticated inflates. */
function inflated(body: Buffer, bound: number): Buffer | undefined {
  try {
    return inflateRawSync(body, { maxOutputLength: Math.max(1, bound) });
  } catch {
    return undefined;
  }
}

function readContent(plain: Buffer): Opaque | undefined {
  const headEnd = 4 + plain.readUInt32BE(0);
  const head = parseJson(plain.toString('utf8', 4, headEnd));
  if (!Array.isArray(head)) return undefined;
  const [who, itemId, form]: readonly (JsonValue | undefined)[] = head;
  const owner = readOwner(who);
  if (owner === undefined) return undefined;
  return {
    owner,
    value: plain.toString('utf8', headEnd),
    ...(typeof itemId === 'string' ? { itemId } : {}),
    ...(typeof form === 'string' ? { form } : {}),
  };
}

function readOwner(who: JsonValue | undefined): Opaque['owner'] | undefined {
  if (!Array.isArray(who)) return undefined;
  const [first, scope, model]: readonly (JsonValue | undefined)[] = who;
  if (who.length === 1) {
    const client = CLIENT_DIALECTS.find((dialect) => dialect === first);
    return client === undefined ? undefined : { client };
  }
  const channelType = CHANNEL_TYPES.find((type) => type === first);
  if (channelType === undefined || typeof scope !== 'string' || typeof model !== 'string') return undefined;
  return { channelType, scope, model } satisfies Owner;
}

const CLIENT_DIALECTS = ['chat', 'responses', 'messages', 'gemini', 'completions'] as const;
