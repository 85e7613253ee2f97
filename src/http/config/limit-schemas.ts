/** The sections for limits, budgets and times of the whole gateway. */
import { Type } from 'typebox';
import { closed, Milliseconds, withDefault } from './schema-terms.ts';

/** The longest text that V8 makes, in bytes of ASCII. The WebSocket library would read one above 2³¹ as no limit. */
const LONGEST_TEXT = 536_870_888;

export const Limits = Type.Object(
  {
    json_bytes: withDefault(
      Type.Integer({
        minimum: 1024,
        maximum: LONGEST_TEXT,
        description: 'The most bytes that a JSON request may have, a WebSocket message too.',
      }),
      33_554_432,
    ),
    json_values: withDefault(
      Type.Integer({
        minimum: 1024,
        description:
          'The most JSON values (objects, arrays, strings, numbers, literals) that a request may have, the history that it continues included.',
      }),
      250_000,
    ),
    object_members: withDefault(
      Type.Integer({ minimum: 1024, description: 'The most members that one JSON object of a request may have.' }),
      50_000,
    ),
    multipart_bytes: withDefault(
      Type.Integer({ minimum: 1024, description: 'The most bytes that a form with uploads may have.' }),
      67_108_864,
    ),
    event_bytes: withDefault(
      Type.Integer({
        minimum: 1024,
        maximum: LONGEST_TEXT,
        description: 'The most that one event of an upstream may have.',
      }),
      67_108_864,
    ),
    answer_bytes: withDefault(
      Type.Integer({
        minimum: 1024,
        description: 'The most that an answer of an upstream may have, whole or as a stream.',
      }),
      134_217_728,
    ),
    body_ms: Milliseconds('The time to receive a request body. Read at start.', 60_000),
    connections: withDefault(
      Type.Integer({ minimum: 1, description: 'The most connections of clients in each process. Read at start.' }),
      20_000,
    ),
    key_exchanges: withDefault(
      Type.Integer({
        minimum: 1,
        description: 'The requests that one API key may have open in each process.',
      }),
      20_000,
    ),
    key_body_bytes: withDefault(
      Type.Integer({
        minimum: 1024,
        description:
          'The bytes of request bodies that one API key may have in a process at once, and 100 for each JSON value in them. Never more than half of what the process may have.',
      }),
      1_073_741_824,
    ),
    body_bytes: withDefault(
      Type.Integer({
        minimum: 1024,
        description: 'The same of all keys together. Never more than a quarter of the heap that Node allows.',
      }),
      2_147_483_648,
    ),
  },
  closed,
);

export const Dispatch = Type.Object(
  {
    max_attempts: withDefault(
      Type.Integer({
        minimum: 1,
        maximum: 32,
        description: 'The most requests to upstreams that one request of a client may cost.',
      }),
      6,
    ),
    max_retry_wait_ms: Milliseconds('The longest `Retry-After` that an exchange waits for.', 5_000),
  },
  closed,
);

export const Health = Type.Object(
  {
    failures: withDefault(
      Type.Integer({
        minimum: 1,
        description: 'A circuit opens after this many failed attempts in the window, if they are at least half of all.',
      }),
      5,
    ),
    window_ms: Milliseconds('How long an attempt counts.', 30_000),
    cooldown_ms: Milliseconds('An open circuit lets nothing through for this long, then one trial.', 30_000),
    rate_limit_cooldown_ms: Milliseconds('The cooldown after a 429 without `Retry-After`.', 15_000),
    refused_cooldown_ms: Milliseconds(
      'The cooldown after 401, 402 or 403 (of the whole Channel) and after 404 (of the model on it).',
      60_000,
    ),
    probe_ms: Type.Optional(
      Type.Integer({
        minimum: 1000,
        maximum: 86_400_000,
        description: 'How often every Channel is asked for its model list. Two failures in a row take it out. If absent, never.',
      }),
    ),
  },
  closed,
);

export const History = Type.Object(
  {
    entry_bytes: withDefault(Type.Integer({ minimum: 0, description: 'The most that one conversation may have.' }), 33_554_432),
    key_bytes: withDefault(
      Type.Integer({ minimum: 0, description: 'The most that all conversations of one key may have.' }),
      134_217_728,
    ),
    total_bytes: withDefault(
      Type.Integer({
        minimum: 0,
        description: 'The most that all conversations in this process may have.',
      }),
      536_870_912,
    ),
  },
  { ...closed, description: 'The responses that may be continued by id. Whatever was not used for longest goes first.' },
);

export const Websocket = Type.Object(
  {
    turns: withDefault(
      Type.Integer({ minimum: 1, maximum: 100_000, description: 'The most turns that one connection may have.' }),
      128,
    ),
    idle_ms: Milliseconds('A connection without a turn for this long is closed.', 600_000),
    lifetime_ms: Milliseconds('A connection that is older than this begins no new turn.', 3_600_000),
    per_key: withDefault(
      Type.Integer({ minimum: 1, description: 'The connections that one key may have open in each process.' }),
      64,
    ),
    unfinished_bytes: withDefault(
      Type.Integer({
        minimum: 1024,
        description: 'The most that messages of one key, of which a part is still to come, may have in a process.',
      }),
      67_108_864,
    ),
  },
  closed,
);

export const Timeouts = Type.Object(
  {
    connect_ms: Milliseconds('The time to connect, TLS included.', 10_000),
    first_data_ms: Milliseconds(
      'The time to the first data event or, without a stream, to the end of the answer. Comments do not count.',
      600_000,
    ),
    idle_ms: Milliseconds('The longest silence between bytes once data flows.', 120_000),
    write_stall_ms: Milliseconds('A client that takes nothing for this long is let go.', 60_000),
  },
  closed,
);

export const Affinity = Type.Object(
  {
    max_entries: withDefault(
      Type.Integer({
        minimum: 1,
        maximum: 1_000_000,
        description: 'The most conversations whose Channel is remembered. Read at start.',
      }),
      50_000,
    ),
    idle_ms: Milliseconds('A conversation without a request for this long is forgotten.', 1_800_000),
  },
  closed,
);
