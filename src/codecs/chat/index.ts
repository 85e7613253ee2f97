/** Chat completions as a client's protocol and as an upstream's. */
import type { Step } from '../canonical/event.ts';
import type { ClientCodec, DecodeContext, UpstreamCodec } from '../codec.ts';
import { openAiErrorBody, openAiErrorFrame } from '../errors/openai.ts';
import { expandedStep, expandingDecoder } from '../tools/parallel-wrapper.ts';
import { ChatDecoder } from './answer/decode.ts';
import { ChatEncoder } from './answer/encode.ts';
import { type Steps, whole } from '../steps.ts';
import { encodeInSteps } from './request/encode.ts';
import { decodeError } from './errors.ts';
import { requestLosses, responseLosses } from './losses.ts';
import { decodeInSteps } from './request/decode.ts';
import { decodeInSteps as decodeAnswer, encodeInSteps as encodeResponseInSteps } from './answer/whole.ts';

export { ChatDecoder };

export const chatClient: ClientCodec = {
  dialect: 'chat',
  losses: responseLosses,
  idPrefix: 'chatcmpl-',
  decodeRequest: whole(decodeInSteps),
  decodeInSteps,
  encodeEvents: (context) => new ChatEncoder(context),
  encodeResponse: whole(encodeResponseInSteps),
  encodeResponseInSteps,
  errorFrame: openAiErrorFrame,
  encodeError: (error) => JSON.stringify(openAiErrorBody(error)),
};

function* decodeResponseInSteps(text: string, context: DecodeContext): Steps<Step> {
  const step = yield* decodeAnswer(text, context);
  return expandedStep(step, 'chat', context);
}

export const chatUpstream: UpstreamCodec = {
  dialect: 'chat',
  channelType: 'chat_completion',
  losses: requestLosses,
  encodeRequest: whole(encodeInSteps),
  encodeInSteps,
  decodeEvents: (context) => expandingDecoder(new ChatDecoder(context), 'chat', context),
  decodeResponse: whole(decodeResponseInSteps),
  decodeResponseInSteps,
  decodeError,
};
