/**
 * One exchange as it is told to the store, the log, the metrics and the trace: what an ending costs, and that it has one,
 * whatever happens.
 */
import assert from 'node:assert/strict';
import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { test } from 'node:test';
import { inspect } from 'node:util';
import { GatewayError, upstreamFault } from '../../../src/codecs/canonical/error.ts';
import type { Usage } from '../../../src/codecs/canonical/usage.ts';
import type { CallContext } from '../../../src/http/gateway.ts';
import { type Answered, Exchange } from '../../../src/http/exchange/exchange.ts';
import { refuseCall } from '../../../src/http/exchange/refusal.ts';
import { logExchange, reportExchange } from '../../../src/http/exchange/row.ts';
import { chargeFor } from '../../../src/store/charge.ts';
import type { AttemptEntry } from '../../../src/store/request-log.ts';
import { Reservations } from '../../../src/store/reservations.ts';
import type { Settled, Settlement } from '../../../src/store/settlement.ts';
import { StoreError } from '../../../src/store/store-error.ts';
import { estimateNanos } from '../../../src/http/exchange/admit.ts';
import { STORE_MS } from '../../../src/http/from-store.ts';
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
async function setUp(changes: Partial<CallContext> = {}, durability: 'batched' | 'strict' = 'batched', effort = 'high') {
  const clock = createFakeClock(0);
  clock.advance(1000);
  const told: string[] = [];
  const lines: Record<string, unknown>[] = [];
  const errors: unknown[][] = [];
  const settlements: Settlement[] = [];
  const reservations = new Reservations();
  const store = {
    open: (): PromiseLike<void> => Promise.resolve(),
    settle: (settlement: Settlement): PromiseLike<Settled> => {
      settlement.reservation?.handOver(1n)();
      return Promise.resolve({ settled: true, chargedNanos: 0n });
    },
  };
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
        exchanged({ tokens, chargedNanos, answered }) {
          for (const [kind, count] of Object.entries(tokens ?? {})) if (count > 0) told.push(`${kind} ${count}`);
          told.push(`charged ${chargedNanos} ${answered?.channelId ?? '-'}`);
        },
      },
      store: {
        ...gateway.store,
        admission: {
          ...gateway.store.admission,
          admit: async () => ({ ok: true, value: reservations.reserve('wallet:a', 'key', 1000n) }),
        },
        settlements: {
          ...gateway.store.settlements,
          open: () => store.open(),
          settle(settlement) {
            settlements.push(settlement);
            return store.settle(settlement);
          },
        },
      },
      dispatcher: { ...gateway.dispatcher, clock },
      log: Object.assign(Object.create(gateway.log), {
        info: (line: Record<string, unknown>) => lines.push(line),
        error: (...words: unknown[]) => errors.push(words),
      }),
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
  const owner = principal.ok ? principal.value : assert.fail();
  const estimate = { input: 10, output: 20 };
  const asked = { principal: owner, model: model ?? assert.fail(), estimate, stream: true, effort };
  const exchange = await Exchange.admit(call, asked);
  const row = () => settlements[0]?.entry ?? assert.fail('no row');
  /** The upstream answers, after `failures`. `usage` is what it bills. */
  const answered = (
    usage?: Usage | (() => Promise<Usage>),
    failures: readonly GatewayError[] = [],
    losses: readonly string[] = [],
  ) => {
    const channels = [
      ...failures.map((_, index) => ({ ...(theirs ?? assert.fail()), id: `bad-${index}`, priority: index })),
      theirs ?? assert.fail(),
    ];
    const rest = [...failures];
    return exchange.dispatch<Answered>(
      { channels: channels.map((each, index) => ({ ...each, priority: index })), model: 'm' },
      async () => {
        const failure = rest.shift();
        if (failure !== undefined) throw failure;
        return losses.length === 0 ? {} : { losses };
      },
      { usageOf: () => (typeof usage === 'function' ? usage() : usage) },
    );
  };
  const reserved = () => reservations.ofKey('key');
  return { clock, told, lines, errors, settlements, call, asked, exchange, answered, store, reserved, row };
}

