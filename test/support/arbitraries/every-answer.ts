/** Arbitrary answers that hold every feature of `canonical/features.ts`, and which of them an answer holds. */
import fc from 'fast-check';
import { GatewayError } from '../../../src/codecs/canonical/error.ts';
import type { CanonicalEvent } from '../../../src/codecs/canonical/event.ts';
import { featuresOfAnswer } from './answer-features.ts';
import type { ResponseFeature } from '../../../src/codecs/canonical/features.ts';
import type { Citation, Media, OutputItem } from '../../../src/codecs/canonical/item.ts';
import type { Owner } from '../../../src/codecs/canonical/opaque.ts';
import type { IncompleteReason, Outcome } from '../../../src/codecs/canonical/outcome.ts';
import type { Usage } from '../../../src/codecs/canonical/usage.ts';
import { type Answer, answer, callId, eventsOf, text } from './response.ts';

const ALL = {
  refusal: true,
  custom: true,
  citations: true,
  logprobs: true,
  phase: true,
  raw: true,
  summary: true,
  opaque: true,
  toolSignature: true,
  textSignature: true,
} as const;

const says = (value: string, citations: readonly Citation[]): OutputItem => ({
  kind: 'text',
  role: 'assistant',
  text: value,
  citations,
});
const unplaced: Citation = { kind: 'url', url: 'https://example.com/unplaced' };
const foreign: Citation = { kind: 'native', dialect: 'gemini', body: { cited: 1 } };
const media = (type: Media['type'], mime: string): fc.Arbitrary<OutputItem> =>
  fc.constant({ kind: 'media', role: 'assistant', media: { type, source: { from: 'inline', mime, data: 'AAAA' } } });

function rareItem(owner: Owner): fc.Arbitrary<OutputItem> {
  const redacted = { owner: { ...owner, channelType: 'messages' as const }, value: 'SECRET', form: 'redacted' };
  return fc.oneof(
    { weight: 4, arbitrary: fc.tuple(text(), fc.constantFrom(unplaced, foreign)).map(([value, one]) => says(value, [one])) },
    { weight: 2, arbitrary: fc.constant<OutputItem>({ kind: 'reasoning', opaque: redacted }) },
    { weight: 4, arbitrary: fc.constant<OutputItem>({ kind: 'native', dialect: 'gemini', body: { a: 1 } }) },
    {
      weight: 2,
      arbitrary: callId.map((id): OutputItem => {
        const tool = { name: 'send', namespace: 'mail' };
        return { kind: 'toolCall', toolType: 'function', callId: id, tool, input: '{}' };
      }),
    },
    { weight: 1, arbitrary: media('image', 'image/png') },
    {
      weight: 1,
      arbitrary: media('image', 'image/png').map(
        (item) => ({ ...item, opaque: { owner, value: 'SECRET', form: 'inlineData' } }) as OutputItem,
      ),
    },
    { weight: 1, arbitrary: media('audio', 'audio/wav') },
    { weight: 1, arbitrary: media('file', 'application/pdf') },
  );
}

const moreUsage: fc.Arbitrary<Usage> = fc.record(
  {
    extra: fc.constant([{ type: 'compaction', input: 5, cacheRead: 0, cacheWrite: 0, output: 7 }]),
    native: fc.constant({ x_unknown: 3 }),
    serviceTier: fc.constantFrom('default', 'priority'),
    cacheWrite: fc.nat(100),
  },
  { requiredKeys: [] },
);

const REASONS: readonly IncompleteReason[] = ['context_window', 'pause', 'compaction', 'max_output', 'content_filter'];

function outcome(calls: boolean): fc.Arbitrary<Outcome> {
  const error = new GatewayError('upstream_error', 'The upstream failed.');
  const stopped: Outcome = { status: 'completed', stop: 'stopSequence', stopSequence: 'END' };
  return fc.oneof(
    { weight: 4, arbitrary: fc.constant<Outcome>({ status: 'completed', stop: calls ? 'toolUse' : 'end' }) },
    { weight: 1, arbitrary: fc.constant<Outcome>(calls ? { status: 'completed', stop: 'toolUse' } : stopped) },
    { weight: 3, arbitrary: fc.constantFrom(...REASONS).map((reason): Outcome => ({ status: 'incomplete', reason })) },
    { weight: 1, arbitrary: fc.constantFrom<Outcome>({ status: 'failed', error }, { status: 'cancelled', error }) },
  );
}

type NativeEvent = 'native event' | 'citation of an ended text';
const NATIVE_EVENTS: Readonly<Record<NativeEvent, CanonicalEvent>> = {
  'native event': { type: 'native.event', dialect: 'gemini', name: 'x', body: {} },
  'citation of an ended text': { type: 'native.event', dialect: 'chat', name: 'annotations', body: { type: 'url_citation' } },
};

export interface EveryAnswer extends Answer {
  readonly nativeEvent: NativeEvent | undefined;
}

export function everyAnswer(owner: Owner): fc.Arbitrary<EveryAnswer> {
  return fc
    .tuple(
      answer(ALL, owner),
      fc.oneof({ weight: 2, arbitrary: fc.constant([]) }, { weight: 1, arbitrary: fc.array(rareItem(owner), { maxLength: 2 }) }),
      fc.option(moreUsage, { nil: undefined }),
      fc.constantFrom<(NativeEvent | undefined)[]>(undefined, 'native event', 'citation of an ended text'),
    )
    .chain(([said, rare, details, nativeEvent]) => {
      // What only its own dialect has stands alone more often than chance would have it.
      const [first] = rare;
      const items = first?.kind === 'native' && rare.length === 1 ? rare : [...said.items, ...rare];
      const usage = said.usage === undefined ? undefined : { ...said.usage, ...details };
      const calls = items.some(({ kind }) => kind === 'toolCall');
      return outcome(calls).map((end) => ({ items, usage, outcome: end, nativeEvent }));
    });
}

/** The stream of an answer, calls interleaved; its native event comes before anything is said. */
export function everyEventsOf(said: EveryAnswer, cuts: readonly number[], interleave: boolean): CanonicalEvent[] {
  // Unsigned calls interleave with calls; what began before them has ended.
  const { items } = said;
  const mayMix = items.every(
    (item, at) => item.kind !== 'toolCall' || (item.opaque === undefined && (at === 0 || items[at - 1]?.kind === 'toolCall')),
  );
  const events = eventsOf(said, cuts, interleave && mayMix);
  if (said.nativeEvent !== undefined) events.splice(1, 0, NATIVE_EVENTS[said.nativeEvent]);
  return events;
}

export function featuresOf(answer: EveryAnswer): ReadonlySet<ResponseFeature> {
  const found = new Set(featuresOfAnswer(answer));
  if (answer.nativeEvent !== undefined) found.add(answer.nativeEvent);
  return found;
}
