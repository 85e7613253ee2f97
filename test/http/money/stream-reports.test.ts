/**
 * The law of reports: whatever a stream reports of its usage, where and how often, its charge is what the last readable counts
 * say; a count that nobody made since the output came is made here, and is at least what was reported before. How the answer was
 * served prices it, wherever that was said, also where its client left. In every pair of dialects.
 */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import fc from 'fast-check';
import type { JsonObject, JsonValue } from '../../../src/simulator/json.ts';
import { CLIENTS, type MoneyGateway, moneyGateway, PRICE, sse, UPSTREAM_TYPES } from '../../support/money-gateway.ts';
import { sized } from '../../support/sampled.ts';

type Upstream = (typeof UPSTREAM_TYPES)[number];

/** What one report may hold; what is absent is left out. */
interface Report {
  readonly input?: JsonValue | undefined;
  readonly output?: JsonValue | undefined;
  readonly tier?: JsonValue | undefined;
}
/** Before the text, with its finish, and behind that. */
interface Reports {
  readonly start?: Report | undefined;
  readonly finish?: Report | undefined;
  readonly after?: Report | undefined;
}

/** "say good morning" and "Good morning to you", as the tokenizer counts them. */
const COUNTED = { input: 3, output: 4 } as const;
const WORDS = ['Good morning', ' to you'] as const;

const MEMBERS = {
  chat_completion: { input: 'prompt_tokens', output: 'completion_tokens' },
  responses: { input: 'input_tokens', output: 'output_tokens' },
  messages: { input: 'input_tokens', output: 'output_tokens', tier: 'service_tier' },
  gemini: { input: 'promptTokenCount', output: 'candidatesTokenCount', tier: 'serviceTier' },
} as const;

/** The members of an event: its usage, and the tier where that stands beside it. */
function told(upstream: Upstream, report: Report | undefined): JsonObject {
  if (report === undefined) return {};
  const names: { readonly [Name in keyof Report]?: string } = MEMBERS[upstream];
  const counts = (['input', 'output', 'tier'] as const).flatMap((name) => {
    const [value, member] = [report[name], names[name]];
    return value === undefined || member === undefined ? [] : [[member, value] as const];
  });
  const beside = names.tier === undefined && report.tier !== undefined ? { service_tier: report.tier } : {};
  return { [upstream === 'gemini' ? 'usageMetadata' : 'usage']: Object.fromEntries(counts), ...beside };
}

/** The events of a good answer; those before the finish come first. */
const EVENTS: Readonly<Record<Upstream, (reports: Reports) => readonly [object[], (object | string)[]]>> = {
  chat_completion: ({ start, finish, after }) => {
    const chunk = (choices: object[], report?: Report) => ({
      ...{ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'u', choices },
      ...told('chat_completion', report),
    });
    const choice = (delta: object, reason: string | null = null) => [{ index: 0, delta, finish_reason: reason }];
    return [
      [chunk(choice({ role: 'assistant', content: '' }), start), ...WORDS.map((content) => chunk(choice({ content })))],
      [chunk(choice({}, 'stop'), finish), ...(after === undefined ? [] : [chunk([], after)]), '[DONE]'],
    ];
  },
  responses: ({ start, finish }) => {
    const part = { type: 'output_text', text: WORDS.join(''), annotations: [] };
    const item = { id: 'msg_1', type: 'message', role: 'assistant', status: 'completed', content: [part] };
    const place = { item_id: 'msg_1', output_index: 0, content_index: 0 };
    const response = { id: 'resp_1', object: 'response', created_at: 1, model: 'u' };
    return [
      [
        { type: 'response.created', response: { ...response, status: 'in_progress', output: [], ...told('responses', start) } },
        { type: 'response.output_item.added', output_index: 0, item: { ...item, status: 'in_progress', content: [] } },
        { type: 'response.content_part.added', ...place, part: { ...part, text: '' } },
        ...WORDS.map((delta) => ({ type: 'response.output_text.delta', ...place, delta })),
      ],
      [
        { type: 'response.output_item.done', output_index: 0, item },
        {
          type: 'response.completed',
          response: { ...response, status: 'completed', output: [item], ...told('responses', finish) },
        },
      ],
    ];
  },
  messages: ({ start, finish, after }) => {
    const message = { id: 'msg_1', type: 'message', role: 'assistant', model: 'u', content: [], stop_reason: null };
    const delta = (given: object, report: Report) => ({ type: 'message_delta', delta: given, ...told('messages', report) });
    return [
      [
        { type: 'message_start', message: { ...message, ...told('messages', start) } },
        { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
        ...WORDS.map((text) => ({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } })),
      ],
      [
        { type: 'content_block_stop', index: 0 },
        delta({ stop_reason: 'end_turn' }, finish ?? {}),
        ...(after === undefined ? [] : [delta({}, after)]),
        { type: 'message_stop' },
      ],
    ];
  },
  gemini: ({ start, finish, after }) => {
    const chunk = (text: string, reason?: string, report?: Report) => ({
      ...{ candidates: [{ index: 0, content: { role: 'model', parts: [{ text }] }, finishReason: reason }], modelVersion: 'u' },
      ...told('gemini', report),
    });
    return [
      [chunk(WORDS[0], undefined, start), chunk(WORDS[1])],
      [chunk('', 'STOP', finish), ...(after === undefined ? [] : [{ modelVersion: 'u', ...told('gemini', after) }])],
    ];
  },
};