test('an answer that ended well: everything that is known of it, in the row and in the line', async () => {
  const { clock, exchange, answered, row, lines, told, asked, call, reserved } = await setUp({ clientRequestId: 'mine' });
  const usage: Usage = { input: 7, cacheRead: 2, cacheWrite5m: 4, output: 5, reasoning: 3, native: { more: 1 } };
  await answered(usage);
  assert.equal(reserved(), 1000n);
  clock.advance(250);
  exchange.outputWritten();
  clock.advance(40);
  exchange.outputWritten();
  clock.advance(60);
  exchange.outputWritten();
  clock.advance(50);
  assert.equal(exchange.end({ status: 200 }), undefined, 'nobody waits');
  const billed = { input: 7, cachedInput: 2, cacheWrite5m: 4, output: 2, reasoning: 3 };
  const charge = chargeFor(billed, rates);
  assert.deepEqual(row(), {
    exchangeId: 'ex_minted',
    requestId: 'req_1',
    clientRequestId: 'mine',
    accountId: asked.principal.account.id,
    keyId: asked.principal.key.id,
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
    attempts: [{ channelId: 'one', channelType: 'messages', upstreamModel: 'their-m', startedAtMs: 1000, durationMs: 0 }],
    affinity: { hit: false, target: 'one' },
  });
  assert.ok(charge.total > 0n);
  assert.equal(reserved(), 0n);
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
    `charged ${charge.total} one`,
  ]);
  assert.deepEqual(lines, [
    {
      request_id: 'req_1',
      exchange_id: 'ex_minted',
      trace_id: 'trace',
      key_id: asked.principal.key.id,
      account_id: asked.principal.account.id,
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
      unwritten: undefined,
    },
  ]);
  assert.equal(call.notes.failure, undefined);
});

test('an answer that broke after its first words is a failed attempt, where the upstream broke it', async () => {
  for (const [error, code] of [
    [upstreamFault('truncated', 'Cut.'), 'truncated'],
    [new GatewayError('client_closed_request', 'Gone.'), undefined],
    [new GatewayError('response_not_representable', 'Ours.'), undefined],
  ] as const) {
    const { exchange, answered, row } = await setUp();
    await answered(undefined, [upstreamFault('network', 'Before.')]);
    exchange.end({ status: 200, error });
    assert.deepEqual(
      row().attempts.map(({ errorCode }) => errorCode),
      ['network', code],
      error.code,
    );
  }
});

test('an exchange is settled once, and what comes after that is not counted', async () => {
  const { exchange, settlements, told, lines, row } = await setUp();
  exchange.end();
  exchange.end({ error: new GatewayError('internal_error', 'Oh.') });
  exchange.outputWritten();
  await exchange[Symbol.asyncDispose]();
  assert.equal(settlements.length, 1);
  assert.equal(row().httpStatus, 200);
  assert.deepEqual(told, ['trace', 'charged 0 -']);
  assert.equal(lines.length, 1);
});

test('nothing was reported, or zeros: the exchange is free', async () => {
  for (const usage of [undefined, {}, { input: 0, output: 0 }]) {
    const { exchange, answered, row, lines } = await setUp();
    await answered(usage);
    exchange.end();
    for (const member of ['usage', 'charge', 'usageJson', 'firstByteMs', 'errorCode', 'clientGone'])
      assert.equal(member in row(), false, member);
    assert.equal(lines[0]?.['charge_nanos'], undefined);
  }
  const { exchange, row } = await setUp();
  exchange.end();
  for (const member of ['affinity', 'channelId', 'charge']) assert.equal(member in row(), false, member);
});

test('what the last failed attempt used is billed where none was answered', async () => {
  const { exchange, row } = await setUp();
  const failure = new GatewayError('upstream_error', 'Cut.', { reason: 'error_event', usage: { input: 3, output: 4 } });
  const channels = [theirs ?? assert.fail()];
  const asking = exchange.dispatch<object>({ channels, model: 'm' }, () => Promise.reject(failure), { usageOf: () => undefined });
  await assert.rejects(asking, { code: 'upstream_error' });
  exchange.end({ error: failure });
  assert.deepEqual([row().usage, row().status, row().httpStatus], [{ input: 3, output: 4 }, 'error', 502]);
});

