/**
 * The request log of a Channel against a vendor's usage export: both vendors, JSON and CSV, what differs and why, and files that
 * are none.
 */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { RECONCILE } from '../../src/cli/reconcile.ts';
import { parseConfig } from '../../src/http/config/parse.ts';
import { parsePrice } from '../../src/store/prices.ts';
import type { RequestLogEntry } from '../../src/store/request-log.ts';
import type { Store } from '../../src/store/store.ts';
import { readUsageReport } from '../../src/store/usage-report.ts';
import { entry, FakeClock, funded, openStore, T0 } from '../store/support/store.ts';
import { typed } from '../support/verbs.ts';

const CONFIG = {
  channels: [
    { id: 'oa', type: 'responses', base_url: 'http://x', api_key: 'k', models: { m: 'gpt-x' } },
    { id: 'an', type: 'messages', base_url: 'http://x', api_key: 'k', models: { c: 'claude-x' } },
    { id: 'ge', type: 'gemini', base_url: 'http://x', api_key: 'k', models: { g: 'g' } },
  ],
  models: Object.fromEntries(['m', 'c', 'g'].map((name) => [name, { price: { input: '1', output: '1' } }])),
};
const DAY = '2026-03-01';
const START = Date.parse(`${DAY}T00:00:00Z`) / 1000;

async function run(store: Store, channel: string, text: string): Promise<{ code: number; value: Json; text: string }> {
  const printed = async (json: boolean) => {
    const lines: string[] = [];
    const has = {
      store: () => Promise.resolve(store),
      readFile: () => text,
      config: () =>
        parseConfig(JSON.stringify(CONFIG), {
          env: {},
          readFile: () => '',
          parsePrice,
          path: '/x/mizu.json',
          revision: 1,
          nowMs: 0,
        }),
    };
    const code = await typed(
      [RECONCILE],
      ['ledger', 'reconcile', 'usage'],
      { channel, ...(json ? { json } : {}) },
      has,
      (line) => void lines.push(line),
    );
    return { code, text: lines.join('\n') };
  };
  const { code, text: json } = await printed(true);
  return { code, value: JSON.parse(json), text: (await printed(false)).text };
}
// biome-ignore lint/suspicious/noExplicitAny: tests read what they expect
type Json = any;

async function storeWith(t: TestContext): Promise<Store> {
  const store = await openStore(t, { clock: new FakeClock() });
  const owner = await funded(store, 10n ** 12n);
  const attempt = (channelId: string, upstreamModel: string, more: object = {}) => ({
    ...{ channelId, upstreamModel, channelType: 'responses', startedAtMs: T0, durationMs: 1 },
    ...more,
  });
  const rows: Partial<RequestLogEntry>[] = [
    { channelId: 'oa', usage: { input: 100, cachedInput: 20, output: 10, reasoning: 5 }, attempts: [attempt('oa', 'gpt-x')] },
    {
      channelId: 'oa',
      clientGone: true,
      usage: { input: 50, output: 7 },
      charge: { lines: [], total: 0n, flags: ['estimated'] },
      attempts: [attempt('an', 'claude-x', { errorCode: 'status_500', usage: { input: 9 } }), attempt('oa', 'gpt-x')],
    },
    {
      channelId: 'an',
      usage: {
        input: 30,
        cacheWrite5m: 4,
        cacheWrite1h: 3,
        cachedInput: 2,
        output: 1,
        passes: [{ type: 'advisor_message', model: 'claude-y', input: 6 }],
      },
      attempts: [attempt('an', 'claude-x')],
    },
    { attempts: [] },
  ];
  for (const [index, more] of rows.entries()) void store.settlements.settle({ entry: entry(owner, `ex_${index}`, 0n, more) });
  await store.settlements.flush();
  return store;
}

const openAi = (...results: object[]) => ({
  object: 'page',
  has_more: false,
  data: [{ object: 'bucket', start_time: START, end_time: START + 86_400, results }],
});
const result = (more: object) => ({
  ...{
    object: 'organization.usage.completions.result',
    model: 'gpt-x-2026-01-01',
    num_model_requests: 2,
    input_tokens: 170,
    input_cached_tokens: 20,
    output_tokens: 22,
  },
  ...more,
});

