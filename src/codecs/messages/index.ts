/** The messages protocol: a dialect that clients speak and that Channels of type `messages` speak. */
import type { ClientCodec, UpstreamCodec } from '../codec.ts';
import { decodeEvents } from './answer/decode.ts';
import { encodeEvents } from './answer/encode.ts';
import { whole } from '../steps.ts';
import { encodeInSteps } from './request/encode.ts';
import { decodeError, encodeError, errorFrame } from './errors.ts';
import { requestLosses, responseLosses } from './losses.ts';
import { decodeInSteps } from './request/decode.ts';
import { decodeInSteps as decodeResponseInSteps, encodeInSteps as encodeResponseInSteps } from './answer/whole.ts';

export { DEFAULT_VERSION } from './wire.ts';

export const messagesClient: ClientCodec = {
  dialect: 'messages',
  losses: responseLosses,
  idPrefix: 'msg_',
  decodeRequest: whole(decodeInSteps),
  decodeInSteps,
  encodeEvents,
  encodeResponse: whole(encodeResponseInSteps),
  encodeResponseInSteps,
  errorFrame,
  encodeError,
};

export const messagesUpstream: UpstreamCodec = {
  dialect: 'messages',
  channelType: 'messages',
  losses: requestLosses,
  encodeRequest: whole(encodeInSteps),
  encodeInSteps,
  decodeEvents,
  decodeResponse: whole(decodeResponseInSteps),
  decodeResponseInSteps,
  decodeError,
};