test('an estimate is flagged, and nothing else is', async () => {
  for (const estimated of [true, false]) {
    const { exchange, answered, row, lines } = await setUp();
    await answered({ input: 1, output: 1, serviceTier: 'odd', ...(estimated ? { estimated } : {}) });
    exchange.end();
    assert.deepEqual(row().charge?.flags, ['unknown_service_tier', ...(estimated ? ['estimated'] : [])]);
    assert.equal(lines[0]?.['estimated'], estimated ? true : undefined);
  }
});

test('a failure says its code to the call and its full words to the log; a client that left is no failure of the exchange', async () => {
  const failed = await setUp();
  failed.exchange.end({ error: upstreamFault('truncated', 'Cut.', { text: 'their words' }) });
  const { status, errorCode, errorText } = failed.row();
  assert.deepEqual([status, errorCode, errorText], ['error', 'upstream_error', 'Cut. [their words]']);
  assert.equal(failed.call.notes.failure, 'upstream_error');

  const texts = [
    [new GatewayError('internal_error', 'Oh.', { cause: new Error('why') }), 'Oh. [why]'],
    [new GatewayError('internal_error', 'Oh.', { cause: 'why' }), 'Oh.'],
    [new GatewayError('internal_error', 'Oh.', { cause: new Error('Oh.') }), 'Oh.'],
  ] as const;
  for (const [error, text] of texts) {
    const { exchange, row } = await setUp();
    exchange.end({ error });
    assert.equal(row().errorText, text);
  }

  const left = await setUp();
  left.exchange.end({ status: 200, error: new GatewayError('client_closed_request', 'Gone.') });
  assert.deepEqual([left.row().status, left.row().clientGone], ['success', true]);
});

