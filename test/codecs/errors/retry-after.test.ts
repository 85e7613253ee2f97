/** `Retry-After` in every spelling of RFC 9110, read the same for every kind of upstream, and waits in messages; what is none says nothing. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { UpstreamAnswer } from '../../../src/codecs/codec.ts';
import { decodeJsonError, refusal } from '../../../src/codecs/errors/upstream.ts';
import { UPSTREAMS } from '../../../src/codecs/registry.ts';

const DATE = 'Sat, 21 Nov 2026 10:00:00 GMT';
const LATER = 'Sat, 21 Nov 2026 10:00:05 GMT';
const RECEIVED = Date.parse('Sat, 21 Nov 2026 10:00:02 GMT');

const CASES: readonly (readonly [name: string, headers: UpstreamAnswer['headers'], ms: number | undefined])[] = [
  ['seconds', { 'retry-after': '7' }, 7_000],
  ['no time at all', { 'retry-after': '0' }, 0],
  ['a fraction, which some write', { 'retry-after': '1.5' }, 1_500],
  ['spaces around it', { 'retry-after': ' 3 ' }, 3_000],
  ['milliseconds before seconds', { 'retry-after-ms': '250', 'retry-after': '1' }, 250],
  ['milliseconds that are none', { 'retry-after-ms': 'soon', 'retry-after': '1' }, 1_000],
  ['a date by the clock of the upstream', { date: DATE, 'retry-after': LATER }, 5_000],
  ['a date by the clock of the gateway, when the upstream says none', { 'retry-after': LATER }, 3_000],
  ['a date as RFC 850 writes it', { date: DATE, 'retry-after': 'Saturday, 21-Nov-26 10:00:05 GMT' }, 5_000],
  ['a date as asctime writes it', { date: DATE, 'retry-after': 'Sat Nov 21 10:00:05 2026' }, 5_000],
  ['a date that is over', { date: LATER, 'retry-after': DATE }, 0],
  ['given twice: the first', { 'retry-after': ['4', '9'] }, 4_000],
  ['empty', { 'retry-after': '', 'retry-after-ms': '' }, undefined],
  ['negative', { 'retry-after': '-5', 'retry-after-ms': '-1' }, undefined],
  ['words', { 'retry-after': 'in 5 minutes' }, undefined],
  ['what a lenient reader takes for a date', { 'retry-after': 'try 1' }, undefined],
  ['other numerals', { 'retry-after': '0x10' }, undefined],
  ['an exponent', { 'retry-after': '1e3' }, undefined],
  ['for ever', { 'retry-after': 'Infinity' }, undefined],
  ['longer than a clock can count', { 'retry-after': '9'.repeat(400), 'retry-after-ms': '9'.repeat(20) }, undefined],
  ['absent', {}, undefined],
];

const READERS = [
  ...UPSTREAMS.map((codec) => [codec.dialect, (answer: UpstreamAnswer) => codec.decodeError(answer)] as const),
  ['endpoints without a dialect', decodeJsonError] as const,
];

for (const [reader, decodeError] of READERS) {
  for (const [name, headers, ms] of CASES) {
    test(`${reader}: ${name}`, () => {
      const error = decodeError({ status: 429, headers, text: '{"error":{"message":"slow down"}}', receivedAtMs: RECEIVED });
      assert.equal(error.details.retryAfterMs, ms);
    });
  }
}

test('a date that nobody has a clock for is no wait', () => {
  const answer = { status: 429, headers: { 'retry-after': LATER }, text: '' };
  assert.equal(decodeJsonError(answer).details.retryAfterMs, undefined);
});

test('the wait that a limit names stands in its message, too, since agents read it there; nothing else of the message does', () => {
  const shown = (message: string, status = 429): string =>
    refusal(status, { message }, { reason: 'http_status', text: '' }).message;
  const limited = 'The upstream is limiting requests.';
  const named = 'Rate limit reached for gpt-5 in organization org-1 on tokens per min (TPM): Limit 9, Used 8.';
  assert.equal(shown(`${named} Please try again in 11.054s. Visit https://a.example`), `${limited} Please try again in 11.054s.`);
  assert.equal(shown('Try again in 250ms.'), `${limited} Please try again in 250ms.`);
  assert.equal(shown('try again in 3 seconds'), `${limited} Please try again in 3s.`);
  for (const other of [named, 'try again in 6m0s', 'try again in a moment', 'try again in 12345678s', 'try again in 5 sheep'])
    assert.equal(shown(other), limited, other);
  assert.equal(shown('Please try again in 5s.', 500), 'The upstream failed.');
});
