/**
 * Arbitrary canonical requests that hold every feature of `canonical/features.ts`, with the features that each one holds. What an
 * upstream may refuse is rare enough that most requests pass.
 */
import fc from 'fast-check';
import type { FunctionFeature, RequestFeature } from '../../../src/codecs/canonical/features.ts';
import type { Item, Media, MediaSource, Part, ToolCallItem } from '../../../src/codecs/canonical/item.ts';
import type { JsonObject } from '../../../src/codecs/canonical/json.ts';
import type { Opaque, Owner } from '../../../src/codecs/canonical/opaque.ts';
import type { CanonicalRequest, Tool, ToolChoice } from '../../../src/codecs/canonical/request.ts';
import { callId, jsonObjectText, text } from './response.ts';

export interface FeaturedRequest {
  readonly request: CanonicalRequest;
  readonly features: ReadonlySet<RequestFeature>;
}

interface Featured<T> {
  readonly value: T;
  readonly features: readonly RequestFeature[];
}

const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const PDF = Buffer.from('%PDF-1.4\n%%EOF').toString('base64');
const words = text().filter((value) => value.trim() !== '');
const at = 'messages[0]';

const of = <T>(value: T, ...features: RequestFeature[]): Featured<T> => ({ value, features });
/** Each with its weight; the last ones of a list are those that some upstream refuses. */
const oneOf = <T>(...choices: readonly (readonly [number, fc.Arbitrary<Featured<T>>])[]): fc.Arbitrary<Featured<T>> =>
  fc.oneof(...choices.map(([weight, arbitrary]) => ({ weight, arbitrary })));
const always = <T>(value: T, ...features: RequestFeature[]): fc.Arbitrary<Featured<T>> => fc.constant(of(value, ...features));
/** Once for `otherwise` times that it is absent. */
const rarely = <T, N>(arbitrary: fc.Arbitrary<T>, otherwise: number, absent: N): fc.Arbitrary<T | N> =>
  fc.oneof({ weight: otherwise, arbitrary: fc.constant(absent) }, { weight: 1, arbitrary });
const inline = (mime: string, data: string): MediaSource => ({ from: 'inline', mime, data });
const media = (type: Media['type'], source: MediaSource, role: 'user' | 'assistant' = 'user'): Item => ({
  kind: 'media',
  role,
  media: { type, source, at },
  at,
});
const says = (role: 'system' | 'developer' | 'user' | 'assistant', said: string, more: object = {}): Item => ({
  kind: 'text',
  role,
  text: said,
  citations: [],
  at,
  ...more,
});
const url = (name: string): MediaSource => ({ from: 'url', url: `https://example.com/${name}` });
const file = (mime: string): MediaSource => ({ from: 'reference', id: 'files/abc', mime });

const userItem: fc.Arbitrary<Featured<Item>> = oneOf<Item>(
  [60, words.map((said) => of(says('user', said), 'user text'))],
  [6, words.map((said) => of(says('user', said, { breakpoint: {} }), 'user text', 'cache breakpoint'))],
  [6, always(media('image', inline('image/png', PNG)), 'image: inline')],
  [6, always(media('image', url('a.png')), 'image: url')],
  [6, always(media('file', inline('application/pdf', PDF)), 'file: inline')],
  [6, words.map((said) => of(media('file', { from: 'text', text: said }), 'file: text'))],
  [3, always(media('file', file('application/pdf')), 'file: reference')],
  [2, always(media('image', file('image/png')), 'image: reference')],
  [2, always(media('file', url('a.pdf')), 'file: url')],
  [2, always(media('audio', inline('audio/wav', 'UklGRg==')), 'audio: inline')],
  [1, always(media('audio', url('a.wav')), 'audio: url')],
  [2, always(media('video', inline('video/mp4', 'AAAA')), 'video: inline')],
  [1, always(media('video', url('a.mp4')), 'video: url')],
  [3, always<Item>({ kind: 'native', dialect: 'completions', role: 'user', body: { a: 1 }, at }, 'native item')],
);

