/**
 * What clients send that some vendor refuses: every client dialect over every upstream dialect, judged by the strict simulated
 * vendors. Each is repaired on its way, or refused at its path.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Dialect } from '../../src/codecs/canonical/dialect.ts';
import { GatewayError } from '../../src/codecs/canonical/error.ts';
import { CLIENTS as CODECS, UPSTREAMS } from '../../src/codecs/registry.ts';
import { refusalOf } from '../support/upstream-checks.ts';
import { openForTests, ownerOf, targetOf } from '../support/wire.ts';

type Json = Readonly<Record<string, unknown>>;
type Client = 'chat' | 'responses' | 'messages';
interface Asked {
  readonly client: Client;
  readonly body: Json;
  /** Which of the variants it is, for whoever reads a failure. */
  readonly about: string;
  /** The place of the refusal, or {@link VENDOR}; absent: an answer. */
  readonly at?: (dialect: Dialect) => string | undefined;
}

const VENDOR = 'the vendor';

const turn = (role: string, content: unknown): Json => ({ role, content });
const textPart = (client: Client, text: string, more: object = {}): Json => ({
  type: client === 'responses' ? 'input_text' : 'text',
  text,
  ...more,
});

/** A conversation as each client writes it. */
function conversation(client: Client, turns: readonly Json[], more: object = {}): Json {
  if (client === 'responses') return { input: turns, ...more };
  return { messages: turns, ...(client === 'messages' ? { max_tokens: 50 } : {}), ...more };
}

const CALL_TURNS: Readonly<Record<Client, (id: string, input: string, name: string, result: unknown) => Json[]>> = {
  chat: (id, input, name, result) => [
    { ...turn('assistant', null), tool_calls: [{ id, type: 'function', function: { name, arguments: input } }] },
    { ...turn('tool', result), tool_call_id: id },
  ],
  responses: (id, input, name, result) => [
    { type: 'function_call', call_id: id, name, arguments: input },
    { type: 'function_call_output', call_id: id, output: result },
  ],
  messages: (id, input, name, result) => [
    turn('assistant', [{ type: 'tool_use', id, name, input: JSON.parse(input) }]),
    turn('user', [{ type: 'tool_result', tool_use_id: id, content: result }]),
  ],
};

const callTurns = (client: Client, ids: readonly string[], { input = '{"at":"sky"}', result = 'blue' as unknown } = {}): Json[] =>
  ids.flatMap((id) => CALL_TURNS[client](id, input, 'look', result));

function toolOf(client: Client, name: string, more: object = {}): Json {
  const schema = { type: 'object', properties: { at: { type: 'string' } } };
  switch (client) {
    case 'chat':
      return { type: 'function', function: { name, parameters: schema, ...more } };
    case 'responses':
      return { type: 'function', name, parameters: schema, ...more };
    case 'messages':
      return { name, input_schema: schema, ...more };
  }
}

const CLIENTS = ['chat', 'responses', 'messages'] as const;
const LONG = 'x'.repeat(200);
const Q = turn('user', 'q');
const A = turn('assistant', 'a');
const BLANKS = ['', ' ', '\n\t', '\u00a0 ', '\u2003'];

