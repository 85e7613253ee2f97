/** Legacy completions: a client's protocol only; every upstream sees an ordinary conversation. */
import { clientCodec } from '../codec.ts';
import { openAiErrorBody, openAiErrorFrame } from '../errors/openai.ts';
import { CompletionsEncoder } from './answer/encode.ts';
import { responseLosses } from './losses.ts';
import { decodeRequest } from './request/decode.ts';
import { encodeInSteps as encodeResponseInSteps } from './answer/whole.ts';

export const completionsClient = clientCodec({
  dialect: 'completions',
  losses: responseLosses,
  idPrefix: 'cmpl-',
  *decodeInSteps(text, json) {
    yield;
    return decodeRequest(text, json);
  },
  encodeEvents: (context) => new CompletionsEncoder(context),
  encodeResponseInSteps,
  errorFrame: openAiErrorFrame,
  encodeError: (error) => JSON.stringify(openAiErrorBody(error)),
});
