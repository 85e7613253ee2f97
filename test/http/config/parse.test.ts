import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { isObject, type JsonValue } from '../../../src/codecs/canonical/json.ts';
import { CA } from '../../support/certificates.ts';
import type { Config } from '../../../src/http/config/config.ts';
import { ConfigError } from '../../../src/http/config/config-error.ts';
import { parseConfig } from '../../../src/http/config/parse.ts';
import { CHANNEL_SCHEMAS } from '../../../src/http/config/channel-schema.ts';
import { CONFIG_SCHEMA } from '../../../src/http/config/schema.ts';
import { testRates } from '../../support/test-gateway.ts';

const options = {
  env: { KEY: 'sk-secret', EMPTY: '' },
  readFile(path: string) {
    if (path === '/run/key') return 'sk-from-file\n';
    throw Object.assign(new Error('no'), { code: 'ENOENT' });
  },
  parsePrice: (price: unknown, { path = '' }: { path?: string } = {}) =>
    JSON.stringify(price).includes('bad')
      ? { ok: false as const, refusal: { reason: 'invalid' as const, field: `${path}.input`, message: 'is no number' } }
      : { ok: true as const, value: testRates(price) },
  path: '/etc/mizu/mizu.config.json',
  revision: 1,
  nowMs: 0,
};
const parse = (text: string, more: object = {}): Config => parseConfig(text, { ...options, ...more });
const problemsOf = (file: unknown): string[] => {
  try {
    parse(typeof file === 'string' ? file : JSON.stringify(file));
  } catch (error) {
    assert.ok(error instanceof ConfigError);
    return error.problems.map(({ path, message }) => `${path}: ${message}`);
  }
  return [];
};
/** A reference as it stands in a file. */
const ref = (name: string): string => `\${${name}}`;
const channel = (changes: object = {}) => ({
  id: 'a',
  type: 'chat_completion',
  base_url: 'http://x',
  api_key: 'k',
  models: ['m'],
  ...changes,
});
const file = (changes: object) => ({ channels: [channel(changes)], models: { m: { price: { input: '1' } } } });

test('comments, secrets, defaults and overrides', () => {
  const config = parse(
    `\uFEFF{ // a comment
      "store": { "path": "./data" },
      "channels": [ { "id": "a", "type": "messages", "base_url": "https://api.example.com/", "api_key": "\${KEY}",
                      "models": { "m": "upstream-m" }, "options": { "headers": { "X-A": "\${file:/run/key}", "x-b": "$\${KEY}" } } }, ],
      "models": { "m": { "price": { "input": "1.5" }, "thinking": "budget" } }
    }`,
    { host: '0.0.0.0', port: 9 },
  );
  const [only] = config.channels;
  assert.equal(only?.apiKey, 'sk-secret');
  assert.equal(only?.options.headers.get('x-a'), 'sk-from-file');
  assert.equal(only?.options.headers.get('x-b'), ref('KEY'));
  assert.equal(only?.options.auth, 'x-api-key');
  assert.equal(only?.models.get('m'), 'upstream-m');
  assert.equal(only?.opaqueScope, 'https://api.example.com');
  assert.deepEqual(config.listen, { host: '0.0.0.0', port: 9 });
  assert.equal(config.storePath, '/etc/mizu/data');
  assert.equal(config.commitAfterMs, 10_000);
  assert.equal(config.models.get('m')?.facts.thinking, 'budget');
  assert.ok(Object.isFrozen(config));
});

