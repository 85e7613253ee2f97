/** Which features of `canonical/features.ts` an answer holds: counted apart from the code under test. */
import type { NativeEventFeature, ResponseFeature } from '../../../src/codecs/canonical/features.ts';
import type { OutputItem } from '../../../src/codecs/canonical/item.ts';
import type { IncompleteReason, Outcome } from '../../../src/codecs/canonical/outcome.ts';
import type { Usage } from '../../../src/codecs/canonical/usage.ts';

export interface FoldedAnswer {
  readonly items: readonly OutputItem[];
  readonly usage?: Usage | undefined;
  readonly outcome: Outcome;
  readonly events?: ReadonlySet<NativeEventFeature> | undefined;
}

const NO_EVENTS: ReadonlySet<NativeEventFeature> = new Set();

export function featuresOfAnswer({ items, usage, outcome, events = NO_EVENTS }: FoldedAnswer): ReadonlySet<ResponseFeature> {
  const found = new Set<ResponseFeature>([...items.flatMap(featuresOfItem), ...events]);
  if (items.filter(({ kind }) => kind === 'text').length > 1) found.add('several texts');
  for (const feature of usage === undefined ? [] : featuresOfUsage(usage)) found.add(feature);
  found.add(featureOfOutcome(outcome));
  const isPaused = outcome.status === 'incomplete' && (outcome.reason === 'pause' || outcome.reason === 'compaction');
  if ((outcome.status === 'completed' || isPaused) && found.has('native item') && !items.some(isSaid))
    found.add('native items alone');
  return found;
}

/** Whether the item is something that every dialect says, or refuses. Reasoning is no answer. */
function isSaid(item: OutputItem): boolean {
  switch (item.kind) {
    case 'text':
      return item.text !== '' || item.citations.length > 0;
    case 'refusal':
      return item.text !== '';
    case 'toolCall':
    case 'media':
      return true;
    case 'reasoning':
    case 'native':
      return false;
  }
}

/** For a list that is spread: the feature where it is there, else nothing. */
function when(isThere: boolean, feature: ResponseFeature): ResponseFeature[] {
  return isThere ? [feature] : [];
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
        ...when(item.phase !== undefined, 'text phase'),
        ...when(item.logprobs !== undefined, 'logprobs'),
        ...when(item.opaque !== undefined, 'text signature'),
      ];
    }
    case 'refusal':
      return ['refusal'];
    case 'reasoning':
      return [
        ...when(item.raw !== undefined, 'reasoning: raw text'),
        ...when(item.summary !== undefined, 'reasoning: summary'),
        ...when(item.opaque !== undefined, item.opaque?.form === 'redacted' ? 'reasoning: redacted' : 'reasoning: opaque'),
      ];
    case 'toolCall':
      return [
        item.toolType === 'custom' ? 'custom tool call' : 'function call',
        ...when(item.tool.namespace !== undefined, 'function call: namespace'),
        ...when(item.opaque !== undefined, 'function call signature'),
      ];
    case 'media':
      return [item.media.type === 'video' ? 'file' : item.media.type, ...when(item.opaque !== undefined, 'image signature')];
    case 'native':
      return ['native item'];
  }
}

function featuresOfUsage(usage: Usage): ResponseFeature[] {
  return [
    ...when((usage.cacheRead ?? 0) > 0, 'usage: cache'),
    ...when((usage.reasoning ?? 0) > 0, 'usage: reasoning'),
    ...when(usage.extra !== undefined, 'usage: iterations'),
    ...when(usage.native !== undefined, 'usage: unknown members'),
    ...when(usage.serviceTier !== undefined, 'service tier'),
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
