/**
 * A generated year of mixed traffic through a real gateway, and what its vendors would invoice: every modifier, cache lifetime
 * and meter, failures, fallbacks, leavers, answers without a report. The invoice is computed from what the vendor was scripted to
 * serve (`invoice.ts`).
 */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import fc from 'fast-check';
import type { Script } from '../../src/simulator/script.ts';
import type { BillableUsage } from '../../src/store/charge.ts';
import { billed, costOf, type Use, type WrittenPrice } from './invoice.ts';
import { type MoneyGateway, moneyGateway, type Owner } from './money-gateway.ts';

const DAY_MS = 86_400_000;
const FIRST_DAY = Date.UTC(2026, 0, 1, 12);

const PRICES = {
  claude: {
    ...{
      input: '5',
      cached_input: '0.5',
      cache_write_5m: '6.25',
      cache_write_1h: '10',
      output: '25',
      web_search: '10',
      web_fetch: '0',
    },
    long_context: { above: 200_000, input: '10', cached_input: '1', output: '37.5' },
    service_tiers: { priority: { input: '7.5', output: '30.01' }, batch: { input: '2.5', output: '12.5' } },
    speeds: { fast: '6', turbo: { output: '99.999999999' } },
    geos: { us: '1.1', eu: { input: '5.5', output: '27.5' } },
  },
  advisor: { input: '15', cached_input: '1.5', output: '75', geos: { us: '1.25' } },
  gpt: { input: '1.25', cached_input: '0.125', cache_write_30m: '1.5625', cache_write_12h: '3.3', output: '10', reasoning: '11' },
  small: {
    ...{ input: '0.15', cached_input: '0.075', output: '0.6', audio_input: '10', audio_output: '20' },
    service_tiers: {
      flex: { input: '0.07', output: '0.3' },
      priority: { input: '0.3', long_context: { above: 1_000, input: '0.777' } },
    },
  },
  gemini: { input: '0.3', cached_input: '0.03', output: '2.5', service_tiers: { flex: { input: '0.15', output: '1.25' } } },
} satisfies Record<string, WrittenPrice>;
type Vendor = Exclude<keyof typeof PRICES, 'advisor'>;

const channel = (id: string, type: string, models: object) => ({ id, type, base_url: 'SIMULATOR', api_key: 'k', models });
const CONFIG = {
  health: { failures: 1_000_000 },
  dispatch: { max_attempts: 2 },
  channels: [
    channel('anthropic', 'messages', { claude: 'claude-up', advisor: 'advisor-up' }),
    channel('openai', 'responses', { gpt: 'gpt-up' }),
    channel('compatible', 'chat_completion', { small: 'small-up', frail: 'frail-up' }),
    channel('google', 'gemini', { gemini: 'gemini-up' }),
  ],
  models: {
    ...Object.fromEntries(Object.entries(PRICES).map(([name, price]) => [name, { price }])),
    // More expensive than all of its fallbacks, and never answers.
    frail: { price: { input: '1000', output: '2000' }, fallbacks: ['claude', 'gpt', 'small', 'gemini'] },
  },
};

/** What a vendor is scripted to have used, as its report says it, and what it would bill. */
interface Served {
  readonly usage: { readonly input: number; readonly output: number; readonly cached?: number; readonly [more: string]: unknown };
  readonly invoice: readonly (readonly [keyof typeof PRICES, Use])[];
}

const count = fc.oneof(fc.nat(30), fc.nat(3_000), fc.nat(150_000));
const some = <T>(...values: readonly T[]) => fc.constantFrom<T | undefined>(undefined, ...values);
const without = <T extends object>(members: T): { [K in keyof T]?: Exclude<T[K], undefined> } =>
  Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined && value !== 0)) as never;
const positive = (counts: Readonly<Record<string, number>>): Record<string, number> => without(counts) as Record<string, number>;

