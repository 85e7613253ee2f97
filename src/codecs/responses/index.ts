/**
 * The responses dialect: what clients speak at `/v1/responses`, and Channels of type `responses`. Frames hold JSON only, so a
 * WebSocket can carry them.
 */
import type { ClientCodec, UpstreamCodec } from '../codec.ts';
import { expandedStep, expandingDecoder } from '../tools/parallel-wrapper.ts';
import { decodeEvents } from './answer/decode.ts';
import { encodeEvents } from './answer/encode.ts';
import { whole } from '../steps.ts';
import { encodeInSteps } from './request/encode.ts';
import { decodeError, encodeError, errorFrame } from './errors.ts';
import { requestLosses, responseLosses } from './losses.ts';
import { decodeInSteps } from './request/decode.ts';
import { decodeResponse, encodeResponse } from './answer/whole.ts';

export const responsesClient: ClientCodec = {
  dialect: 'responses',
  losses: responseLosses,
  idPrefix: 'resp_mizu_',
  decodeRequest: whole(decodeInSteps),
  decodeInSteps,
  encodeEvents,
  encodeResponse,
  errorFrame,
  encodeError,
};

export const responsesUpstream: UpstreamCodec = {
  dialect: 'responses',
  channelType: 'responses',
  losses: requestLosses,
  encodeRequest: whole(encodeInSteps),
  encodeInSteps,
  decodeEvents: (context) => expandingDecoder(decodeEvents(context), 'responses', context),
  decodeResponse: (text, context) => expandedStep(decodeResponse(text, context), 'responses', context),
  decodeError,
};
