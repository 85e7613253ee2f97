/**
 * Everything that a request takes and that has a weight: its option with the default, the refusal when it is full, the metric
 * that counts it, and the tests that hold it. `test/http/request/weights.test.ts` checks each column, and drives each refusal at
 * every endpoint that takes a body.
 */
export interface Weight {
  readonly what: string;
  /** Path in the configuration, and its default; absent where the bound is fixed. */
  readonly option?: readonly [path: string, byDefault: number | undefined];
  /** Absent where nothing is refused: something is forgotten, thinned or done in turns. */
  readonly refusal?: { readonly status: number; readonly code: string };
  /** What operators see of it, as `/metrics` spells it. */
  readonly metric: string;
  /** Files below `test/` with the beginning of a title. */
  readonly tests: readonly (readonly [file: string, title: string])[];
}

const tooLarge = { status: 413, code: 'request_too_large' };
const limited = { status: 429, code: 'rate_limited' };
const exceeded = { status: 429, code: 'rate_limit_exceeded' };
const errors = (code: string): string => `mizu_errors_total{route="responses",code="${code}"}`;
const held = (kind: string): string => `mizu_held{kind="${kind}"}`;
const STALLS = 'slow/faults/stalls.test.ts';
const BUDGETS = 'http/websocket/budgets.test.ts';
const LIMITS = 'http/limits/limits.test.ts';
const LIMITED = 'mizu_rate_limited_total{scope="key",limit="requests"}';

