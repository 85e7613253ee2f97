/**
 * The law of options: each option of each Channel type either changes something that can be observed, or is refused. What goes to
 * the upstream is observed here, by a request with and without it; of everything else a test is named that shows it.
 */
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { type TestContext, test } from 'node:test';
import { CHANNEL_TYPES, type ChannelType } from '../../../src/codecs/canonical/dialect.ts';
import { CHANNEL_SCHEMAS } from '../../../src/http/config/channel-schema.ts';
import { startSimulator } from '../../../src/simulator/simulator.ts';
import { optionsOf } from '../../support/print-options.ts';
import { eventually, testConfig, testGateway } from '../../support/test-gateway.ts';
import { VideoGateway } from '../videos/video-gateway.ts';

/** What stands in every Channel, or is a group whose members are walked by themselves. */
const REQUIRED: ReadonlySet<string> = new Set(['id', 'type', 'base_url', 'models', 'options.image_defaults']);

/** A value of each option that changes the request to the upstream. */
const ON_THE_WIRE: Readonly<Record<string, unknown>> = {
  api_key: 'sk-another',
  'options.path': '/their/own/path',
  'options.auth': 'none',
  'options.headers': { 'x-extra': 'yes' },
  'options.forward_headers': ['x-of-the-client'],
  'options.parameters': { extra: 1 },
  'options.drop_parameters': ['prompt', 'tools', 'generationConfig', 'content'],
  'options.legacy_output_cap': true,
  'options.replay_reasoning_content': true,
  'options.developer_as_system': true,
  'options.lower_custom_tools': true,
  'options.cache_breakpoints': 'auto',
  'options.router_cache_control': true,
  'options.image_defaults.size': '1024x1024',
  'options.image_defaults.quality': 'low',
  'options.image_defaults.background': 'opaque',
  'options.image_defaults.output_format': 'jpeg',
  'options.image_defaults.moderation': 'low',
  'options.image_enable_openai_generation_tool': true,
  'options.api_version': 'v2',
};

/** A value of every other option, and what shows it: a file of tests, and words of what stands in it. */
const ELSEWHERE: Readonly<Record<string, readonly [value: unknown, file: string, words: string]>> = {
  disabled: [true, 'processes/running-options', 'disabled:'],
  priority: [1, 'http/dispatch/candidates.test.ts', 'priority'],
  weight: [2, 'http/dispatch/candidates.test.ts', 'weight'],
  classes: [['gold'], 'processes/running-options', 'classes:'],
  file_scope: ['files', 'http/images/bad-input.test.ts', 'file_scope'],
  opaque_scope: ['scope', 'http/dispatch/conversation.test.ts', 'opaque_scope'],
  'timeouts.connect_ms': [10, 'http/videos/video-channel.test.ts', 'connect_ms'],
  'timeouts.first_data_ms': [10, 'processes/running-options', 'timeouts.first_data_ms'],
  'timeouts.idle_ms': [10, 'processes/running-options', 'timeouts.idle_ms'],
  'timeouts.write_stall_ms': [10, 'http/text/silence.test.ts', 'of its Channel'],
  'options.proxy': ['http://127.0.0.1:1', 'processes/running-options', 'options.proxy'],
  'options.ca': [undefined, 'http/videos/video-channel.test.ts', 'the certificate has expired'],
  'options.max_concurrency': [1, 'processes/running-options', 'options.max_concurrency'],
  'options.max_queue': [1, 'processes/running-options', 'options.max_queue'],
  'options.queue_ms': [1, 'processes/running-options', 'options.queue_ms'],
  'options.retries': [1, 'processes/running-options', 'options.retries'],
  'options.accept_done_without_finish': [true, 'codecs/chat', 'acceptDoneWithoutFinish'],
  'options.compaction': ['summary', 'e2e/open-responses', "compaction: 'summary'"],
  'options.websocket': [true, 'http/websocket/steering.test.ts', 'websocket: true'],
  'options.poll_interval_ms': [5, 'http/videos/outcomes.test.ts', 'poll_interval_ms'],
  'options.poll_deadline_s': [60, 'http/videos/outcomes.test.ts', 'poll_deadline_s'],
};

const pathsOf = (type: ChannelType): string[] => optionsOf(CHANNEL_SCHEMAS[type]).map(({ path }) => path);
const ALL = [...new Set(CHANNEL_TYPES.flatMap(pathsOf))].filter((path) => !REQUIRED.has(path));
const sampleOf = (path: string): unknown => ON_THE_WIRE[path] ?? ELSEWHERE[path]?.[0];

/** `{options: {path: …}}` for `options.path`. */
function changed(path: string): { readonly options?: object } {
  const [group, name = '', member] = path.split('.');
  const held = member === undefined ? sampleOf(path) : { [member]: sampleOf(path) };
  if (group !== 'options') return { [group ?? '']: name === '' ? sampleOf(path) : { [name]: held } };
  const needs = name === 'max_queue' || name === 'queue_ms' ? { max_concurrency: 1 } : {};
  return { options: { ...needs, [name]: held } };
}

const channel = (type: ChannelType, url: string, changes: object = {}): object => ({
  ...{ id: 'one', type, base_url: url, api_key: 'sk-simulated', models: ['m'] },
  ...changes,
});
const KINDS: Readonly<Record<string, string>> = {
  openai_image: 'image',
  openrouter_image: 'image',
  ark_video: 'video',
  minimax_video: 'video',
};
const models = (type: ChannelType): object => ({
  m:
    KINDS[type] === undefined
      ? { price: { input: '1', output: '2' } }
      : { kind: KINDS[type], price: { input: '1', output: '2' } },
});

