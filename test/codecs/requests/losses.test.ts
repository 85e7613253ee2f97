/** What each upstream's loss table says is what its encoder does: a probe in every feature arrives, stays away, or is refused. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../../src/codecs/canonical/error.ts';
import type { Dialect } from '../../../src/codecs/canonical/dialect.ts';
import { REQUEST_FEATURES, type RequestFeature } from '../../../src/codecs/canonical/features.ts';
import type { Item, Media, MediaSource, Part, Role } from '../../../src/codecs/canonical/item.ts';
import type { JsonObject } from '../../../src/codecs/canonical/json.ts';
import type { CanonicalRequest, Tool } from '../../../src/codecs/canonical/request.ts';
import type { CodecOptions, Target, UpstreamCodec } from '../../../src/codecs/codec.ts';
import { CLIENTS, UPSTREAMS } from '../../../src/codecs/registry.ts';
import { openForTests, ownerOf, requestOf, sealForTests, targetOf } from '../../support/wire.ts';
import { DATA, FLIPS, judge, Matrix, PROBE, type Sign, withEntry } from '../../support/loss-verdict.ts';

interface Asked extends Partial<CanonicalRequest> {
  readonly sign?: Sign;
  readonly options?: CodecOptions;
}

const at = 'messages[1].content[0]';
const user: Item = { kind: 'text', role: 'user', text: 'hi', citations: [], at: 'messages[0].content' };
const says = (role: Role, text: string, more: object = {}): Item => ({ kind: 'text', role, text, citations: [], at, ...more });
const told = (...items: Item[]): Asked => ({ items: [user, ...items, { ...user, text: 'go on' }] });
const inline = (mime: string): MediaSource => ({ from: 'inline', mime, data: DATA });
const shown = (type: Media['type'], source: MediaSource, role: Role = 'user'): Item => ({
  kind: 'media',
  role,
  media: { type, source, at },
  at,
});
const asked = (...items: Item[]): Asked => ({ items: [user, ...items] });
const called = (more: object = {}): Item => ({
  kind: 'toolCall',
  toolType: 'function',
  callId: 'call_1',
  tool: { name: 'f' },
  input: '{}',
  at,
  ...more,
});
const answered = (content: Part, more: object = {}): Item => ({
  kind: 'toolResult',
  toolType: 'function',
  callId: 'call_1',
  content: [content],
  isError: false,
  at,
  ...more,
});
const text = (value: string): Part => ({ kind: 'text', text: value });
const tool: Tool = {
  kind: 'function',
  tool: { name: 'f' },
  parameters: { type: 'object', properties: {} },
  at: 'tools[0]',
};
const named = (name: string, more: object = {}): Tool => ({ ...tool, tool: { name }, ...more }) as Tool;
const schema = { type: 'object', properties: { [PROBE]: { type: 'string' } } };
const data = new RegExp(DATA);
const url = (ending: string): MediaSource => ({ from: 'url', url: `https://example.com/${PROBE}.${ending}` });
const foreign = { channelType: 'ark_video' as const, scope: 'https://up.example', model: 'up-model' };
const signed = ({ channelType, scope, model }: typeof foreign, form?: string) => ({
  owner: { channelType, scope, model },
  value: PROBE,
  ...(form === undefined ? {} : { form }),
});

/** A request for every feature, whose arrival can be read off the body. */
const REQUESTS: Record<RequestFeature, Asked | ((upstream: UpstreamCodec) => Asked)> = {
  'system text': { items: [says('system', PROBE), user] },
  'system text after the first turn': told(says('assistant', 'a'), says('system', PROBE)),
  'developer text': { items: [says('developer', PROBE), user] },
  'user text': { items: [says('system', 's'), says('user', PROBE)] },
  'assistant text': told(says('assistant', PROBE)),
  'assistant phase': { ...told(says('assistant', 'a', { phase: 'commentary' })), sign: /commentary/ },
  'refusal in history': told({ kind: 'refusal', text: PROBE, at }),
  'reasoning: raw text in history': {
    ...told({ kind: 'reasoning', raw: PROBE, at }, says('assistant', 'a')),
    options: { replayReasoningContent: true },
  },
  'reasoning: summary in history': {
    ...told({ kind: 'reasoning', summary: [PROBE], at }, says('assistant', 'a')),
    options: { replayReasoningContent: true },
  },
  'reasoning: opaque of this owner': (upstream) => {
    const opaque = { ...signed({ ...foreign, channelType: ownerOf(upstream).channelType as never }), itemId: 'rs_1' };
    return told({ kind: 'reasoning', id: 'rs_1', summary: ['s'], opaque, at }, says('assistant', 'a'));
  },
  'reasoning: opaque of another owner': told(
    { kind: 'reasoning', summary: [PROBE], opaque: signed(foreign), at },
    says('assistant', 'a'),
  ),
  'function call': asked(called({ input: `{"q":"${PROBE}"}` }), answered(text('r'))),
  'function call without a result': told(called({ input: `{"q":"${PROBE}"}` })),
  'tool result without a call': asked(answered(text(PROBE))),
  'function call signature': (upstream) =>
    asked(
      called({ opaque: signed({ ...foreign, channelType: ownerOf(upstream).channelType as never }, 'functionCall') }),
      answered(text('r')),
    ),
  'custom tool call': {
    ...asked(
      called({ toolType: 'custom', tool: { name: 'c' }, input: `{"q":"${PROBE}"}` }),
      answered(text('r'), { toolType: 'custom' }),
    ),
    tools: [{ kind: 'custom', tool: { name: 'c' }, inputSchema: { type: 'object' }, at: 'tools[0]' }],
  },
  'tool result: text': asked(called(), answered(text(PROBE))),
  'tool result: image': {
    ...asked(called(), answered({ kind: 'media', media: { type: 'image', source: inline('image/png') } })),
    sign: data,
  },
  'tool result: file': {
    ...asked(called(), answered({ kind: 'media', media: { type: 'file', source: inline('application/pdf') } })),
    sign: data,
  },
  'tool result: error flag': { ...asked(called(), answered(text('r'), { isError: true })), sign: /is_error|[Ee]rror/ },
  'image: inline': { ...asked(shown('image', inline('image/png'))), sign: data },
  'image: url': asked(shown('image', url('png'))),
  'image: reference': asked(shown('image', { from: 'reference', id: `files/${PROBE}`, mime: 'image/png' })),
  'image by assistant in history': { ...told(shown('image', inline('image/png'), 'assistant')), sign: data },
  'audio: inline': { ...asked(shown('audio', inline('audio/wav'))), sign: data },
  'audio: url': asked(shown('audio', url('wav'))),
  'video: inline': { ...asked(shown('video', inline('video/mp4'))), sign: data },
  'video: url': asked(shown('video', url('mp4'))),
  'file: inline': { ...asked(shown('file', inline('application/pdf'))), sign: data },
  'file: url': asked(shown('file', url('pdf'))),
  'file: reference': asked(shown('file', { from: 'reference', id: `files/${PROBE}`, mime: 'application/pdf' })),
  'file: text': asked(shown('file', { from: 'text', text: PROBE })),
  'call of an undeclared tool': {
    items: [user, { ...called(), tool: { name: PROBE } } as Item, answered(text('r')), { ...user, text: 'go on' }],
  },
  'assistant turn first': { items: [says('assistant', PROBE), { ...user, text: 'go on' }] },
  'native item': told({ kind: 'native', dialect: 'completions', body: { a: PROBE }, at }),
  'cache breakpoint': {
    items: ['a', 'b', 'c', 'd', 'e'].map((word) => says('user', word, { breakpoint: {} })),
    sign: {
      coerce: /"a"}.*"e","(cache_control|prompt_cache_breakpoint)":{"(type":"ephemeral|mode":"explicit)"}/,
      drop: /ephemeral|cache/,
    },
  },
  'function tool': { tools: [named(PROBE)] },
  'function tool: strict': (upstream) => {
    const parameters = { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] };
    const tools = [named('f', { strict: true, parameters })];
    return { tools, sign: /"strict":true|STRICT/, ...(upstream.dialect === 'messages' ? {} : { dialect: 'messages' }) };
  },
  'function tool: namespace': {
    tools: [tool, { ...tool, tool: { name: 'f', namespace: PROBE }, at: 'tools[1]' } as Tool],
    sign: new RegExp(`${PROBE}__f`),
  },
  'function tool: async': { tools: [named('f', { beyond: ['function tool: async'] })], sign: /async/ },
  'function tool: output schema': { tools: [named('f', { beyond: ['function tool: output schema'] })], sign: /output_schema/ },
  'function tool: allowed callers': {
    tools: [
      named(PROBE, { beyond: ['function tool: allowed callers'] }),
      named('g', { beyond: ['function tool: allowed callers'], isForProgramsOnly: true, at: 'tools[1]' }),
    ],
    sign: { coerce: /^(?!.*"name":"g").*PROBE7/ },
  },
  'function tool: deferred loading': { tools: [named(PROBE, { beyond: ['function tool: deferred loading'] })] },
  'custom tool with object schema': {
    tools: [{ kind: 'custom', tool: { name: PROBE }, inputSchema: { type: 'object', properties: {} }, at: 'tools[0]' }],
  },
  'custom tool: freeform': { tools: [{ kind: 'custom', tool: { name: PROBE }, at: 'tools[0]' }] },
  'native tool': {
    tools: [tool, { kind: 'native', dialect: 'completions', type: PROBE, body: { type: PROBE }, at: 'tools[1]' }],
  },
  'tool choice: auto, none, required': { tools: [tool], toolChoice: { mode: 'required' }, sign: /"(required|any|ANY)"/ },
  'tool choice: one tool': {
    tools: [tool, named(PROBE)],
    toolChoice: { mode: 'tool', toolType: 'function', tool: { name: PROBE } },
    sign: new RegExp(`(tool_choice|allowedFunctionNames).*${PROBE}`),
  },
  'tool choice: allowed tools': {
    tools: [named('OTHER'), named(PROBE)],
    toolChoice: { mode: 'allowed', require: true, tools: [{ name: PROBE }] },
    sign: {
      keep: new RegExp(`allowed_tools.*${PROBE}`),
      coerce: new RegExp(`allowedFunctionNames.*${PROBE}|^((?!OTHER).)*${PROBE}((?!OTHER).)*$`),
    },
  },
  'tool choice: native': { tools: [tool], toolChoice: { mode: 'native', dialect: 'completions', body: {} } },
  'parallel tool calls: off': { tools: [tool], parallelToolCalls: false, sign: /parallel/ },
  'output cap': ({ dialect }) => ({
    maxOutputTokens: dialect === 'responses' ? 1 : 4321,
    sign: { keep: /4321/, coerce: /"max_output_tokens":16\b/ },
  }),
  'temperature, top_p': ({ dialect }) =>
    dialect === 'messages'
      ? { temperature: 1.5, topP: 0.8765, sign: /"temperature":1,"top_p":0\.8765/ }
      : { temperature: 0.4321, topP: 0.8765, sign: /0\.4321.*0\.8765/ },
  top_k: { topK: 4321, sign: /4321/ },
  seed: { seed: 4321, sign: /4321/ },
  'presence and frequency penalty': {
    presencePenalty: 0.4321,
    frequencyPenalty: 0.8765,
    sign: { keep: /0\.4321.*0\.8765/, drop: /0\.4321|0\.8765/ },
  },
  'logit bias': { logitBias: { 4321: 7 }, sign: /"4321":7/ },
  // A responses upstream gets none: the gateway itself stops (`answers/own-stops.test.ts`).
  'stop sequences': ({ dialect }) => ({
    stop: dialect === 'messages' ? ['\n', PROBE] : [PROBE, 'b', 'c', 'd', 'e', 'f'],
    ...(dialect === 'responses' ? { sign: /"model"/ } : {}),
  }),
  logprobs: { logprobs: { top: 7 }, sign: /ogprobs":7/ },
  'format: json object': { format: { type: 'json_object' }, sign: /json_object|application\/json|one JSON object/ },
  'format: json schema': { format: { type: 'json_schema', name: 'a', schema } },
  verbosity: { verbosity: PROBE },
  'output modalities': { modalities: ['text', 'audio'], sign: /"audio"|"AUDIO"/ },
  'reasoning effort': {
    reasoning: { effort: 'low' },
    sign: { keep: /effort":"low"/, coerce: /"effort":"low"|"thinkingBudget":1024/ },
  },
  'reasoning effort: none': { reasoning: { effort: 'none' }, sign: /"none"|disabled|thinkingBudget":0/ },
  'reasoning budget': { reasoning: { budget: 2000 }, sign: /"medium"|2000/ },
  'reasoning between tools': { reasoning: { betweenTools: true }, sign: /between/ },
  'reasoning summary asked': {
    reasoning: { effort: 'low', summary: 'auto' },
    sign: { keep: /"summary":"auto"/, coerce: /"display":"summarized"|"includeThoughts":true/, drop: /summar|auto/ },
  },
  user: { user: PROBE },
  metadata: { metadata: { a: PROBE } },
  'service tier': { serviceTier: PROBE },
  'prompt cache key': { promptCacheKey: PROBE },
  'safety identifier': { safetyIdentifier: PROBE },
  store: { store: true, sign: /"store"/ },
  include: { include: [PROBE] },
  'fallback models': { fallbacks: true, sign: /fallback/ },
  'unknown members': {
    json: { model: 'logical-model', x_unknown: PROBE },
    text: `{"model":"logical-model","x_unknown":"${PROBE}"}`,
  },
};

function probeOf(upstream: UpstreamCodec, feature: RequestFeature): Asked {
  const probe = REQUESTS[feature];
  return typeof probe === 'function' ? probe(upstream) : probe;
}

/** The probe as this upstream gets it; no body where it is refused. */
function encoded(
  upstream: UpstreamCodec,
  feature: RequestFeature,
): { body?: string; stops?: readonly string[] | undefined; losses: readonly string[] } {
  const { sign: _, options = {}, ...members } = probeOf(upstream, feature);
  // A client of another dialect: nothing is spliced.
  const request = requestOf(upstream.dialect === 'chat' ? 'responses' : 'chat', { items: [user], ...members });
  try {
    const { body, ownStops: stops, losses } = upstream.encodeRequest(request, targetOf(ownerOf(upstream), { options }));
    return { body, stops, losses };
  } catch (error) {
    assert.ok(error instanceof GatewayError, String(error));
    assert.equal(error.code, 'unsupported_conversion');
    return { losses: [] };
  }
}

/** Members of a function that no other protocol has: left out, whatever becomes of the function. */
const MEMBERS_OF_ITS_OWN: ReadonlySet<RequestFeature> = new Set([
  'function tool: allowed callers',
  'function tool: deferred loading',
]);

const matrix = new Matrix();

for (const upstream of UPSTREAMS) {
  for (const feature of REQUEST_FEATURES) {
    const decision = upstream.losses[feature];
    test(`requests, ${upstream.dialect} upstream: ${feature} is ${decision.does}`, () => {
      const { body, losses } = encoded(upstream, feature);
      const isNamed = decision.does === 'keep' || body === undefined || losses.includes(feature);
      assert.ok(isNamed, `not named in the log: ${losses.join(', ')}`);
      judge(decision, body ?? '', body === undefined, probeOf(upstream, feature).sign);
      matrix.set(feature, upstream.dialect, decision);
    });

    test(`requests, ${upstream.dialect} upstream: another entry for ${feature} is another behaviour`, () => {
      const told = encoded(upstream, feature);
      for (const other of FLIPS[decision.does]) {
        const flipped = withEntry(upstream.losses, feature, other, () => encoded(upstream, feature));
        if (other.does === 'refuse') assert.equal(flipped.body, undefined);
        else if (other.does === 'keep') assert.ok(!flipped.losses.includes(feature), 'a feature that is kept is named');
        else assert.ok(flipped.losses.includes(feature), 'a feature that is dropped is not named');
        const isSame = decision.does === 'coerce' && other.does === 'drop' && MEMBERS_OF_ITS_OWN.has(feature);
        if (!isSame) assert.notDeepEqual(flipped, told, `${decision.does} as ${other.does}`);
      }
    });
  }
}

test('requests: the matrix of features and upstreams has no hole', (t) => {
  const encoders = UPSTREAMS.map(({ dialect }) => dialect);
  for (const line of matrix.lines(REQUEST_FEATURES, encoders)) t.diagnostic(line);
});

/** Members of each client's protocol, and of its vendors, that stand at the top of a body and no other protocol has. */
const OWN_MEMBERS: Readonly<Record<string, readonly [JsonObject, JsonObject]>> = {
  chat: [
    { model: 'm', messages: [{ role: 'user', content: 'hi' }] },
    {
      web_search_options: { search_context_size: 'low' },
      prediction: { type: 'content', content: 'x' },
      audio: { voice: 'alloy', format: 'wav' },
      prompt_cache_retention: '24h',
      repetition_penalty: 1.1,
      provider: { order: ['x'] },
      enable_thinking: false,
      vendor_extra: 1,
    },
  ],
  completions: [
    { model: 'm', prompt: 'hi' },
    { top_k: 3, vendor_extra: 1 },
  ],
  responses: [
    { model: 'm', input: 'hi' },
    {
      truncation: 'auto',
      max_tool_calls: 3,
      context_management: [{ type: 'compaction' }],
      prompt_cache_retention: '24h',
      moderation: { model: 'x' },
      vendor_extra: 1,
    },
  ],
  messages: [
    { model: 'm', max_tokens: 9, messages: [{ role: 'user', content: 'hi' }] },
    {
      container: 'c',
      mcp_servers: [{ type: 'url', url: 'https://mcp.example', name: 'x' }],
      context_management: { edits: [] },
      inference_geo: 'us',
      speed: 'fast',
      vendor_extra: 1,
    },
  ],
};

for (const client of CLIENTS) {
  test(`requests of ${client.dialect} clients: members that only their own protocol has are named wherever another one is spoken`, () => {
    const [body, members] = OWN_MEMBERS[client.dialect] ?? [];
    assert.ok(body && members);
    const lossesOf = (json: JsonObject, upstream: UpstreamCodec) => {
      const request = client.decodeRequest(JSON.stringify(json), json, { open: () => undefined });
      return upstream.encodeRequest(request, targetOf(ownerOf(upstream))).losses;
    };
    for (const upstream of UPSTREAMS.filter(({ dialect }) => dialect !== client.dialect)) {
      assert.ok(!lossesOf({ ...body, vendor_extra: null }, upstream).includes('unknown members'), 'nothing is lost');
      for (const [key, value] of Object.entries(members))
        assert.ok(lossesOf({ ...body, [key]: value }, upstream).includes('unknown members'), `${upstream.dialect}: ${key}`);
    }
  });
}

test('a cache breakpoint of a whole chat request is one of the four that a messages upstream takes', () => {
  const part = (text: string) => ({ type: 'text', text, cache_control: { type: 'ephemeral' } });
  const json = {
    model: 'm',
    cache_control: { type: 'ephemeral', ttl: '1h' },
    messages: [{ role: 'user', content: [...'abcd'].map(part) }],
  };
  for (const [index, upstream] of UPSTREAMS.entries()) {
    if (upstream.dialect === 'chat') continue;
    const request = CLIENTS[0]?.decodeRequest(JSON.stringify(json), json, { open: () => undefined });
    assert.ok(request, String(index));
    const { body, losses } = upstream.encodeRequest(request, targetOf(ownerOf(upstream)));
    assert.ok(losses.includes('cache breakpoint'));
    assert.equal(body.match(/"cache_control"/g)?.length ?? 0, upstream.dialect === 'messages' ? 4 : 0);
    if (upstream.dialect === 'messages') assert.match(body, /"cache_control":\{"type":"ephemeral","ttl":"1h"\}[,}](?!.*\])/);
  }
});