test('the defaults that the schema states are those of a file that says nothing', () => {
  const stated = (schema: JsonValue | undefined): JsonValue | undefined => {
    if (!isObject(schema)) return undefined;
    if (schema['default'] !== undefined) return schema['default'];
    const members = Object.entries(isObject(schema['properties']) ? schema['properties'] : {})
      .map(([key, member]) => [key, stated(member)] as const)
      .filter(([, value]) => value !== undefined);
    return members.length === 0 ? undefined : Object.fromEntries(members);
  };
  const written: JsonValue = JSON.parse(JSON.stringify(CONFIG_SCHEMA));
  const said = stated(written);
  const endpoint = 'http://collector';
  assert.ok(isObject(said) && isObject(said['tracing']));
  const spoken = { ...said, tracing: { ...said['tracing'], endpoint } };
  assert.deepEqual(parse(JSON.stringify(spoken)), parse(JSON.stringify({ tracing: { endpoint } })));
  for (const schema of Object.values(CHANNEL_SCHEMAS)) {
    const said = stated(JSON.parse(JSON.stringify(schema)));
    assert.ok(isObject(said) && isObject(said['options']));
    const { max_queue: _queue, queue_ms: _wait, ...options } = said['options'];
    const built = (changes: object) => {
      const [only] = parse(JSON.stringify(file({ type: schema.properties.type.const, ...changes }))).channels;
      return { ...only, fingerprint: '' };
    };
    assert.deepEqual(built({ ...said, options }), built({}));
    // These two stand only beside a limit.
    const limited = { ...options, max_concurrency: 1 };
    assert.deepEqual(built({ ...said, options: { ...said['options'], ...limited } }), built({ options: limited }));
  }
});

test('the base URL: the version is put between where there is none', () => {
  const path = (type: string, base_url: string) => {
    const [only] = parse(JSON.stringify(file({ type, base_url }))).channels;
    return `${only?.origin}${only?.versionedPath}`;
  };
  assert.equal(path('chat_completion', 'https://h'), 'https://h/v1');
  assert.equal(path('chat_completion', 'https://h/v1/'), 'https://h/v1');
  assert.equal(path('chat_completion', 'https://h/api/v3'), 'https://h/api/v3');
  assert.equal(path('responses', 'https://h/openai'), 'https://h/openai/v1');
  assert.equal(path('gemini', 'https://h'), 'https://h/v1beta');
  assert.equal(path('gemini', 'https://h/v1alpha'), 'https://h/v1alpha');
});

test('what a Channel switches on is what its codec is told, and nothing is on by itself', () => {
  const told = (type: string, options?: object) => {
    const [only] = parse(JSON.stringify(file({ type, ...(options === undefined ? {} : { options }) }))).channels;
    return { codec: only?.codec, video: only?.video, image: only?.image };
  };
  const codecOptions = {
    legacy_output_cap: 'legacyOutputCap',
    replay_reasoning_content: 'replayReasoningContent',
    accept_done_without_finish: 'acceptDoneWithoutFinish',
    developer_as_system: 'developerAsSystem',
    lower_custom_tools: 'lowerCustomTools',
  };
  const of: Readonly<Record<string, readonly string[]>> = {
    chat_completion: Object.keys(codecOptions),
    responses: [],
    messages: ['replay_reasoning_content', 'lower_custom_tools'],
    gemini: ['lower_custom_tools'],
  };
  for (const [type, names] of Object.entries(of)) {
    assert.deepEqual(told(type).codec, {});
    for (const [name, known] of Object.entries(codecOptions)) {
      if (names.includes(name)) assert.deepEqual(told(type, { [name]: true }).codec, { [known]: true }, `${type} ${name}`);
      else assert.throws(() => told(type, { [name]: true }), /is not a known key/, `${type} ${name}`);
      if (names.includes(name)) assert.deepEqual(told(type, { [name]: false }).codec, {}, `${type} ${name}`);
    }
  }
  assert.equal(told('messages').video, undefined);
  assert.deepEqual(told('responses').image, { generationTool: false, defaults: {} });
  const image = { image_enable_openai_generation_tool: true, image_defaults: { size: '1x1' } };
  assert.deepEqual(told('responses', image).image, { generationTool: true, defaults: { size: '1x1' } });
  assert.deepEqual(told('ark_video').video, { apiVersion: 'v1', pollIntervalMs: 5_000 });
  assert.deepEqual(told('minimax_video', { api_version: 'v2', poll_interval_ms: 7, poll_deadline_s: 60 }).video, {
    apiVersion: 'v2',
    pollIntervalMs: 7,
    pollDeadlineS: 60,
  });
});

