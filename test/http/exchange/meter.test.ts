/** One exchange as it is told to the store, the log, the metrics and the trace: what an ending costs, and that it is told once. */
import assert from 'node:assert/strict';
import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { test } from 'node:test';
import { GatewayError, upstreamFault } from '../../../src/codecs/canonical/error.ts';
import type { Usage } from '../../../src/codecs/canonical/usage.ts';
import type { Admitted } from '../../../src/http/exchange/admit.ts';
import type { CallContext } from '../../../src/http/gateway.ts';
import { Meter } from '../../../src/http/exchange/meter.ts';
import { chargeFor } from '../../../src/store/charge.ts';
import type { AttemptEntry } from '../../../src/store/request-log.ts';
import { Reservations } from '../../../src/store/reservations.ts';
import type { Settlement } from '../../../src/store/settlement.ts';
import type { ExchangeTrace } from '../../../src/http/tracing/tracer.ts';
import { createFakeClock } from '../../support/fake-clock.ts';
import { channel, KEY, MODELS, testConfig, testGateway } from '../../support/test-gateway.ts';

const whole = await testGateway({ channels: [channel('http://127.0.0.1:1')], models: MODELS });
test.after(() => whole[Symbol.asyncDispose]());
const { gateway } = whole.running;
const principal = await gateway.store.keys.authenticate(KEY, 0);
assert.ok(principal.ok);
const config = testConfig({ channels: [channel('http://127.0.0.1:1', { models: { m: 'their-m' } })], models: MODELS });
const model = config.models.get('m');
const [theirs] = config.channels;
assert.ok(model?.rates !== undefined && theirs !== undefined);
const rates = model.rates;

/** A call with everything that a meter tells somebody written down. */
function setUp(changes: Partial<CallContext> = {}, durability: 'batched' | 'strict' = 'batched', effort = 'high') {
  const clock = createFakeClock(0);
  clock.advance(1000);
  const told: string[] = [];
  const lines: Record<string, unknown>[] = [];
  const settlements: Settlement[] = [];
  const trace: ExchangeTrace = {
    traceId: 'trace',
    nextAttempt: () => ({}),
    exchanged: () => told.push('trace'),
    end: () => undefined,
  };
  const call: CallContext = {
    gateway: {
      ...gateway,
      clock,
      chargeFor,
      mint: (prefix) => `${prefix}minted`,
      metrics: {
        ...gateway.metrics,
        firstToken: (route, seconds) => told.push(`first ${route} ${seconds}`),
        tokenGap: (route, seconds) => told.push(`gap ${route} ${seconds}`),
        attemptEnded: (channelId, reason) => told.push(`attempt ${channelId} ${reason}`),
        tokens: (kind, count) => told.push(`${kind} ${count}`),
      },
      store: {
        ...gateway.store,
        settlements: {
          ...gateway.store.settlements,
          open: () => Promise.resolve(),
          settle(settlement) {
            settlements.push(settlement);
            return Promise.resolve({ settled: true, chargedNanos: 0n });
          },
        },
      },
      log: Object.assign(Object.create(gateway.log), { info: (line: Record<string, unknown>) => lines.push(line) }),
    },
    config: { ...config, durability },
    request: new IncomingMessage(new Socket()),
    path: '/v1/messages',
    route: 'messages',
    method: 'POST',
    requestId: 'req_1',
    startedAtMs: 5,
    ip: '::1',
    gone: new AbortController().signal,
    notes: {},
    trace,
    ...changes,
  };
  const admitted: Admitted = {
    principal: principal.ok ? principal.value : assert.fail(),
    model: model ?? assert.fail(),
    rates,
    reservation: new Reservations().reserve('wallet:a', 'key', 1000n),
  };
  const meter = new Meter(call, admitted, { stream: true, effort });
  const row = () => settlements[0]?.entry ?? assert.fail('no row');
  return { clock, told, lines, settlements, call, admitted, meter, row };
}

