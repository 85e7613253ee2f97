/**
 * Arbitrary answers, rich enough to hold every feature of the canonical model, and the event streams that say them:
 * cut into arbitrary deltas, parallel tool calls interleaved. Each feature can be switched off for dialects that refuse it.
 */
import fc from 'fast-check';
import type { CanonicalEvent, ItemDelta, ItemHead, Step } from '../../../src/codecs/canonical/event.ts';
import type { Citation, ItemStatus, Logprobs, OutputItem } from '../../../src/codecs/canonical/item.ts';
import type { Owner } from '../../../src/codecs/canonical/opaque.ts';
import type { Outcome } from '../../../src/codecs/canonical/outcome.ts';
import type { Usage } from '../../../src/codecs/canonical/usage.ts';

export interface ResponseFeatures {
  readonly refusal?: boolean;
  readonly custom?: boolean;
  readonly citations?: boolean;
  readonly logprobs?: boolean;
  readonly phase?: boolean;
  readonly raw?: boolean;
  readonly summary?: boolean;
  readonly opaque?: boolean;
  readonly images?: boolean;
  readonly toolSignature?: boolean;
  readonly textSignature?: boolean;
}

export interface Answer {
  readonly items: readonly OutputItem[];
  readonly usage: Usage | undefined;
  readonly outcome: Outcome;
}

/** Text that holds what breaks naive code: surrogate pairs, combining marks, quotes, newlines, SSE words, bidi. */
export const text = (minLength = 1): fc.Arbitrary<string> =>
  fc
    .array(
      fc.oneof(
        { weight: 6, arbitrary: fc.string({ maxLength: 12 }) },
        { weight: 2, arbitrary: fc.string({ unit: 'grapheme', maxLength: 6 }) },
        {
          weight: 1,
          arbitrary: fc.constantFrom(
            '\n',
            '\r\n',
            '"',
            '\\',
            'data: x\n\n',
            '日本語',
            '👩‍👩‍👧',
            '\u2028',
            ' ',
            '[DONE]',
            '</think>',
            '\u0000',
          ),
        },
      ),
      { minLength: 1, maxLength: 4 },
    )
    .map((parts) => parts.join(''))
    .filter((value) => value.length >= minLength && value.isWellFormed());

const token = fc.string({ minLength: 8, maxLength: 24, unit: fc.constantFrom(...'abcdefghijklmnopqrstuvwxyzABCDEF0123456789') });
export const callId = token.map((value) => `call_${value}`);
export const toolName = fc.constantFrom('get_weather', 'search', 'run', 'a-b', 'lookup_2');

/** The text of a JSON object, with spellings that a re-serialisation would lose. */
export const jsonObjectText: fc.Arbitrary<string> = fc.oneof(
  fc.constantFrom('{}', '{"a": 1.0, "10":2,"2":[ ]}', '{"q":"日本 \\"x\\"", "n":1e3}', '{"__proto__":{"x":1}}'),
  fc.dictionary(fc.string({ maxLength: 6 }), fc.jsonValue({ maxDepth: 1 }), { maxKeys: 4 }).map((value) => JSON.stringify(value)),
);

function opaqueOf(owner: Owner): fc.Arbitrary<{ owner: Owner; value: string }> {
  return fc.base64String({ minLength: 16, maxLength: 60 }).map((value) => ({ owner, value }));
}

