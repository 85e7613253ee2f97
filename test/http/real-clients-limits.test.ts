/**
 * No limit of the defaults is noticed by a real client: all that was recorded (needs MIZU_FIXTURES), sent at once to a gateway at
 * its defaults, and a longer session than any of these.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isObject, type JsonObject } from '../../src/codecs/canonical/json.ts';
import { defaultOf } from '../support/defaults.ts';
import { clientRequests, skipWithoutFixtures } from '../support/fixtures.ts';
import { testGateway } from '../support/test-gateway.ts';
import { formsConfig, startVendors, upstreamForms } from '../support/upstream-forms.ts';
import { drawn } from '../support/sampled.ts';

const FORMS = upstreamForms(import.meta.filename);
const ENDPOINT = /\/(?:chat\/completions|completions|responses|messages)$/;

/** Bodies that begin a conversation, by path: what goes on where a connection stood means nothing alone. */
function openings(): { readonly path: string; readonly body: JsonObject }[] {
  return clientRequests().flatMap(({ url, body, frames }) => {
    const { pathname } = new URL(url, 'http://gateway');
    const path = ENDPOINT.exec(pathname)?.[0];
    if (path === undefined) return [];
    return [body, ...(frames ?? [])].flatMap((one) => {
      if (!isObject(one) || one['type'] === 'response.append' || typeof one['previous_response_id'] === 'string') return [];
      const { type: _frame, ...rest } = one;
      return [{ path: `/v1${path}`, body: rest }];
    });
  });
}

test('what real clients send at once is refused by no limit, whatever upstream answers', {
  skip: skipWithoutFixtures,
}, async (t) => {
  const simulator = await startVendors();
  t.after(() => simulator.close());
  await using gateway = await testGateway(formsConfig(FORMS, simulator.url));
  gateway.store.walletNanos = 10n ** 18n;
  const asked = openings();
  assert.ok(asked.length > 50, `${asked.length} requests`);
  const refused = await Promise.all(
    drawn(FORMS, 2, 'at once').flatMap(({ name: model }) =>
      asked.map(async ({ path, body }) => {
        const answer = await gateway.post(path, { ...body, model });
        const text = await answer.text();
        return [402, 413, 429, 503].includes(answer.status) ? [`${answer.status} ${model} ${path}: ${text.slice(0, 200)}`] : [];
      }),
    ),
  );
  assert.deepEqual(refused.flat(), []);
});

const PICTURE = 'iVBORw0KGgoA'.repeat(1_000);
const DATA_URL = `data:image/png;base64,${PICTURE}`;
const list = <T>(count: number, entry: (at: number) => T): T[] => Array.from({ length: count }, (_, at) => entry(at));
const SCHEMA = {
  type: 'object',
  properties: Object.fromEntries(
    list(12, (at) => [
      `parameter_${at}`,
      {
        type: 'object',
        description: 'what it is for',
        properties: { a: { type: 'string', enum: ['x', 'y'] }, b: { anyOf: [{ type: 'number' }, { type: 'null' }] } },
        required: ['a'],
      },
    ]),
  ),
  required: ['parameter_0'],
  additionalProperties: false,
};
const [INPUT, RESULT] = [{ parameter_0: { a: 'x'.repeat(4_000) } }, 'y'.repeat(4_000)];

/** A long session of an agent: 200 turns, 300 tools, sixteen pictures, more than a megabyte. */
const SESSIONS: Readonly<Record<string, { readonly tools: readonly object[]; readonly [member: string]: unknown }>> = {
  'chat/completions': {
    messages: [
      {
        role: 'user',
        content: [...list(16, () => ({ type: 'image_url', image_url: { url: DATA_URL } })), { type: 'text', text: 'go on' }],
      },
      ...list(100, (at) => [
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ id: `call_${at}`, type: 'function', function: { name: 'tool_1', arguments: JSON.stringify(INPUT) } }],
        },
        { role: 'tool', tool_call_id: `call_${at}`, content: RESULT },
      ]).flat(),
    ],
    tools: list(300, (at) => ({ type: 'function', function: { name: `tool_${at}`, description: 'd', parameters: SCHEMA } })),
  },
  responses: {
    input: [
      {
        role: 'user',
        content: [
          ...list(16, () => ({ type: 'input_image', image_url: DATA_URL, detail: 'auto' })),
          { type: 'input_text', text: 'go on' },
        ],
      },
      ...list(100, (at) => [
        { type: 'function_call', call_id: `call_${at}`, name: 'tool_1', arguments: JSON.stringify(INPUT) },
        { type: 'function_call_output', call_id: `call_${at}`, output: RESULT },
      ]).flat(),
    ],
    tools: list(300, (at) => ({ type: 'function', name: `tool_${at}`, description: 'd', parameters: SCHEMA, strict: false })),
  },
  messages: {
    max_tokens: 1_000,
    messages: [
      {
        role: 'user',
        content: [
          ...list(16, () => ({ type: 'image', source: { type: 'base64', media_type: 'image/png', data: PICTURE } })),
          { type: 'text', text: 'go on' },
        ],
      },
      ...list(100, (at) => [
        { role: 'assistant', content: [{ type: 'tool_use', id: `toolu_${at}`, name: 'tool_1', input: INPUT }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: `toolu_${at}`, content: RESULT }] },
      ]).flat(),
    ],
    tools: list(300, (at) => ({ name: `tool_${at}`, description: 'd', input_schema: SCHEMA })),
  },
};

