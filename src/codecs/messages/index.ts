/** The messages protocol: a dialect that clients speak and that Channels of type `messages` speak. */
import { clientCodec, upstreamCodec } from '../codec.ts';
import { decodeEvents } from './answer/decode.ts';
import { encodeEvents } from './answer/encode.ts';
import { encodeInSteps } from './request/encode.ts';
import { decodeError, encodeError, errorFrame } from './errors.ts';
import { requestLosses, responseLosses } from './losses.ts';
import { decodeInSteps } from './request/decode.ts';
import { decodeInSteps as decodeResponseInSteps, encodeInSteps as encodeResponseInSteps } from './answer/whole.ts';

export { DEFAULT_VERSION } from './wire.ts';

export const messagesClient = clientCodec({
  dialect: 'messages',
  losses: responseLosses,
  idPrefix: 'msg_',
  decodeInSteps,
  encodeEvents,
  encodeResponseInSteps,
  errorFrame,
  encodeError,
});

export const messagesUpstream = upstreamCodec({
  dialect: 'messages',
  channelType: 'messages',
  losses: requestLosses,
  encodeInSteps,
  decodeEvents,
  decodeResponseInSteps,
  decodeError,
});
