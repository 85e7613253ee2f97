/**
 * The responses dialect: what clients speak at `/v1/responses`, and Channels of type `responses`. Frames hold JSON only, so a
 * WebSocket can carry them.
 */
import type { Step } from '../canonical/event.ts';
import type { ClientCodec, DecodeContext, UpstreamCodec } from '../codec.ts';
import { expandedStep, expandingDecoder } from '../tools/parallel-wrapper.ts';
import { decodeEvents } from './answer/decode.ts';
import { encodeEvents, encodeEventsInSteps } from './answer/encode.ts';
import { type Steps, whole } from '../steps.ts';
import { encodeInSteps } from './request/encode.ts';
import { decodeError, encodeError, errorFrame } from './errors.ts';
import { requestLosses, responseLosses } from './losses.ts';
import { decodeInSteps } from './request/decode.ts';
import { decodeInSteps as decodeAnswer, encodeInSteps as encodeResponseInSteps } from './answer/whole.ts';

export const responsesClient: ClientCodec = {
  dialect: 'responses',
  losses: responseLosses,
  idPrefix: 'resp_mizu_',
  decodeRequest: whole(decodeInSteps),
  decodeInSteps,
  encodeEvents,
  encodeEventsInSteps,
  encodeResponse: whole(encodeResponseInSteps),
  encodeResponseInSteps,
  errorFrame,
  encodeError,
};

function* decodeResponseInSteps(text: string, context: DecodeContext): Steps<Step> {
  const step = yield* decodeAnswer(text, context);
  return expandedStep(step, 'responses', context);
}

export const responsesUpstream: UpstreamCodec = {
  dialect: 'responses',
  channelType: 'responses',
  losses: requestLosses,
  encodeRequest: whole(encodeInSteps),
  encodeInSteps,
  decodeEvents: (context) => expandingDecoder(decodeEvents(context), 'responses', context),
  decodeResponse: whole(decodeResponseInSteps),
  decodeResponseInSteps,
  decodeError,
};