test('the white space around a secret is none of it, wherever it comes from', () => {
  const env = { KEY: ' sk-secret\r\n' };
  for (const [name, key] of [
    ['KEY', 'sk-secret'],
    ['file:/run/key', 'sk-from-file'],
  ] as const) {
    assert.equal(parse(JSON.stringify(file({ api_key: ref(name) })), { env }).channels[0]?.apiKey, key);
  }
});

test('a compaction model stands beside the model that it compacts for, and beside no other', () => {
  const models = ['m', 'm-openai-compact'];
  assert.deepEqual(problemsOf(file({ type: 'responses', models })), []);
  assert.deepEqual(problemsOf(file({ models: ['m', 'x-openai-compact'] })), [
    'channels[0].models: "x-openai-compact" is not in models',
  ]);
});

test('members of the gateway are neither set nor dropped; a base URL has no query; MiniMax takes either version at its end', () => {
  const belongs = (name: string) => [`channels[0].options: the member ${name} belongs to the gateway`];
  assert.deepEqual(problemsOf(file({ options: { parameters: { stream: true } } })), belongs('stream'));
  assert.deepEqual(problemsOf(file({ options: { drop_parameters: ['messages'] } })), belongs('messages'));
  for (const end of ['?q', '#f']) {
    assert.deepEqual(problemsOf(file({ base_url: `http://x/v1${end}` })), [
      'channels[0].base_url: must not have a query or a fragment',
    ]);
  }
  const pathOf = (base_url: string, api_version: string) =>
    parse(JSON.stringify(file({ type: 'minimax_video', base_url, options: { api_version } }))).channels[0]?.versionedPath;
  for (const base of ['http://x', 'http://x/v1', 'http://x/v2/'])
    assert.deepEqual([pathOf(base, 'v1'), pathOf(base, 'v2')], ['/v1', '/v2'], base);
});

test('an address that readers could not paste into a shell is no public base URL', () => {
  const unfit = [
    'https://user:pass@host',
    'https://host/?q',
    'https://host/#f',
    'https://host/$(id)',
    "https://host/'",
    'https://host/a b',
    'https://host//a',
    'https://ho st',
    'https://münchen.example',
    'https://host\nx',
    'https://host:99999',
    'https://',
  ];
  const refused = ['public_base_url: must be a plain http or https URL: a host, a port, a path; no user, query or fragment'];
  for (const url of unfit) assert.deepEqual(problemsOf({ public_base_url: url }), refused, url);
  for (const url of ['javascript:alert(1)', 'ftp://host', 'host:8080', ''])
    assert.match(problemsOf({ public_base_url: url }).join(), /^public_base_url: /, url);
  for (const url of ['http://127.0.0.1:8080', 'https://[::1]:8443', 'https://a.b/c/d_e'])
    for (const end of ['', '/', '//']) assert.equal(parse(JSON.stringify({ public_base_url: url + end })).publicBaseUrl, url);
});

