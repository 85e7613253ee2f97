/** Chat completions as a client's protocol and as an upstream's. */
import type { ClientCodec, UpstreamCodec } from '../codec.ts';
import { openAiErrorBody, openAiErrorFrame } from '../errors/openai.ts';
import { expandedStep, expandingDecoder } from '../tools/parallel-wrapper.ts';
import { ChatDecoder } from './answer/decode.ts';
import { ChatEncoder } from './answer/encode.ts';
import { whole } from '../steps.ts';
import { encodeInSteps } from './request/encode.ts';
import { decodeError } from './errors.ts';
import { requestLosses, responseLosses } from './losses.ts';
import { decodeInSteps } from './request/decode.ts';
import { decodeResponse, encodeResponse } from './answer/whole.ts';

export { ChatDecoder };

export const chatClient: ClientCodec = {
  dialect: 'chat',
  losses: responseLosses,
  idPrefix: 'chatcmpl-',
  decodeRequest: whole(decodeInSteps),
  decodeInSteps,
  encodeEvents: (context) => new ChatEncoder(context),
  encodeResponse,
  errorFrame: openAiErrorFrame,
  encodeError: (error) => JSON.stringify(openAiErrorBody(error)),
};

export const chatUpstream: UpstreamCodec = {
  dialect: 'chat',
  channelType: 'chat_completion',
  losses: requestLosses,
  encodeRequest: whole(encodeInSteps),
  encodeInSteps,
  decodeEvents: (context) => expandingDecoder(new ChatDecoder(context), 'chat', context),
  decodeResponse: (text, context) => expandedStep(decodeResponse(text, context), 'chat', context),
  decodeError,
};
