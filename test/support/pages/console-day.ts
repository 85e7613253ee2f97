/**
 * A gateway with a day of generated exchanges behind it, for the console: names full of markup, failures, fallbacks, and
 * everything priced.
 */
import type { TestContext } from 'node:test';
import type { AttemptEntry, RequestLogEntry } from '../../../src/store/request-log.ts';
import { chargeFor } from '../../../src/store/charge.ts';
import { parsePrice } from '../../../src/store/prices.ts';
import type { Store } from '../../../src/store/store.ts';
import { systemClock } from '../../../src/streams/clock.ts';
import { type AdminGateway, adminGateway, type AdminGatewayOptions } from '../../admin/admin-gateway.ts';
import { cause, FakeClock, ok, openStore } from '../../store/support/store.ts';

/** What a name must never become. */
export const MARKUP = '<img src=x onerror=alert(1)>';

/** What is served, asked and owned. `strange` stands where a name may be anything. */
function worldOf(strange: string, urls: readonly [string, string, string]) {
  const prices: Record<string, Record<string, string>> = {
    'claude-sonnet-5': { input: '3', output: '15', cached_input: '0.3', cache_write_5m: '3.75' },
    'gpt-5.2': { input: '1.25', output: '10', cached_input: '0.125' },
    'gpt-5-mini': { input: '0.25', output: '2', cached_input: '0.025' },
    [strange]: { input: '0.1', output: '0.4' },
  };
  const [first = '', second = '', third = ''] = Object.keys(prices);
  const [anthropic, openai, local] = urls;
  return {
    prices,
    models: Object.keys(prices),
    channels: [
      { id: 'anthropic-eu', type: 'messages', base_url: anthropic, models: [first] },
      { id: 'openai-main', type: 'responses', base_url: openai, models: [second, third] },
      { id: 'openai-spare', type: 'responses', base_url: openai, models: [second, third], priority: 1 },
      { id: 'local', type: 'chat_completion', base_url: local, models: [strange], disabled: strange === MARKUP },
    ],
    accounts: ['acme', 'research', strange === MARKUP ? `${MARKUP}<script>alert(2)</script>` : 'support-desk', 'empty-wallet'],
  };
}
type World = ReturnType<typeof worldOf>;

const NOWHERE = 'http://127.0.0.1:1';
const STRANGE = worldOf(MARKUP, [NOWHERE, NOWHERE, NOWHERE]);
/** For pictures. */
export const PLAIN = worldOf('llama-4-maverick', [
  'https://api.anthropic.com',
  'https://api.openai.com/v1',
  'http://10.0.0.7:8000/v1',
]);

const fileOf = ({ channels, models, prices }: World): object => ({
  channels: channels.map((channel) => ({ ...channel, api_key: 'sk-canary' })),
  models: Object.fromEntries(models.map((name) => [name, { price: prices[name] }])),
});

/** Numbers between 0 and 1, the same in every run. */
export function numbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

const HOUR_MS = 3_600_000;

export interface ConsoleDay extends AdminGateway {
  readonly origin: string;
  /** Another exchange, at the end of the day. */
  add(count: number): Promise<void>;
}

/** `requests`: in the last `hours`. */
export async function consoleDay(
  t: Pick<TestContext, 'after'>,
  { requests = 1500, hours = 24 } = {},
  options: Pick<AdminGatewayOptions, 'file'> & { readonly world?: World } = {},
): Promise<ConsoleDay> {
  const world = options.world ?? STRANGE;
  const clock = new FakeClock();
  const store = await openStore(t, { clock });
  const keys = requests === 0 ? [] : await accountsOf(store, world);
  const random = numbers(7);
  let made = 0;
  const settle = (count: number): void => {
    for (let index = 0; index < count; index += 1) {
      made += 1;
      const key = keys[Math.floor(random() ** 2 * keys.length)];
      if (key !== undefined) void store.settlements.settle({ entry: entryOf(made, key, clock.now(), random, world) });
    }
  };
  for (let hour = 0; hour < hours; hour += 1) {
    // Busy by day, quiet by night.
    settle(Math.round((requests / hours) * (1 + 0.8 * Math.sin(((hour - 6) / 24) * 2 * Math.PI))));
    await store.settlements.flush();
    clock.advance(hour === hours - 1 ? HOUR_MS / 4 : HOUR_MS);
  }
  const gateway = await adminGateway(t, {
    store,
    clock: { ...systemClock, now: () => clock.now() },
    file: options.file ?? fileOf(world),
  });
  return {
    ...gateway,
    origin: `http://127.0.0.1:${gateway.port}`,
    async add(count) {
      settle(count);
      await store.settlements.flush();
    },
  };
}