const claude: fc.Arbitrary<Served> = fc
  .record({
    ...{
      input: count,
      cached: count,
      m5: count,
      h1: count,
      output: count,
      searches: fc.nat(3),
      fetches: fc.nat(2),
      advised: fc.nat(2_000),
    },
    ...{ tier: some('priority', 'batch', 'standard'), speed: some('fast', 'turbo', 'standard'), geo: some('us', 'eu', 'global') },
  })
  .map(({ input, cached, m5, h1, output, searches, fetches, advised, tier, speed, geo }) => ({
    usage: {
      ...{ input: input + 1 + cached + m5 + h1, cached, cacheWrite: m5, cacheWrite1h: h1, output: output + 1 },
      extra: {
        ...without({ service_tier: tier, speed, inference_geo: geo }),
        cache_creation: { ephemeral_5m_input_tokens: m5, ephemeral_1h_input_tokens: h1 },
        server_tool_use: { web_search_requests: searches, web_fetch_requests: fetches },
        ...(advised === 0
          ? {}
          : { iterations: [{ type: 'advisor_message', model: 'advisor-up', input_tokens: advised, output_tokens: 7 }] }),
      },
    },
    invoice: [
      [
        'claude',
        {
          counts: positive({
            ...{ input: input + 1, cached_input: cached, cache_write_5m: m5, cache_write_1h: h1, output: output + 1 },
            ...{ web_search: searches, web_fetch: fetches },
          }),
          ...without({ tier, speed, geo }),
        },
      ],
      ...(advised === 0 ? [] : [['advisor', { counts: { input: advised, output: 7 }, ...without({ geo }) }] as const]),
    ],
  }));

const gpt: fc.Arbitrary<Served> = fc
  .record({ input: count, cached: count, m30: count, h12: count, output: count, reasoning: count })
  .map(({ input, cached, m30, h12, output, reasoning }) => ({
    usage: {
      ...{ input: input + 1 + cached + m30 + h12, output: output + 1 + reasoning, reasoning },
      extra: {
        input_tokens_details: {
          ...{ cached_tokens: cached, cache_write_tokens: m30 + h12 },
          cache_write_tokens_details: { ttl_30m_tokens: m30, ttl_12h_tokens: h12 },
        },
      },
    },
    invoice: [
      [
        'gpt',
        {
          counts: positive({
            ...{ input: input + 1, cached_input: cached, cache_write_30m: m30, cache_write_12h: h12 },
            ...{ output: output + 1, reasoning },
          }),
        },
      ],
    ],
  }));

const small: fc.Arbitrary<Served> = fc
  .record({ input: count, cached: count, heard: count, spoken: count, output: count })
  .map(({ input, cached, heard, spoken, output }) => ({
    usage: {
      ...{ input: input + 1 + cached + heard, output: output + 1 + spoken },
      extra: {
        prompt_tokens_details: { cached_tokens: cached, audio_tokens: heard },
        completion_tokens_details: { audio_tokens: spoken },
      },
    },
    invoice: [
      [
        'small',
        {
          counts: positive({
            input: input + 1,
            cached_input: cached,
            audio_input: heard,
            output: output + 1,
            audio_output: spoken,
          }),
        },
      ],
    ],
  }));

const gemini: fc.Arbitrary<Served> = fc
  .record({ input: count, cached: count, output: count, reasoning: count, tier: some('flex', 'priority', 'standard') })
  .map(({ input, cached, output, reasoning, tier }) => ({
    usage: {
      input: input + 1 + cached,
      cached,
      output: output + 1 + reasoning,
      reasoning,
      extra: without({ serviceTier: tier }),
    },
    invoice: [
      [
        'gemini',
        { counts: positive({ input: input + 1, cached_input: cached, output: output + 1, reasoning }), ...without({ tier }) },
      ],
    ],
  }));

const SERVED: Readonly<Record<Vendor, fc.Arbitrary<Served>>> = { claude, gpt, small, gemini };
const PATHS = ['/v1/chat/completions', '/v1/responses', '/v1/messages'] as const;

/** One request: whom it asks in which words, how its vendor behaves, and how it ends. */
const request = fc
  .record({
    vendor: fc.constantFrom<Vendor>('claude', 'gpt', 'small', 'gemini'),
    path: fc.constantFrom(...PATHS),
    stream: fc.boolean(),
    ending: fc.constantFrom('good', 'good', 'good', 'good', 'fallback', 'refused', 'reported', 'left', 'silent'),
  })
  .chain((about) => SERVED[about.vendor].map((served) => ({ ...about, served })));