test('F42, V10: every problem names its path, and no value of a secret', () => {
  assert.deepEqual(problemsOf('{'), [': not valid JSON: line 1: CloseBraceExpected']);
  assert.deepEqual(problemsOf(''), [': not valid JSON: line 1: ValueExpected']);
  assert.deepEqual(problemsOf('['.repeat(100_000)), [': not valid JSON: it is nested too deeply']);
  assert.deepEqual(problemsOf({ nonsense: 1 }), ['nonsense: is not a known key']);
  assert.deepEqual(problemsOf({ node: { role: 'x' } }), ['node.role: must be one of "primary", "replica"']);
  assert.deepEqual(problemsOf({ listen: { prot: 1 } }), ['listen.prot: is not a known key; did you mean listen.port?']);
  assert.deepEqual(problemsOf('{"models": {}, "models": {}}'), ['models: is given twice']);
  assert.deepEqual(problemsOf(file({ type: 'smoke' })).length, 1);
  assert.match(problemsOf(file({ type: 'smoke' }))[0] ?? '', /^channels\[0\]\.type: must be one of /);
  assert.match(problemsOf(file({ weight: 'x' }))[0] ?? '', /^channels\[0\]\.weight: must be number/);
  assert.deepEqual(problemsOf(file({ options: { image_defaults: {} } })), [
    'channels[0].options.image_defaults: is not a known key',
  ]);
  assert.deepEqual(problemsOf({ node: { role: 1 } }), ['node.role: must be one of "primary", "replica"']);
  assert.deepEqual(problemsOf(file({ options: { auth: null } })), [
    'channels[0].options.auth: must be one of "bearer", "x-api-key", "x-goog-api-key", "none"',
  ]);
  assert.deepEqual(problemsOf(file({ options: { proxy: 'http://' } })), ['channels[0].options.proxy: is not a URL']);
  // The second is read as a whole escape where user and password are put together.
  for (const user of ['user:50%secret', 'a%4:1'])
    assert.deepEqual(problemsOf(file({ options: { proxy: `http://${user}@proxy:1` } })), [
      'channels[0].options.proxy: a % in its user or password is written %25',
    ]);
  assert.deepEqual(problemsOf({ tracing: { endpoint: 'http://:4318' } }), ['tracing.endpoint: is not a URL']);
  assert.deepEqual(problemsOf({ tracing: { endpoint: 'http://c:4318/?team=a' } }), [
    'tracing.endpoint: must not have a query or a fragment',
  ]);
  assert.deepEqual(problemsOf({ tracing: { endpoint: 'http://u:p@c:4318' } }), [
    'tracing.endpoint: must not hold credentials (use tracing.headers)',
  ]);
  assert.deepEqual(problemsOf({ store: { path: 'mysql://h/db' } }), [
    'store.path: must be a folder: a database is named by store.url',
  ]);
  assert.deepEqual(problemsOf(file({ models: ['other'] })), ['channels[0].models: "other" is not in models']);
  assert.deepEqual(problemsOf(file({ base_url: 'https://u:p@h' })), [
    'channels[0].base_url: must not hold credentials (use api_key)',
  ]);
  assert.deepEqual(problemsOf(file({ base_url: 'https://a b' })), ['channels[0].base_url: is not a URL']);
  for (const rest of ['?api-version=1', '#part'])
    assert.deepEqual(problemsOf(file({ base_url: `https://h/v1${rest}` })), [
      'channels[0].base_url: must not have a query or a fragment',
    ]);
  assert.deepEqual(problemsOf(file({ api_key: ref('1 KEY') })), [
    `channels[0].api_key: ${ref('1 KEY')} is neither an environment variable nor file:/path`,
  ]);
  assert.deepEqual(problemsOf(file({ api_key: ref('NOWHERE') })), [
    'channels[0].api_key: the environment variable NOWHERE is not set',
  ]);
  assert.deepEqual(problemsOf(file({ api_key: ref('EMPTY') })), [`channels[0].api_key: ${ref('EMPTY')} is empty`]);
  assert.deepEqual(problemsOf(file({ api_key: 'sk-one\nsk-two' })), [
    'channels[0].api_key: holds a character that a header cannot carry',
  ]);
  assert.deepEqual(problemsOf(file({ api_key: ref('file:/nowhere') })), [
    'channels[0].api_key: the file /nowhere cannot be read (ENOENT)',
  ]);
  assert.deepEqual(problemsOf(file({ options: { forward_headers: ['Authorization'] } })), [
    'channels[0].options.forward_headers: authorization is never forwarded',
  ]);
  assert.deepEqual(problemsOf(file({ options: { parameters: { a: 1 }, drop_parameters: ['a'] } })), [
    'channels[0].options.drop_parameters: a is also in parameters',
  ]);
  assert.deepEqual(problemsOf({ trusted_proxies: ['10.0.0.0/33'] }), [
    'trusted_proxies[0]: "10.0.0.0/33" is neither an address nor a CIDR range',
  ]);
  assert.deepEqual(problemsOf({ models: { m: { price: { input: 'bad' } } } }), ['models.m.price.input: is no number']);
  assert.deepEqual(problemsOf({ channels: [channel({ models: ['m'] }), channel()], models: { m: {} } }), [
    'channels[1].id: is the id of another channel, too: a',
  ]);
  assert.deepEqual(problemsOf({ tracing: { endpoint: 'http://h', headers: { a: 'x\ny' } } }), [
    'tracing.headers.a: is not a valid header value',
  ]);
  assert.deepEqual(problemsOf({ tracing: { endpoint: 'http://h', headers: { 'a b': 'x' } } }), [
    'tracing.headers["a b"]: is not a valid header name',
  ]);
  for (const name of ['', 'a b', 'x\r\ny', 'a:', 'ü', '(a)'])
    assert.deepEqual(
      problemsOf(file({ options: { headers: { [name]: 'x' } } })),
      [`channels[0].options.headers[${JSON.stringify(name)}]: is not a valid header name`],
      name,
    );
  assert.match(problemsOf({ listen: { host: 'a\u0000' } })[0] ?? '', /^listen\.host: must match pattern/);
  assert.deepEqual(problemsOf({ affinity: { max_entries: 1e9 } }), ['affinity.max_entries: must be <= 1000000']);
  assert.deepEqual(problemsOf({ limits: { json_bytes: 2 ** 32 } }), ['limits.json_bytes: must be <= 536870888']);
});