interface Owner {
  readonly accountId: string;
  readonly keyId: string;
}

async function accountsOf(store: Store, { accounts, models }: World): Promise<Owner[]> {
  const strange = models.at(-1);
  const owners: Owner[] = [];
  for (const [index, name] of accounts.entries()) {
    const fields = { name, unlimited: false, disabled: false, class: index === 1 ? 'gold' : 'default' };
    const account = ok(await store.accounts.create({ ...fields, creditNanos: index === 3 ? 0n : 2_500_000_000_000n }, cause()));
    const names = index === 3 ? ['unused'] : ['production', strange === MARKUP ? `ci ${MARKUP}` : 'ci'];
    for (const name of names) {
      const limits = name === 'production' ? { daily: 500_000_000_000n } : {};
      const { key } = ok(await store.keys.create({ accountId: account.id, name, limits, subAccount: false }, cause()));
      if (index < 3) owners.push({ accountId: account.id, keyId: key.id });
    }
  }
  return owners;
}

const words = (strange: string | undefined) =>
  `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded${strange === MARKUP ? ` ${MARKUP}` : ''}"}}`;

function entryOf(number: number, owner: Owner, nowMs: number, random: () => number, world: World): RequestLogEntry {
  const { models, channels, prices } = world;
  const errorText = words(models.at(-1));
  const model = models[Math.floor(random() ** 1.7 * models.length)] ?? 'gpt-5.2';
  const channel = channels.find((one) => one.models.includes(model)) ?? channels[0];
  const [hasFailed, wasRetried] = [random() < 0.03, random() < 0.04];
  const firstOutputMs = 180 + 900 * random() ** 3;
  const durationMs = firstOutputMs + 4000 * random();
  const startedAtMs = nowMs - Math.floor(durationMs);
  const usage = {
    input: Math.floor(200 + 6000 * random()),
    cachedInput: random() < 0.5 ? Math.floor(9000 * random()) : 0,
    output: Math.floor(40 + 1500 * random()),
  };
  const attempt = {
    channelId: channel?.id ?? '',
    channelType: channel?.type ?? '',
    upstreamModel: model,
    startedAtMs,
    durationMs,
  };
  const failure: AttemptEntry = {
    ...attempt,
    ...{
      upstreamStatus: 529,
      errorCode: 'upstream_overloaded',
      errorText,
      durationMs: 90,
      upstreamRequestId: `up_${number}`,
    },
  };
  const answered: AttemptEntry = { ...attempt, upstreamStatus: 200, upstreamRequestId: `up_${number}b` };
  const id = String(number).padStart(8, '0');
  return {
    ...{ exchangeId: `ex_${id}`, requestId: `req_${id}`, ...owner, endpoint: 'responses', model, stream: random() < 0.7 },
    ...{ startedAtMs, durationMs, ip: '203.0.113.7' },
    ...(channel === undefined ? {} : { channelId: channel.id, channelType: channel.type }),
    attempts: hasFailed ? [failure] : wasRetried ? [failure, answered] : [answered],
    ...(hasFailed
      ? { status: 'error', httpStatus: 502, errorCode: 'upstream_error', errorText: `every upstream failed: ${errorText}` }
      : { status: 'success', httpStatus: 200, usage, firstOutputMs, charge: chargeFor(usage, ok(parsePrice(prices[model]))) }),
  };
}