/** Texts of nothing in each place that a text may stand in. */
function blankTexts(client: Client): Asked[] {
  return BLANKS.flatMap((blank) => {
    const part = [textPart(client, blank)];
    const mixed = [textPart(client, blank), textPart(client, 'and this')];
    const answer = client === 'responses' ? [{ type: 'output_text', text: blank, annotations: [] }] : part;
    const tools = { tools: [toolOf(client, 'look', { description: blank })] };
    const places: Readonly<Record<string, Json>> = {
      'a user': conversation(client, [turn('user', blank), Q]),
      'a part of a user': conversation(client, [turn('user', part), Q]),
      'a part beside another': conversation(client, [turn('user', mixed)]),
      'the last word of a user': conversation(client, [Q, A, turn('user', blank)]),
      'an assistant': conversation(client, [Q, turn('assistant', blank), Q]),
      'a part of an assistant': conversation(client, [Q, turn('assistant', answer), Q]),
      'an assistant that begins': conversation(client, [turn('assistant', blank), Q]),
      'the result of a call': conversation(client, [Q, ...callTurns(client, ['c'], { result: blank })], tools),
      'a part of a result': conversation(client, [Q, ...callTurns(client, ['c'], { result: part })], tools),
      ...(client === 'messages'
        ? {
            'the system prompt': conversation(client, [Q], { system: blank }),
            'a part of the system prompt': conversation(client, [Q], { system: [...part, textPart(client, 'Be brief.')] }),
            'a thought': conversation(client, [
              Q,
              turn('assistant', [{ type: 'thinking', thinking: blank, signature: '' }, textPart(client, 'a')]),
              Q,
            ]),
          }
        : {
            'a system turn': conversation(client, [turn('system', blank), Q]),
            'a turn of the developer': conversation(client, [turn('developer', blank), Q]),
            'a later system turn': conversation(client, [Q, A, turn('system', part), Q]),
          }),
      ...(client === 'responses' ? { instructions: conversation(client, [Q], { instructions: blank }) } : {}),
      ...(client === 'chat'
        ? {
            'a refusal': conversation(client, [Q, { ...turn('assistant', null), refusal: blank }, Q]),
            'a thought': conversation(client, [Q, { ...A, reasoning_content: blank }, Q]),
            'the arguments of a call': conversation(client, [Q, ...callTurns(client, ['c'], { input: blank })], tools),
          }
        : {}),
    };
    return Object.entries(places).map(([place, body]) => ({ client, body, about: `${JSON.stringify(blank)} in ${place}` }));
  });
}

function nothingElse(client: Client): Asked[] {
  const first = client === 'responses' ? 'input[0]' : 'messages[0]';
  const whole = client === 'responses' ? first : `${first}.content`;
  const only = (at: string) => (dialect: Dialect) => (dialect === 'messages' ? at : undefined);
  return BLANKS.flatMap((blank): Asked[] => [
    { client, body: conversation(client, [turn('user', blank)]), about: `${JSON.stringify(blank)} alone`, at: only(whole) },
    {
      client,
      body: conversation(client, [turn('user', [textPart(client, blank)])]),
      about: `${JSON.stringify(blank)} alone in a part`,
      at: only(`${first}.content[0]`),
    },
  ]);
}

/** A name that the client chose itself is the vendor's to judge where the dialect stays. */
const ownVendor = (client: Client) => (dialect: Dialect) => (dialect === client ? VENDOR : undefined);

/** Ids that another vendor, or nobody, gave. */
function foreignIds(client: Client): Asked[] {
  const ids = [`functions.look:0|${LONG}`, `functions.look:1|${LONG}`, `call é ${LONG}`];
  const tools = { tools: [toolOf(client, 'look')] };
  const named = { tools: [toolOf(client, `look.${LONG}`)] };
  const owner = {
    chat: { user: LONG },
    responses: { user: LONG, safety_identifier: LONG, prompt_cache_key: LONG },
    messages: { metadata: { user_id: LONG } },
  };
  return [
    { client, body: conversation(client, [Q, ...callTurns(client, ids)], tools), about: 'of calls' },
    {
      client,
      body: conversation(client, [Q, ...callTurns(client, [LONG, LONG])], tools),
      about: 'of two calls, the same',
    },
    {
      client,
      body: conversation(client, [Q], owner[client]),
      about: 'of the end user',
      // A messages vendor takes 256 characters.
      ...(client === 'messages' ? {} : { at: ownVendor(client) }),
    },
    ...(client === 'responses'
      ? [
          {
            client,
            body: {
              input: [
                {
                  type: 'message',
                  id: `msg_${LONG}`,
                  role: 'assistant',
                  content: [{ type: 'output_text', text: 'a', annotations: [] }],
                },
                { type: 'function_call', id: `fc_${LONG}`, call_id: LONG, name: 'look', arguments: '{}' },
                { type: 'function_call_output', id: `fco_${LONG}`, call_id: LONG, output: 'blue' },
                Q,
              ],
              ...tools,
            },
            about: 'of items',
            at: ownVendor(client),
          },
        ]
      : []),
    { client, body: conversation(client, [Q], named), about: 'of a tool', at: ownVendor(client) },
  ];
}

const half: readonly (readonly [unknown, string])[] = [
  [{}, '.mode'],
  ['explicit', ''],
  [[], ''],
  [{ mode: 'implicit' }, '.mode'],
  [{ mode: 'explicit', ttl: 5 }, '.ttl'],
];
const halfControl: readonly (readonly [unknown, string])[] = [
  [{}, '.type'],
  ['ephemeral', ''],
  [[], ''],
  [{ type: 'persistent' }, '.type'],
  [{ type: 'ephemeral', ttl: 5 }, '.ttl'],
];

