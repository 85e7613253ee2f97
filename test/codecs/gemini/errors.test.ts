import assert from 'node:assert/strict';
import test from 'node:test';
import { geminiUpstream } from '../../../src/codecs/gemini/index.ts';

const body = (error: object): string => JSON.stringify({ error });
const decode = (status: number, text: string, headers: Record<string, string> = {}) =>
  geminiUpstream.decodeError({ status, headers, text });

test('an error body gives status, word and a sanitised message; the text is kept whole for the log', () => {
  const text = body({
    code: 400,
    message: 'Bad field at https://generative.example/v1 for AIzaSyA0123456789012345678901234',
    status: 'INVALID_ARGUMENT',
  });
  const error = decode(400, text);
  assert.equal(error.code, 'upstream_error');
  assert.equal(error.message, 'Bad field at [url] for [redacted]');
  assert.deepEqual(error.details.upstream, { text, status: 400, code: 'INVALID_ARGUMENT' });
  assert.equal(decode(400, `[${text}]`).message, error.message);
});

test('a refusal of our own credential or region is never the fault of the client', () => {
  const info = (reason: string): object[] => [{ '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason }];
  const key = decode(
    400,
    body({ code: 400, status: 'INVALID_ARGUMENT', message: 'API key not valid.', details: info('API_KEY_INVALID') }),
  );
  assert.equal(key.details.upstream?.status, 401);
  assert.equal(key.message, 'The upstream refused the gateway.');
  for (const message of [
    'API key not valid. Please pass a valid API key.',
    'API Key not found.',
    'API key expired. Please renew it.',
  ]) {
    const bare = decode(400, body({ code: 400, status: 'INVALID_ARGUMENT', message }));
    assert.equal(bare.message, 'The upstream refused the gateway.', message);
  }
  const region = decode(400, body({ code: 400, status: 'FAILED_PRECONDITION', message: 'User location is not supported.' }));
  assert.equal(region.details.upstream?.status, 403);
});

test('a file that is not ready is the fault of the client who named it, not of our account', () => {
  const message = 'The File 5y6l7yja98jc is not in an ACTIVE state and usage is not allowed.';
  const error = decode(400, body({ code: 400, status: 'FAILED_PRECONDITION', message }));
  assert.equal(error.details.upstream?.status, 400);
  assert.equal(error.message, message);
});

test('a limit says when to come back, by its details or the header', () => {
  const details = [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '34.4s' }];
  assert.equal(decode(429, body({ code: 429, status: 'RESOURCE_EXHAUSTED', details })).details.retryAfterMs, 34_400);
  assert.equal(decode(429, body({ code: 429 }), { 'retry-after': '3' }).details.retryAfterMs, 3000);
  assert.equal(decode(429, '').details.retryAfterMs, undefined);
});

test('what is no error object still is an error, and HTML is not shown', () => {
  assert.equal(decode(404, 'no such thing').message, 'no such thing');
  assert.equal(decode(404, '<html><title>404</title></html>').message, 'The upstream refused the request.');
  assert.equal(decode(503, '').message, 'The upstream is overloaded.');
});
