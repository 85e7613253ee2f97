/** Chat completions as a client's protocol and as an upstream's. */
import type { Step } from '../canonical/event.ts';
import { clientCodec, type DecodeContext, upstreamCodec } from '../codec.ts';
import { openAiErrorBody, openAiErrorFrame } from '../errors/openai.ts';
import { expandedStep, expandingDecoder } from '../tools/parallel-wrapper.ts';
import { ChatDecoder } from './answer/decode.ts';
import { ChatEncoder } from './answer/encode.ts';
import type { Steps } from '../steps.ts';
import { encodeInSteps } from './request/encode.ts';
import { decodeError } from './errors.ts';
import { requestLosses, responseLosses } from './losses.ts';
import { decodeInSteps } from './request/decode.ts';
import { decodeInSteps as decodeAnswer, encodeInSteps as encodeResponseInSteps } from './answer/whole.ts';

export { ChatDecoder };

export const chatClient = clientCodec({
  dialect: 'chat',
  losses: responseLosses,
  idPrefix: 'chatcmpl-',
  decodeInSteps,
  encodeEvents: (context) => new ChatEncoder(context),
  encodeResponseInSteps,
  errorFrame: openAiErrorFrame,
  encodeError: (error) => JSON.stringify(openAiErrorBody(error)),
});

function* decodeResponseInSteps(text: string, context: DecodeContext): Steps<Step> {
  const step = yield* decodeAnswer(text, context);
  return expandedStep(step, 'chat', context);
}

export const chatUpstream = upstreamCodec({
  dialect: 'chat',
  channelType: 'chat_completion',
  losses: requestLosses,
  encodeInSteps,
  decodeEvents: (context) => expandingDecoder(new ChatDecoder(context), 'chat', context),
  decodeResponseInSteps,
  decodeError,
});