test('however many problems there are, each is named, beside secrets that are missing', () => {
  const words = Object.keys(CONFIG_SCHEMA.properties.limits.properties);
  assert.ok(words.length > 8, 'more than the eight errors that the library gives by itself');
  const file = {
    channels: [channel({ api_key: ref('NOWHERE'), base_url: ref('NOWHERE'), weight: 'x' })],
    limits: Object.fromEntries(words.map((word) => [word, 'x'])),
    health: { failures: 'x' },
  };
  assert.deepEqual(problemsOf(file), [
    'channels[0].base_url: the environment variable NOWHERE is not set',
    'channels[0].api_key: the environment variable NOWHERE is not set',
    ...words.map((word) => `limits.${word}: must be integer`),
    'health.failures: must be integer',
    'channels[0].weight: must be number',
  ]);
});

test('rules that span several keys are checked beside secrets that are missing', () => {
  const twice = channel({ id: 'twice' });
  const file = { channels: [channel({ id: 'twice', api_key: ref('NOWHERE') }), twice], trusted_proxies: ['nowhere'] };
  const found = problemsOf(file);
  assert.equal(found[0], 'channels[0].api_key: the environment variable NOWHERE is not set');
  assert.deepEqual(
    found.slice(1).map((problem) => problem.split(':')[0]),
    problemsOf({ ...file, channels: [twice, twice] }).map((problem) => problem.split(':')[0]),
  );
  assert.ok(found.length > 2, found.join('\n'));
});

test('what may be of several types is told all of them, or what is wrong with the one that it has', () => {
  const levels = '"debug", "info", "warn", "error", "silent"';
  assert.deepEqual(problemsOf({ log: { level: null } }), [`log.level: must be one of ${levels}`]);
  assert.deepEqual(problemsOf({ operations: 8081 }), ['operations: must be object or null']);
  assert.deepEqual(problemsOf({ operations: { host: 1 } }), ['operations.host: must be string']);
  assert.deepEqual(problemsOf({ operations: { prot: 1 } }), [
    'operations.prot: is not a known key; did you mean operations.port?',
  ]);
  assert.deepEqual(problemsOf(file({ models: 'm' })), ['channels[0].models: must be array or object']);
  assert.deepEqual(problemsOf(file({ models: [5] })), ['channels[0].models[0]: must be string']);
  assert.deepEqual(problemsOf(file({ opaque_scope: 5 })), ['channels[0].opaque_scope: must be string or null']);
});

