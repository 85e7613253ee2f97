/**
 * The law that no success is free, seen from outside: whatever an upstream reports that it used, an answer that its client has,
 * with output in it, is charged, and charged for what only its input, or only its output, costs.
 */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import fc from 'fast-check';
import type { JsonObject, JsonValue } from '../../../src/simulator/json.ts';
import type { Piece } from '../../../src/simulator/reply.ts';
import type { Script } from '../../../src/simulator/script.ts';
import { CLIENTS, FORMS, type MoneyGateway, moneyGateway, sse } from '../../support/money-gateway.ts';
import { formChannel, type TextType } from '../../support/upstream-forms.ts';
import { sized } from '../../support/sampled.ts';

/** What a counter of a report may be: all but the last two are no count. */
const COUNTERS: readonly JsonValue[] = [null, 0, -3, '', 'x', '-1', 1.5, 1e300, true, [], {}, 7, '7'];
const ABSENT = 'absent';
const counter = fc.constantFrom<JsonValue>(ABSENT, ...COUNTERS);
const counters = fc.record({ input: counter, output: counter, total: counter });
type Counters = { readonly [Name in 'input' | 'output' | 'total']: JsonValue };

const MEMBERS: Readonly<Record<TextType, Counters>> = {
  chat_completion: { input: 'prompt_tokens', output: 'completion_tokens', total: 'total_tokens' },
  responses: { input: 'input_tokens', output: 'output_tokens', total: 'total_tokens' },
  messages: { input: 'input_tokens', output: 'output_tokens', total: 'total_tokens' },
  gemini: { input: 'promptTokenCount', output: 'candidatesTokenCount', total: 'totalTokenCount' },
};

/** In the words of the upstream; what is absent is left out, not undefined, by the JSON that is sent. */
function reported(type: TextType, given: Counters): JsonObject {
  const names = MEMBERS[type];
  const entries = (['input', 'output', 'total'] as const).map((name) => [String(names[name]), given[name]] as const);
  return Object.fromEntries(entries.map(([name, value]) => [name, value === ABSENT ? (undefined as never) : value]));
}

/** Models that differ in what costs anything: the name says it. */
const PRICES = { input: { input: '5', output: '0' }, output: { input: '0', output: '25' } };
const PAID = ['input', 'output'] as const;

const PIECES: readonly (readonly Piece[])[] = [
  [{ type: 'text', text: 'Good morning to you' }],
  [{ type: 'tool', name: 'weather', arguments: '{"city":"Paris"}', id: 'call_1' }],
  [
    { type: 'reasoning', raw: 'They greet me.', summary: ['They greet me.'] },
    { type: 'text', text: 'Hello' },
  ],
];
const TOOLS = [{ type: 'function', function: { name: 'weather', parameters: { type: 'object', properties: {} } } }];

async function law(gateway: MoneyGateway, path: string, body: object, script: Script | readonly Script[]): Promise<void> {
  const owner = await gateway.owner(10n ** 12n);
  for (const one of [script].flat()) gateway.simulator.enqueue(one);
  const response = await gateway.post(owner, path, body);
  const text = await response.text();
  const isGood = response.status === 200 && !/"error":\{|response\.failed|event: error/.test(text);
  const [row] = await gateway.settled(owner, 1);
  const told = `${path} ${JSON.stringify(body)}\n${JSON.stringify(script)}\n${text}`;
  assert.equal(row?.status, isGood ? 'success' : 'error', told);
  if (isGood) assert.ok((row?.charge?.total ?? 0n) > 0n, `free: ${told}`);
}

test('a text, a call or a thought that a client has is never free, in every pair of dialects, whatever was reported', async (t) => {
  const names = FORMS.flatMap(({ name }) => PAID.map((paid) => [`${name}-${paid}`, { price: PRICES[paid] }] as const));
  const gateway = await moneyGateway(t, {
    health: { failures: 100_000 },
    models: Object.fromEntries(names),
    channels: FORMS.map((form) => formChannel(form, 'SIMULATOR', { models: PAID.map((paid) => `${form.name}-${paid}`) })),
  });
  const asked = fc.record({
    client: fc.constantFrom(...(Object.keys(CLIENTS) as (keyof typeof CLIENTS)[])),
    form: fc.constantFrom(...FORMS),
    paid: fc.constantFrom(...PAID),
    stream: fc.boolean(),
    pieces: fc.constantFrom(...PIECES),
    report: fc.option(counters, { nil: null }),
  });
  const property = fc.asyncProperty(asked, async ({ client, form, paid, stream, pieces, report }) => {
    const isCall = pieces.some(({ type }) => type === 'tool');
    if (client === 'completions' && isCall) return;
    const usage = report === null ? null : { input: 7, output: 3, extra: reported(form.type, report) };
    const { path, ask } = CLIENTS[client];
    const tools = client === 'chat' && isCall ? { tools: TOOLS } : {};
    await law(gateway, path, { ...ask(`${form.name}-${paid}`, stream), ...tools }, { reply: { pieces, usage } });
  });
  await fc.assert(property, { numRuns: sized(50, 200) });
});

const json = (body: object): Script => ({
  raw: { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) },
});