/** Breakpoints that lack a member or have one of another type, wherever one may stand. */
function halfMade(client: Client): Asked[] {
  const at = `${client === 'responses' ? 'input' : 'messages'}[0].content[0]`;
  const parts = (member: string, list: typeof half): Asked[] =>
    list.map(([value, rest]) => ({
      client,
      body: conversation(client, [turn('user', [textPart(client, 'q', { [member]: value })])]),
      about: `${member} ${JSON.stringify(value)} of a part`,
      at: () => `${at}.${member}${rest}`,
    }));
  switch (client) {
    case 'chat':
      return [...parts('prompt_cache_breakpoint', half), ...parts('cache_control', halfControl)];
    case 'responses':
      return parts('prompt_cache_breakpoint', half);
    case 'messages':
      return [
        ...parts('cache_control', halfControl),
        ...halfControl.flatMap(([value, rest]): Asked[] => [
          {
            client,
            body: conversation(client, [Q], { tools: [toolOf(client, 'look', { cache_control: value })] }),
            about: `${JSON.stringify(value)} of a tool`,
            at: () => `tools[0].cache_control${rest}`,
          },
          {
            client,
            body: conversation(client, [Q], { system: [textPart(client, 's', { cache_control: value })] }),
            about: `${JSON.stringify(value)} of the system prompt`,
            at: () => `system[0].cache_control${rest}`,
          },
          {
            client,
            body: conversation(client, [Q], { cache_control: value }),
            about: `${JSON.stringify(value)} of the request`,
            at: () => `cache_control${rest}`,
          },
        ]),
      ];
  }
}

const GROUPS: Readonly<Record<string, (client: Client) => readonly Asked[]>> = {
  'blank and empty texts in every place': blankTexts,
  'a request of nothing but blank text': nothingElse,
  'ids of another vendor, of 200 characters': foreignIds,
  'half-made breakpoints': halfMade,
  'calls whose tools are gone': (client) => [
    {
      client,
      body: conversation(client, [Q, ...callTurns(client, ['c']), Q]),
      about: 'and a question behind them',
    },
    { client, body: conversation(client, [Q, ...callTurns(client, ['c'])], { tools: [] }), about: 'an empty list' },
    {
      client,
      body: conversation(client, [Q, ...callTurns(client, ['c'])], { tools: [toolOf(client, 'other')] }),
      about: 'others',
    },
  ],
  'an output of one token': (client) => [
    {
      client,
      body: conversation(client, [Q], {
        [{ chat: 'max_completion_tokens', responses: 'max_output_tokens', messages: 'max_tokens' }[client]]: 1,
      }),
      about: 'where the protocol of the client has it',
      // The vendor judges what a client of its own protocol asks for.
      at: (dialect) => (client === 'responses' && dialect === 'responses' ? VENDOR : undefined),
    },
  ],
};

/** What becomes of it: the words of a vendor that would refuse it, the place of a refusal of the gateway, or nothing. */
function told({ client, body }: Asked, upstream: (typeof UPSTREAMS)[number]): string | undefined {
  const codec = CODECS.find(({ dialect }) => dialect === client) ?? assert.fail(client);
  const text = JSON.stringify({ model: 'm', ...body });
  try {
    const request = codec.decodeRequest(text, JSON.parse(text), { open: openForTests });
    const sent = upstream.encodeRequest(request, targetOf(ownerOf(upstream))).body;
    const refusal = refusalOf(upstream.dialect, sent);
    return refusal === undefined ? undefined : `${VENDOR}: ${refusal} ${sent}`;
  } catch (error) {
    if (!(error instanceof GatewayError) || error.status !== 400) throw error;
    return `${error.param}: ${error.message}`;
  }
}

for (const [about, group] of Object.entries(GROUPS)) {
  test(`bad input, every client over every upstream: ${about}`, () => {
    const wrong: string[] = [];
    for (const client of CLIENTS) {
      for (const asked of group(client)) {
        for (const upstream of UPSTREAMS) {
          const heard = told(asked, upstream);
          const at = asked.at?.(upstream.dialect);
          if (at === undefined ? heard !== undefined : heard?.startsWith(`${at}: `) !== true)
            wrong.push(`${client} to ${upstream.dialect}, ${asked.about}: ${heard}; wanted ${at ?? 'an answer'}`);
        }
      }
    }
    assert.deepEqual(wrong, []);
  });
}
