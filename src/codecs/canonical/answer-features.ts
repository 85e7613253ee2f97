/** Which features of `features.ts` an answer holds. Native events are not part of a folded answer, so their feature is never found here. */
import type { ResponseFeature, ResponseLosses } from './features.ts';
import type { OutputItem } from './item.ts';
import type { IncompleteReason, Outcome } from './outcome.ts';
import type { Usage } from './usage.ts';

export interface FoldedAnswer {
  readonly items: readonly OutputItem[];
  readonly usage?: Usage | undefined;
  readonly outcome: Outcome;
}

export function featuresOfAnswer({ items, usage, outcome }: FoldedAnswer): ReadonlySet<ResponseFeature> {
  const found = new Set<ResponseFeature>(items.flatMap(featuresOfItem));
  if (items.filter(({ kind }) => kind === 'text').length > 1) found.add('several texts');
  for (const feature of usage === undefined ? [] : featuresOfUsage(usage)) found.add(feature);
  found.add(featureOfOutcome(outcome));
  return found;
}

/** The features of the answer that a dialect with these losses drops. */
export function droppedOf(answer: FoldedAnswer, losses: ResponseLosses): ResponseFeature[] {
  return [...featuresOfAnswer(answer)].filter((feature) => losses[feature].does === 'drop');
}

function featuresOfItem(item: OutputItem): ResponseFeature[] {
  switch (item.kind) {
    case 'text': {
      const cited = item.citations.map((citation): ResponseFeature => {
        if (citation.kind === 'native') return 'native citation';
        return citation.start === undefined ? 'url citation without position' : 'url citation with position';
      });
      return [
        'text',
        ...cited,
        ...(item.phase === undefined ? [] : (['text phase'] as const)),
        ...(item.logprobs === undefined ? [] : (['logprobs'] as const)),
        ...(item.opaque === undefined ? [] : (['text signature'] as const)),
      ];
    }
    case 'refusal':
      return ['refusal'];
    case 'reasoning':
      return [
        ...(item.raw === undefined ? [] : (['reasoning: raw text'] as const)),
        ...(item.summary === undefined ? [] : (['reasoning: summary'] as const)),
        ...(item.opaque === undefined
          ? []
          : ([item.opaque.form === 'redacted' ? 'reasoning: redacted' : 'reasoning: opaque'] as const)),
      ];
    case 'toolCall':
      return [
        item.flavour === 'custom' ? 'custom tool call' : 'function call',
        ...(item.tool.namespace === undefined ? [] : (['function call: namespace'] as const)),
        ...(item.opaque === undefined ? [] : (['function call signature'] as const)),
      ];
    case 'media':
      return [item.media.type, ...(item.opaque === undefined ? [] : (['image signature'] as const))];
    case 'native':
      return ['native item'];
  }
}

function featuresOfUsage(usage: Usage): ResponseFeature[] {
  return [
    ...((usage.cacheRead ?? 0) > 0 ? (['usage: cache'] as const) : []),
    ...((usage.reasoning ?? 0) > 0 ? (['usage: reasoning'] as const) : []),
    ...(usage.extra === undefined ? [] : (['usage: iterations'] as const)),
    ...(usage.native === undefined ? [] : (['usage: unknown members'] as const)),
    ...(usage.serviceTier === undefined ? [] : (['service tier'] as const)),
  ];
}

const INCOMPLETE: Readonly<Record<IncompleteReason, ResponseFeature>> = {
  max_output: 'incomplete: max output',
  content_filter: 'incomplete: content filter',
  context_window: 'incomplete: context window',
  pause: 'incomplete: pause',
  compaction: 'incomplete: compaction',
  other: 'incomplete: max output',
};

function featureOfOutcome(outcome: Outcome): ResponseFeature {
  if (outcome.status === 'incomplete') return INCOMPLETE[outcome.reason];
  if (outcome.status !== 'completed') return outcome.status === 'failed' ? 'failed with partial output' : 'cancelled';
  if (outcome.stop === 'end') return 'text';
  return outcome.stop === 'toolUse' ? 'completed: tool use' : 'completed: stop sequence';
}