test('a session of a megabyte, 200 turns, 300 tools and sixteen pictures is refused by no limit', async (t) => {
  const simulator = await startVendors();
  t.after(() => simulator.close());
  await using gateway = await testGateway(formsConfig(FORMS, simulator.url));
  const pairs = ['chat_completion', 'responses', 'messages', 'gemini'].flatMap((model) =>
    Object.entries(SESSIONS).map(([path, session]) => ({ model, path, session })),
  );
  for (const { model, path, session } of drawn(pairs, 4, 'sessions')) {
    const body = JSON.stringify({ model, ...session });
    assert.ok(body.length > 1_000_000);
    let answer = await gateway.post(`/v1/${path}`, body);
    let text = await answer.text();
    if (text.includes('Expected an array with maximum length 128')) {
      // This vendor's own limit, in its own words.
      answer = await gateway.post(`/v1/${path}`, { model, ...session, tools: session.tools.slice(0, 128) });
      text = await answer.text();
    }
    assert.equal(answer.status, 200, `${path} to ${model}: ${text.slice(0, 300)}`);
  }
});

const [SECOND_MS, MINUTE_MS, MB] = [1_000, 60_000, 1_000_000];
/** About what four bytes a token make of a million tokens. */
const LONGEST_CONTEXT = 4 * MB;
/** Tokens that a model says at most in one answer, and bytes of the longest events that carry one: with ids, and padding on purpose. */
const [LONGEST_ANSWER, EVENT_BYTES] = [128_000, 700];
/** Agents that one user has running at once, with the agents that these start. */
const [AGENTS, AGENTS_OF_EACH] = [10, 6];

/** What clients are known to do, and how much at least the default is of the option that would keep them from it. */
const NEEDS: readonly (readonly [what: string, option: string, atLeast: number])[] = [
  ['a request as large as vendors take, pictures and documents included', 'limits.json_bytes', 32 * MB],
  ['a picture that is edited by sixteen others of 4 MB', 'limits.multipart_bytes', 64 * MB],
  ['a context of a million tokens: 10,000 messages of ten values, and 300 tools of a hundred', 'limits.json_values', 130_000],
  ['a batch of embeddings: 2,048 texts of a hundred token ids', 'limits.json_values', 2_048 * 101],
  ['arguments of a tool with a member for each line of a long file', 'limits.object_members', 20_000],
  ['the longest answer as a stream, one token an event', 'limits.answer_bytes', LONGEST_ANSWER * EVENT_BYTES],
  ['an event with a whole picture in base64', 'limits.event_bytes', 30 * MB],
  ['32 MB over a line of five megabits a second', 'limits.body_ms', (32 * 8 * SECOND_MS) / 5],
  [
    'a user’s agents at once, each with the longest context',
    'limits.key_body_bytes',
    AGENTS * AGENTS_OF_EACH * 4 * LONGEST_CONTEXT,
  ],
  ['a batch of a thousand requests at once', 'limits.key_exchanges', 1_000],
  [
    'whole answers: official SDKs wait ten minutes for one, and should be the first to give up',
    'timeouts.first_data_ms',
    10 * MINUTE_MS,
  ],
  ['thinking between two events of an upstream that says nothing of it', 'timeouts.idle_ms', 2 * MINUTE_MS],
  ['a client in a debugger, or on a laptop that changes its network', 'timeouts.write_stall_ms', MINUTE_MS],
  ['a user’s agents at once, each with a WebSocket of its own', 'websocket.per_key', AGENTS * AGENTS_OF_EACH],
  ['a hundred calls of tools in one task over a WebSocket; then agents open another', 'websocket.turns', 100],
  ['a user who reads for some minutes before the next turn', 'websocket.idle_ms', 10 * MINUTE_MS],
  ['a large message that comes while another session sends one', 'websocket.unfinished_bytes', 2 * 32 * MB],
  ['a conversation over a WebSocket that is as long as a request may be', 'history.entry_bytes', defaultOf('limits.json_bytes')],
  ['what agents at once keep to be continued: a first prompt of 50 KB each, ten times over', 'history.key_bytes', 600 * 50_000],
  ['a user who comes back after half an hour, for the prompt cache', 'affinity.idle_ms', 30 * MINUTE_MS],
];
for (const [what, option, atLeast] of NEEDS)
  test(`the default of ${option} has room for ${what}`, () => {
    assert.ok(defaultOf(option) >= atLeast, `${defaultOf(option)}, and ${atLeast} are needed`);
  });

test('a stream that has nothing to say is heard of before anything between gives it up: proxies after 60 s, agents after 300', () => {
  assert.ok(2 * defaultOf('keep_alive_ms') <= 60 * SECOND_MS);
});