function assistantItem(owner: Owner): fc.Arbitrary<Featured<Item>> {
  const foreign: Opaque = { owner: { channelType: 'ark_video', scope: 'x', model: 'm' }, value: 'FOREIGN' };
  const own: Opaque = { owner, value: 'OWN', itemId: 'rs_1' };
  const thought = (more: object): Item => ({ kind: 'reasoning', at, ...more });
  return oneOf<Item>(
    [8, words.map((said) => of(says('assistant', said), 'assistant text'))],
    [2, words.map((said) => of(says('assistant', said, { phase: 'commentary' }), 'assistant text', 'assistant phase'))],
    [2, words.map((said) => of({ kind: 'refusal' as const, text: said, at }, 'refusal in history'))],
    [2, words.map((raw) => of(thought({ raw }), 'reasoning: raw text in history'))],
    [2, words.map((said) => of(thought({ summary: [said, 'b'] }), 'reasoning: summary in history'))],
    [2, words.map((said) => of(thought({ id: 'rs_1', summary: [said], opaque: own }), 'reasoning: opaque of this owner'))],
    [2, words.map((said) => of(thought({ summary: [said], opaque: foreign }), 'reasoning: opaque of another owner'))],
    [1, always(media('image', inline('image/png', PNG), 'assistant'), 'image by assistant in history')],
  );
}

const resultPart: fc.Arbitrary<Featured<Part>> = oneOf<Part>(
  [6, words.map((said) => of({ kind: 'text' as const, text: said }, 'tool result: text'))],
  [1, always<Part>({ kind: 'media', media: { type: 'image', source: inline('image/png', PNG), at } }, 'tool result: image')],
  [1, always<Part>({ kind: 'media', media: { type: 'file', source: inline('application/pdf', PDF), at } }, 'tool result: file')],
);

/** A call and its result; rarely one of them alone. */
function exchange(owner: Owner): fc.Arbitrary<Featured<readonly Item[]>> {
  const signed = rarely(fc.constant<Opaque>({ owner, value: 'SIGNATURE', form: 'functionCall' }), 3, undefined);
  const toolType = fc.constantFrom<ToolCallItem['toolType']>('function', 'function', 'function', 'custom');
  return fc
    .tuple(callId, toolType, jsonObjectText, signed, resultPart, fc.boolean(), fc.integer({ min: 0, max: 19 }))
    .map(([id, kind, input, opaque, part, isError, lone]): Featured<readonly Item[]> => {
      const head = { callId: id, toolType: kind, at };
      const tool = { name: kind === 'custom' ? 'shaped' : 'search' };
      const call: Item = { kind: 'toolCall', ...head, tool, input, ...(opaque === undefined ? {} : { opaque }) };
      const result: Item = { kind: 'toolResult', ...head, content: [part.value], isError };
      if (lone === 0) return of([call], 'function call without a result');
      if (lone === 1) return of([{ ...result, callId: `lost_${id}` }], 'tool result without a call');
      return of(
        [call, result],
        kind === 'custom' ? 'custom tool call' : 'function call',
        ...(opaque === undefined ? [] : (['function call signature'] as const)),
        ...(isError ? (['tool result: error flag'] as const) : part.features),
        ...part.features,
      );
    });
}

/** The user's items of one message come first, then what the assistant said, then calls with their results. */
function turn(owner: Owner, index: number): fc.Arbitrary<Featured<readonly Item[]>> {
  const later = rarely(words, 5, undefined);
  return fc
    .tuple(
      fc.array(userItem, { minLength: 1, maxLength: 2 }),
      fc.array(assistantItem(owner), { minLength: 1, maxLength: 3 }),
      fc.array(exchange(owner), { maxLength: 2 }),
      later,
    )
    .map(([asked, answered, exchanges, system]) => {
      const calls = exchanges.flatMap(({ value }) => value.filter(({ kind }) => kind === 'toolCall'));
      const results = exchanges.flatMap(({ value }) => value.filter(({ kind }) => kind === 'toolResult'));
      // Reasoning right before a call goes with it when nothing answers it; that law has its own cases.
      const between = exchanges.some(({ features }) => features.includes('function call without a result'))
        ? [of(says('assistant', 'So:'), 'assistant text')]
        : [];
      const facts = (items: readonly Item[], step: number): Item[] =>
        items.map((item) => ({ ...item, turn: index * 10 + step }) as Item);
      const items = [
        ...facts([says('user', 'Look.'), ...asked.map(({ value }) => value)], 0),
        ...facts([...[...answered, ...between].map(({ value }) => value), ...calls], 1),
        ...results.map((item, at) => ({ ...item, turn: index * 10 + 2 + at }) as Item),
        ...facts(system === undefined ? [] : [says('system', system)], 8),
      ];
      const features = [...asked, ...answered, ...between, ...exchanges].flatMap((part) => part.features);
      return of(items, ...features, ...(system === undefined ? [] : (['system text after the first turn'] as const)));
    });
}