function optional<T>(on: boolean | undefined, arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> {
  return on === true ? fc.option(arbitrary, { nil: undefined }) : fc.constant(undefined);
}

function logprobsOf(value: string): Logprobs {
  return [...value].map((token, index) => ({
    token,
    logprob: -index / 8,
    bytes: [...Buffer.from(token)],
    top: [{ token, logprob: -index / 8, bytes: [...Buffer.from(token)] }],
  }));
}

function citationsOf(value: string): Citation[] {
  const length = [...value].length;
  return [{ kind: 'url', url: 'https://example.com/a', title: 'A', start: 0, end: Math.max(1, Math.floor(length / 2)) }];
}

function item(features: ResponseFeatures, owner: Owner): fc.Arbitrary<OutputItem> {
  const opaque = optional(features.opaque, opaqueOf(owner));
  const signature = optional(features.toolSignature, opaqueOf(owner));
  const choices: fc.WeightedArbitrary<OutputItem>[] = [
    {
      weight: 5,
      arbitrary: fc
        .tuple(
          text(),
          optional(features.citations, fc.constant(true)),
          optional(features.logprobs, fc.constant(true)),
          optional(features.phase, fc.constantFrom('commentary', 'final_answer')),
          optional(features.textSignature, opaqueOf(owner)),
        )
        .map(([value, cited, scored, phase, signed]) => ({
          kind: 'text' as const,
          role: 'assistant' as const,
          text: value,
          citations: cited === true ? citationsOf(value) : [],
          ...(scored === true ? { logprobs: logprobsOf(value) } : {}),
          ...(phase === undefined ? {} : { phase }),
          ...(signed === undefined ? {} : { opaque: signed }),
        })),
    },
    {
      weight: 3,
      arbitrary: fc.tuple(callId, toolName, jsonObjectText, signature).map(([id, name, input, signed]) => ({
        kind: 'toolCall' as const,
        toolType: 'function' as const,
        callId: id,
        tool: { name },
        input,
        ...(signed === undefined ? {} : { opaque: signed }),
      })),
    },
  ];
  if (features.refusal === true)
    choices.push({ weight: 1, arbitrary: text().map((value) => ({ kind: 'refusal' as const, text: value })) });
  if (features.custom === true) {
    choices.push({
      weight: 1,
      arbitrary: fc.tuple(callId, text()).map(([id, input]) => ({
        kind: 'toolCall' as const,
        toolType: 'custom' as const,
        callId: id,
        tool: { name: 'apply_patch' },
        input,
      })),
    });
  }
  if (features.raw === true || features.summary === true) {
    choices.push({
      weight: 2,
      arbitrary: fc
        .tuple(
          optional(features.raw, text()),
          optional(features.summary, fc.array(text(), { minLength: 1, maxLength: 3 })),
          opaque,
        )
        .filter(([raw, summary, sealed]) => raw !== undefined || summary !== undefined || sealed !== undefined)
        .map(([raw, summary, sealed]) => ({
          kind: 'reasoning' as const,
          ...(raw === undefined ? {} : { raw }),
          ...(summary === undefined ? {} : { summary }),
          ...(sealed === undefined ? {} : { opaque: sealed }),
        })),
    });
  }
  if (features.images === true) {
    choices.push({
      weight: 1,
      arbitrary: fc.base64String({ minLength: 8, maxLength: 40 }).map((data) => ({
        kind: 'media' as const,
        role: 'assistant' as const,
        media: { type: 'image' as const, source: { from: 'inline' as const, mime: 'image/png', data } },
      })),
    });
  }
  return fc.oneof(...choices);
}

export const usage: fc.Arbitrary<Usage> = fc
  .record({ input: fc.nat(100_000), cacheRead: fc.nat(5_000), output: fc.integer({ min: 1, max: 9_000 }), share: fc.nat(100) })
  .map(({ input, cacheRead, output, share }) => ({
    input: input + 1,
    cacheRead,
    output,
    reasoning: Math.floor((output * share) / 100),
  }));

/** A finished answer whose outcome fits its items. */
export function answer(features: ResponseFeatures, owner: Owner): fc.Arbitrary<Answer> {
  return fc
    .tuple(
      fc
        .array(item(features, owner), { minLength: 0, maxLength: 6 })
        .filter((items) => new Set(items.map((each) => ('callId' in each ? each.callId : each))).size === items.length),
      fc.option(usage, { nil: undefined }),
      fc.constantFrom('completed', 'max_output', 'content_filter'),
    )
    .map(([items, used, ending]) => {
      const calls = items.some((each) => each.kind === 'toolCall');
      const outcome: Outcome =
        ending === 'completed'
          ? { status: 'completed', stop: calls ? 'toolUse' : 'end' }
          : { status: 'incomplete', reason: ending as 'max_output' };
      return { items, usage: used, outcome };
    });
}

export function headOf(whole: OutputItem): ItemHead {
  const id = whole.id === undefined ? {} : { id: whole.id };
  switch (whole.kind) {
    case 'text':
      return { kind: 'text', role: whole.role, ...(whole.phase === undefined ? {} : { phase: whole.phase }), ...id };
    case 'toolCall':
      return { kind: 'toolCall', toolType: whole.toolType, callId: whole.callId, tool: whole.tool, ...id };
    case 'native':
      return { kind: 'native', dialect: whole.dialect, ...id };
    default:
      return { kind: whole.kind, ...id };
  }
}

/** Cuts a string at the given fractions, never inside a surrogate pair. */
export function cut(value: string, fractions: readonly number[]): string[] {
  const points = [...new Set(fractions.map((fraction) => Math.floor(fraction * value.length)))]
    .filter((point) => point > 0 && point < value.length && value.slice(0, point).isWellFormed())
    .sort((a, b) => a - b);
  return [0, ...points]
    .map((point, index) => value.slice(point, [...points, value.length][index]))
    .filter((piece) => piece !== '');
}

function deltasOf(whole: OutputItem, fractions: readonly number[]): ItemDelta[] {
  switch (whole.kind) {
    case 'text': {
      const cited: ItemDelta[] = whole.citations.map((citation) => ({ kind: 'citation', citation }));
      if (whole.logprobs !== undefined)
        return [...whole.logprobs.map((entry): ItemDelta => ({ kind: 'text', text: entry.token, logprobs: [entry] })), ...cited];
      return [...cut(whole.text, fractions).map((piece): ItemDelta => ({ kind: 'text', text: piece })), ...cited];
    }
    case 'refusal':
      return cut(whole.text, fractions).map((piece) => ({ kind: 'text', text: piece }));
    case 'reasoning':
      return [
        ...cut(whole.raw ?? '', fractions).map((piece): ItemDelta => ({ kind: 'raw', text: piece })),
        ...(whole.summary ?? []).flatMap((part, index) =>
          cut(part, fractions).map((piece): ItemDelta => ({ kind: 'summary', part: index, text: piece })),
        ),
      ];
    case 'toolCall':
      return cut(whole.input, fractions).map((piece) => ({ kind: 'input', text: piece }));
    default:
      return [];
  }
}

/**
 * The events of an answer, each item's text cut at `fractions`; neighbouring tool calls interleaved when `interleave` is true.
 */
export function eventsOf(said: Answer, fractions: readonly number[] = [], interleave = false, id = 'up_1'): CanonicalEvent[] {
  const events: CanonicalEvent[] = [{ type: 'response.start', id, model: 'up-model', createdAt: 1_760_000_000 }];
  let group: CanonicalEvent[][] = [];
  const flush = (): void => {
    while (group.some((queue) => queue.length > 0)) for (const queue of group) events.push(...queue.splice(0, 1));
    group = [];
  };
  said.items.forEach((whole, index) => {
    const status: ItemStatus = 'completed';
    const queue: CanonicalEvent[] = deltasOf(whole, fractions).map((delta) => ({ type: 'item.delta', index, delta }));
    queue.push({ type: 'item.end', index, item: whole, status });
    if (!(interleave && whole.kind === 'toolCall')) flush();
    events.push({ type: 'item.start', index, head: headOf(whole) });
    group.push(queue);
  });
  flush();
  if (said.usage !== undefined) events.push({ type: 'usage.report', usage: said.usage });
  events.push({ type: 'response.end', outcome: said.outcome });
  return events;
}

export const stepsOf = (events: readonly CanonicalEvent[]): Step[] => events.map((event) => ({ events: [event] }));

export const fractions: fc.Arbitrary<number[]> = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 5 });