async function others(t: TestContext): Promise<MoneyGateway> {
  const priced = (kind: string) => Object.fromEntries(PAID.map((paid) => [`${kind}-${paid}`, { kind, price: PRICES[paid] }]));
  const channel = (id: string, type: string, models: readonly string[]) => ({
    id,
    type,
    base_url: 'SIMULATOR',
    api_key: 'k',
    models,
  });
  return moneyGateway(t, {
    health: { failures: 100_000 },
    models: {
      ...priced('text'),
      ...priced('image'),
      embedding: { kind: 'embedding', price: { input: '5' } },
      router: { kind: 'image', price: { ...PRICES.output, input: '0' } },
      each: { kind: 'image', price: { image: '0.04' } },
    },
    channels: [
      channel('responses', 'responses', ['text-input', 'text-output']),
      channel('images', 'openai_image', ['image-input', 'image-output']),
      channel('router', 'openrouter_image', ['router', 'each']),
      channel('embeddings', 'chat_completion', ['embedding']),
    ],
  });
}

test('neither are vectors, compactions and pictures', async (t) => {
  const gateway = await others(t);
  const picture = { b64_json: Buffer.from('a picture').toString('base64') };
  const message = { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Good morning' }] };
  const compacted = [message, { id: 'cmp_1', type: 'compaction', encrypted_content: 'what was said until here' }];
  const kinds = {
    vectors: (usage: object) => ({
      path: '/v1/embeddings',
      body: { model: 'embedding', input: 'Good morning' },
      script: json({ object: 'list', model: 'm', data: [{ object: 'embedding', index: 0, embedding: [0.5] }], ...usage }),
    }),
    compaction: (usage: object, paid: string) => ({
      path: '/v1/responses/compact',
      body: { model: `text-${paid}`, input: 'Good morning' },
      script: json({ id: 'resp_1', object: 'response.compaction', created_at: 1, output: compacted, ...usage }),
    }),
    pictures: (usage: object, paid: string) => ({
      path: '/v1/images/generations',
      body: { model: `image-${paid}`, prompt: 'a cat' },
      script: json({ created: 1, data: [picture], ...usage }),
    }),
    'pictures in a stream': (usage: object, paid: string) => ({
      path: '/v1/images/generations',
      body: { model: `image-${paid}`, prompt: 'a cat', stream: true },
      script: {
        raw: {
          headers: { 'content-type': 'text/event-stream' },
          body: sse({ type: 'image_generation.completed', created_at: 1, ...picture, ...usage }),
        },
      },
    }),
    'pictures of a router': (usage: object) => ({
      path: '/v1/images/generations',
      body: { model: 'router', prompt: 'a cat' },
      script: json({ created: 1, data: [picture], ...usage }),
    }),
    'pictures by the piece': (usage: object) => ({
      path: '/v1/images/generations',
      body: { model: 'each', prompt: 'a cat' },
      script: json({ created: 1, data: [picture], ...usage }),
    }),
  };
  const asked = fc.record({
    kind: fc.constantFrom(...(Object.keys(kinds) as (keyof typeof kinds)[])),
    paid: fc.constantFrom(...PAID),
    type: fc.constantFrom<TextType>('chat_completion', 'responses'),
    usage: fc.oneof({ weight: 4, arbitrary: counters }, { weight: 1, arbitrary: counter }),
  });
  const property = fc.asyncProperty(asked, async ({ kind, paid, type, usage }) => {
    const isObject = typeof usage === 'object' && usage !== null && 'total' in usage;
    const members = usage === ABSENT ? {} : { usage: isObject ? reported(type, usage as Counters) : usage };
    const { path, body, script } = kinds[kind](members, paid);
    await law(gateway, path, body, script as Script);
  });
  await fc.assert(property, { numRuns: 120 });
});

/** An answer with one search, whole and in events, with this usage. */
const SEARCHED: Readonly<Record<'messages' | 'responses', (usage: JsonValue) => { whole: JsonObject; events: JsonObject[] }>> = {
  messages(usage) {
    const blocks: JsonObject[] = [
      { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: {} },
      { type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: [] },
      { type: 'text', text: 'found' },
    ];
    const whole = { id: 'm', type: 'message', role: 'assistant', model: 'up', content: blocks, stop_reason: 'end_turn', usage };
    const events = blocks.flatMap((block, index): JsonObject[] => [
      { type: 'content_block_start', index, content_block: block },
      { type: 'content_block_stop', index },
    ]);
    const start = { type: 'message_start', message: { ...whole, content: [], stop_reason: null } };
    const delta = { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage };
    return { whole, events: [start, ...events, delta, { type: 'message_stop' }] };
  },
  responses(usage) {
    const output: JsonObject[] = [
      { type: 'web_search_call', id: 'ws_1', status: 'completed', action: { type: 'search', query: 'x' } },
      { type: 'message', id: 'm', role: 'assistant', status: 'completed', content: [{ type: 'output_text', text: 'found' }] },
    ];
    const whole = { id: 'r', object: 'response', created_at: 1, status: 'completed', model: 'up', output, usage };
    const items = output.flatMap((item, at): JsonObject[] => [
      { type: 'response.output_item.added', output_index: at, item: { ...item, content: [] } },
      { type: 'response.output_item.done', output_index: at, item },
    ]);
    const created = { type: 'response.created', response: { ...whole, status: 'in_progress', output: [], usage: null } };
    return { whole, events: [created, ...items, { type: 'response.completed', response: whole }] };
  },
};

test('a search that ran is paid once, whatever is reported, towards every client', async (t) => {
  const types = ['messages', 'responses'] as const;
  const gateway = await moneyGateway(t, {
    models: Object.fromEntries(types.map((type) => [type, { price: { input: '0', output: '0', web_search: '10' } }])),
    channels: types.map((type) => ({ id: type, type, base_url: 'SIMULATOR', api_key: 'k', models: [type] })),
  });
  const usages: readonly JsonValue[] = [null, {}, { input_tokens: 0, output_tokens: 0 }, { input_tokens: 7, output_tokens: 3 }];
  for (const type of types) {
    for (const client of ['chat', 'responses', 'messages'] as const) {
      for (const usage of usages) {
        for (const stream of [false, true]) {
          const { whole, events } = SEARCHED[type](usage);
          const streamed = { raw: { headers: { 'content-type': 'text/event-stream' }, body: sse(...events) } };
          const owner = await gateway.owner(10n ** 12n);
          gateway.simulator.enqueue(stream ? streamed : json(whole));
          const answer = await gateway.post(owner, CLIENTS[client].path, CLIENTS[client].ask(type, stream));
          const text = await answer.text();
          const [row] = await gateway.settled(owner, 1);
          const told = `${client}, ${type}, ${stream}, ${JSON.stringify(usage)}: ${text}`;
          assert.deepEqual([row?.status, row?.charge?.total], ['success', 10_000_000n], told);
          // Zeros beside the search would look like a report. Messages clients have to be told something.
          if (client !== 'messages' && client !== type) assert.doesNotMatch(text, /"usage":\{"(prompt|input)_tokens":0,/, told);
        }
      }
    }
  }
});
