/** The whole `text_completion` body. */
import type { Whole } from '../../canonical/fold.ts';
import type { Native, ItemHead } from '../../canonical/event.ts';
import type { ResponseContext } from '../../codec.ts';
import { writeTokenUsage } from '../../answers/token-usage.ts';
import { Unsaid } from '../../answers/unsaid.ts';
import { TextJoin } from '../../answers/text-join.ts';
import { notRepresentable } from '../../canonical/error.ts';
import type { Outcome } from '../../canonical/outcome.ts';

export function encodeResponse(whole: Whole, _native: Native | undefined, context: ResponseContext): string {
  const finish = finishReason(whole.outcome);
  const join = new TextJoin();
  let text = '';
  const unsaid = new Unsaid('completions');
  for (const { item } of whole.items) {
    unsaid.note(item);
    checkText(item.kind);
    join.begin(item.kind, item.kind === 'text' ? item.phase : undefined);
    if ((item.kind === 'text' || item.kind === 'refusal') && item.text !== '') text += join.beforeWords() + item.text;
  }
  unsaid.check(whole.outcome);
  return JSON.stringify({
    id: context.responseId,
    object: 'text_completion',
    created: context.createdAt,
    model: context.model,
    choices: [{ text, index: 0, logprobs: null, finish_reason: finish }],
    ...(whole.usage === undefined ? {} : { usage: writeTokenUsage(whole.usage) }),
  });
}

/** Throws `response_not_representable` for calls and media. */
export function checkText(kind: ItemHead['kind']): void {
  if (kind === 'toolCall') throw notRepresentable('The answer calls a tool, which legacy completions cannot express.');
  if (kind === 'media') throw notRepresentable('The answer holds media, which legacy completions cannot express.');
}

export function finishReason(outcome: Outcome): 'stop' | 'length' | 'content_filter' {
  if (outcome.status === 'completed') return 'stop';
  if (outcome.status !== 'incomplete') throw outcome.error;
  switch (outcome.reason) {
    case 'content_filter':
      return 'content_filter';
    case 'pause':
    case 'compaction':
      return 'stop';
    default:
      return 'length';
  }
}
