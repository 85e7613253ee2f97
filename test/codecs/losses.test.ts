/** What each loss table says is what its encoder does: a probe in every feature arrives, stays away, or is refused. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../src/codecs/canonical/error.ts';
import type { Decision, RequestFeature, ResponseFeature } from '../../src/codecs/canonical/features.ts';
import type { Item, OutputItem } from '../../src/codecs/canonical/item.ts';
import type { Outcome } from '../../src/codecs/canonical/outcome.ts';
import type { CanonicalRequest } from '../../src/codecs/canonical/request.ts';
import type { Usage } from '../../src/codecs/canonical/usage.ts';
import { CLIENTS, UPSTREAMS } from '../../src/codecs/registry.ts';
import { eventsOf, stepsOf } from '../support/arbitraries/response.ts';
import { encodeSteps, ownerOf, requestOf, responseContext, targetOf } from '../support/wire.ts';

const PROBE = 'PROBE7';
const owner = { channelType: 'gemini' as const, scope: 'https://up.example', model: 'up-model' };
const text = (value: string, more: object = {}): OutputItem => ({
  kind: 'text',
  role: 'assistant',
  text: value,
  citations: [],
  ...more,
});
const call = (more: object = {}): OutputItem => ({
  kind: 'toolCall',
  flavour: 'function',
  callId: 'call_1',
  tool: { name: PROBE },
  input: '{}',
  ...more,
});
const media = (type: 'image' | 'audio' | 'file', mime: string): OutputItem => ({
  kind: 'media',
  role: 'assistant',
  media: { type, source: { from: 'inline', mime, data: 'UFJPQkU3' } },
});

interface Said {
  readonly items?: readonly OutputItem[];
  readonly usage?: Usage;
  readonly outcome?: Outcome;
  /** What shows that the feature arrived; default PROBE. */
  readonly sign?: RegExp;
}
const end: Outcome = { status: 'completed', stop: 'end' };
const url = `https://example.com/${PROBE}`;

/** An answer for each feature whose arrival can be read off the wire. */
const ANSWERS: Partial<Record<ResponseFeature, Said>> = {
  text: { items: [text(PROBE)] },
  'text phase': { items: [text('x', { phase: PROBE })] },
  'several texts': { items: [text('x'), text(PROBE)] },
  refusal: { items: [{ kind: 'refusal', text: PROBE }] },
  'url citation with position': { items: [text('xy', { citations: [{ kind: 'url', url, start: 0, end: 1 }] })] },
  'url citation without position': { items: [text('xy', { citations: [{ kind: 'url', url }] })] },
  'native citation': { items: [text('xy', { citations: [{ kind: 'native', dialect: 'gemini', body: { a: PROBE } }] })] },
  logprobs: { items: [text(PROBE, { logprobs: [{ token: PROBE, logprob: -0.123 }] })], sign: /-0\.123/ },
  'text signature': { items: [text('x', { opaque: { owner, value: PROBE } })], sign: /mz2\./ },
  'reasoning: raw text': { items: [{ kind: 'reasoning', raw: PROBE }, text('x')] },
  'reasoning: summary': { items: [{ kind: 'reasoning', summary: [PROBE] }, text('x')] },
  'reasoning: opaque': {
    items: [{ kind: 'reasoning', summary: ['x'], opaque: { owner, value: PROBE } }, text('x')],
    sign: /mz2\./,
  },
  'function call': { items: [call()] },
  'function call signature': { items: [call({ opaque: { owner, value: PROBE } })], sign: /mz2\./ },
  'custom tool call': { items: [call({ flavour: 'custom', input: PROBE, tool: { name: 'f' } })] },
  image: { items: [media('image', 'image/png')], sign: /UFJPQkU3/ },
  audio: { items: [media('audio', 'audio/wav')], sign: /UFJPQkU3/ },
  file: { items: [media('file', 'application/pdf')], sign: /UFJPQkU3/ },
  'native item': { items: [{ kind: 'native', dialect: 'gemini', body: { a: PROBE } }, text('x')] },
  'usage: cache': { usage: { input: 1, cacheRead: 4321, output: 1 }, sign: /:4321[,}]/ },
  'usage: reasoning': { usage: { input: 1, output: 5000, reasoning: 4321 }, sign: /:4321[,}]/ },
  'incomplete: max output': {
    outcome: { status: 'incomplete', reason: 'max_output' },
    sign: /"(length|max_output_tokens|max_tokens)"/,
  },
  'incomplete: content filter': {
    outcome: { status: 'incomplete', reason: 'content_filter' },
    sign: /"(content_filter|refusal)"/,
  },
  'incomplete: context window': {
    outcome: { status: 'incomplete', reason: 'context_window' },
    sign: /"(length|max_output_tokens|model_context_window_exceeded)"/,
  },
  'incomplete: pause': { outcome: { status: 'incomplete', reason: 'pause' }, sign: /"(stop|pause_turn)"/ },
  'incomplete: compaction': { outcome: { status: 'incomplete', reason: 'compaction' }, sign: /"(stop|compaction)"/ },
  'failed with partial output': {
    items: [text(PROBE)],
    outcome: { status: 'failed', error: new GatewayError('upstream_error', 'x') },
  },
};

