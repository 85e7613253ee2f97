/** E2 and E4 20 to 25, 42, 43: what a client may try to make the gateway do, tell or become. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { test } from 'node:test';
import { createEnvelopes } from '../../../src/codecs/envelope.ts';
import { sanitise } from '../../../src/codecs/errors/sanitise.ts';
import { decodeVideoRequest } from '../../../src/codecs/videos/request.ts';
import { createOperationsServer } from '../../../src/http/operations/operations.ts';
import { reportsOf } from '../../../src/http/operations/reports.ts';
import { eventually, KEY, testConfig, testGateway } from '../../support/test-gateway.ts';
import { processorMs } from './support/processor-time.ts';
import { bodyOf, CLIENTS, chunk, exchange, GOOD, PATHS, rig, STREAM_HEAD, TYPES } from './support/rig.ts';

const fine = ({ socket, path, body }: { socket: { write(text: string): unknown }; path: string; body: string }): void => {
  const type = TYPES.find((name) => path.includes(name) || body.includes(`"${name}"`)) ?? 'gemini';
  socket.write(`${STREAM_HEAD}${GOOD[type].map((frame) => chunk(frame).toString()).join('')}0\r\n\r\n`);
};

test('F25, V1, V2, V3, V4: SSRF: no member, header or link of a client makes the gateway open a connection', async () => {
  await using r = await rig();
  r.answer = fine;
  let visits = 0;
  const trap = createServer((socket) => {
    visits++;
    socket.destroy();
  });
  await new Promise<void>((resolve) => trap.listen(0, '127.0.0.1', resolve));
  const address = trap.address();
  const evil = `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`;
  const members = {
    api_base: evil,
    base_url: evil,
    baseURL: evil,
    api_key: 'sk-evil',
    custom_llm_provider: evil,
    host: evil,
    callback_url: evil,
    webhook: evil,
    proxy: evil,
    user_config: { model_list: [{ model_name: 'm', litellm_params: { api_base: evil } }], router_settings: { api_base: evil } },
    extra_body: { api_base: evil, base_url: evil },
    extra_headers: { host: evil },
    metadata: { api_base: evil },
    fallbacks: [evil],
    models: [evil],
    litellm_params: { api_base: evil },
  };
  const headers = {
    'x-portkey-custom-host': evil,
    'x-forwarded-host': evil,
    'x-forwarded-for': '127.0.0.1',
    'x-original-url': '/metrics',
    'x-rewrite-url': '/metrics',
    'openai-base-url': evil,
    'x-base-url': evil,
    'x-upstream': evil,
    referer: evil,
    origin: evil,
  };
  const image = `${evil}/cat.png`;
  const content: Readonly<Record<(typeof CLIENTS)[number], object>> = {
    chat: {
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: evil },
            { type: 'image_url', image_url: { url: image } },
          ],
        },
      ],
    },
    messages: {
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: evil },
            { type: 'image', source: { type: 'url', url: image } },
          ],
        },
      ],
    },
    responses: {
      input: [
        {
          role: 'user',
          content: [
            { type: 'input_text', text: evil },
            { type: 'input_image', image_url: image },
          ],
        },
      ],
    },
  };
  for (const type of TYPES) {
    for (const client of CLIENTS) {
      const response = await r.gateway.post(
        PATHS[client],
        { ...bodyOf(client, type, true), ...members, ...content[client] },
        { headers },
      );
      await response.text();
      assert.ok([200, 400].includes(response.status), `${client} ${type} ${response.status}`);
    }
  }
  for (const { headers: sent, body } of r.upstream.requests) {
    assert.doesNotMatch([...sent].join(), /sk-evil|portkey|x-forwarded|sk-mizu-test/);
    assert.match([...sent].join(), /sk-upstream-canary/);
    const json = JSON.parse(body) as Record<string, unknown>;
    for (const name of ['api_base', 'base_url', 'user_config', 'fallbacks', 'models'])
      assert.equal(Object.hasOwn(json, name), false, name);
  }
  const edits = await r.gateway.post('/v1/images/edits', { model: 'messages', prompt: 'x', images: [{ image_url: image }] });
  assert.ok(edits.status >= 400);
  assert.throws(() => decodeVideoRequest({ model: 'm', prompt: 'x', callback_url: evil }), /callback_url/);
  await new Promise((resolve) => setTimeout(resolve, 50));
  assert.equal(visits, 0);
  trap.close();
});

test('F22: prototype pollution: such keys are data at every level, and nobody becomes anything', async () => {
  await using r = await rig();
  r.answer = fine;
  const before = Object.getOwnPropertyNames(Object.prototype).sort();
  const poison = '"__proto__":{"polluted":1,"admin":true},"constructor":{"prototype":{"polluted":1}},"prototype":{"polluted":1}';
  const bodies: Readonly<Record<(typeof CLIENTS)[number], (model: string) => string>> = {
    chat: (m) =>
      `{${poison},"model":"${m}","stream":true,"messages":[{${poison},"role":"user","content":[{${poison},"type":"text","text":"x"}]},{"role":"assistant","tool_calls":[{"id":"c","type":"function",${poison},"function":{${poison},"name":"__proto__","arguments":"{${poison.replaceAll('"', '\\"')}}"}}]},{"role":"tool","tool_call_id":"c","content":"x"}],"tools":[{"type":"function","function":{"name":"__proto__","parameters":{"type":"object",${poison},"properties":{${poison}}}}}],"metadata":{"__proto__":"x"}}`,
    messages: (m) =>
      `{${poison},"model":"${m}","max_tokens":9,"stream":true,"messages":[{${poison},"role":"user","content":"x"},{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"constructor","input":{${poison}}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"x"}]}],"tools":[{"name":"constructor","input_schema":{"type":"object",${poison}}}]}`,
    responses: (m) =>
      `{${poison},"model":"${m}","stream":true,"input":[{${poison},"role":"user","content":"x"},{"type":"function_call","call_id":"c","name":"__proto__","arguments":"{${poison.replaceAll('"', '\\"')}}"},{"type":"function_call_output","call_id":"c","output":"x"}],"tools":[{"type":"function","name":"__proto__","parameters":{"type":"object",${poison}}}],"text":{"format":{"type":"json_schema","name":"f","schema":{${poison}}}}}`,
  };
  for (const type of TYPES) {
    for (const client of CLIENTS) {
      const response = await r.gateway.post(PATHS[client], bodies[client](type));
      const text = await response.text();
      assert.ok(
        response.status === 200 || response.status === 400,
        `${client} ${type}: ${response.status} ${text.slice(0, 200)}`,
      );
      assert.deepEqual(Object.getOwnPropertyNames(Object.prototype).sort(), before);
      assert.equal(Object.hasOwn(Object.prototype, 'polluted'), false);
    }
  }
  r.answer = ({ socket }) => {
    const text = `{${poison},"id":"m","type":"message","role":"assistant","model":"x","content":[{${poison},"type":"tool_use","id":"t","name":"__proto__","input":{${poison}}}],"stop_reason":"tool_use","usage":{${poison},"input_tokens":1,"output_tokens":1}}`;
    socket.write(`HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${text.length}\r\n\r\n${text}`);
  };
  for (const client of CLIENTS) assert.equal((await exchange(r, client, 'messages', false)).status, 200);
  assert.equal(({} as Record<string, unknown>)['polluted'], undefined);
  assert.throws(() => testConfig(JSON.parse(`{${poison}}`) as object), /__proto__|constructor|unknown|polluted/i);
  const config = testConfig(JSON.parse('{"models":{"__proto__":{"price":{"input":"1"}}},"channels":[]}') as object);
  assert.ok(!('price' in Object.prototype) && config.models.size <= 1);
});

test('F10, F42, V8, V12: canary: no secret in logs, answers, errors or metrics, whatever fails', async () => {
  await using r = await rig();
  const canary = 'CANARY-7f3a9';
  r.answer = ({ socket }) => {
    const text = JSON.stringify({
      error: {
        message: `key sk-upstream-canary at http://10.1.2.3:8080/x for org-${canary}abcdef user me@corp.internal \u001b[31m\r\nset-cookie: a=b <script>`,
        type: 't',
        code: 'c',
      },
    });
    socket.write(
      `HTTP/1.1 400 X\r\nset-cookie: ${canary}\r\nx-ratelimit-org: ${canary}\r\nserver: secretproxy\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`,
    );
  };
  const seen: string[] = [];
  for (const type of TYPES) {
    for (const client of CLIENTS) {
      for (const stream of [true, false]) {
        const headers = { cookie: canary, 'x-custom': canary, 'proxy-authorization': `Basic ${canary}`, 'anthropic-beta': 'b' };
        const response = await r.gateway.post(
          `${PATHS[client]}?key=${canary}`,
          bodyOf(client, type, stream, { user: `u-${canary}` }),
          { headers },
        );
        seen.push(JSON.stringify([...response.headers]), await response.text());
      }
    }
  }
  const wrong = await r.gateway.post(PATHS.chat, {}, { headers: { authorization: `Bearer ${canary}-key` } });
  seen.push(await wrong.text());
  const forbidden = /CANARY|sk-upstream|sk-mizu-test|10\.1\.2\.3|corp\.internal|secretproxy|<script/;
  for (const text of seen) {
    assert.doesNotMatch(text, forbidden);
    assert.ok(!text.includes('\u001b'));
  }
  assert.doesNotMatch(r.gateway.logLines.join(''), /CANARY-7f3a9-key|sk-upstream|sk-mizu-test/);
  for (const line of r.gateway.logLines) JSON.parse(line);
  const metrics = await r.gateway.running.gateway.metrics.registry.metrics();
  assert.doesNotMatch(metrics, forbidden);
  const operations = createOperationsServer(reportsOf(r.gateway.running.gateway), r.gateway.running.gateway.log);
  const port = await operations.listen('127.0.0.1', 0);
  for (const path of ['/metrics', '/healthz', '/channels']) {
    assert.doesNotMatch(
      await (await fetch(`http://127.0.0.1:${port}${path}`)).text(),
      /sk-upstream|sk-mizu|base_url|127\.0\.0\.1/,
    );
    assert.equal((await fetch(`${r.gateway.url}${path}`)).status, 404, `${path} is not on the public port`);
  }
  await operations.close();
  assert.doesNotMatch(await (await fetch(`${r.gateway.url}/readyz`)).text(), /sk-|http|127/);
});

test('F20: headers and log lines cannot be injected into', async () => {
  await using r = await rig();
  r.answer = fine;
  for (const value of ['2023-06-01', 'x'.repeat(10_000), 'caf\u00e9', 'a\tb']) {
    const response = await r.gateway.post(PATHS.messages, bodyOf('messages', 'messages', true), {
      headers: { 'anthropic-version': value, 'anthropic-beta': value },
    });
    await response.text();
    assert.equal(response.status, 200, JSON.stringify(value.slice(0, 20)));
  }
  const model = 'm"\n{"level":"fatal"}\r\n\u001b[2J\u2028';
  const response = await r.gateway.post(PATHS.chat, bodyOf('chat', model, true));
  assert.equal(response.status, 404);
  assert.doesNotMatch(await response.text(), /\p{Cc}/u);
  for (const line of r.gateway.logLines) assert.equal(line.trimEnd().split('\n').length, 1);
});

test('F43: label cardinality: 2000 names of models, paths and keys add no metric line', async () => {
  await using r = await rig();
  const before = (await r.gateway.running.gateway.metrics.registry.metrics()).split('\n').length;
  for (let n = 0; n < 2000; n += 100) {
    await Promise.all(
      Array.from({ length: 100 }, async (_, i) => {
        const id = n + i;
        const kind = id % 3;
        if (kind === 0) return await (await r.gateway.post(PATHS.chat, bodyOf('chat', `model-${id}`, true))).text();
        if (kind === 1) return await (await fetch(`${r.gateway.url}/v1/path-${id}`)).text();
        return await (await r.gateway.post(PATHS.chat, {}, { headers: { authorization: `Bearer sk-${id}` } })).text();
      }),
    );
  }
  const after = (await r.gateway.running.gateway.metrics.registry.metrics()).split('\n').length;
  assert.ok(after - before < 80, `${before} lines, then ${after}`);
});

test('F15: one tenant cannot shut a Channel for the others by what it sends', async () => {
  await using r = await rig({ health: { failures: 5, refused_cooldown_ms: 60_000 } });
  r.answer = fine;
  for (let n = 0; n < 20; n++) {
    const odd = await r.gateway.post(PATHS.messages, bodyOf('messages', 'messages', true), {
      headers: { 'anthropic-beta': `caf\u00e9 ${n}` },
    });
    await odd.text();
  }
  const refuse =
    (code: number, text: string) =>
    ({ socket }: { socket: { write(text: string): unknown } }): void =>
      void socket.write(`HTTP/1.1 ${code} X\r\ncontent-type: application/json\r\ncontent-length: ${text.length}\r\n\r\n${text}`);
  for (const [code, text] of [
    [400, '{"error":{"message":"bad"}}'],
    [413, '{"error":{"message":"large"}}'],
    [
      403,
      '{"error":{"message":"Your chosen model requires moderation and your input was flagged","code":403,"metadata":{"reasons":["violence"],"flagged_input":"x"}}}',
    ],
    [404, '{"error":{"message":"Conversation with id conv_x not found.","param":"conversation"}}'],
    [404, '{"error":{"message":"No such File object: file-x","param":"id"}}'],
    [
      404,
      '{"error":{"message":"The model `gpt-image-99` does not exist or you do not have access to it.","code":"model_not_found"}}',
    ],
    [404, '{"type":"error","error":{"type":"not_found_error","message":"model: no-such-adviser"}}'],
    [403, '{"error":{"message":"Your organization must be verified to use the model `gpt-image-1`.","code":null}}'],
    [403, '{"error":{"message":"Project `proj_1` does not have access to model `gpt-image-1`","code":"model_not_found"}}'],
    [404, '{"error":{"message":"No allowed providers are available for the selected model.","code":404}}'],
    [404, '{"error":{"message":"No endpoints found that support image input","code":404}}'],
    [
      402,
      '{"error":{"message":"This request requires more credits, or fewer max_tokens. You requested up to 65536 tokens, but can only afford 30104.","code":402}}',
    ],
    [
      429,
      '{"error":{"message":"Request too large for gpt-x on tokens per min (TPM): Limit 30000, Requested 45678. The input or output tokens must be reduced in order to run successfully.","type":"tokens","code":"rate_limit_exceeded"}}',
    ],
  ] as const) {
    r.answer = refuse(code, text);
    for (let n = 0; n < 10; n++) await exchange(r, 'chat', 'messages', true);
  }
  r.answer = fine;
  const after = await exchange(r, 'chat', 'messages', true);
  assert.equal(after.status, 200, after.text);
});

test('V7: envelopes: every flipped bit, cut, extension and foreign account opens to nothing', () => {
  const secret = { id: 1, bytes: new Uint8Array(32).fill(7) };
  const envelopes = createEnvelopes({ current: () => secret, byId: (id) => (id === 1 ? secret : undefined) });
  const opaque = {
    owner: { channelType: 'responses', scope: 'https://a.example', model: 'm' },
    value: 'secret reasoning',
  } as const;
  const sealed = envelopes.seal(opaque, 'acct_1');
  assert.equal(envelopes.opener('acct_1')(sealed)?.value, opaque.value);
  assert.equal(envelopes.opener('acct_2')(sealed), undefined);
  const bytes = Buffer.from(sealed.slice(4), 'base64url');
  for (let bit = 0; bit < bytes.length * 8; bit++) {
    const forged = Buffer.from(bytes);
    forged[bit >> 3] = (forged[bit >> 3] ?? 0) ^ (1 << (bit & 7));
    assert.equal(envelopes.opener('acct_1')(`mz2.${forged.toString('base64url')}`), undefined, `bit ${bit}`);
  }
  for (let length = 0; length < sealed.length; length++)
    assert.equal(envelopes.opener('acct_1')(sealed.slice(0, length)), undefined);
  for (const odd of [
    `${sealed}A`,
    `${sealed}=`,
    sealed.toUpperCase(),
    ` ${sealed}`,
    `mz3.${sealed.slice(4)}`,
    'mz2.',
    `mz2.${'A'.repeat(1_000_000)}`,
  ])
    assert.equal(envelopes.opener('acct_1')(odd), undefined, odd.slice(0, 20));
});

test('F23: sanitise: a megabyte of anything takes no long turn of the event loop', () => {
  const pieces = [
    'a',
    'a-',
    'a.',
    'a@',
    'a-a.',
    '<',
    '< ',
    '1.',
    'f:',
    'sk-',
    'http',
    'a://',
    'bearer ',
    '=',
    'A_',
    'invalid ',
    '\u0000',
    '\\"',
    'localhost:',
    'com.',
  ];
  for (const piece of pieces) {
    const text = piece.repeat(Math.ceil(1_000_000 / piece.length));
    const ms = processorMs(() => void sanitise(text, 'x'));
    assert.ok(ms < 150, `${JSON.stringify(piece)} took ${Math.round(ms)} ms`);
  }
});

test('F22: hash flooding: keys that collide as numbers or by length cost no more than others', () => {
  const time = (keys: readonly string[]): number => {
    const text = `{${keys.map((key) => `"${key}":1`).join()}}`;
    return processorMs(() => void JSON.parse(text));
  };
  const count = 100_000;
  const plain = time(Array.from({ length: count }, (_, n) => `key${n}`));
  const numeric = time(Array.from({ length: count }, (_, n) => String(n * 1_048_576 + 7)));
  assert.ok(numeric < plain * 20 + 500, `${Math.round(plain)} ms, ${Math.round(numeric)} ms`);
});

test('F21: keys: a refusal takes as long for a key that is nearly right as for one that is not', async () => {
  await using gateway = await testGateway({ channels: [], models: {} });
  const time = async (key: string): Promise<number> => {
    const started = performance.now();
    const response = await fetch(`${gateway.url}/v1/models`, { headers: { 'x-api-key': key } });
    assert.equal(response.status, 401);
    await response.text();
    return performance.now() - started;
  };
  const near = `${KEY.slice(0, -1)}!`;
  const far = '!'.repeat(KEY.length);
  const [a, b]: [number[], number[]] = [[], []];
  for (let n = 0; n < 300; n++) {
    a.push(await time(near));
    b.push(await time(far));
  }
  const median = (list: number[]): number => list.sort((x, y) => x - y)[list.length >> 1] ?? 0;
  assert.ok(Math.abs(median(a) - median(b)) < 1, `${median(a)} and ${median(b)} ms: the digest is looked up, never the key`);
});

test('F46, V14: runtime dependencies are at or above the versions that closed their holes', () => {
  const lock = JSON.parse(readFileSync(new URL('../../../package-lock.json', import.meta.url), 'utf8')) as {
    packages: Record<
      string,
      { version?: string; integrity?: string; hasInstallScript?: boolean; dev?: boolean; link?: boolean; optional?: boolean }
    >;
  };
  const least: Readonly<Record<string, string>> = {
    undici: '8.10.2',
    ws: '8.21.0',
    '@mjackson/multipart-parser': '0.16.3',
    'eventsource-parser': '4.1.3',
    lmdb: '3.5.6',
    pino: '10.4.0',
    typebox: '1.4.3',
  };
  const parts = (version: string): number[] => version.split('.').map(Number);
  for (const [name, wanted] of Object.entries(least)) {
    const found = lock.packages[`node_modules/${name}`]?.version ?? '0';
    const [a, b] = [parts(found), parts(wanted)];
    const order = a.map((part, index) => part - (b[index] ?? 0)).find((difference) => difference !== 0) ?? 0;
    assert.ok(order >= 0, `${name} ${found} is below ${wanted}`);
  }
  const scripts = Object.entries(lock.packages)
    .filter(([path, entry]) => path !== '' && entry.hasInstallScript === true && entry.dev !== true)
    .map(([path]) => path.replace(/^.*node_modules\//, ''));
  const { allowScripts } = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8')) as {
    readonly allowScripts: Readonly<Record<string, boolean>>;
  };
  assert.deepEqual(
    scripts.filter((name) => !['lmdb', 'msgpackr-extract', 'node'].includes(name) && allowScripts[name] !== false),
    [],
    'none is run but those, and every other is denied by name',
  );
  for (const [path, entry] of Object.entries(lock.packages)) {
    if (path !== '' && entry.link !== true) assert.match(entry.integrity ?? '', /^sha512-/, path);
  }
  assert.ok(typeof eventually === 'function');
});