test('an answer that ended well: everything that is known of it, in the row and in the line', () => {
  const { clock, meter, row, lines, told, settlements, admitted, call } = setUp({ clientRequestId: 'mine' });
  assert.ok(theirs);
  meter.answeredBy(theirs, 'their-m', true);
  meter.attempts.push({ channelId: 'one', channelType: 'messages', upstreamModel: 'their-m', startedAtMs: 5, durationMs: 1 });
  clock.advance(250);
  meter.outputWritten();
  clock.advance(40);
  meter.outputWritten();
  clock.advance(60);
  meter.outputWritten();
  clock.advance(50);
  const usage: Usage = { input: 7, cacheRead: 2, cacheWrite5m: 4, output: 5, reasoning: 3, native: { more: 1 } };
  assert.equal(meter.settle({ status: 200, usage }), undefined, 'nobody waits');
  const billed = { input: 7, cachedInput: 2, cacheWrite5m: 4, output: 2, reasoning: 3 };
  const charge = chargeFor(billed, rates);
  assert.deepEqual(row(), {
    exchangeId: 'ex_minted',
    requestId: 'req_1',
    clientRequestId: 'mine',
    accountId: admitted.principal.account.id,
    keyId: admitted.principal.key.id,
    endpoint: 'messages',
    model: 'm',
    upstreamModel: 'their-m',
    channelId: 'one',
    channelType: 'messages',
    stream: true,
    status: 'success',
    httpStatus: 200,
    startedAtMs: 5,
    durationMs: 400,
    firstByteMs: 250,
    firstOutputMs: 250,
    lastOutputMs: 350,
    ip: '::1',
    effort: 'high',
    usage: billed,
    usageJson: '{"more":1}',
    charge,
    attempts: meter.attempts,
    affinity: { hit: true, target: 'one' },
  });
  assert.ok(charge.total > 0n);
  assert.equal(settlements[0]?.reservation, admitted.reservation);
  assert.deepEqual(told, [
    'first messages 0.25',
    'gap messages 0.04',
    'gap messages 0.06',
    'trace',
    'attempt one ',
    'input 7',
    'cached_input 2',
    'cache_write 4',
    'output 5',
  ]);
  assert.deepEqual(lines, [
    {
      request_id: 'req_1',
      exchange_id: 'ex_minted',
      trace_id: 'trace',
      key_id: admitted.principal.key.id,
      account_id: admitted.principal.account.id,
      route: 'messages',
      model: 'm',
      channel: 'one',
      attempts: 1,
      failed_attempts: undefined,
      stream: true,
      status: 200,
      error_code: undefined,
      client_gone: undefined,
      ttft_ms: 250,
      duration_ms: 400,
      usage: billed,
      estimated: undefined,
      charge_nanos: charge.total.toString(),
    },
  ]);
  assert.equal(call.notes.failure, undefined);
});

test('an answer that broke after its first words is a failed attempt, where the upstream broke it', () => {
  assert.ok(theirs);
  const attempt = { channelId: 'one', channelType: 'messages', upstreamModel: 'm', startedAtMs: 0, durationMs: 1 } as const;
  for (const [error, code] of [
    [upstreamFault('truncated', 'Cut.'), 'truncated'],
    [new GatewayError('client_closed_request', 'Gone.'), undefined],
    [new GatewayError('response_not_representable', 'Ours.'), undefined],
  ] as const) {
    const { meter, row } = setUp();
    meter.answeredBy(theirs, 'their-m', false);
    meter.attempts.push({ ...attempt, channelId: 'before', errorCode: 'network' }, attempt);
    meter.settle({ status: 200, error });
    assert.deepEqual(
      row().attempts.map(({ errorCode }) => errorCode),
      ['network', code],
      error.code,
    );
  }
});

test('an exchange is settled once, and what comes after that is not counted', () => {
  const { meter, settlements, told, lines, row } = setUp();
  meter.settle({ status: 200 });
  meter.settle({ status: 500, error: new GatewayError('internal_error', 'Oh.') });
  meter.outputWritten();
  assert.equal(settlements.length, 1);
  assert.equal(row().httpStatus, 200);
  assert.deepEqual(told, ['trace']);
  assert.equal(lines.length, 1);
});

test('nothing was reported, or zeros: the exchange is free', () => {
  for (const usage of [undefined, {}, { input: 0, output: 0 }]) {
    const { meter, row, lines } = setUp();
    meter.settle({ status: 200, ...(usage === undefined ? {} : { usage }) });
    for (const member of ['usage', 'charge', 'usageJson', 'affinity', 'channelId', 'firstByteMs', 'errorCode', 'clientGone'])
      assert.equal(member in row(), false, member);
    assert.equal(lines[0]?.['charge_nanos'], undefined);
  }
});

test('an estimate is flagged, and nothing else is', () => {
  for (const estimated of [true, false]) {
    const { meter, row, lines } = setUp();
    meter.settle({ status: 200, usage: { input: 1, output: 1, serviceTier: 'odd', ...(estimated ? { estimated } : {}) } });
    assert.deepEqual(row().charge?.flags, ['unknown_service_tier', ...(estimated ? ['estimated'] : [])]);
    assert.equal(lines[0]?.['estimated'], estimated ? true : undefined);
  }
});

