/** Keeps what an upstream quotes of our credentials from clients, rows and lines. */
import { GatewayError } from '../../codecs/canonical/error.ts';
import type { UpstreamAnswer } from '../../codecs/codec.ts';
import { defined } from '../../codecs/defined.ts';
import type { Channel } from '../config/config.ts';

/** Shorter ones are parts of ordinary words, and guessed before they are read. */
const MIN_KEY_CHARS = 8;

/** Headers of an operator that hold a credential beside the key; what others hold may be a word that an error is about. */
const CREDENTIAL_HEADER = /auth|cookie|credential|key|password|secret|token/i;

/** What a signed request says of its key, and the signature itself (AWS). */
const SIGNED_WITH = /\b(?:Credential|Signature)=([^/,\s]+)/g;

/** What the headers hold of credentials: behind the scheme, in an `authorization`; of a signature also its parts. */
export function credentialsIn(headers: Iterable<readonly [name: string, value: string | null]>): string[] {
  const found: string[] = [];
  for (const [name, value] of headers) {
    if (value === null || !CREDENTIAL_HEADER.test(name)) continue;
    found.push(value.replace(/^(?:basic|bearer)\s+/i, ''));
    for (const [, part = ''] of value.matchAll(SIGNED_WITH)) found.push(part);
  }
  return found;
}

/**
 * Servers quote the credentials that they were given; one of an operator's own making looks like none. `lent`: what a platform's
 * session has signed the request with.
 */
export function withoutCredentials(
  text: string,
  { apiKey = '', options: { headers } }: Pick<Channel, 'apiKey' | 'options'>,
  lent: readonly string[] = [],
): string {
  const secrets = [apiKey, ...credentialsIn(headers), ...lent].filter((secret) => secret.length >= MIN_KEY_CHARS);
  return secrets.flatMap(spellings).reduce((shown, secret) => shown.replaceAll(secret, '[redacted]'), text);
}

/** As it stands, as JSON has it, and as JSON has it where slashes are escaped, too (PHP). */
function spellings(secret: string): readonly string[] {
  const escaped = JSON.stringify(secret).slice(1, -1);
  return [secret, escaped, escaped.replaceAll('/', String.raw`\/`)];
}

/** The same of an error that an answer reported: of what its client is told, and of what its row keeps. */
export function quotingNoCredentials(
  error: GatewayError,
  channel: Pick<Channel, 'apiKey' | 'options'>,
  lent?: readonly string[],
): GatewayError {
  let isQuoting = false;
  // Each text by itself: in one JSON text of all, the escape in front of a word would be read as a part of it.
  const hidden = <Facts extends object>(facts: Facts): Facts => {
    const shown = { ...facts };
    for (const [name, fact] of Object.entries(facts)) {
      if (typeof fact !== 'string') continue;
      const text = withoutCredentials(fact, channel, lent);
      isQuoting ||= text !== fact;
      Object.assign(shown, { [name]: text });
    }
    return shown;
  };
  const { param, shownCode, upstream } = error.details;
  const { message, ...told } = hidden({ message: error.message, ...defined({ param, shownCode }) });
  const kept = upstream === undefined ? {} : { upstream: hidden(upstream) };
  return isQuoting ? new GatewayError(error.code, message, { ...error.details, ...told, ...kept }) : error;
}

/** Some clouds print the headers that they were sent: the texts of refusals are read without what they quote of a credential. */
const TOKENS = /\bya29\.[\w.-]+|(?<=x-amz-security-token:)\S+|(?<=\bBearer )\S{16,}/gi;
/**
 * What may hold a JWT, as long as it goes on: a pattern of the whole token would read the rest of such a text from each of its
 * beginnings.
 */
const DOTTED = /(?<![\w.-])[\w.-]{14,}/g;
const JWT_BEGINNING = /\beyJ/i;
/** With what follows the beginning. */
const MIN_HEADER_CHARS = 11;

export function withoutTokens(answer: UpstreamAnswer): UpstreamAnswer {
  return { ...answer, text: answer.text.replace(TOKENS, '[redacted]').replace(DOTTED, withoutJwts) };
}

/** A JWT is three parts between dots, the last of which may be empty. */
function withoutJwts(dotted: string): string {
  const parts = dotted.split('.');
  const shown: string[] = [];
  for (let at = 0; at < parts.length; at++) {
    const part = parts[at] ?? '';
    const begins = part.search(JWT_BEGINNING);
    const isToken = begins >= 0 && part.length - begins >= MIN_HEADER_CHARS && at + 2 < parts.length && parts[at + 1] !== '';
    shown.push(isToken ? `${part.slice(0, begins)}[redacted]` : part);
    if (isToken) at += 2;
  }
  return shown.join('.');
}