test('what agrees has no difference: OpenAI as JSON, in pages, and as CSV', async (t) => {
  const store = await storeWith(t);
  const same = await run(
    store,
    'oa',
    JSON.stringify(
      openAi(
        result({ input_tokens: 100 }),
        result({ input_tokens: 70, num_model_requests: 0, input_cached_tokens: 0, output_tokens: 0 }),
      ),
    ),
  );
  assert.deepEqual([same.code, same.value.compared, same.value.mismatches], [0, 1, []]);
  assert.equal(same.text, 'oa against OpenAI, 2026-03-01 to 2026-03-01: 1 days and models compared, 0 differ');
  const pages = [
    {
      ...openAi(result({ num_model_requests: 1, output_tokens: 11, input_tokens: 85, input_cached_tokens: 10 })),
      has_more: true,
    },
    openAi(result({ num_model_requests: 1, output_tokens: 11, input_tokens: 85, input_cached_tokens: 10 })),
  ];
  assert.equal((await run(store, 'oa', JSON.stringify(pages))).code, 0);
  const csv = `\uFEFFstart_time,start_time_iso,model,num_model_requests,input_tokens,output_tokens,input_cached_tokens,"note, quoted"\r\n${START},${DAY}T00:00:00+00:00,gpt-x,2,170,22,20,"a ""b"", c"\r\n`;
  assert.equal((await run(store, 'oa', csv)).code, 0);
});

test('a difference is told with the rows behind it, the likely reasons first', async (t) => {
  const store = await storeWith(t);
  const { code, value, text } = await run(store, 'oa', JSON.stringify(openAi(result({ output_tokens: 45 }))));
  assert.equal(code, 1);
  assert.deepEqual(value.mismatches[0].differences, { output: { ours: 22, vendors: 45 } });
  assert.deepEqual(
    value.mismatches[0].rows.map(({ requestId, because }: Json) => [requestId, because]),
    [
      ['req_ex_1', ['estimated', 'client_gone']],
      ['req_ex_0', []],
    ],
  );
  assert.deepEqual(text.split('\n'), [
    'oa against OpenAI, 2026-03-01 to 2026-03-01: 1 days and models compared, 1 differ',
    "DAY         MODEL             COUNT   OURS  VENDOR'S  DIFFERENCE",
    '2026-03-01  gpt-x-2026-01-01  output  22    45        -23',
    '  req_ex_1 50/0/0/7 estimated client_gone',
    '  req_ex_0 100/20/0/15',
  ]);
});

test('Anthropic: JSON and the console’s CSV, failures that reported, passes of other models, and models that one side lacks', async (t) => {
  const store = await storeWith(t);
  const one = (model: string, input: number, more: object = {}) => ({
    ...{
      model,
      uncached_input_tokens: input,
      cache_read_input_tokens: 0,
      output_tokens: 0,
      server_tool_use: { web_search_requests: 0 },
    },
    cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 0 },
    ...more,
  });
  const cached = {
    cache_read_input_tokens: 2,
    cache_creation: { ephemeral_5m_input_tokens: 4, ephemeral_1h_input_tokens: 3 },
    output_tokens: 1,
  };
  const json = {
    data: [
      { starting_at: `${DAY}T00:00:00Z`, ending_at: '', results: [one('claude-x-20260101', 39, cached), one('claude-y', 6)] },
    ],
    has_more: false,
  };
  assert.equal((await run(store, 'an', JSON.stringify(json))).code, 0);
  const csv = [
    'usage_date_utc,model_version,api_key,workspace,usage_type,context_window,usage_input_tokens_no_cache,usage_input_tokens_cache_write_5m,usage_input_tokens_cache_write_1h,usage_input_tokens_cache_read,usage_output_tokens,web_search_count',
    `${DAY},claude-x,k,w,standard,≤ 200k,39,4,3,2,1,0`,
    `${DAY},claude-z,k,w,standard,≤ 200k,5,0,0,0,0,0`,
    '',
  ].join('\n');
  const { value } = await run(store, 'an', csv);
  assert.deepEqual(
    value.mismatches.map(({ model, differences, rows }: Json) => [model, differences.input, rows.length]),
    [
      ['claude-y', { ours: 6, vendors: 0 }, 1],
      ['claude-z', { ours: 0, vendors: 5 }, 0],
    ],
  );
});

test('days on which the vendor counted nothing are compared, too: JSON has empty buckets for them, a table lines of zeros', async (t) => {
  const store = await storeWith(t);
  const before = { object: 'bucket', start_time: START - 86_400, end_time: START, results: [result({})] };
  const { data } = openAi();
  const json = JSON.stringify({ object: 'page', has_more: false, data: [before, ...data] });
  const zeros = `${COLUMNS}\n${START - 86_400},gpt-x,150,22,2\n${START},,0,,0\n`;
  for (const text of [json, zeros, `\uFEFF${json}`, `\uFEFF${zeros}`]) {
    const { code, value } = await run(store, 'oa', text);
    assert.deepEqual([code, value.from, value.to], [1, '2026-02-28', DAY]);
    assert.deepEqual(
      value.mismatches.map(({ day, differences }: Json) => [day, differences.requests]),
      [
        ['2026-02-28', { ours: 0, vendors: 2 }],
        [DAY, { ours: 2, vendors: 0 }],
      ],
    );
  }
  for (const [text, why] of [
    [JSON.stringify(openAi()), /holds no usage/],
    [`${COLUMNS}\n${START},,0,,0\n`, /holds no usage/],
    [`${COLUMNS}\n${START},,0,1,0\n`, /entry 1: it names no model/],
  ] as const)
    await assert.rejects(run(store, 'oa', text), why);
});