for (const client of CLIENTS) {
  for (const [feature, said] of Object.entries(ANSWERS) as [ResponseFeature, Said][]) {
    const decision = client.losses[feature];
    test(`answers, ${client.dialect} client: ${feature} is ${decision.does}`, () => {
      const items = said.items ?? [text('x')];
      const context = responseContext(client, owner, { request: requestOf(client.dialect) });
      const outcome =
        said.outcome ??
        (items.some(({ kind }) => kind === 'toolCall') ? { status: 'completed' as const, stop: 'toolUse' as const } : end);
      const frames = encodeSteps(client, stepsOf(eventsOf({ items, usage: said.usage, outcome })), context);
      const out = frames.map(({ data }) => data).join('\n');
      const isFailure = outcome.status === 'failed';
      judge(decision, out, said.sign ?? new RegExp(PROBE), /response_not_representable/.test(out));
      if (!isFailure && decision.does !== 'refuse') assert.doesNotMatch(out, /"error":\{/);
    });
  }
}

function judge(decision: Decision, out: string, sign: RegExp, isRefused: boolean): void {
  assert.equal(isRefused, decision.does === 'refuse', out.slice(0, 600));
  if (decision.does === 'keep' || decision.does === 'coerce') assert.match(out, sign);
  if (decision.does === 'drop') assert.doesNotMatch(out, sign);
}

interface Asked extends Partial<CanonicalRequest> {
  readonly sign?: RegExp;
}
const user: Item = { kind: 'text', role: 'user', text: 'hi', citations: [], at: 'messages[0].content' };
const at = 'messages[1].content[0]';
const shown = (source: object, type: 'image' | 'audio' | 'file' = 'image'): Asked => ({
  items: [user, { kind: 'media', role: 'user', media: { type, source, at } as never, at }],
});
const tool = { kind: 'function' as const, tool: { name: 'f' }, parameters: { type: 'object', properties: {} }, at: 'tools[0]' };
const told = (item: Item): Asked => ({ items: [user, item, { ...user, text: 'go on' }] });
const called: Item = {
  kind: 'toolCall',
  flavour: 'function',
  callId: 'call_1',
  tool: { name: 'f' },
  input: `{"q":"${PROBE}"}`,
  at,
};
const answered = (content: object, isError = false): Item =>
  ({ kind: 'toolResult', flavour: 'function', callId: 'call_1', content: [content], isError, at }) as Item;
const unsigned: Item = { ...called, input: '{}' } as Item;

/** A request for each feature whose arrival can be read off the body. */
const REQUESTS: Partial<Record<RequestFeature, Asked>> = {
  'system text': { items: [{ ...user, role: 'system', text: PROBE } as Item, user] },
  'developer text': { items: [{ ...user, role: 'developer', text: PROBE } as Item, user] },
  'user text': { items: [{ ...user, text: PROBE }] },
  'assistant text': told({ kind: 'text', role: 'assistant', text: PROBE, citations: [] }),
  'refusal in history': told({ kind: 'refusal', text: PROBE }),
  'function call': { items: [user, called, answered({ kind: 'text', text: 'r' })] },
  'tool result: text': { items: [user, unsigned, answered({ kind: 'text', text: PROBE })] },
  'tool result: image': {
    items: [
      user,
      unsigned,
      answered({ kind: 'media', media: { type: 'image', source: { from: 'inline', mime: 'image/png', data: 'UFJPQkU3' } } }),
    ],
    sign: /UFJPQkU3/,
  },
  'tool result: error flag': { items: [user, unsigned, answered({ kind: 'text', text: 'r' }, true)], sign: /is_error|[Ee]rror/ },
  'image: inline': { ...shown({ from: 'inline', mime: 'image/png', data: 'UFJPQkU3' }), sign: /UFJPQkU3/ },
  'image: url': shown({ from: 'url', url: `https://example.com/${PROBE}.png` }),
  'audio: inline': { ...shown({ from: 'inline', mime: 'audio/wav', data: 'UFJPQkU3' }, 'audio'), sign: /UFJPQkU3/ },
  'file: inline': { ...shown({ from: 'inline', mime: 'application/pdf', data: 'UFJPQkU3' }, 'file'), sign: /UFJPQkU3/ },
  'file: url': shown({ from: 'url', url: `https://example.com/${PROBE}.pdf` }, 'file'),
  'file: text': shown({ from: 'text', text: PROBE }, 'file'),
  'native item': told({ kind: 'native', dialect: 'completions', body: { a: PROBE } }),
  'function tool': { tools: [{ ...tool, tool: { name: PROBE } }] },
  'function tool: strict': { tools: [{ ...tool, strict: true }], sign: /"strict":true/ },
  'custom tool: freeform': { tools: [{ kind: 'custom', tool: { name: PROBE }, at: 'tools[0]' }] },
  'custom tool with object schema': {
    tools: [{ kind: 'custom', tool: { name: PROBE }, inputSchema: { type: 'object', properties: {} }, at: 'tools[0]' }],
  },
  'native tool': {
    tools: [tool, { kind: 'native', dialect: 'completions', type: PROBE, body: { type: PROBE }, at: 'tools[1]' }],
  },
  'tool choice: auto, none, required': { tools: [tool], toolChoice: { mode: 'required' }, sign: /"(required|any|ANY)"/ },
  'tool choice: one tool': {
    tools: [tool, { ...tool, tool: { name: PROBE } }],
    toolChoice: { mode: 'tool', flavour: 'function', tool: { name: PROBE } },
  },
  'tool choice: native': { tools: [tool], toolChoice: { mode: 'native', dialect: 'completions', body: {} } },
  'parallel tool calls: off': { tools: [tool], parallelToolCalls: false, sign: /parallel/ },
  'output cap': { maxOutputTokens: 4321, sign: /4321/ },
  'temperature, top_p': { temperature: 0.4321, sign: /0\.4321/ },
  top_k: { topK: 4321, sign: /4321/ },
  seed: { seed: 4321, sign: /4321/ },
  'presence and frequency penalty': { presencePenalty: 0.4321, sign: /0\.4321/ },
  'stop sequences': { stop: [PROBE] },
  logprobs: { logprobs: { top: 7 }, sign: /ogprobs":7/ },
  'format: json object': { format: { type: 'json_object' }, sign: /json_object|application\/json/ },
  'format: json schema': {
    format: { type: 'json_schema', name: 'a', schema: { type: 'object', properties: { [PROBE]: { type: 'string' } } } },
  },
  verbosity: { verbosity: PROBE },
  'reasoning effort: none': { reasoning: { effort: 'none' }, sign: /"none"|disabled|thinkingBudget":0/ },
  user: { user: PROBE },
  metadata: { metadata: { a: PROBE } },
  'prompt cache key': { promptCacheKey: PROBE },
  'safety identifier': { safetyIdentifier: PROBE },
  include: { include: [PROBE] },
};

for (const upstream of UPSTREAMS) {
  for (const [feature, { sign, ...asked }] of Object.entries(REQUESTS) as [RequestFeature, Asked][]) {
    const decision = upstream.losses[feature];
    test(`requests, ${upstream.dialect} upstream: ${feature} is ${decision.does}`, () => {
      // A client of another dialect: nothing is spliced.
      const request = requestOf(upstream.dialect === 'chat' ? 'responses' : 'chat', { items: [user], ...asked });
      let out = '';
      let isRefused = false;
      try {
        const { body, losses } = upstream.encodeRequest(request, targetOf(ownerOf(upstream)));
        out = body;
        if (decision.does === 'drop') assert.ok(losses.includes(feature), `not named in the log: ${losses.join(', ')}`);
      } catch (error) {
        assert.ok(error instanceof GatewayError, String(error));
        assert.equal(error.code, 'unsupported_conversion');
        isRefused = true;
      }
      judge(decision, out, sign ?? new RegExp(PROBE), isRefused);
    });
  }
}