test('a row is bounded, whatever an upstream says and a client asks for', async () => {
  const long = 'x'.repeat(3_000_000);
  const { exchange, answered, row, lines } = await setUp();
  const upstream = { status: 500, code: long, text: long };
  const error = new GatewayError('upstream_error', 'Cut.', { reason: 'undecodable', upstream });
  await answered({ input: 3, output: 4, native: { more: long } }, [error]);
  exchange.end({ error });
  const [attempt] = row().attempts;
  assert.ok(JSON.stringify({ ...row(), charge: null }).length < 3 * 300_000);
  assert.match(row().errorText ?? '', /^Cut\. \[x+$/);
  assert.match(attempt?.errorText ?? '', /^x+$/);
  assert.equal(attempt?.errorCode?.length, 256);
  assert.equal(row().usageJson, undefined);
  assert.ok(JSON.stringify(lines).length < 2000);

  const { exchange: eager, row: asked } = await setUp({}, 'batched', long);
  eager.end();
  assert.equal(asked().effort?.length, 256);

  // An image request may have any number of members, under any names, that its upstream does not know.
  const lossy = await setUp();
  const lost = Array.from({ length: 1_000 }, (_, at) => `${at} ${'x'.repeat(1_000)}`);
  await lossy.answered({ input: 1, output: 1 }, [], lost);
  lossy.exchange.end();
  const { losses = [] } = lossy.row();
  assert.equal(losses.length, 129);
  assert.equal(losses.at(-1), '872 more');
  assert.deepEqual(
    losses.slice(0, -1),
    lost.slice(0, 128).map((name) => name.slice(0, 256)),
  );
});

test('why an attempt failed, in words of our own', async () => {
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
  const { exchange, told, row, call, lines } = await setUp();
  exchange.end();
  const attempts = reasons.map(([entry]) => ({
    ...{ channelId: 'a', channelType: 't', upstreamModel: 'u', startedAtMs: 0, durationMs: 0 },
    ...entry,
  }));
  reportExchange(call, { ...row(), attempts });
  const [free, attempted] = ['charged 0 -', reasons.map(([, reason]) => `attempt a ${reason}`)];
  assert.deepEqual(told, ['trace', free, 'trace', ...attempted, free]);
  logExchange(call, { ...row(), attempts }, 'exchange');
  assert.deepEqual(
    lines[1]?.['failed_attempts'],
    reasons.filter(([, reason]) => reason !== '').map(([, reason]) => `a ${reason}`),
  );
});

test('an exchange is named after the request id where the gateway made that; a second one of the call gets a name of its own', async () => {
  const named = async (changes: Partial<CallContext>) => {
    const { exchange, row } = await setUp(changes);
    exchange.end();
    return row().exchangeId;
  };
  assert.equal(await named({}), 'ex_1');
  assert.equal(await named({ notes: { admitted: true } }), 'ex_minted');
  assert.equal(await named({ clientRequestId: 'req_1' }), 'ex_minted');
  assert.equal(await named({ requestId: 'other' }), 'ex_minted');
  assert.equal((await setUp()).call.notes.admitted, true);
});

test('somebody waits for the disk only with durability strict', async () => {
  const fast = await setUp();
  fast.store.open = () => new Promise(() => undefined);
  await fast.answered({ input: 1 });
  assert.equal(fast.exchange.endFirst(), undefined);
  assert.equal(fast.settlements.length, 0);
  assert.equal(fast.exchange.end(), undefined);

  const strict = await setUp({}, 'strict');
  await strict.answered();
  await strict.exchange.endFirst();
  assert.equal(strict.settlements.length, 1);
  assert.deepEqual(strict.told.slice(0, 2), ['first messages 0', 'trace'], 'the end of the answer is about to go out');
  assert.equal(strict.exchange.end(), undefined, 'it has ended');
  assert.ok((await setUp({}, 'strict')).exchange.end() !== undefined);
});

test('strict: an opening that is refused, or never answered, is the error of the client', async () => {
  const opens = [
    () => Promise.reject(new StoreError('disk_full', 'No room.')),
    () => new Promise<void>(() => undefined),
    (): Promise<void> => {
      throw new Error('Oh.');
    },
  ];
  for (const open of opens) {
    const { answered, store, clock } = await setUp({}, 'strict');
    store.open = open;
    const asking = answered();
    const refused = assert.rejects(asking);
    await Promise.resolve();
    clock.advance(STORE_MS);
    await refused;
    const fast = await setUp();
    fast.store.open = open;
    await fast.answered();
    // The store itself tells of a row that it could not write, and of nothing where it threw.
    const told = open === opens[2] ? ['an exchange could not be opened'] : [];
    assert.deepEqual(
      fast.errors.map(([, words]) => words),
      told,
    );
  }
});

test('a settlement that the store never answers is one line at error, in 10 seconds; the reservation is gone', async () => {
  for (const durability of ['batched', 'strict'] as const) {
    const { answered, exchange, store, clock, errors, reserved, lines } = await setUp({}, durability);
    const written = Promise.withResolvers<Settled>();
    store.settle = ({ reservation }) => {
      reservation?.handOver(5n);
      return written.promise;
    };
    await answered({ input: 1, output: 1 });
    const ended = exchange.end();
    const failed = ended === undefined ? undefined : assert.rejects(ended, { code: 'unavailable' });
    assert.equal(ended === undefined, durability === 'batched');
    clock.advance(STORE_MS - 1);
    await settledTurns();
    assert.deepEqual([errors.length, reserved()], [0, 5n]);
    clock.advance(1);
    await settledTurns();
    await failed;
    assert.deepEqual([errors.length, reserved(), lines.length], [1, 0n, 1]);
    assert.match(String(errors[0]?.[1]), /^settlement_lost: \{"exchangeId":"ex_1".*"chargedNanos":"\d+"/);
    const facts = inspect(errors[0]?.[0]);
    for (const known of ["request_id: 'req_1'", `the settlement was not on disk within ${STORE_MS} ms`])
      assert.ok(facts.includes(known), `${known} in ${facts}`);
    written.resolve({ settled: true, chargedNanos: 5n });
    await settledTurns();
    assert.match(String(errors[1]?.[1]), /written after all/);
  }
});

test('a settlement that throws is a line at error; one that the store refused was told by the store', async () => {
  const settles: readonly (readonly [() => PromiseLike<Settled>, number])[] = [
    [() => Promise.reject(new StoreError('disk_full', 'No room.')), 0],
    [() => Promise.reject(new Error('Oh.')), 1],
    [
      () => {
        throw new Error('Oh.');
      },
      1,
    ],
  ];
  for (const [settle, told] of settles) {
    const { answered, exchange, store, errors, reserved } = await setUp();
    store.settle = settle;
    await answered({ input: 1, output: 1 });
    exchange.end();
    await settledTurns();
    assert.deepEqual([errors.length, reserved()], [told, 0n]);
  }
});

test('an exchange that nobody ended is settled by estimate, flagged, and told at error', async () => {
  const { answered, exchange, row, errors, lines, reserved, settlements } = await setUp();
  await answered({ input: 5, output: 6 });
  await exchange[Symbol.asyncDispose]();
  assert.deepEqual([row().errorCode, row().usage], ['internal_error', { input: 5, output: 6 }]);
  assert.ok(row().charge?.flags.includes('estimated'));
  assert.match(String(errors[0]?.[1]), /left without an end/);
  assert.deepEqual([errors.length, lines.length, settlements.length, reserved()], [1, 1, 1, 0n]);

  const unasked = await setUp();
  await unasked.exchange[Symbol.asyncDispose]();
  assert.equal(unasked.row().charge, undefined);
  assert.equal(unasked.reserved(), 0n);

  const withdrawn = await setUp();
  withdrawn.exchange.withdraw();
  await withdrawn.exchange[Symbol.asyncDispose]();
  assert.deepEqual([withdrawn.settlements.length, withdrawn.errors.length, withdrawn.reserved()], [0, 0, 0n]);
});

test('an answer that cannot be counted or priced is billed by the estimate of its admission', async () => {
  const hung = (): Promise<Usage> => new Promise(() => undefined);
  for (const [usageOf, why] of [
    [() => Promise.reject(new Error('Oh.')), /Error: Oh\./],
    [hung, /Error: not counted within \d+ ms/],
  ] as const) {
    const { answered, exchange, row, errors, clock } = await setUp();
    await answered(usageOf);
    const ended = exchange.end();
    await settledTurns();
    clock.advance(5_000);
    await ended;
    assert.deepEqual(row().usage, { input: 10, output: 20 });
    assert.ok(row().charge?.flags.includes('estimated'));
    assert.equal(errors.length, 1);
    assert.match(String(errors[0]?.[1]), /could not be counted: it is billed by the estimate/);
    assert.match(inspect(errors[0]?.[0]), why);
  }
  const broken = await setUp();
  Object.assign(broken.call.gateway, {
    chargeFor: () => {
      throw new Error('Oh.');
    },
  });
  await broken.answered({ input: 5, output: 6 });
  broken.exchange.end();
  assert.deepEqual(broken.row().charge, {
    lines: [],
    total: estimateNanos({ input: 10, output: 20 }, rates),
    flags: ['estimated'],
  });
  assert.deepEqual(
    broken.errors.map(([, words]) => words),
    ['an exchange could not be priced: it is billed by the estimate of its admission'],
  );
});

test('who cannot be told how an exchange ended keeps no charge from its row: that is a line at error', async () => {
  const oh = (): never => {
    throw new Error('Oh.');
  };
  const circuit = await setUp();
  Object.assign(await circuit.answered({ input: 5, output: 6 }), { succeeded: oh });
  circuit.exchange.end();
  const counters = await setUp();
  Object.assign(counters.call.gateway.metrics, { exchanged: oh });
  await counters.answered({ input: 5, output: 6 });
  counters.exchange.end();
  for (const [{ row, errors, reserved }, words] of [
    [circuit, 'a circuit could not be told how an exchange ended'],
    [counters, 'an exchange could not be counted in metrics and traces'],
  ] as const) {
    assert.ok((row().charge?.total ?? 0n) > 0n);
    assert.equal(reserved(), 0n);
    const [[facts, told] = []] = errors;
    assert.deepEqual([errors.length, told], [1, words]);
    assert.match(inspect(facts), /request_id: 'req_1'.*Error: Oh\./s);
  }
});

test('balances are looked at after what cost something, and after nothing else', async () => {
  for (const usage of [{ input: 5, output: 6 }, undefined]) {
    const { call, answered, exchange, asked } = await setUp();
    const charged: unknown[] = [];
    const { alerts } = call.gateway;
    Object.assign(call.gateway, {
      alerts: Object.assign(Object.create(alerts), { charged: (who: unknown) => charged.push(who) }),
    });
    await answered(usage);
    exchange.end();
    assert.deepEqual(charged, usage === undefined ? [] : [asked.principal]);
  }
});

test('the times of a Channel begin with the attempt that was answered, whatever was tried before it', async () => {
  const { call, exchange, row } = await setUp();
  exchange.end();
  const seen: unknown[] = [];
  Object.assign(call.gateway.metrics, { exchanged: ({ answered }: { answered?: object }) => seen.push(answered) });
  const attempt = { channelId: 'a', channelType: 't', upstreamModel: 'u', durationMs: 0 };
  const attempts = [
    { ...attempt, startedAtMs: 1_000, errorCode: 'network' },
    { ...attempt, startedAtMs: 1_200 },
  ];
  const entry = { ...row(), startedAtMs: 1_000, durationMs: 700, firstOutputMs: 500, channelId: 'a', attempts };
  reportExchange(call, entry);
  // The clock was set back between the two.
  reportExchange(call, { ...entry, startedAtMs: 5_000 });
  const answered = { channelId: 'a', affinityHit: false };
  assert.deepEqual(seen, [
    { ...answered, seconds: 0.5, firstTokenSeconds: 0.3 },
    { ...answered, seconds: 0.7, firstTokenSeconds: 0.5 },
  ]);
});

test('what a conversion lost is a line at debug, of the request or of the answer, and there is none where nothing was', async () => {
  const { call, exchange, row } = await setUp();
  exchange.end();
  const told: unknown[] = [];
  Object.assign(call.gateway.log, { debug: (facts: unknown, words: string) => told.push([facts, words]) });
  const [losses, answerLosses] = [['top_k'], ['citation']];
  for (const lost of [{}, { losses }, { answerLosses }]) logExchange(call, { ...row(), ...lost }, 'exchange');
  assert.deepEqual(told, [
    [{ request_id: 'req_1', losses, answer_losses: undefined }, 'conversion losses'],
    [{ request_id: 'req_1', losses: undefined, answer_losses: answerLosses }, 'conversion losses'],
  ]);
});

test('a refusal of a known key has a row with the time that it took; a store that throws is a line at error', async () => {
  const { call, asked, settlements, errors, store } = await setUp();
  const refused = new GatewayError('model_not_found', 'No.');
  const notes = { principal: asked.principal, model: 'n' };
  refuseCall({ ...call, notes }, refused);
  // The clock was set back meanwhile.
  refuseCall({ ...call, notes, startedAtMs: 2_000 }, refused);
  assert.deepEqual(
    settlements.map(({ entry: { model, errorCode, durationMs, charge } }) => [model, errorCode, durationMs, charge]),
    [
      ['n', 'model_not_found', 995, undefined],
      ['n', 'model_not_found', 0, undefined],
    ],
  );
  store.settle = () => {
    throw new Error('Oh.');
  };
  refuseCall({ ...call, notes }, refused);
  assert.deepEqual([errors.length, errors[0]?.[1]], [1, 'a refusal has no row']);
  assert.match(inspect(errors[0]?.[0]), /request_id: 'req_1'.*Error: Oh\./s);
});

test('an admission that comes after its time gives back what it reserved', async () => {
  const { call, asked, clock } = await setUp();
  const reservations = new Reservations();
  const admitting = Promise.withResolvers<void>();
  const gateway = {
    ...call.gateway,
    store: {
      ...call.gateway.store,
      admission: {
        ...call.gateway.store.admission,
        admit: async () => {
          await admitting.promise;
          return { ok: true as const, value: reservations.reserve('wallet:a', 'late', 7n) };
        },
      },
    },
  };
  const admitted = Exchange.admit({ ...call, gateway }, asked);
  const refused = assert.rejects(admitted, { code: 'unavailable' });
  clock.advance(STORE_MS);
  await refused;
  admitting.resolve();
  await settledTurns();
  assert.equal(reservations.ofKey('late'), 0n);
});

/** Everything that is ready to run has run. */
function settledTurns(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
