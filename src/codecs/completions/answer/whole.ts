/** The whole `text_completion` body. */
import type { Whole } from '../../canonical/fold.ts';
import type { Native } from '../../canonical/event.ts';
import type { ResponseContext } from '../../codec.ts';
import { writeTokenUsage } from '../../answers/token-usage.ts';
import { AnswerLosses } from '../../answers/losses.ts';
import { TextJoin } from '../../answers/text-join.ts';
import type { Outcome } from '../../canonical/outcome.ts';
import { responseLosses } from '../losses.ts';

export function encodeResponse(whole: Whole, _native: Native | undefined, context: ResponseContext): string {
  const finish = finishReason(whole.outcome);
  const join = new TextJoin();
  let text = '';
  const { items, usage } = new AnswerLosses('completions', responseLosses, context).keptWhole(whole);
  for (const { item } of items) {
    join.begin(item.kind, item.kind === 'text' ? item.phase : undefined);
    if ((item.kind === 'text' || item.kind === 'refusal') && item.text !== '') text += join.beforeWords() + item.text;
  }
  return JSON.stringify({
    id: context.responseId,
    object: 'text_completion',
    created: context.createdAt,
    model: context.model,
    choices: [{ text, index: 0, logprobs: null, finish_reason: finish }],
    ...(usage === undefined ? {} : { usage: writeTokenUsage(usage) }),
  });
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
