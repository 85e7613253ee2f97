/** Which spans an exchange becomes, and which of them have failed. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { encodeSpan, type Span } from '../../../src/http/tracing/span.ts';
import { createTracer } from '../../../src/http/tracing/tracer.ts';
import type { AttemptEntry, RequestLogEntry } from '../../../src/store/request-log.ts';
import { createFakeClock } from '../../support/fake-clock.ts';

function setUp(sample = 1, drawn = 0) {
  const spans: Span[] = [];
  let minted = 0;
  const tracer = createTracer({
    exporter: { add: (span) => void spans.push(span), close: () => Promise.resolve() },
    clock: createFakeClock(),
    sample,
    random: () => drawn,
    hexId: (bytes) => String(++minted).padStart(bytes * 2, '0'),
  });
  return { tracer, spans };
}

const ANSWER = { method: 'POST', route: 'messages', status: 200, code: '' } as const;

const attempt = (changes: Partial<AttemptEntry> = {}): AttemptEntry => ({
  ...{ channelId: 'one', channelType: 'messages', upstreamModel: 'u', startedAtMs: 1_000, durationMs: 5 },
  ...changes,
});

const row = (attempts: readonly AttemptEntry[], changes: Partial<RequestLogEntry> = {}): RequestLogEntry => ({
  ...{ exchangeId: 'ex_1', requestId: 'req_1', accountId: 'a', keyId: 'k', endpoint: 'messages', model: 'm' },
  ...{ stream: true, status: 'success', startedAtMs: 1_000, durationMs: 50, attempts },
  ...changes,
});

test('a share of nothing samples nothing, a share of everything all', () => {
  for (const [sample, drawn, expected] of [
    [0, 0, 0],
    [1, 0.999, 1],
    [0.5, 0.49, 1],
    [0.5, 0.5, 0],
  ] as const) {
    const { tracer, spans } = setUp(sample, drawn);
    tracer.start({}, 'chat')?.end(ANSWER);
    assert.equal(spans.length, expected, `${drawn} of ${sample}`);
  }
});

test('a server span has failed when the gateway has, or its stream; what a client did wrong is none of it', () => {
  for (const [status, code, error] of [
    [200, '', undefined],
    [400, 'invalid_request', undefined],
    [499, 'client_closed_request', undefined],
    [500, 'internal_error', 'internal_error'],
    [502, 'upstream_error', 'upstream_error'],
    [200, 'upstream_error', 'upstream_error'],
  ] as const) {
    const { tracer, spans } = setUp();
    tracer.start({}, 'chat')?.end({ ...ANSWER, status, code });
    assert.equal(spans[0]?.error, error, `${status} ${code}`);
    assert.equal(spans[0]?.attributes['error.type'], code === '' ? undefined : code);
  }
});

test('an attempt has failed by its own code; the last one also by what broke the stream that it began', () => {
  const { tracer, spans } = setUp();
  const trace = tracer.start({}, 'chat');
  trace?.exchanged(row([attempt({ errorCode: 'timeout' }), attempt()], { errorCode: 'upstream_error' }));
  trace?.end(ANSWER);
  assert.deepEqual(
    spans.map(({ kind, error, startMs, endMs }) => [kind, error, endMs - startMs]),
    [
      ['client', 'timeout', 5],
      ['client', 'upstream_error', 50],
      ['server', undefined, 0],
    ],
  );
});

test('numbers that are no integers stay what they are; a span never ends before it began', () => {
  const { tracer, spans } = setUp();
  const trace = tracer.start({}, 'chat');
  trace?.exchanged(row([attempt()], { firstByteMs: 250, durationMs: -10 }));
  const [span] = spans.map(encodeSpan).map((encoded) => JSON.parse(JSON.stringify(encoded)));
  assert.equal(span.endTimeUnixNano, span.startTimeUnixNano, 'the clock went back');
  const first = span.attributes.find(({ key }: { key: string }) => key === 'gen_ai.response.time_to_first_chunk');
  assert.deepEqual(first.value, { doubleValue: 0.25 });
});