const schema: JsonObject = { type: 'object', properties: { q: { type: 'string' } }, required: ['q'] };
const closed: JsonObject = { ...schema, additionalProperties: false };
const TOOLS: readonly Featured<Tool>[] = [
  of<Tool>({ kind: 'function', tool: { name: 'search' }, description: 'd', parameters: schema, at: 'tools[0]' }, 'function tool'),
  of<Tool>({ kind: 'custom', tool: { name: 'shaped' }, inputSchema: schema, at: 'tools[1]' }, 'custom tool with object schema'),
];
const moreTool: fc.Arbitrary<Featured<Tool>> = oneOf<Tool>(
  [
    3,
    always<Tool>(
      { kind: 'function', tool: { name: 'strict' }, strict: true, parameters: closed, at: 'tools[2]' },
      'function tool: strict',
    ),
  ],
  [3, always<Tool>({ kind: 'function', tool: { name: 'search', namespace: 'ns' }, at: 'tools[2]' }, 'function tool: namespace')],
  [
    3,
    fc
      .subarray<FunctionFeature>([
        ...(['function tool: async', 'function tool: output schema'] as const),
        ...(['function tool: allowed callers', 'function tool: deferred loading'] as const),
      ])
      .map((beyond) => of<Tool>({ kind: 'function', tool: { name: 'beyond' }, beyond, at: 'tools[2]' }, ...beyond)),
  ],
  [3, always<Tool>({ kind: 'native', dialect: 'completions', type: 't', body: { type: 't' }, at: 'tools[2]' }, 'native tool')],
  [1, always<Tool>({ kind: 'custom', tool: { name: 'free' }, at: 'tools[2]' }, 'custom tool: freeform')],
);

const choice: fc.Arbitrary<Featured<ToolChoice>> = oneOf<ToolChoice>(
  [4, fc.constantFrom('auto', 'none', 'required').map((mode) => of({ mode }, 'tool choice: auto, none, required'))],
  [3, always<ToolChoice>({ mode: 'tool', toolType: 'function', tool: { name: 'search' } }, 'tool choice: one tool')],
  [
    3,
    fc
      .boolean()
      .map((require) => of({ mode: 'allowed' as const, require, tools: [{ name: 'search' }] }, 'tool choice: allowed tools')),
  ],
  [1, always<ToolChoice>({ mode: 'native', dialect: 'completions', body: {} }, 'tool choice: native')],
);

type Members = Partial<CanonicalRequest>;
const member = (feature: RequestFeature, value: Members): Featured<Members> => of(value, feature);
const unknown = { json: { model: 'logical-model', x_unknown: 1 }, text: '{"model":"logical-model","x_unknown":1}' };
const CONTROLS: readonly Featured<Members>[] = [
  member('parallel tool calls: off', { parallelToolCalls: false }),
  member('output cap', { maxOutputTokens: 50_000 }),
  member('temperature, top_p', { temperature: 1, topP: 1 }),
  member('top_k', { topK: 4 }),
  member('seed', { seed: 4 }),
  member('presence and frequency penalty', { presencePenalty: 0.5, frequencyPenalty: -0.5 }),
  member('logit bias', { logitBias: { 5: 1 } }),
  member('stop sequences', { stop: ['END'] }),
  member('logprobs', { logprobs: { top: 20 } }),
  member('verbosity', { verbosity: 'low' }),
  member('user', { user: 'u' }),
  member('metadata', { metadata: { a: 'b' } }),
  member('service tier', { serviceTier: 'priority' }),
  member('prompt cache key', { promptCacheKey: 'k' }),
  member('safety identifier', { safetyIdentifier: 's' }),
  member('store', { store: true }),
  member('include', { include: ['reasoning.encrypted_content'] }),
  member('fallback models', { fallbacks: true }),
  member('unknown members', unknown),
];
/** At most one of each group. */
const GROUPS: readonly (readonly Featured<Members>[])[] = [
  [
    member('format: json object', { format: { type: 'json_object' } }),
    member('format: json schema', { format: { type: 'json_schema', name: 'n', schema: closed, strict: true } }),
  ],
  [
    member('reasoning effort', { reasoning: { effort: 'low' } }),
    member('reasoning effort: none', { reasoning: { effort: 'none' } }),
    member('reasoning between tools', { reasoning: { betweenTools: true } }),
    member('reasoning budget', { reasoning: { budget: 2048 } }),
    of<Members>({ reasoning: { effort: 'high', summary: 'auto' } }, 'reasoning effort', 'reasoning summary asked'),
  ],
];