test('a failure says its code to the call and its full words to the log; a client that left is no failure of the exchange', () => {
  const failed = setUp();
  failed.meter.settle({ status: 502, error: upstreamFault('truncated', 'Cut.', { text: 'their words' }) });
  const { status, errorCode, errorText } = failed.row();
  assert.deepEqual([status, errorCode, errorText], ['error', 'upstream_error', 'Cut. [their words]']);
  assert.equal(failed.call.notes.failure, 'upstream_error');

  const texts = [
    [new GatewayError('internal_error', 'Oh.', { cause: new Error('why') }), 'Oh. [why]'],
    [new GatewayError('internal_error', 'Oh.', { cause: 'why' }), 'Oh.'],
    [new GatewayError('internal_error', 'Oh.', { cause: new Error('Oh.') }), 'Oh.'],
  ] as const;
  for (const [error, text] of texts) {
    const { meter, row } = setUp();
    meter.settle({ status: 500, error });
    assert.equal(row().errorText, text);
  }

  const left = setUp();
  left.meter.settle({ status: 200, error: new GatewayError('client_closed_request', 'Gone.'), clientGone: true });
  assert.deepEqual([left.row().status, left.row().clientGone], ['success', true]);
});

test('a row is bounded, whatever an upstream says and a client asks for', () => {
  const long = 'x'.repeat(3_000_000);
  const { meter, row, lines } = setUp();
  const upstream = { status: 500, code: long, text: long };
  meter.attempts.push({
    ...{ channelId: 'a', channelType: 'chat_completion', upstreamModel: 'm', startedAtMs: 0, durationMs: 1 },
    ...{ upstreamStatus: 500, upstreamRequestId: long, errorCode: long, errorText: long },
  });
  const error = new GatewayError('upstream_error', 'Cut.', { reason: 'undecodable', upstream });
  const usage = { input: 3, output: 4, native: { more: long } } as const;
  meter.settle({ status: 502, error, usage });
  const [attempt] = row().attempts;
  assert.ok(JSON.stringify({ ...row(), charge: null }).length < 2 * 300_000);
  assert.match(row().errorText ?? '', /^Cut\. \[x+$/);
  assert.match(attempt?.errorText ?? '', /^x+$/);
  assert.equal(attempt?.errorCode?.length, 256);
  assert.equal(attempt?.upstreamStatus, 500);
  assert.equal(row().usageJson, undefined);
  assert.ok(JSON.stringify(lines).length < 2000);

  const { meter: eager, row: asked } = setUp({}, 'batched', long);
  eager.settle({ status: 200 });
  assert.equal(asked().effort?.length, 256);
});

test('why an attempt failed, in words of our own', () => {
  const reasons: readonly (readonly [Partial<AttemptEntry>, string])[] = [
    [{}, ''],
    [{ upstreamStatus: 200 }, ''],
    [{ errorCode: 'their_code', upstreamStatus: 199 }, 'status_199'],
    [{ errorCode: 'their_code', upstreamStatus: 200 }, 'error_event'],
    [{ errorCode: 'their_code', upstreamStatus: 299 }, 'error_event'],
    [{ errorCode: 'their_code', upstreamStatus: 300 }, 'status_300'],
    [{ errorCode: 'their_code' }, 'error_event'],
    [{ errorCode: 'truncated', upstreamStatus: 200 }, 'truncated'],
    [{ errorCode: 'upstream_error' }, 'upstream_error'],
    [{ errorCode: 'toString' }, 'error_event'],
  ];
  const { meter, told } = setUp();
  for (const [entry] of reasons)
    meter.attempts.push({ channelId: 'a', channelType: 't', upstreamModel: 'u', startedAtMs: 0, durationMs: 0, ...entry });
  meter.settle({ status: 200 });
  assert.deepEqual(told, ['trace', ...reasons.map(([, reason]) => `attempt a ${reason}`)]);
});

test('an exchange is named after the request id where the gateway made that; a second one of the call gets a name of its own', () => {
  const { meter, call, admitted } = setUp();
  assert.equal(meter.exchangeId, 'ex_1');
  assert.equal(call.notes.metered, true);
  assert.equal(new Meter(call, admitted, { stream: false }).exchangeId, 'ex_minted');
  assert.equal(setUp({ clientRequestId: 'req_1' }).meter.exchangeId, 'ex_minted');
  assert.equal(setUp({ requestId: 'other' }).meter.exchangeId, 'ex_minted');
});

test('somebody waits for the disk only with durability strict', async () => {
  const ending = { status: 200 };
  const fast = setUp();
  assert.equal(fast.meter.open(), undefined);
  assert.equal(
    fast.meter.settleFirst(() => assert.fail('not asked')),
    undefined,
  );
  assert.equal(fast.settlements.length, 0);
  assert.equal(fast.meter.settle(ending), undefined);

  const strict = setUp({}, 'strict');
  assert.ok(strict.meter.open() !== undefined);
  await strict.meter.settleFirst(() => Promise.resolve(ending));
  assert.equal(strict.settlements.length, 1);
  assert.deepEqual(strict.told, ['first messages 0', 'trace'], 'the end of the answer is about to go out');
  assert.ok(setUp({}, 'strict').meter.settle(ending) !== undefined);
});