const COLUMNS = 'start_time,model,input_tokens,output_tokens,num_model_requests';

test('a time without a zone is UTC wherever the verb is typed; counts may be written as data frames write them', () => {
  const zone = process.env['TZ'];
  try {
    for (const place of ['Asia/Tokyo', 'UTC', 'America/Los_Angeles']) {
      process.env['TZ'] = place;
      for (const time of ['2026-03-01T00:30:00', '2026-03-01T23:30:00', '2026-03-01T23:30:00Z', '2026-03-02T01:30:00+09:00']) {
        const read = readUsageReport(`${COLUMNS}\n${time},m,12.0, 3 ,\n`);
        const [use] = read.ok ? read.value.uses : [];
        assert.deepEqual(
          [use?.day, use?.counts.input, use?.counts.output, use?.counts.requests],
          ['2026-03-01', 12, 3, 0],
          place,
        );
      }
    }
  } finally {
    if (zone === undefined) delete process.env['TZ'];
    else process.env['TZ'] = zone;
  }
});

test('another vendor’s export, another Channel, and files that are none are refused in words', async (t) => {
  const store = await storeWith(t);
  const refusals: [string, string, RegExp][] = [
    [
      'an',
      JSON.stringify(openAi(result({}))),
      /^usage is OpenAI's usage export, and the Channel an of type messages is compared with Anthropic's$/,
    ],
    ['nobody', '', /^there is no Channel nobody$/],
    ['ge', '', /^--channel ge is of type gemini: OpenAI's and Anthropic's exports are read$/],
    [
      'oa',
      'date,cost,"quantity"\n2026-03-01,1,2\n',
      /^usage is no usage export of OpenAI or Anthropic: it has date, cost, quantity; OpenAI's has start_time/,
    ],
    ['oa', 'date,cost\n', /^usage is no usage export/],
    ['oa', '', /^usage is empty$/],
    ['oa', '{', /^usage is not valid JSON/],
    ['oa', '[]', /^usage holds no usage$/],
    ['oa', JSON.stringify({ ...openAi(result({})), has_more: true }), /^usage is not whole: has_more is true/],
    [
      'oa',
      JSON.stringify(openAi(result({ model: null }))),
      /^usage entry 1: it names no model: export the usage grouped by model$/,
    ],
    ['oa', JSON.stringify(openAi(result({ output_tokens: -1 }))), /^usage entry 1: output_tokens is no count$/],
    ['oa', JSON.stringify(openAi(result({ input_cached_tokens: 900 }))), /^usage entry 1: it has more cached tokens than input$/],
    ['oa', JSON.stringify({ data: [{ start_time: 'soon', results: [result({})] }] }), /^usage entry 1: start_time is no time$/],
    [
      'oa',
      `start_time,model,input_tokens,output_tokens,num_model_requests\n${START},gpt-x,1\n`,
      /^usage line 2 has 3 fields, not 5$/,
    ],
    ['oa', `${COLUMNS},model\n${START},gpt-x,1,1,1,gpt-y\n`, /^usage has the column model twice$/],
    ...['0x2c', '1.23E+07', '1e2', '+1', '1,234', '-0', '1_0'].map((count): [string, string, RegExp] => [
      'oa',
      `${COLUMNS}\n${START},gpt-x,"${count}",1,1\n`,
      /^usage entry 1: input_tokens is no count$/,
    ]),
    ...['2026-02-30T00:00:00Z', '2026-03-01T25:00:00Z', '2026-03-01 00:00'].map((time): [string, string, RegExp] => [
      'oa',
      `${COLUMNS}\n${time},gpt-x,1,1,1\n`,
      /^usage entry 1: start_time is no time$/,
    ]),
    // What stands behind a quotation mark that is no part of its field was left out, and the days of it agreed.
    ...['"gpt-x', 'gpt"x', '"gpt"x'].map((model): [string, string, RegExp] => [
      'oa',
      `start_time,model,input_tokens,output_tokens,num_model_requests\n${START},gpt-x,1,1,1\n${START},${model},1,1,1\n`,
      /^usage line 3 cannot be read: a quotation mark stands where none may$/,
    ]),
  ];
  for (const [channel, text, message] of refusals)
    await assert.rejects(
      run(store, channel, text),
      (error: Error) => message.test(error.message) || assert.fail(`${error.message} is not ${message}`),
    );
});
