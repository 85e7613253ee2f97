/** Keeps what an upstream quotes of our credentials from clients, rows and lines. */
import { GatewayError } from '../../codecs/canonical/error.ts';
import type { UpstreamAnswer } from '../../codecs/codec.ts';
import type { Channel } from '../config/config.ts';

/** Shorter ones are parts of ordinary words, and guessed before they are read. */
const MIN_KEY_CHARS = 8;

/** Headers of an operator that hold a credential beside the key; what others hold may be a word that an error is about. */
const CREDENTIAL_HEADER = /auth|cookie|credential|key|password|secret|token/i;

/** What the headers hold of credentials: behind the scheme, in an `authorization`. */
export function credentialsIn(headers: Iterable<readonly [name: string, value: string | null]>): string[] {
  const found: string[] = [];
  for (const [name, value] of headers)
    if (value !== null && CREDENTIAL_HEADER.test(name)) found.push(value.replace(/^(?:basic|bearer)\s+/i, ''));
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
  return [apiKey, ...credentialsIn(headers), ...lent]
    .filter((secret) => secret.length >= MIN_KEY_CHARS)
    .reduce((shown, secret) => shown.replaceAll(secret, '[redacted]'), text);
}

/** The same of an error that an answer reported: of what its client is told, and of what its row keeps. */
export function quotingNoCredentials(
  error: GatewayError,
  channel: Pick<Channel, 'apiKey' | 'options'>,
  lent?: readonly string[],
): GatewayError {
  const message = withoutCredentials(error.message, channel, lent);
  const { param, shownCode, upstream = {} } = error.details;
  const given = JSON.stringify({ param, shownCode, upstream });
  const shown = withoutCredentials(given, channel, lent);
  if (message === error.message && shown === given) return error;
  return new GatewayError(error.code, message, { ...error.details, ...JSON.parse(shown) });
}

/** Some clouds print the headers that they were sent: the texts of refusals are read without what they quote of a credential. */
const TOKENS = /\beyJ[\w-]{8,}\.[\w-]+\.[\w-]*|\bya29\.[\w.-]+|(?<=x-amz-security-token:)\S+|(?<=\bBearer )\S{16,}/gi;

export function withoutTokens(answer: UpstreamAnswer): UpstreamAnswer {
  return { ...answer, text: answer.text.replace(TOKENS, '[redacted]') };
}
