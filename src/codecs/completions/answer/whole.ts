/** The whole `text_completion` body. */
import type { Whole } from '../../canonical/fold.ts';
import type { Native } from '../../canonical/event.ts';
import type { ResponseContext } from '../../codec.ts';
import { shownUsage } from '../../canonical/usage.ts';
import { writeTokenUsage } from '../../answers/token-usage.ts';
import { AnswerLosses } from '../../answers/losses.ts';
import { unfold } from '../../canonical/item-emitter.ts';
import { writeInSteps } from '../../json/write-in-steps.ts';
import type { Steps } from '../../steps.ts';
import { responseLosses } from '../losses.ts';
import { finishReason, TextWriter } from './encode.ts';

export function* encodeInSteps(whole: Whole, _native: Native | undefined, context: ResponseContext): Steps<string> {
  const finish = finishReason(whole.outcome);
  const writer = new TextWriter();
  let text = '';
  const { items, usage } = new AnswerLosses('completions', responseLosses, context).keptWhole(whole);
  for (const [index, item] of items.entries()) for (const event of unfold(index, item)) text += writer.write(event).join('');
  const shown = shownUsage(usage);
  yield;
  return yield* writeInSteps({
    id: context.responseId,
    object: 'text_completion',
    created: context.createdAt,
    model: context.model,
    choices: [{ text, index: 0, logprobs: null, finish_reason: finish }],
    ...(shown === undefined ? {} : { usage: writeTokenUsage(shown) }),
  });
}