const isCount = (value: JsonValue | undefined): value is number =>
  Number.isSafeInteger(value) && Number(value) > 0 && Number(value) <= 1_000_000_000;
const lastOf = <Value>(values: readonly (Value | undefined)[]): Value | undefined =>
  values.findLast((value) => value !== undefined);

interface Expected {
  readonly input: number;
  readonly output: number;
  readonly tier: string | undefined;
  readonly isEstimated: boolean;
}

/** From docs/money.md alone. `behind`: the reports that came behind the text. */
function expected(before: readonly Report[], behind: readonly Report[]): Expected {
  const counts = (reports: readonly Report[], name: 'input' | 'output') => reports.map((report) => report[name]).filter(isCount);
  const input = lastOf(counts([...before, ...behind], 'input'));
  const output = lastOf(counts(behind, 'output'));
  const known = output ?? Math.max(COUNTED.output, lastOf(counts(before, 'output')) ?? 0);
  const tiers = [...before, ...behind].map(({ tier }) => (typeof tier === 'string' ? tier : undefined));
  return {
    input: input ?? COUNTED.input,
    output: known,
    tier: lastOf(tiers),
    isEstimated: input === undefined || output === undefined,
  };
}

async function gatewayOf(t: TestContext): Promise<MoneyGateway> {
  // Time is no measure here: the model does not reason.
  const price = { ...PRICE, service_tiers: { priority: { input: '50', output: '250' } } };
  const models = Object.fromEntries(UPSTREAM_TYPES.map((type) => [type, { price, reasoning: false }]));
  const channels = UPSTREAM_TYPES.map((type) => ({ id: type, type, base_url: 'SIMULATOR', api_key: 'k', models: [type] }));
  return moneyGateway(t, { health: { failures: 100_000 }, models, channels });
}

const COUNTS: readonly JsonValue[] = [null, 0, -7, 7.5, 1e12, 'x', 1, 11, 700];
const count = fc.option(fc.constantFrom(...COUNTS), { nil: undefined });
const tier = fc.option(fc.constantFrom<JsonValue>('priority', null), { nil: undefined, freq: 1 });
const report = fc.option(fc.record({ input: count, output: count, tier }), { nil: undefined, freq: 3 });
const asked = fc.record({
  client: fc.constantFrom(...(Object.keys(CLIENTS) as (keyof typeof CLIENTS)[])),
  upstream: fc.constantFrom(...UPSTREAM_TYPES),
  reports: fc.record({ start: report, finish: report, after: report }),
  isLeft: fc.boolean(),
});
type Asked = typeof asked extends fc.Arbitrary<infer Value> ? Value : never;

async function law(gateway: MoneyGateway, { client, upstream, reports, isLeft }: Asked): Promise<void> {
  const owner = await gateway.owner(10n ** 12n);
  const [before, behind] = EVENTS[upstream](reports);
  const text = sse(...before);
  const headers = { 'content-type': 'text/event-stream' };
  const rest = isLeft ? ': wait\n\n' : sse(...behind);
  gateway.simulator.enqueue({
    raw: { headers, chunks: [text, rest] },
    ...(isLeft ? { faults: [{ type: 'stall', at: 1 }] } : {}),
  });
  const { path, ask } = CLIENTS[client];
  const leaving = new AbortController();
  const response = await gateway.post(owner, path, ask(upstream, true, 'say good morning'), { signal: leaving.signal });
  const reader = response.body?.getReader() ?? assert.fail();
  for (let read = ''; ; ) {
    const { value, done } = await reader.read();
    if (done) break;
    read += Buffer.from(value).toString();
    if (isLeft && read.includes('to you')) {
      leaving.abort();
      break;
    }
  }
  const [row] = await gateway.settled(owner, 1);
  const { start, finish, after } = reports;
  const present = (...all: (Report | undefined)[]) => all.filter((one) => one !== undefined);
  // A response that has only begun has used nothing yet, and its end is its last word.
  const started = upstream === 'responses' && start !== undefined ? { tier: start.tier } : start;
  const ended = isLeft ? [] : upstream === 'responses' ? present(finish) : present(finish, after);
  const wanted = expected(present(started), ended);
  const used = row?.usage ?? {};
  assert.deepEqual(
    {
      input: used.input,
      output: used.output,
      tier: used.serviceTier,
      isEstimated: row?.charge?.flags.includes('estimated'),
    },
    { ...wanted, isEstimated: wanted.isEstimated || isLeft },
    JSON.stringify({ client, upstream, reports, isLeft }),
  );
  const factor = wanted.tier === 'priority' ? 10n : 1n;
  assert.equal(row?.charge?.total, (BigInt(wanted.input) * 5_000n + BigInt(wanted.output) * 25_000n) * factor);
}

test('a charge is what the last readable counts say, and what nobody counted is counted, in every pair of dialects', async (t) => {
  const gateway = await gatewayOf(t);
  await fc.assert(
    fc.asyncProperty(asked, (one) => law(gateway, one)),
    { numRuns: sized(120, 250) },
  );
});
