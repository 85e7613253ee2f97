/** What each client's loss table says is what its encoder does: a probe in every feature, streamed and whole. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../../src/codecs/canonical/error.ts';
import type { CanonicalEvent } from '../../../src/codecs/canonical/event.ts';
import { RESPONSE_FEATURES, type ResponseFeature } from '../../../src/codecs/canonical/features.ts';
import { fold } from '../../../src/codecs/canonical/fold.ts';
import type { OutputItem } from '../../../src/codecs/canonical/item.ts';
import type { Outcome } from '../../../src/codecs/canonical/outcome.ts';
import type { Usage } from '../../../src/codecs/canonical/usage.ts';
import type { ClientCodec, ResponseContext } from '../../../src/codecs/codec.ts';
import { CLIENTS } from '../../../src/codecs/registry.ts';
import { eventsOf, stepsOf } from '../../support/arbitraries/response.ts';
import { encodeSteps, requestOf, responseContext } from '../../support/wire.ts';
import { DATA, FLIPS, judge, Matrix, PROBE, type Sign, withEntry } from '../../support/loss-verdict.ts';

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
  toolType: 'function',
  callId: 'call_1',
  tool: { name: PROBE },
  input: '{}',
  ...more,
});
const media = (type: 'image' | 'audio' | 'file', mime: string): OutputItem => ({
  kind: 'media',
  role: 'assistant',
  media: { type, source: { from: 'inline', mime, data: DATA } },
});
const reasoning = (more: object): readonly OutputItem[] => [{ kind: 'reasoning', ...more }, text('x')];

interface Said {
  readonly items?: readonly OutputItem[];
  readonly usage?: Usage;
  readonly outcome?: Outcome;
  readonly event?: CanonicalEvent;
  readonly sign?: Sign;
}

const end: Outcome = { status: 'completed', stop: 'end' };
const toolUse: Outcome = { status: 'completed', stop: 'toolUse' };
const cut = (reason: Extract<Outcome, { status: 'incomplete' }>['reason']): Outcome => ({ status: 'incomplete', reason });
const failure = new GatewayError('cancelled', 'x');
const url = `https://example.com/${PROBE}`;
const sealed = /mz2\./;
const data = new RegExp(DATA);

/** An answer for every feature, whose arrival can be read off the wire. */
const ANSWERS: Record<ResponseFeature, Said> = {
  text: { items: [text(PROBE)] },
  'text phase': {
    items: [text('w'), text('x', { phase: 'commentary' })],
    sign: { keep: /commentary/, coerce: /\\n\\n/, drop: /commentary/ },
  },
  'several texts': { items: [text('x'), text(PROBE)] },
  refusal: { items: [{ kind: 'refusal', text: PROBE }] },
  'url citation with position': { items: [text('xy', { citations: [{ kind: 'url', url, start: 0, end: 1 }] })] },
  'url citation without position': { items: [text('xy', { citations: [{ kind: 'url', url }] })] },
  'native citation': { items: [text('xy', { citations: [{ kind: 'native', dialect: 'gemini', body: { a: PROBE } }] })] },
  'citation of an ended text': { event: { type: 'native.event', dialect: 'chat', name: 'annotations', body: { url } } },
  logprobs: { items: [text(PROBE, { logprobs: [{ token: PROBE, logprob: -0.123 }] })], sign: /-0\.123/ },
  'text signature': { items: [text('x', { opaque: { owner, value: PROBE } }), text('y')], sign: sealed },
  'reasoning: raw text': { items: reasoning({ raw: PROBE }) },
  'reasoning: summary': { items: reasoning({ summary: [PROBE] }) },
  'reasoning: opaque': { items: reasoning({ summary: ['x'], opaque: { owner, value: PROBE } }), sign: sealed },
  'reasoning: redacted': {
    items: reasoning({ opaque: { owner: { ...owner, channelType: 'messages' }, value: PROBE, form: 'redacted' } }),
    sign: { keep: /"redacted_thinking","data":"mz2\./, coerce: sealed, drop: sealed },
  },
  'function call': { items: [call()] },
  'function call: namespace': {
    items: [call({ tool: { name: 'f', namespace: PROBE } })],
    sign: { keep: new RegExp(`"namespace":"${PROBE}"`), coerce: /"name":"f"/, drop: new RegExp(PROBE) },
  },
  'function call signature': { items: [call({ opaque: { owner, value: PROBE } })], sign: sealed },
  'custom tool call': { items: [call({ toolType: 'custom', input: PROBE, tool: { name: 'f' } })] },
  image: { items: [media('image', 'image/png')], sign: data },
  'image signature': {
    items: [{ ...media('image', 'image/png'), opaque: { owner, value: PROBE, form: 'inlineData' } } as OutputItem],
    sign: sealed,
  },
  audio: { items: [media('audio', 'audio/wav')], sign: data },
  file: { items: [media('file', 'application/pdf')], sign: data },
  'native item': { items: [{ kind: 'native', dialect: 'gemini', body: { a: PROBE } }, text('x')] },
  'native items alone': { items: [{ kind: 'native', dialect: 'gemini', body: { a: PROBE } }] },
  'native event': { event: { type: 'native.event', dialect: 'gemini', name: PROBE, body: { a: PROBE } } },
  'usage: cache': { usage: { input: 1, cacheRead: 4321, output: 1 }, sign: /:4321[,}]/ },
  'usage: reasoning': { usage: { input: 1, output: 5000, reasoning: 4321 }, sign: /:4321[,}]/ },
  'usage: iterations': {
    usage: { input: 1, output: 2, extra: [{ type: 'compaction', input: 3, cacheRead: 0, cacheWrite: 0, output: 4321 }] },
    sign: /4321/,
  },
  'usage: unknown members': { usage: { input: 1, output: 2, native: { x_probe: 4321 } }, sign: /4321/ },
  'completed: stop sequence': {
    outcome: { status: 'completed', stop: 'stopSequence', stopSequence: PROBE },
    sign: { keep: new RegExp(`"stop_sequence","stop_sequence":"${PROBE}"`), coerce: /"stop"|"status":"completed"/ },
  },
  'completed: tool use': { items: [call()], sign: { keep: /"tool_calls"|"tool_use"/, coerce: /"status":"completed"/ } },
  'incomplete: max output': { outcome: cut('max_output'), sign: /"(length|max_output_tokens|max_tokens)"/ },
  'incomplete: content filter': { outcome: cut('content_filter'), sign: /"(content_filter|refusal)"/ },
  'incomplete: context window': {
    outcome: cut('context_window'),
    sign: /"(length|max_output_tokens|model_context_window_exceeded)"/,
  },
  'incomplete: pause': { outcome: cut('pause'), sign: /"(stop|pause_turn)"/ },
  'incomplete: compaction': { outcome: cut('compaction'), sign: /"(stop|compaction)"/ },
  'failed with partial output': { items: [text(PROBE)], outcome: { status: 'failed', error: failure } },
  cancelled: { items: [text('x')], outcome: { status: 'cancelled', error: failure }, sign: /"error":\{.*cancelled/ },
  'service tier': {
    usage: { input: 1, output: 2, serviceTier: 'priority' },
    sign: /"service_tier":"priority"/,
  },
};