test('a key that is not known is answered with the one that was meant: nearly the same, or the same at another place', () => {
  const unknown = (config: object) => problemsOf(config).filter((problem) => problem.includes('not a known key'));
  const channelWith = (changes: object) => unknown(file(changes))[0];
  assert.deepEqual(unknown({ chanels: [] }), ['chanels: is not a known key; did you mean channels?']);
  assert.deepEqual(unknown({ drain: 5 }), ['drain: is not a known key']);
  assert.equal(channelWith({ baseurl: 'x' }), 'channels[0].baseurl: is not a known key; did you mean channels[0].base_url?');
  assert.equal(channelWith({ Priority: 1 }), 'channels[0].Priority: is not a known key; did you mean channels[0].priority?');
  assert.equal(
    channelWith({ max_concurrency: 5 }),
    'channels[0].max_concurrency: is not a known key; did you mean channels[0].options.max_concurrency?',
  );
  assert.equal(
    channelWith({ options: { idle_ms: 5 } }),
    'channels[0].options.idle_ms: is not a known key; did you mean channels[0].timeouts.idle_ms?',
  );
  assert.deepEqual(unknown({ models: { m: { channels: ['a'] } } }).slice(0, 1), [
    'models.m.channels: is not a known key; did you mean channels, at the top of the file?',
  ]);
  assert.deepEqual(unknown({ probe_ms: 5000 }), ['probe_ms: is not a known key; did you mean health.probe_ms?']);
  assert.deepEqual(unknown({ base_url: 'https://h' }), ['base_url: is not a known key; did you mean channels[].base_url?']);
  assert.deepEqual(unknown({ models: { m: { prise: {} } } }), [
    'models.m.prise: is not a known key; did you mean models.m.price?',
  ]);
  assert.deepEqual(unknown({ ['__proto__x']: 1, x: 1 }).length, 2);
});

test('keys that contradict each other are named', () => {
  const conflicts: readonly (readonly [object | string, string])[] = [
    [file({ options: { max_queue: 5 } }), 'channels[0].options.max_queue: has no meaning without max_concurrency'],
    [file({ options: { queue_ms: 5 } }), 'channels[0].options.queue_ms: has no meaning without max_concurrency'],
    [
      file({ options: { headers: { 'X-Team': 'a' }, forward_headers: ['x-team'] } }),
      'channels[0].options.forward_headers: x-team is also in headers',
    ],
    [file({ options: { headers: { 'X-A': 'a', 'x-a': 'b' } } }), 'channels[0].options.headers["x-a"]: is given twice'],
    [file({ options: { parameters: { stream: true } } }), 'channels[0].options: the member stream belongs to the gateway'],
    [{ listen: { port: 9000 }, operations: { port: 9000 } }, 'operations.port: must differ from listen.port'],
    [
      { models: { m: { min_thinking_budget: 5, max_thinking_budget: 4 } } },
      'models.m.min_thinking_budget: is over max_thinking_budget',
    ],
  ];
  for (const [config, problem] of conflicts) assert.deepEqual(problemsOf(config), [problem]);
  const sharedPort = ['operations.port: must differ from listen.port'];
  assert.deepEqual(problemsOf({ listen: { port: 8081 } }), [], 'the default one gives way');
  assert.deepEqual(problemsOf({ listen: { host: '0.0.0.0', port: 9000 }, operations: { port: 9000 } }), sharedPort);
  assert.deepEqual(problemsOf({ listen: { port: 9000 }, operations: { host: '::', port: 9000, insecure: true } }), sharedPort);
  const open = ['operations.host: beyond this machine needs operations.tls, or operations.insecure: true'];
  assert.deepEqual(problemsOf({ operations: { host: '0.0.0.0' } }), open);
  assert.deepEqual(problemsOf({ operations: { host: 'mizu.internal', insecure: false } }), open);
  assert.deepEqual(problemsOf({ operations: { host: 'localhost' } }), []);
  const tls = { cert: 'no certificate', key: 'no key' };
  assert.match(problemsOf({ operations: { host: '0.0.0.0', tls } })[0] ?? '', /^operations\.tls: is no certificate with its key/);
  assert.deepEqual(problemsOf({ listen: { port: 8081 }, operations: null }), []);
  assert.deepEqual(problemsOf({ listen: { port: 0 }, operations: { port: 0 } }), []);
  assert.deepEqual(problemsOf({ listen: { port: 9000 }, operations: { host: '127.0.0.2', port: 9000 } }), []);
});

