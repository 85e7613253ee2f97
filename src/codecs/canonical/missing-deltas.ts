/**
 * What the deltas of an item lack of the final item. The final item may add to what was streamed and never contradict it. Summaries are an
 * exception: an upstream may word a part anew, and then the final wording stands in the whole item alone.
 */
import { LifecycleError } from '../../streams/lifecycle.ts';
import { upstreamFault } from './error.ts';
import type { ItemDelta } from './event.ts';
import type { OpenItem } from './fold.ts';
import type { Citation, OutputItem } from './item.ts';

const NOTHING: readonly ItemDelta[] = [];

/** The deltas to insert before the end of `item`. Throws where the item contradicts its deltas. */
export function missingDeltas(open: OpenItem, item: OutputItem): readonly ItemDelta[] {
  if (open.head.kind !== item.kind) throw new LifecycleError('item', `open ${open.head.kind}`, `end as ${item.kind}`, []);
  switch (item.kind) {
    case 'text': {
      const rest = restOf(open, item.text, item.kind);
      const cited = item.citations.length === 0 ? NOTHING : missingCitations(open.citations, item.citations);
      if (rest === '') return cited;
      // The logprobs of an item describe its whole text: they fit only where none of it was streamed.
      const scored = open.text === '' && item.logprobs !== undefined ? { logprobs: item.logprobs } : {};
      return [{ kind: 'text', text: rest, ...scored }, ...cited];
    }
    case 'refusal':
      return one('text', restOf(open, item.text, item.kind));
    case 'toolCall':
      return one('input', restOf(open, item.input, item.kind));
    case 'reasoning': {
      const raw = one('raw', restOf(open, item.raw ?? '', item.kind));
      return item.summary === undefined ? raw : [...raw, ...missingSummary(open.summary, item.summary)];
    }
    case 'media':
    case 'native':
      return NOTHING;
  }
}

function one(kind: 'text' | 'raw' | 'input', text: string): readonly ItemDelta[] {
  return text === '' ? NOTHING : [{ kind, text }];
}

function restOf({ text: streamed }: OpenItem, whole: string, kind: OutputItem['kind']): string {
  if (!whole.startsWith(streamed))
    throw upstreamFault('illegal_lifecycle', `The upstream's final ${kind} contradicts what it streamed.`);
  return whole.length === streamed.length ? '' : whole.slice(streamed.length);
}

function missingSummary(streamed: readonly string[], whole: readonly string[]): ItemDelta[] {
  const missing: ItemDelta[] = [];
  for (const [part, text] of whole.entries()) {
    const known = streamed[part] ?? '';
    if (text.length > known.length && text.startsWith(known))
      missing.push({ kind: 'summary', part, text: text.slice(known.length) });
  }
  return missing;
}

function missingCitations(streamed: readonly Citation[], whole: readonly Citation[]): ItemDelta[] {
  if (streamed.length === whole.length && whole.every((citation, at) => citation === streamed[at])) return [];
  const known = new Set(streamed.map((citation) => JSON.stringify(citation)));
  return whole.flatMap((citation): ItemDelta[] => (known.has(JSON.stringify(citation)) ? [] : [{ kind: 'citation', citation }]));
}
