/**
 * One request to an endpoint that gives credentials. These are the only addresses that the gateway asks of itself: fixed ones, or
 * the operator's own. Redirects are refused, time and bytes are bounded, and nothing that was sent is quoted.
 */
import { type Dispatcher, request } from 'undici';
import type { GatewayError } from '../../codecs/canonical/error.ts';
import { isObject, type JsonObject, tryJson } from '../../codecs/canonical/json.ts';
import { textOf } from '../../codecs/errors/upstream.ts';
import type { Clock } from '../../streams/clock.ts';
import { SmallChunks } from '../../streams/small-chunks.ts';
import { credentialError } from './credential-error.ts';

export interface EndpointRequest {
  readonly url: string;
  /** Default: GET. */
  readonly method?: 'GET' | 'POST' | 'PUT';
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** What must not be quoted of an answer. */
  readonly secrets?: readonly string[];
}

/** Where credentials are asked for: by the connections of a Channel to the outside, or directly to what is beside the machine. */
export interface Outside {
  readonly clock: Clock;
  readonly dispatcher: Dispatcher;
}

const ANSWER_MS = 5_000;
const MAX_BYTES = 256 * 1024;
const QUOTED_CHARS = 300;

/** The text of a 2xx answer. Rejects with a {@link credentialError}. */
export async function askEndpoint(asked: EndpointRequest, { clock, dispatcher }: Outside): Promise<string> {
  const stop = new AbortController();
  const timer = clock.setTimeout(() => stop.abort(), ANSWER_MS);
  const { url, method = 'GET', headers = {}, body = null, secrets = [] } = asked;
  const name = nameOf(url);
  try {
    const answer = await request(url, {
      method,
      headers: { accept: 'application/json', 'user-agent': 'mizu', ...headers },
      body,
      signal: stop.signal,
      dispatcher,
    });
    const text = await readBounded(answer.body, name);
    const { statusCode: status } = answer;
    if (status >= 200 && status < 300) return text;
    if (status >= 300 && status < 400) throw credentialError('unreadable', `${name} redirects, which is not followed`);
    const said = `${name} answered ${status}${quoted(text, secrets)}`;
    throw credentialError(status < 500 && status !== 408 && status !== 429 ? 'refused' : 'unavailable', said);
  } catch (thrown) {
    if (stop.signal.aborted) throw credentialError('timeout', `${name} did not answer within ${ANSWER_MS / 1000} s`);
    if (thrown instanceof Error && thrown.name === 'GatewayError') throw thrown;
    const code = thrown instanceof Error && 'code' in thrown ? String(thrown.code) : 'no connection';
    throw credentialError('unavailable', `${name} could not be asked: ${code}`, thrown);
  } finally {
    timer.cancel();
  }
}

/** {@link askEndpoint}, for a JSON object. */
export async function askJson(asked: EndpointRequest, outside: Outside): Promise<JsonObject> {
  const text = await askEndpoint(asked, outside);
  const json = tryJson(text);
  if (isObject(json)) return json;
  const what = /^\s*</.test(text) ? 'a web page' : 'something that is no JSON object';
  throw credentialError('unreadable', `${nameOf(asked.url)} answered with ${what}`);
}

/** The access token of an OAuth answer, with its end by `expires_in`, in seconds. */
export function accessToken(
  json: JsonObject,
  url: string,
  now: number,
): { readonly value: string; readonly expiresAtMs: number } {
  const { access_token: value, expires_in: seconds } = json;
  const life = Number(seconds);
  if (!isToken(value)) throw withoutToken(url);
  if (!(life > 0)) throw credentialError('unreadable', `${nameOf(url)} gave a token without the time that it lasts`);
  return { value, expiresAtMs: now + life * 1000 };
}

/** What can be sent in a header: anything else would be held, and fail every request, until it expires. */
export function isToken(value: unknown): value is string {
  return typeof value === 'string' && /^[\x21-\x7e]+$/.test(value);
}

export function withoutToken(url: string): GatewayError {
  return credentialError('unreadable', `${nameOf(url)} answered without a token`);
}

async function readBounded(body: AsyncIterable<Uint8Array>, name: string): Promise<string> {
  const chunks: Uint8Array[] = [];
  const gathered = new SmallChunks<Uint8Array>((bytes) => void chunks.push(bytes));
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    if (size > MAX_BYTES) throw credentialError('unreadable', `${name} answered with more than ${MAX_BYTES} bytes`);
    gathered.add(chunk);
  }
  gathered.flush();
  return Buffer.concat(chunks).toString('utf8');
}

/** The address without its query and its user, which may hold a secret; the path may name a role. */
export function nameOf(url: string): string {
  const { origin, pathname } = new URL(url);
  return origin + pathname;
}

/** The reason that an OAuth server, a metadata service or STS gives for its refusal, without what it was sent. */
function quoted(text: string, secrets: readonly string[]): string {
  const said = (text.startsWith('<') ? saidInXml(text) : saidInJson(tryJson(text))).filter((member) => member !== '').join(': ');
  const spelled = secrets.filter((secret) => secret !== '').flatMap((secret) => [secret, ...asSent(secret)]);
  const safe = spelled.reduce((all, secret) => all.replaceAll(secret, '[redacted]'), said);
  return safe === '' ? '' : `: ${safe.slice(0, QUOTED_CHARS)}`;
}

/** A form holds a secret percent-encoded: who quotes what was sent quotes that. */
function asSent(secret: string): readonly string[] {
  return [encodeURIComponent(secret), new URLSearchParams({ '': secret }).toString().slice(1)];
}

function saidInJson(json: unknown): string[] {
  if (!isObject(json)) return [];
  const { error } = json;
  const members = isObject(error)
    ? [error['status'], error['message']]
    : [error, json['error_description'], json['message'], json['Message']];
  return members.map((member) => textOf(member) ?? '');
}

/** Of a page, which has neither, nothing. */
function saidInXml(xml: string): string[] {
  return [/<Code>([^<]+)</, /<Message>([^<]+)</].map((pattern) => pattern.exec(xml)?.[1] ?? '');
}
