/** Signature Version 4: what AWS's own signer makes of the same request. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SignatureV4 } from '@smithy/signature-v4';
import fc from 'fast-check';
import { Signer } from '../../../src/http/platforms/bedrock/sign.ts';
import { Sha256 } from '../../support/sent-by-packages.ts';

const TRACE = new Set(['traceparent', 'tracestate', 'baggage']);
const word = fc.stringMatching(/^[A-Za-z0-9._~:@$&'()*+,;=!%-]{1,20}$/);
const request = fc.record({
  method: fc.constantFrom('POST', 'GET'),
  segments: fc.array(word, { minLength: 1, maxLength: 5 }),
  query: fc.dictionary(fc.stringMatching(/^[A-Za-z][A-Za-z0-9-]{0,8}$/), fc.string({ maxLength: 12 }), { maxKeys: 3 }),
  headers: fc.dictionary(
    fc.constantFrom('accept', 'content-type', 'anthropic-beta', 'user-agent', 'x-extra', 'traceparent', 'sec-x', 'cache-control'),
    fc.stringMatching(/^[!-~]([ -~]{0,20}[!-~])?$/),
  ),
  body: fc.oneof(fc.string({ unit: 'grapheme', maxLength: 200 }), fc.constant('')),
  session: fc.option(fc.stringMatching(/^[A-Za-z0-9/+=]{4,40}$/), { nil: undefined }),
  at: fc.integer({ min: Date.parse('2020-01-01'), max: Date.parse('2040-01-01') }),
});

test('a signature is that of @smithy/signature-v4', async () => {
  const signer = new Signer('eu-west-1', 'bedrock');
  await fc.assert(
    fc.asyncProperty(request, async ({ method, segments, query, headers, body, session, at }) => {
      const keys = {
        accessKeyId: 'AKIDEXAMPLE',
        secretAccessKey: 'secret',
        ...(session === undefined ? {} : { sessionToken: session }),
      };
      const pathname = `/${segments.map((segment) => segment.replaceAll('%', '%25')).join('/')}`;
      const search = new URLSearchParams(query).toString();
      const path = search === '' ? pathname : `${pathname}?${search}`;
      const host = 'bedrock-runtime.eu-west-1.amazonaws.com';
      const ours = signer.sign({ method, host, path, headers, body }, keys, at);
      const theirs = await new SignatureV4({
        service: 'bedrock',
        region: 'eu-west-1',
        credentials: keys,
        sha256: Sha256 as never,
      }).sign(
        { method, protocol: 'https:', hostname: host, path: pathname, query, headers: { ...headers, host }, body } as never,
        { signingDate: new Date(at), unsignableHeaders: TRACE },
      );
      for (const name of ['authorization', 'x-amz-date', 'x-amz-content-sha256', 'x-amz-security-token'])
        assert.equal(ours[name], theirs.headers[name], name);
    }),
    { numRuns: 300 },
  );
});

test('signing an ordinary request costs at most 60 µs', () => {
  const signer = new Signer('us-east-1', 'bedrock');
  const keys = { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'secret', sessionToken: 'x'.repeat(400) };
  const headers = {
    accept: 'application/json',
    'content-type': 'application/json',
    'user-agent': 'mizu',
    'accept-encoding': 'identity',
  };
  const asked = {
    method: 'POST',
    host: 'bedrock-runtime.us-east-1.amazonaws.com',
    path: '/model/us.anthropic.claude-v1:0/invoke',
    headers,
    body: '{}'.repeat(1000),
  };
  const rounds = Array.from({ length: 30 }, (_, round) => {
    const started = performance.now();
    for (let index = 0; index < 100; index += 1) signer.sign(asked, keys, 1_750_000_000_000 + round * 1000 + index);
    return (performance.now() - started) * 10;
  });
  // Of a machine that does other things meanwhile, the best round counts.
  assert.ok(Math.min(...rounds) <= 60, `${Math.min(...rounds)} µs`);
});