export const WEIGHTS: readonly Weight[] = [
  {
    what: 'bytes of a body',
    option: ['limits.json_bytes', 33_554_432],
    refusal: tooLarge,
    metric: errors('request_too_large'),
    tests: [['http/request/receive-body.test.ts', 'a body over the limit is refused']],
  },
  {
    what: 'bytes of a form',
    option: ['limits.multipart_bytes', 67_108_864],
    refusal: tooLarge,
    metric: errors('request_too_large'),
    tests: [['http/request/weights.test.ts', 'a form over its bytes']],
  },
  {
    what: 'JSON values',
    option: ['limits.json_values', 250_000],
    refusal: tooLarge,
    metric: held('body_values'),
    tests: [
      ['http/request/json-values.test.ts', 'too many values are 413 at every endpoint'],
      ['http/request/json-values.test.ts', 'the same over WebSocket'],
    ],
  },
  {
    what: 'members of one object',
    option: ['limits.object_members', 50_000],
    refusal: tooLarge,
    metric: errors('request_too_large'),
    tests: [['http/request/json-values.test.ts', 'one object has at most 50,000 members']],
  },
  {
    what: 'one number, or white space in a row',
    refusal: { status: 400, code: 'invalid_request' },
    metric: errors('invalid_request'),
    tests: [
      ['codecs/json/scan.test.ts', 'it stops at the first bound'],
      [STALLS, 'F47: $'],
    ],
  },
  {
    what: 'bodies of one key at once',
    option: ['limits.key_body_bytes', 1_073_741_824],
    refusal: limited,
    metric: held('body_bytes'),
    tests: [
      ['http/request/json-values.test.ts', 'values are part of what a key holds'],
      ['http/request/key-slots.test.ts', 'a compressed body counts as what it may become'],
    ],
  },
  {
    what: 'bodies of all keys at once',
    option: ['limits.body_bytes', 2_147_483_648],
    refusal: { status: 503, code: 'overloaded' },
    metric: held('body_bytes'),
    tests: [['http/request/key-slots.test.ts', 'a key has half of what the process may hold']],
  },
  {
    what: 'requests of one key at once, in a process',
    option: ['limits.key_exchanges', 20_000],
    refusal: limited,
    metric: errors('rate_limited'),
    tests: [['http/request/key-slots.test.ts', 'F38: every endpoint that takes a body takes a slot']],
  },
  {
    what: 'a body over 64 KiB of an account without balance',
    refusal: { status: 402, code: 'insufficient_balance' },
    metric: errors('insufficient_balance'),
    tests: [
      ['http/request/without-money.test.ts', 'a declared length over 64 KiB is 402 at every endpoint'],
      ['http/request/without-money.test.ts', 'received bytes and inflated bytes count, too'],
      ['http/request/without-money.test.ts', 'an account without a limit is never asked for money'],
      [BUDGETS, 'a large message of a key without money is 402'],
    ],
  },
  {
    what: 'processor time',
    metric: held('large_bodies'),
    tests: [
      ['codecs/linear.test.ts', 'linear: a sample of'],
      ['http/linear.test.ts', 'linear: a sample of'],
      ['slow/linear/requests.test.ts', 'linear:'],
      ['slow/linear/answers.test.ts', 'linear:'],
      ['slow/linear/images.test.ts', 'linear:'],
      ['slow/linear/http.test.ts', 'linear:'],
      ['slow/linear/requests.test.ts', 'affordable:'],
      ['slow/steps.test.ts', 'steps:'],
      [STALLS, 'F47: $'],
      ['slow/faults/echoes.test.ts', 'F47: $'],
      ['http/text/large-events.test.ts', '$'],
      ['slow/faults/floods.test.ts', 'F47: $'],
    ],
  },
  {
    what: 'many requests that come at once',
    metric: held('waiting_requests'),
    tests: [['streams/loop-turns.test.ts', 'F47: a hundred that come at once']],
  },
  {
    what: 'streams whose upstreams speak at once',
    metric: held('waiting_streams'),
    tests: [
      ['streams/loop-turns.test.ts', 'F47: a thousand streams of one party'],
      ['streams/loop-turns.test.ts', 'F47: a stream of another party'],
      ['slow/faults/chorus.test.ts', 'F47: a thousand streams whose upstream says $'],
    ],
  },
  {
    what: 'turns and warm-ups that WebSockets keep, and stored responses',
    option: ['history.key_bytes', 134_217_728],
    metric: held('history_bytes'),
    tests: [
      [BUDGETS, 'warm-ups count in the budgets of the history'],
      [BUDGETS, 'a warm-up that no budget has room for'],
      ['http/history/response-history.property.test.ts', 'F37: bytes are exact, bounds hold'],
    ],
  },
  {
    what: 'unfinished messages of one key',
    option: ['websocket.unfinished_bytes', 67_108_864],
    refusal: tooLarge,
    metric: held('unfinished_message_bytes'),
    tests: [
      [BUDGETS, 'unfinished messages of one key are bounded together'],
      [BUDGETS, 'an unfinished message counts in limits.key_body_bytes, too'],
      [BUDGETS, 'a message has thirty seconds from its first byte'],
    ],
  },
  {
    what: 'WebSockets of one key',
    option: ['websocket.per_key', 64],
    refusal: limited,
    metric: errors('rate_limited'),
    tests: [[BUDGETS, 'a key has 64 connections by default']],
  },
  {
    what: 'what previous_response_id and items by id bring back',
    option: ['history.entry_bytes', 33_554_432],
    refusal: tooLarge,
    metric: held('body_bytes'),
    tests: [
      ['http/history/replay.test.ts', 'what is brought back counts like a body'],
      ['http/history/named-items.test.ts', 'named items are bounded in values, too'],
    ],
  },
  {
    what: 'envelopes of one request, inflated',
    refusal: tooLarge,
    metric: errors('request_too_large'),
    tests: [
      ['codecs/envelope.property.test.ts', 'the envelopes of one request inflate to at most 64 MiB'],
      ['slow/faults/memory.test.ts', 'F47: memory:'],
    ],
  },
  {
    what: 'rows and lines of refusals',
    metric: 'mizu_refusals_unwritten_total',
    tests: [['http/exchange/refusal-rates.test.ts', 'ten a second are written, then one a minute']],
  },
  {
    what: 'refusals of one key in a second',
    refusal: exceeded,
    metric: errors('rate_limit_exceeded'),
    tests: [['http/exchange/refusal-rates.test.ts', 'above a hundred in a second the key is 429']],
  },
  {
    what: 'reservations',
    metric: held('reserved_usd'),
    tests: [
      ['http/money/estimate.test.ts', 'a reservation is never for more than the model can say'],
      ['http/money/race.test.ts', 'a limited key that asks for everything holds up no other key'],
    ],
  },
  {
    what: 'requests a minute',
    option: ['requests_per_minute', undefined],
    refusal: exceeded,
    metric: LIMITED,
    tests: [
      [LIMITS, 'over its limit of requests a key is 429 in every dialect'],
      [LIMITS, 'embeddings, compaction, pictures and videos count'],
      [LIMITS, 'a turn of a WebSocket that is over the limit'],
      ['http/limits/buckets.property.test.ts', 'what is admitted, what is left'],
    ],
  },
  {
    what: 'tokens a minute',
    option: ['tokens_per_minute', undefined],
    refusal: exceeded,
    metric: LIMITED,
    tests: [[LIMITS, 'tokens are the estimate at admission']],
  },
  {
    what: 'requests at once',
    option: ['max_concurrency', undefined],
    refusal: exceeded,
    metric: LIMITED,
    tests: [
      [LIMITS, 'requests at once: the one too many is refused'],
      ['http/limits/workers-limits.test.ts', 'two workers share one bucket'],
      ['http/limits/limit-exchange.test.ts', 'machines pass a limit by no more'],
      ['slow/processes/limits.test.ts', 'two workers count as one'],
      ['slow/postgres/limits.test.ts', 'two gateways count as one once they have told each other'],
    ],
  },
  {
    what: 'clients that leave at once',
    metric: held('leaving_clients'),
    tests: [
      ['http/server/leavers.test.ts', 'F16: the first at once'],
      [STALLS, 'F16: a thousand clients that leave in mid-stream at once'],
    ],
  },
  {
    what: 'clocks that jump',
    metric: 'mizu_store_healthy',
    tests: [
      ['store/clock-jumps.test.ts', 'F34: a key with a daily limit'],
      ['store/clock-jumps.test.ts', 'F34: tasks that were made'],
    ],
  },
];
