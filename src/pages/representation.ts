/**
 * One resource as bytes: compressed once, with an ETag by content, served by method, `accept-encoding` and `if-none-match`.
 */
import { createHash } from 'node:crypto';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';

/** What the server writes. `body` is empty for HEAD and 304. Header names are lower case. */
export interface PageResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/** The request headers that matter here, as node:http names them. */
export interface PageRequestHeaders {
  readonly 'accept-encoding'?: string | readonly string[] | undefined;
  readonly 'if-none-match'?: string | readonly string[] | undefined;
}

type Coding = 'br' | 'gzip' | 'identity';

export interface Representation {
  readonly contentType: string;
  readonly cacheControl: string;
  /** Hex digest of the uncompressed bytes, 16 digits. */
  readonly digest: string;
  readonly bodies: ReadonlyMap<Coding, Buffer>;
}

/** Brotli quality: 9 at start (a tenth of the time of 11, a few percent larger), 5 while serving. */
export type BrotliEffort = 5 | 9;

export function represent(
  text: string | Buffer,
  contentType: string,
  cacheControl: string,
  effort: BrotliEffort = 9,
): Representation {
  const bytes = typeof text === 'string' ? Buffer.from(text, 'utf8') : text;
  const br = brotliCompressSync(bytes, {
    params: { [constants.BROTLI_PARAM_QUALITY]: effort, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length },
  });
  const gzip = gzipSync(bytes, { level: effort === 9 ? 9 : 6 });
  const bodies = new Map<Coding, Buffer>([['identity', bytes]]);
  if (br.length < bytes.length) bodies.set('br', br);
  if (gzip.length < bytes.length) bodies.set('gzip', gzip);
  return { contentType, cacheControl, digest: digestOf(bytes), bodies };
}

export function digestOf(bytes: string | Buffer): string {
  return createHash('sha256').update(bytes).digest('hex').slice(0, 16);
}

/**
 * Answers a method and a path with what `find` knows: GET and HEAD with it, any other method with 405. Undefined: it knows
 * nothing there.
 */
export function responder(find: (path: string) => Representation | undefined, security: Readonly<Record<string, string>>) {
  return (method: string, path: string, headers: PageRequestHeaders): PageResponse | undefined => {
    const representation = find(path);
    if (representation === undefined) return undefined;
    if (method === 'GET' || method === 'HEAD') return answer(representation, method, headers, security);
    const body = Buffer.from('Method not allowed.\n');
    return {
      status: 405,
      headers: {
        ...security,
        allow: 'GET, HEAD',
        'cache-control': 'no-store',
        'content-type': 'text/plain; charset=utf-8',
        'content-length': String(body.length),
      },
      body,
    };
  };
}

/** 200 or 304 for GET and HEAD; `method` is one of the two. */
function answer(
  representation: Representation,
  method: string,
  request: PageRequestHeaders,
  security: Readonly<Record<string, string>>,
): PageResponse {
  const { coding, body } = choose(representation, joined(request['accept-encoding']));
  const etag = `"${representation.digest}-${coding}"`;
  const headers: Record<string, string> = {
    ...security,
    'cache-control': representation.cacheControl,
    etag,
    vary: 'accept-encoding',
  };
  if (isFresh(joined(request['if-none-match']), representation.digest)) return { status: 304, headers, body: Buffer.alloc(0) };
  headers['content-type'] = representation.contentType;
  headers['content-length'] = String(body.length);
  if (coding !== 'identity') headers['content-encoding'] = coding;
  return { status: 200, headers, body: method === 'HEAD' ? Buffer.alloc(0) : body };
}

function joined(value: string | readonly string[] | undefined): string {
  return value === undefined ? '' : typeof value === 'string' ? value : value.join(',');
}

function choose({ bodies }: Representation, accepted: string): { coding: Coding; body: Buffer } {
  const weights = new Map<string, number>();
  for (const entry of accepted.slice(0, 1024).split(',')) {
    const [name = '', ...parameters] = entry.split(';').map((part) => part.trim().toLowerCase());
    const quality = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2);
    if (name !== '') weights.set(name, quality === undefined ? 1 : Number(quality));
  }
  const identity = bodies.get('identity') ?? Buffer.alloc(0);
  let best: { coding: Coding; body: Buffer; weight: number } = { coding: 'identity', body: identity, weight: 0 };
  for (const coding of ['br', 'gzip'] as const) {
    const body = bodies.get(coding);
    const weight = weights.get(coding) ?? weights.get('*') ?? 0;
    if (body !== undefined && weight > best.weight) best = { coding, body, weight };
  }
  return best;
}

/** Compared weakly, over the digest alone: all codings of a resource hold the same thing. */
function isFresh(header: string, digest: string): boolean {
  const known = header.slice(0, 4096).split(',');
  return known.some((entry) => {
    const tag = entry.trim().replace(/^W\//, '');
    return tag === '*' || /^"([0-9a-f]+)-(?:br|gzip|identity)"$/.exec(tag)?.[1] === digest;
  });
}
