/**
 * The responses dialect: what clients speak at `/v1/responses`, and Channels of type `responses`. Frames hold JSON only, so a
 * WebSocket can carry them.
 */
import type { Step } from '../canonical/event.ts';
import { clientCodec, type DecodeContext, upstreamCodec } from '../codec.ts';
import { expandedStep, expandingDecoder } from '../tools/parallel-wrapper.ts';
import { decodeEvents } from './answer/decode.ts';
import { encodeEvents, encodeEventsInSteps } from './answer/encode.ts';
import type { Steps } from '../steps.ts';
import { encodeInSteps } from './request/encode.ts';
import { decodeError, encodeError, errorFrame } from './errors.ts';
import { requestLosses, responseLosses } from './losses.ts';
import { decodeInSteps } from './request/decode.ts';
import { decodeInSteps as decodeAnswer, encodeInSteps as encodeResponseInSteps } from './answer/whole.ts';

export const responsesClient = clientCodec({
  dialect: 'responses',
  losses: responseLosses,
  idPrefix: 'resp_mizu_',
  decodeInSteps,
  encodeEvents,
  encodeEventsInSteps,
  encodeResponseInSteps,
  errorFrame,
  encodeError,
});

function* decodeResponseInSteps(text: string, context: DecodeContext): Steps<Step> {
  const step = yield* decodeAnswer(text, context);
  return expandedStep(step, 'responses', context);
}

export const responsesUpstream = upstreamCodec({
  dialect: 'responses',
  channelType: 'responses',
  losses: requestLosses,
  encodeInSteps,
  decodeEvents: (context) => expandingDecoder(decodeEvents(context), 'responses', context),
  decodeResponseInSteps,
  decodeError,
});