test('every option has a value here, and a test that shows it exists', () => {
  for (const path of ALL) {
    assert.ok(Object.hasOwn(ON_THE_WIRE, path) !== Object.hasOwn(ELSEWHERE, path), path);
    const [, place = '', words = ''] = ELSEWHERE[path] ?? [];
    if (place === '') continue;
    const files = globSync('test/**/*.test.ts').filter((file) => file.includes(place));
    assert.ok(
      files.some((file) => readFileSync(file, 'utf8').includes(words)),
      `${path}: ${place} "${words}"`,
    );
  }
});

/** By its own path, or by that of the group that is not there. */
const refusesKey = ({ message }: Error, path: string): boolean =>
  [path, path.split('.').slice(0, -1).join('.')].some((each) => message.includes(`channels[0].${each}: is not a known key`));

test('an option that a Channel type does not have is refused by its path, any other is taken', () => {
  for (const type of CHANNEL_TYPES) {
    const known = new Set(pathsOf(type));
    for (const path of ALL) {
      if (sampleOf(path) === undefined) continue;
      const parse = (): unknown => testConfig({ channels: [channel(type, 'http://h', changed(path))], models: models(type) });
      if (known.has(path)) assert.doesNotThrow(parse, `${type} ${path}`);
      else assert.throws(parse, (error: Error) => refusesKey(error, path), `${type} ${path}`);
    }
  }
});

const READ = { type: 'object', properties: {} };
/** Conversations in which every switch of a codec finds something to do. */
const TALKS: readonly (readonly [path: string, body: object])[] = [
  [
    '/v1/chat/completions',
    {
      model: 'm',
      max_completion_tokens: 100,
      messages: [
        { role: 'developer', content: 'Be brief.' },
        { role: 'user', content: 'Read it.' },
        {
          ...{ role: 'assistant', content: null, reasoning_content: 'I should read it.' },
          tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'read', arguments: '{}' } }],
        },
        { role: 'tool', tool_call_id: 'call_1', content: 'It says hello.' },
      ],
      tools: [{ type: 'function', function: { name: 'read', parameters: READ } }],
    },
  ],
  [
    '/v1/messages',
    {
      model: 'm',
      max_tokens: 100,
      messages: [
        { role: 'user', content: 'Read it.' },
        {
          role: 'assistant',
          content: [
            { type: 'thinking', thinking: 'I should read it.', signature: '' },
            { type: 'tool_use', id: 'toolu_1', name: 'read', input: {} },
          ],
        },
        {
          role: 'user',
          content: [
            {
              ...{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'It says hello.' },
              cache_control: { type: 'ephemeral' },
            },
          ],
        },
      ],
      tools: [{ name: 'read', input_schema: READ }],
    },
  ],
  ['/v1/responses', { model: 'm', input: 'Patch it.', tools: [{ type: 'custom', name: 'patch' }] }],
];

/** What the upstream receives of one request, without what differs by itself. */
async function received(t: TestContext, type: ChannelType, changes: object): Promise<string> {
  if (KINDS[type] === 'video') return await videoReceived(t, type, changes);
  const simulator = await startSimulator();
  const isImage = KINDS[type] === 'image' || JSON.stringify(changes).includes('image_');
  await using gateway = await testGateway({ channels: [channel(type, simulator.url, changes)], models: models(type) });
  const asked = isImage ? ([['/v1/images/generations', { model: 'm', prompt: 'a cat', user: 'u' }]] as const) : TALKS;
  for (const [path, body] of asked) await (await gateway.post(path, body, { headers: { 'x-of-the-client': 'here' } })).text();
  const seen = simulator.requests.map(observed);
  await simulator.close();
  return JSON.stringify(seen);
}

async function videoReceived(t: TestContext, type: ChannelType, changes: object): Promise<string> {
  const id = type === 'ark_video' ? 'ark' : 'hailuo';
  const gateway = await VideoGateway.start(t, {}, 'primary', { channels: { [id]: changes } });
  await gateway.create({ model: id, prompt: 'a cat', duration: 6 }, 'one');
  await eventually(() => gateway.submissions() > 0, 'a submission');
  const seen = gateway.simulator.requests.filter(({ method }) => method === 'POST').map(observed);
  await gateway.stop();
  return JSON.stringify(seen);
}

function observed({ method, path, headers, text }: { method: string; path: string; headers: object; text: string }): unknown {
  const own = Object.entries(headers).filter(([name]) => !['host', 'content-length', 'content-type'].includes(name));
  // Forms have a boundary of their own, and calls ids.
  return [method, path, own.sort(), text.replaceAll(/slot[_a-zA-Z0-9]+|[0-9a-f]{32}/g, '')];
}

for (const type of CHANNEL_TYPES) {
  test(`${type}: each option that is for the wire changes what the upstream receives`, async (t) => {
    const unseen: string[] = [];
    const without = new Map<string, Promise<string>>();
    for (const path of pathsOf(type).filter((each) => Object.hasOwn(ON_THE_WIRE, each))) {
      const isPicture = path.includes('image_') && type === 'responses';
      const base =
        isPicture && path !== 'options.image_enable_openai_generation_tool' ? { image_enable_openai_generation_tool: true } : {};
      const with_ = changed(path);
      const tested = Object.keys(base).length === 0 ? with_ : { ...with_, options: { ...base, ...with_.options } };
      const plain = isPicture ? { options: { ...base, image_defaults: {} } } : {};
      const kind = JSON.stringify(plain);
      const seenWithout = without.get(kind) ?? received(t, type, plain);
      without.set(kind, seenWithout);
      if ((await seenWithout) === (await received(t, type, tested))) unseen.push(path);
    }
    assert.deepEqual(unseen, []);
  });
}