function streamed(client: ClientCodec, events: readonly CanonicalEvent[], context: ResponseContext): string {
  const frames = encodeSteps(client, stepsOf(events), context);
  return frames.map(({ data: line }) => line).join('\n');
}

/** The whole answer, or the body of the error that stands for it. */
function whole(client: ClientCodec, events: readonly CanonicalEvent[], context: ResponseContext): string {
  try {
    return client.encodeResponse(fold(events), undefined, context);
  } catch (error) {
    assert.ok(error instanceof GatewayError, String(error));
    return client.encodeError(error, 'req_1');
  }
}

function outcomeOf({ items = [], outcome }: Said): Outcome {
  return outcome ?? (items.some(({ kind }) => kind === 'toolCall') ? toolUse : end);
}

/** The answer as the client gets it, and what it was told to have lost. */
function encoded(client: ClientCodec, said: Said, form: typeof streamed): { out: string; lost: ReadonlySet<ResponseFeature> } {
  const events = eventsOf({ items: said.items ?? [text('x')], usage: said.usage, outcome: outcomeOf(said) });
  if (said.event !== undefined) events.splice(1, 0, said.event);
  const lost = new Set<ResponseFeature>();
  const request = requestOf(client.dialect);
  const out = form(client, events, responseContext(client, owner, { request, lost: (feature) => lost.add(feature) }));
  return { out, lost };
}

const ENDINGS = /^(completed|incomplete|failed|cancelled)/;

const matrix = new Matrix();

for (const client of CLIENTS) {
  for (const feature of RESPONSE_FEATURES) {
    const decision = client.losses[feature];
    test(`answers, ${client.dialect} client: ${feature} is ${decision.does}`, () => {
      const said = ANSWERS[feature];
      const { status } = outcomeOf(said);
      const isFailure = status === 'failed' || status === 'cancelled';
      for (const form of [streamed, whole]) {
        const { out, lost } = encoded(client, said, form);
        const isLost = decision.does === 'coerce' || decision.does === 'drop';
        if (!(form === whole && isFailure)) assert.equal(lost.has(feature), isLost, 'named where it is lost');
        // A whole answer that failed is an error and nothing else, where the dialect has no failed answers.
        if (form === whole && isFailure && client.dialect !== 'responses') {
          assert.match(out, /"error":\{/);
          continue;
        }
        judge(decision, out, /response_not_representable/.test(out), said.sign);
        if (!isFailure && decision.does !== 'refuse') assert.doesNotMatch(out, /"error":\{/);
      }
      matrix.set(feature, client.dialect, decision);
    });

    test(`answers, ${client.dialect} client: another entry for ${feature} is another behaviour`, () => {
      const said = ANSWERS[feature];
      const { status } = outcomeOf(said);
      for (const form of [streamed, whole]) {
        // A whole answer that failed is the error, and nothing is encoded.
        if (form === whole && (status === 'failed' || status === 'cancelled')) continue;
        const told = encoded(client, said, form);
        for (const other of FLIPS[decision.does]) {
          const flipped = withEntry(client.losses, feature, other, () => encoded(client, said, form));
          // What carries the feature is refused for itself.
          if (decision.does === 'refuse' && /response_not_representable/.test(flipped.out)) continue;
          assert.equal(flipped.lost.has(feature), other.does === 'drop', `named: ${decision.does} as ${other.does}`);
          if (other.does === 'refuse') assert.match(flipped.out, /response_not_representable/);
          // How an answer ended cannot be left out, only named; nor can a namespace that is not written.
          else if (other.does === 'drop' && !ENDINGS.test(feature) && !(decision.does === 'coerce' && /namespace/.test(feature)))
            assert.notEqual(flipped.out, told.out, decision.does);
        }
      }
    });
  }
}

test('answers: the matrix of features and clients has no hole', (t) => {
  const encoders = CLIENTS.map(({ dialect }) => dialect);
  for (const line of matrix.lines(RESPONSE_FEATURES, encoders)) t.diagnostic(line);
});