test('a list without entries asks for nothing, so nothing of it is lost', () => {
  for (const upstream of UPSTREAMS) {
    const lossesOf = (members: Partial<CanonicalRequest>) => {
      const request = requestOf(upstream.dialect === 'responses' ? 'messages' : 'responses', { items: [user], ...members });
      return upstream.encodeRequest(request, targetOf(ownerOf(upstream))).losses;
    };
    for (const name of ['include', 'stop'])
      assert.deepEqual(lossesOf({ [name]: [] }), lossesOf({}), `${upstream.dialect}: ${name}`);
    assert.ok(lossesOf({ include: ['reasoning.encrypted_content'] }).includes('include'), upstream.dialect);
  }
});

/** Histories whose opaque value belongs to an upstream elsewhere, as clients bring them back. */
const SEALED: readonly (readonly [
  string,
  Dialect,
  (sealed: (form: string, itemId?: string) => string) => readonly JsonObject[],
])[] = (() => {
  const say = { role: 'user', content: 'hi' };
  const chat = (more: JsonObject, data: string, id: string): JsonObject[] => {
    const entry = { type: 'reasoning.encrypted', data, id, format: 'unknown', index: 0 };
    return [say, { role: 'assistant', content: 'a', ...more, reasoning_details: [entry] }, say];
  };
  const thinking = (signature: string): JsonObject => ({ type: 'thinking', thinking: '', signature });
  const call = { type: 'tool_use', id: 'c', name: 'f', input: {} };
  const result = { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c', content: 'r' }] };
  const reasoning = (encrypted_content: string): JsonObject => ({ type: 'reasoning', id: 'rs', summary: [], encrypted_content });
  const picture = { type: 'image_url', image_url: { url: `data:image/png;base64,${DATA}` } };
  return [
    ['a thought', 'chat', (sealed) => chat({}, sealed('x', 'rs'), 'rs')],
    ['a text', 'chat', (sealed) => chat({}, sealed('text:1:1'), 'text_signature_0_1')],
    ['a picture', 'chat', (sealed) => chat({ images: [picture] }, sealed('inlineData'), 'image_signature_0')],
    ['a thought', 'messages', (sealed) => [say, { role: 'assistant', content: [thinking(sealed('x'))] }, say]],
    [
      'a text',
      'messages',
      (sealed) => [say, { role: 'assistant', content: [{ type: 'text', text: 'a' }, thinking(sealed('text:1:1', 'text'))] }, say],
    ],
    [
      'a call',
      'messages',
      (sealed) => [say, { role: 'assistant', content: [call, thinking(sealed('functionCall', 'c'))] }, result],
    ],
    ['a thought', 'responses', (sealed) => [say, reasoning(sealed('x', 'rs')), { role: 'assistant', content: 'a' }, say]],
    [
      'a text',
      'responses',
      (sealed) => [
        say,
        { type: 'message', id: 'msg', role: 'assistant', content: 'a' },
        reasoning(sealed('text:1:1', 'msg')),
        say,
      ],
    ],
  ];
})();

for (const [what, dialect, history] of SEALED) {
  test(`an opaque value of ${what} that a ${dialect} client brings back is named where its upstream does not get it`, () => {
    const owner = { channelType: 'gemini' as const, scope: 'https://elsewhere.example', model: 'up-model' };
    const items = history((form, itemId) =>
      sealForTests({ owner, value: PROBE, form, ...(itemId === undefined ? {} : { itemId }) }),
    );
    const body = { model: 'm', max_tokens: 100, [dialect === 'responses' ? 'input' : 'messages']: items };
    const client = CLIENTS.find((codec) => codec.dialect === dialect);
    const request = client?.decodeRequest(JSON.stringify(body), body, { open: openForTests });
    assert.ok(request !== undefined);
    for (const upstream of UPSTREAMS) {
      const { body: sent, losses } = upstream.encodeRequest(request, targetOf(ownerOf(upstream)));
      assert.ok(!sent.includes(PROBE) && !sent.includes('mz2.'), upstream.dialect);
      const named = losses.filter((loss) => loss === 'reasoning: opaque of another owner' || loss === 'function call signature');
      assert.equal(named.length, 1, `${upstream.dialect}: ${losses}`);
    }
  });
}

test('what a chat body loses on its way to a chat upstream is named, and nothing else', () => {
  const upstream = UPSTREAMS.find(({ dialect }) => dialect === 'chat');
  assert.ok(upstream);
  const lossesOf = (message: JsonObject, more: Partial<Target> = {}): readonly string[] => {
    const body = { model: 'm', messages: [{ role: 'user', content: 'hi' }, message, { role: 'user', content: 'go on' }] };
    const request = CLIENTS.find(({ dialect }) => dialect === 'chat')?.decodeRequest(JSON.stringify(body), body, {
      open: openForTests,
    });
    assert.ok(request);
    return upstream.encodeRequest(request, targetOf(ownerOf(upstream), more)).losses;
  };
  const developer = { role: 'developer', content: 'd' };
  assert.deepEqual(lossesOf(developer), []);
  assert.deepEqual(lossesOf(developer, { options: { developerAsSystem: true } }), ['developer text']);
  const thinking = { role: 'assistant', content: 'a', reasoning_content: 'hm' };
  assert.deepEqual(lossesOf(thinking), []);
  assert.deepEqual(lossesOf(thinking, { without: new Set(['raw']) }), ['reasoning: raw text in history']);
  const details = (entry: JsonObject): JsonObject => ({
    role: 'assistant',
    content: 'a',
    reasoning_details: [{ id: 'rs_1', index: 0, ...entry }],
  });
  const summary = { type: 'reasoning.summary', summary: 's' };
  assert.deepEqual(lossesOf(details({ ...summary, format: 'openai-responses-v1' })), []);
  assert.deepEqual(lossesOf(details({ ...summary, format: 'unknown' })), ['reasoning: summary in history']);
  const own = { type: 'reasoning.encrypted', data: 'raw', format: 'openai-responses-v1' };
  assert.deepEqual(lossesOf(details(own)), []);
  assert.deepEqual(lossesOf(details(own), { without: new Set(['opaque']) }), ['reasoning: opaque of another owner']);
});