test('headers of the connection itself are the gateway’s, and a certificate must be one', () => {
  for (const name of [
    'Connection',
    'Keep-Alive',
    'Upgrade',
    'Expect',
    'TE',
    'Trailer',
    'Proxy-Connection',
    'Host',
    'Content-Length',
  ]) {
    assert.deepEqual(problemsOf(file({ options: { headers: { [name]: 'x' } } })), [
      `channels[0].options.headers[${JSON.stringify(name)}]: is set by the gateway itself`,
    ]);
    assert.deepEqual(problemsOf(file({ options: { forward_headers: [name] } })), [
      `channels[0].options.forward_headers: ${name.toLowerCase()} is never forwarded`,
    ]);
  }
  assert.deepEqual(problemsOf(file({ options: { headers: { 'x-a': 'ä\u0007' } } })), [
    'channels[0].options.headers["x-a"]: is not a valid header value',
  ]);
  assert.deepEqual(problemsOf(file({ options: { ca: 'no certificate' } })), ['channels[0].options.ca: holds no PEM certificate']);
  const broken = CA.replace(/[A-Za-z0-9+/]{20}/, 'AAAAAAAAAAAAAAAAAAAA');
  assert.deepEqual(problemsOf(file({ options: { ca: broken } })), ['channels[0].options.ca: holds no PEM certificate']);
  assert.deepEqual(problemsOf(file({ options: { ca: CA } })), []);
});

test('mizu.schema.json is generated from the schema and current', () => {
  const committed: unknown = JSON.parse(readFileSync('mizu.schema.json', 'utf8'));
  assert.deepEqual(committed, JSON.parse(JSON.stringify(CONFIG_SCHEMA)), 'run: npm run docs');
});

test('a secret that stands anywhere is in no problem’s words', () => {
  const canary = 'canary-secret-value';
  const whole = {
    listen: { host: '127.0.0.1' },
    tracing: { endpoint: 'http://127.0.0.1:4318', headers: { 'x-key': 'k' } },
    public_base_url: 'https://x.example',
    trusted_proxies: ['10.0.0.0/8'],
    log: { level: 'info' },
    channels: [
      channel({
        options: { headers: { 'x-a': 'b' }, parameters: { a: 'b' }, proxy: 'http://p:1', ca: CA, auth: 'bearer', path: '/x' },
        file_scope: 's',
      }),
    ],
    models: { m: { kind: 'text', price: { input: '1' }, thinking: 'budget' } },
  };
  assert.deepEqual(problemsOf(whole), []);
  const text = JSON.stringify(whole);
  let places = 0;
  for (const found of text.matchAll(/:"([^"]*)"|\["([^"]*)"\]/g)) {
    const value = found[1] ?? found[2] ?? '';
    const at = found.index + found[0].indexOf(value);
    const planted = `${text.slice(0, at)}\${CANARY}${text.slice(at + value.length)}`;
    places += 1;
    let problems = '';
    try {
      parse(planted, { env: { CANARY: canary } });
    } catch (error) {
      problems = String(error);
    }
    // A model and a range are named in problems on purpose: they are no place for a secret.
    if (!/is not in models|neither an address/.test(problems)) assert.doesNotMatch(problems, /canary/, planted);
  }
  assert.ok(places > 15);
});
