/** What a refusal quotes of the tokens that a cloud lent: none of it is shown, and it is looked for in linear time. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../../src/codecs/canonical/error.ts';
import {
  credentialsIn,
  quotingNoCredentials,
  withoutCredentials,
  withoutTokens,
} from '../../../src/http/dispatch/credentials.ts';

const shown = (text: string): string => withoutTokens({ status: 400, headers: {}, text, receivedAtMs: 0 }).text;

const JWT = 'eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJhIn0.c2lnbmF0dXJl';

test('a token is left out wherever it stands, and what is none stays', () => {
  for (const [text, expected] of [
    [`token ${JWT} is expired`, 'token [redacted] is expired'],
    [`"${JWT}","${JWT}"`, '"[redacted]","[redacted]"'],
    [`a-${JWT}`, 'a-[redacted]'],
    [`host.example.${JWT}`, 'host.example.[redacted]'],
    [`${JWT}.${JWT}`, '[redacted].[redacted]'],
    [`${JWT.slice(0, JWT.lastIndexOf('.'))}.`, '[redacted]'],
    [JWT.replace('eyJ', 'EYJ'), '[redacted]'],
    ['eyJhbGciOiJSUzI1NiJ9', 'eyJhbGciOiJSUzI1NiJ9'],
    ['eyJhbGciOiJSUzI1NiJ9..x', 'eyJhbGciOiJSUzI1NiJ9..x'],
    ['heyJude.this.is no token', 'heyJude.this.is no token'],
    ['eyJshort.a.b and more', 'eyJshort.a.b and more'],
    ['ya29.abc-def', '[redacted]'],
    ['x-amz-security-token:abc/def== x', 'x-amz-security-token:[redacted] x'],
    ['Bearer abcdefghijklmnop', 'Bearer [redacted]'],
  ] as const)
    assert.equal(shown(text), expected);
});

test('a refusal that seems to be nothing but beginnings of tokens holds nobody up', () => {
  for (const piece of ['-eyJ', '.eyJ', 'eyJ', '-eyJhbGciOiJS.', 'a.', '-', 'Bearer ', 'ya29']) {
    const text = piece.repeat(Math.ceil((256 * 1024) / piece.length));
    const started = process.cpuUsage();
    shown(text);
    const { user } = process.cpuUsage(started);
    assert.ok(user < 1_000_000, `${piece}: ${user / 1000} ms of the processor`);
  }
});

type Holder = Parameters<typeof withoutCredentials>[1];
const holding = (secret: string): Holder => ({ options: { headers: new Map([['cookie', secret]]) } }) as unknown as Holder;

test('a credential with quotation marks or slashes is left out of JSON, too, where they are escaped', () => {
  const secret = 'session="a1b2/c3d4"';
  const channel = holding(secret);
  const text = JSON.stringify({ error: { message: `unknown cookie ${secret}` } });
  for (const escaped of [text, text.replaceAll('/', String.raw`\/`)])
    assert.equal(withoutCredentials(escaped, channel), '{"error":{"message":"unknown cookie [redacted]"}}');
  // An error that a stream reports has both: the words, and the event as it came.
  for (const quoting of [`unknown ${secret}`, text]) {
    const error = new GatewayError('upstream_error', `unknown ${secret}`, { upstream: { status: 400, text: quoting } });
    const shown = quotingNoCredentials(error, channel);
    assert.equal(shown.message, 'unknown [redacted]');
    assert.match(shown.details.upstream?.text ?? '', /unknown (cookie )?\[redacted\]/);
    assert.equal(shown.details.upstream?.status, 400);
  }
});

test('what only looks like a credential where it is escaped is left as it is', () => {
  const error = new GatewayError('upstream_error', 'failed', { param: 'x', upstream: { text: 'first\n1234567' } });
  assert.equal(quotingNoCredentials(error, holding('n1234567')).details.upstream?.text, 'first\n1234567');
});

test('of a signed request its signature and the id of its key are left out each by itself', () => {
  const signature = '5f'.repeat(32);
  const scope = '20260301/us-east-1/bedrock/aws4_request';
  const value = `AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/${scope}, SignedHeaders=host;x-amz-date, Signature=${signature}`;
  const lent = credentialsIn([['authorization', value]]);
  const said = `key AKIAIOSFODNN7EXAMPLE of ${scope}: ${signature}; ${value}`;
  assert.equal(withoutCredentials(said, holding('another secret'), lent), `key [redacted] of ${scope}: [redacted]; [redacted]`);
});