const controls: fc.Arbitrary<Featured<Members>> = fc
  .tuple(
    fc.subarray([...CONTROLS], { maxLength: 5 }),
    ...GROUPS.map((group) => rarely(fc.constantFrom(...group), 1, of<Members>({}))),
    rarely(fc.constant(member('output modalities', { modalities: ['text', 'audio'] })), 30, of<Members>({})),
  )
  .map(([some, ...others]) => {
    const all = [...some, ...others];
    return of(Object.assign({}, ...all.map(({ value }) => value)) as Members, ...all.flatMap(({ features }) => features));
  });

const instructions: fc.Arbitrary<Featured<readonly Item[]>> = fc
  .tuple(fc.option(words, { nil: undefined }), fc.option(words, { nil: undefined }))
  .map(([system, developer]) =>
    of(
      [
        ...(system === undefined ? [] : [says('system', system)]),
        ...(developer === undefined ? [] : [says('developer', developer, { turn: 1 })]),
      ],
      ...(system === undefined ? [] : (['system text'] as const)),
      ...(developer === undefined ? [] : (['developer text'] as const)),
    ),
  );

/** A request of `dialect` for an upstream of `owner`: opaque values are the owner's, or somebody else's. */
export function everyRequest(dialect: CanonicalRequest['dialect'], owner: Owner): fc.Arbitrary<FeaturedRequest> {
  return fc
    .tuple(
      instructions,
      fc.tuple(turn(owner, 1), turn(owner, 2)),
      rarely(moreTool, 1, undefined),
      rarely(choice, 1, undefined),
      controls,
      fc.boolean(),
      fc.nat(11),
    )
    .filter(([, turns]) => {
      const ids = turns.flatMap(({ value }) => value.flatMap((item) => (item.kind === 'toolCall' ? [item.callId] : [])));
      return new Set(ids).size === ids.length;
    })
    .map(([lead, turns, extra, wanted, { value: members, features }, stream, shape]) => {
      // A tool that may not be called need not be sayable.
      const isLeftOut = wanted?.value.mode === 'allowed' && extra?.features[0] === 'custom tool: freeform';
      const held = turns.flatMap(({ value }) => value);
      const calls = held.filter((item) => item.kind === 'toolCall');
      const isBare =
        shape < 3 && wanted === undefined && calls.length > 0 && calls.every(({ toolType }) => toolType === 'function');
      const tools = isBare ? [] : [...TOOLS, ...(extra === undefined || isLeftOut ? [] : [extra])];
      const begins = shape === 3 ? [says('assistant', 'I begin.', { turn: 1 })] : [];
      const parts = [lead, ...turns, ...tools, ...(wanted === undefined ? [] : [wanted])];
      const last = says('user', 'Go on, in JSON.', { turn: 100 });
      const request: CanonicalRequest = {
        dialect,
        text: '{"model":"logical-model"}',
        json: { model: 'logical-model' },
        reads: { own: new Set(['model']) },
        model: 'logical-model',
        stream,
        items: [...lead.value, ...begins, ...held, last],
        tools: tools.map(({ value }) => value),
        includeUsage: stream,
        ...(wanted === undefined ? {} : { toolChoice: wanted.value }),
        ...members,
      };
      const own: RequestFeature[] = [
        ...(isBare ? (['call of an undeclared tool'] as const) : []),
        ...(begins.length > 0 ? (['assistant turn first', 'assistant text'] as const) : []),
      ];
      return { request, features: new Set([...features, ...own, ...parts.flatMap((part) => part.features)]) };
    });
}