type Request = typeof request extends fc.Arbitrary<infer One> ? One : never;

export interface YearOptions {
  readonly days: number;
  readonly aDay: number;
  readonly seed: number;
}

/**
 * Runs it, and compares every row, every day and the wallet with the invoice. Returns how many exchanges of each ending there
 * were.
 */
export async function reconcileYear(
  t: TestContext,
  { days, aDay, seed }: YearOptions,
): Promise<Readonly<Record<string, number>>> {
  let nowMs = FIRST_DAY;
  const gateway = await moneyGateway(t, CONFIG, undefined, () => nowMs);
  const funds = 10n ** 18n;
  const owner = await gateway.owner(funds);
  const endings: Record<string, number> = {};
  let invoiced = 0n;
  let explained = 0n;
  let made = 0;
  const sample = fc.sample(request, { numRuns: days * aDay, seed });
  for (let day = 0; day < days; day++) {
    nowMs = FIRST_DAY + day * DAY_MS;
    let ofDay = 0n;
    const asked = sample.slice(day * aDay, (day + 1) * aDay).map((one) => ({ one, id: `exchange-${++made}-` }));
    await Promise.all(asked.map(({ one, id }) => ask(gateway, owner, one, id)));
    await gateway.store.settlements.flush();
    for (const { one, id } of asked) {
      endings[one.ending] = (endings[one.ending] ?? 0) + 1;
      const { charged, vendors, why } = await settled(gateway, one, id);
      ofDay += charged;
      invoiced += vendors;
      explained += charged - vendors;
      // The two differ only where the row says why.
      if (why.length === 0) assert.equal(charged, vendors, `${id} ${JSON.stringify(one)}`);
    }
    const name = new Date(nowMs).toISOString().slice(0, 10);
    const [stored] = await gateway.store.spend.usageByDay(owner.key.id, { from: name, to: name });
    assert.equal(stored?.chargedNanos, ofDay, name);
  }
  const spent = funds - (await gateway.wallet(owner));
  assert.equal(spent, invoiced + explained, 'the wallet, the invoices and what rows explain add up to the last billionth');
  return endings;
}

/** Billionths of a dollar. */
function invoiceOf(invoice: Served['invoice']): bigint {
  return billed(...invoice.map(([model, use]) => costOf(PRICES[model], use)));
}

async function ask(gateway: MoneyGateway, owner: Owner, one: Request, id: string): Promise<void> {
  const { vendor, path, ending, served } = one;
  const stream = ending === 'left' || one.stream;
  const isMine: NonNullable<Script['match']> = ({ body }) => JSON.stringify(body).includes(id);
  const isFor =
    (...models: readonly string[]): NonNullable<Script['match']> =>
    (received) =>
      isMine(received) && models.some((model) => `${received.path} ${JSON.stringify(received.body)}`.includes(`${model}-up`));
  const pieces = [{ type: 'text', text: 'so it was done' }] as const;
  const { simulator } = gateway;
  const fails = { faults: [{ type: 'status', status: 500 }], times: 5 } as const;
  if (ending === 'fallback') {
    simulator.enqueue({
      match: isFor('frail', ...(Object.keys(SERVED) as Vendor[]).slice(0, (Object.keys(SERVED) as Vendor[]).indexOf(vendor))),
      ...fails,
    });
  }
  if (ending === 'refused') simulator.enqueue({ match: isMine, ...fails });
  else if (ending === 'reported') simulator.enqueue({ match: isMine, raw: failure(served.usage.input), times: 5 });
  else if (ending === 'silent') simulator.enqueue({ match: isMine, reply: { pieces, usage: null } });
  else
    simulator.enqueue({
      match: isMine,
      reply: { pieces, usage: served.usage as never },
      ...(ending === 'left' ? { pace: { ms: 60 } } : {}),
    });

  const model = ending === 'fallback' ? 'frail' : ending === 'reported' ? 'gpt' : vendor;
  const text = `${id}please`;
  const messages = [{ role: 'user', content: text }];
  const body = path === '/v1/responses' ? { input: text } : { messages, ...(path === '/v1/messages' ? { max_tokens: 999 } : {}) };
  const usage = path === '/v1/chat/completions' && stream ? { stream_options: { include_usage: true } } : {};
  const controller = new AbortController();
  const headers = { 'x-request-id': id };
  const response = await gateway.post(owner, path, { model, stream, ...body, ...usage }, { signal: controller.signal, headers });
  if (ending !== 'left') {
    await response.text();
    return;
  }
  const reader = response.body?.getReader();
  for (let read = ''; !read.includes('so'); ) {
    const { value, done } = (await reader?.read()) ?? { done: true };
    if (done) return;
    read += Buffer.from(value ?? []).toString();
  }
  controller.abort();
}

