/**
 * What must survive a change of dialect: the meaning of an answer, less what a client's loss table drops or says in another form.
 */
import type { Whole } from '../../src/codecs/canonical/fold.ts';
import type { OutputItem, ToolCallItem } from '../../src/codecs/canonical/item.ts';
import type { ResponseFeature, ResponseLosses } from '../../src/codecs/canonical/features.ts';
import { UNSIGNED } from '../../src/codecs/messages/message-parts.ts';
import { totalInput } from '../../src/codecs/canonical/usage.ts';

export interface Facts {
  readonly text: string;
  readonly refusal: string;
  readonly thinking: string;
  readonly calls: readonly unknown[];
  readonly opaque: readonly string[];
  readonly cited: readonly string[];
  readonly images: readonly string[];
  readonly usage: unknown;
  readonly outcome: string;
}

/** The facts of `whole` that a client of this table still reads. Line breaks are not compared: joins may add them. */
export function factsFor(whole: Whole, losses: ResponseLosses): Facts {
  const items = whole.items.map(({ item }) => item);
  const drops = (feature: ResponseFeature): boolean => losses[feature].does === 'drop';
  const says = (feature: ResponseFeature): boolean => losses[feature].does === 'keep';
  const refusal = textOf(items, 'refusal');
  const images = items.flatMap((item) => (item.kind === 'media' ? [item.media.source] : []));
  const text = textOf(items, 'text');
  return {
    text: says('refusal') ? text : bag(text + refusal),
    refusal: says('refusal') ? refusal : '',
    thinking: thinkingOf(items, says('reasoning: raw text') && says('reasoning: summary')),
    calls: items.flatMap((item) => (item.kind === 'toolCall' ? [callOf(item, says('custom tool call'))] : [])),
    opaque: items.flatMap((item) => ('opaque' in item && item.opaque !== undefined ? innermost(item.opaque.value) : [])).sort(),
    cited: drops('url citation with position')
      ? []
      : items
          .flatMap((item) => (item.kind === 'text' ? item.citations : []))
          .flatMap((one) =>
            one.kind === 'url' && (one.start !== undefined || !drops('url citation without position')) ? [one.url] : [],
          )
          .sort(),
    // Recorded images were shortened, and are no base64 any more.
    images: images.map((source) => (source.from === 'inline' ? source.data : source.from === 'url' ? source.url : '').slice(-64)),
    usage:
      whole.usage === undefined
        ? undefined
        : {
            input: totalInput(whole.usage),
            cacheRead: whole.usage.cacheRead ?? 0,
            output: whole.usage.output ?? 0,
            reasoning: whole.usage.reasoning ?? 0,
          },
    outcome: refusal !== '' && !says('refusal') ? COERCED : outcomeOf(whole, losses),
  };
}

function textOf(items: readonly OutputItem[], kind: 'text' | 'refusal'): string {
  return flat(items.map((item) => (item.kind === kind && 'text' in item ? item.text : '')).join(''));
}

/** Where both faces have their own place both are compared; elsewhere raw text is shown first, and alone. */
function thinkingOf(items: readonly OutputItem[], both: boolean): string {
  return flat(
    items
      .map((item) => {
        if (item.kind !== 'reasoning') return '';
        const summary = (item.summary ?? []).join('');
        return both ? (item.raw ?? '') + summary : item.raw !== undefined && item.raw !== '' ? item.raw : summary;
      })
      .join(''),
  );
}

/** Freeform input that a dialect wraps is compared as what it wraps. */
function callOf(item: ToolCallItem, keepsToolType: boolean): unknown {
  const { callId, tool, toolType, input } = item;
  if (keepsToolType) return [callId, tool.name, toolType, input];
  return [callId, tool.name, toolType === 'custom' ? JSON.stringify({ input }) : input];
}

const flat = (text: string): string => text.replaceAll('\n', '');
const bag = (text: string): string => [...text].sort().join('');

/**
 * The value that an envelope holds, at any depth: an answer that was said again was sealed again. None for the gateway's own
 * text.
 */
function innermost(value: string): string[] {
  let inner = value;
  while (inner.startsWith('mz2.')) {
    const opened = JSON.parse(Buffer.from(inner.slice(4), 'base64url').toString()) as { value: string; form?: string };
    if (opened.form === UNSIGNED) return [];
    inner = opened.value;
  }
  return [inner];
}

/** Cuts that the table says in another form are not compared: the client's dialect reads them as something near. */
function outcomeOf({ outcome }: Whole, losses: ResponseLosses): string {
  if (outcome.status === 'completed') return outcome.stop === 'toolUse' ? 'tool use' : 'end';
  if (outcome.status !== 'incomplete') return outcome.status;
  const feature = CUTS[outcome.reason];
  return feature === undefined || losses[feature].does === 'coerce' ? COERCED : outcome.reason;
}

/** An outcome that the client reads as something near. */
export const COERCED = 'said in another form';

const CUTS: Readonly<Record<string, ResponseFeature>> = {
  max_output: 'incomplete: max output',
  pause: 'incomplete: pause',
  compaction: 'incomplete: compaction',
  context_window: 'incomplete: context window',
  content_filter: 'incomplete: content filter',
};
