/**
 * What the deltas of an item lack of the final item. The final item may add to what was streamed and never contradict it.
 * Summaries are an exception: an upstream may word a part anew, and then the final wording stands in the whole item alone.
 */
import { LifecycleError } from '../../streams/lifecycle.ts';
import { type GatewayError, upstreamFault } from './error.ts';
import type { ItemDelta } from './event.ts';
import type { OpenItem } from './fold.ts';
import type { Citation, OutputItem } from './item.ts';

const NOTHING: readonly ItemDelta[] = [];

/** The deltas to insert before the end of `item`. Throws where the item contradicts its deltas. */
export function missingDeltas(open: OpenItem, item: OutputItem): readonly ItemDelta[] {
  if (open.head.kind !== item.kind) throw new LifecycleError('item', `open ${open.head.kind}`, `end as ${item.kind}`, []);
  switch (item.kind) {
    case 'text': {
      const rest = restOf(item.text, open.text, item.kind);
      const cited = item.citations.length === 0 ? NOTHING : missingCitations(open.citations, item.citations);
      if (rest === '') return cited;
      // The logprobs of an item describe its whole text: they fit only where none of it was streamed.
      const scored = open.text === '' && item.logprobs !== undefined ? { logprobs: item.logprobs } : {};
      return [{ kind: 'text', text: rest, ...scored }, ...cited];
    }
    case 'refusal':
      return one('text', restOf(item.text, open.text, item.kind));
    case 'toolCall':
      return one('input', restOf(item.input, open.text, item.kind));
    case 'reasoning': {
      const raw = one('raw', restOf(item.raw ?? '', open.text, item.kind));
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

/** What a final text adds to what was streamed of it. Throws where it does not begin with that. `what`: its name in the error. */
export function restOf(whole: string, streamed: string, what: string): string {
  if (!whole.startsWith(streamed)) throw contradiction(what);
  return whole.length === streamed.length ? '' : whole.slice(streamed.length);
}

export function contradiction(what: string): GatewayError {
  return upstreamFault('illegal_lifecycle', `The upstream's final ${what} contradicts what it streamed.`);
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