/** A response that failed before any output, and says what it used. */
function failure(input: number): NonNullable<Script['raw']> {
  const response = {
    ...{ id: 'resp_1', object: 'response', created_at: 1, status: 'failed', model: 'gpt-up', output: [] },
    ...{
      error: { code: 'server_error', message: 'It broke.' },
      usage: { input_tokens: input, output_tokens: 0, total_tokens: input },
    },
  };
  return { headers: { 'content-type': 'application/json' }, body: JSON.stringify(response) };
}

interface Settled {
  readonly charged: bigint;
  readonly vendors: bigint;
  /** Why the charge may differ from the invoice, by the row itself. */
  readonly why: readonly string[];
}

async function settled({ store }: MoneyGateway, { ending, served, vendor }: Request, id: string): Promise<Settled> {
  let [row] = await store.requestLog.find(id);
  // Whoever left is settled a moment later.
  for (let tries = 0; row === undefined && tries < 400; tries++) {
    await new Promise((resolve) => setTimeout(resolve, 10));
    await store.settlements.flush();
    [row] = await store.requestLog.find(id);
  }
  assert.ok(row, `${id} has no row`);
  const charged = row.charge?.total ?? 0n;
  const flags = row.charge?.flags ?? [];
  const why = flags.filter((flag) => /^(estimated|unpriced|unknown|no_rate|unpriced_model|invalid_usage|unseen)/.test(flag));
  if (ending === 'refused') return { charged, vendors: 0n, why };
  if (ending === 'reported')
    return { charged, vendors: billed(costOf(PRICES.gpt, { counts: { input: served.usage.input } })), why };
  if (ending === 'fallback') assert.equal(row.servedModel, vendor, id);
  // What was estimated is charged by the same prices.
  if (ending === 'silent') assert.ok(why.includes('estimated'), id);
  // Who left when the answer was over is charged as it was reported.
  if (row.usage !== undefined && why.includes('estimated')) {
    const { passes = [], geo } = row.usage;
    const ofPasses = passes.map(({ type: _type, model: _advisor, ...pass }) =>
      costOf(PRICES.advisor, { ...useOf(pass), ...without({ geo }) }),
    );
    assert.equal(charged, billed(costOf(PRICES[vendor], useOf(row.usage)), ...ofPasses), id);
  }
  return { charged, vendors: invoiceOf(served.invoice), why };
}

/** The use that a row of the log states, by the names of the price. */
function useOf({ serviceTier: tier, speed, geo, meters, passes: _passes, model: _model, ...counts }: BillableUsage): Use {
  const keys: Readonly<Record<string, string>> = {
    ...{
      cachedInput: 'cached_input',
      cacheWrite5m: 'cache_write_5m',
      cacheWrite1h: 'cache_write_1h',
      cacheWrite30m: 'cache_write_30m',
    },
    ...{ cacheWrite12h: 'cache_write_12h', audioInput: 'audio_input', audioOutput: 'audio_output' },
  };
  return {
    counts: {
      ...Object.fromEntries(Object.entries(counts).map(([name, value]) => [keys[name] ?? name, Number(value)])),
      ...Object.fromEntries(meters ?? []),
    },
    ...without({ tier, speed, geo }),
  };
}
