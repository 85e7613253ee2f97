/**
 * Signature Version 4 (https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html), over the
 * headers that `@smithy/signature-v4` signs, which a test compares it with. The key of a day is derived once.
 */
import { createHash, createHmac } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { textPieces } from '../../../streams/text-pieces.ts';
import type { AwsKeys } from '../settings.ts';

export interface ToSign {
  readonly method: string;
  readonly host: string;
  /** As it is sent: already percent-encoded, with its query. */
  readonly path: string;
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array;
  /** SHA-256 of the body in hexadecimal, where it is known. */
  readonly bodyHash?: string;
}

/** Headers that change on their way; those of a trace are written anew by whatever stands between. */
const UNSIGNED: ReadonlySet<string> = new Set(
  (
    'authorization cache-control connection expect from keep-alive max-forwards pragma referer te trailer transfer-encoding upgrade ' +
    'user-agent x-amzn-trace-id traceparent tracestate baggage'
  ).split(' '),
);
const UNSIGNED_GROUPS = /^(proxy-|sec-)/;
const ALGORITHM = 'AWS4-HMAC-SHA256';

interface SigningKey {
  readonly keys: AwsKeys;
  readonly day: string;
  readonly key: Buffer;
}

export class Signer {
  readonly #region: string;
  readonly #service: string;
  #key: SigningKey | undefined;

  constructor(region: string, service: string) {
    this.#region = region;
    this.#service = service;
  }

  /** The headers to add: date, hash of the body, session token, signature. `nowMs`: Unix milliseconds, by the service's clock. */
  sign(
    { method, host, path, headers, body, bodyHash = hashOf(body) }: ToSign,
    keys: AwsKeys,
    nowMs: number,
  ): Record<string, string> {
    const date = new Date(nowMs).toISOString().replace(/[-:]|\.\d{3}/g, '');
    const day = date.slice(0, 8);
    const added: Record<string, string> = { 'x-amz-date': date, 'x-amz-content-sha256': bodyHash };
    if (keys.sessionToken !== undefined) added['x-amz-security-token'] = keys.sessionToken;
    const [lines, names] = canonicalHeaders({ ...headers, host, ...added });
    const [pathname, query] = splitPath(path);
    const canonical = `${method}\n${canonicalPath(pathname)}\n${canonicalQuery(query)}\n${lines}\n${names}\n${bodyHash}`;
    const scope = `${day}/${this.#region}/${this.#service}/aws4_request`;
    const signature = createHmac('sha256', this.#keyOf(keys, day))
      .update(`${ALGORITHM}\n${date}\n${scope}\n${hashOf(canonical)}`)
      .digest('hex');
    added['authorization'] =
      `${ALGORITHM} Credential=${keys.accessKeyId}/${scope}, SignedHeaders=${names}, Signature=${signature}`;
    return added;
  }

  #keyOf(keys: AwsKeys, day: string): Buffer {
    const known = this.#key;
    if (known !== undefined && known.keys === keys && known.day === day) return known.key;
    let key = Buffer.from(`AWS4${keys.secretAccessKey}`);
    for (const part of [day, this.#region, this.#service, 'aws4_request']) key = createHmac('sha256', key).update(part).digest();
    this.#key = { keys, day, key };
    return key;
  }
}

/** Of a long text, with a turn of the event loop for others between its pieces: 30 MB take some 50 ms. */
export async function hashInTurns(text: string): Promise<string> {
  const hash = createHash('sha256');
  for (const piece of textPieces(text)) {
    hash.update(piece);
    await setImmediate();
  }
  return hash.digest('hex');
}

function hashOf(body: string | Uint8Array): string {
  return createHash('sha256').update(body).digest('hex');
}

function splitPath(path: string): [pathname: string, query: string] {
  const at = path.indexOf('?');
  return at < 0 ? [path, ''] : [path.slice(0, at), path.slice(at + 1)];
}

/** What `encodeURIComponent` leaves and the signature does not. */
const encode = (text: string): string =>
  encodeURIComponent(text).replace(/[!'()*]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`);

/** Encoded once more, as every service but S3 does, without empty segments and those of dots. */
function canonicalPath(path: string): string {
  const segments: string[] = [];
  for (const segment of path.split('/')) {
    if (segment === '..') segments.pop();
    else if (segment !== '' && segment !== '.') segments.push(segment);
  }
  const end = path.endsWith('/') && segments.length > 0 ? '/' : '';
  return `/${segments.map(encode).join('/')}${end}`;
}

function canonicalQuery(query: string): string {
  if (query === '') return '';
  const pairs = [...new URLSearchParams(query)].map(([name, value]): [string, string] => [encode(name), encode(value)]);
  return pairs
    .sort(([name, value], [other, otherValue]) => compare(name, other) || compare(value, otherValue))
    .map(([name, value]) => `${name}=${value}`)
    .join('&');
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function canonicalHeaders(headers: Readonly<Record<string, string>>): [lines: string, names: string] {
  const names = Object.keys(headers)
    .filter((name) => !UNSIGNED.has(name) && !UNSIGNED_GROUPS.test(name))
    .sort();
  const lines = names.map((name) => `${name}:${(headers[name] ?? '').trim().replace(/\s+/g, ' ')}\n`).join('');
  return [lines, names.join(';')];
}
