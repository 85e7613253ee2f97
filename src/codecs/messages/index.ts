/** The messages protocol: a dialect that clients speak and that Channels of type `messages` speak. */
import type { ClientCodec, UpstreamCodec } from '../codec.ts';
import { decodeEvents } from './answer/decode.ts';
import { encodeEvents } from './answer/encode.ts';
import { encodeRequest } from './request/encode.ts';
import { decodeError, encodeError, errorFrame } from './errors.ts';
import { requestLosses, responseLosses } from './losses.ts';
import { decodeRequest } from './request/decode.ts';
import { decodeResponse, encodeResponse } from './answer/whole.ts';

export { DEFAULT_VERSION } from './wire.ts';

export const messagesClient: ClientCodec = {
  dialect: 'messages',
  losses: responseLosses,
  idPrefix: 'msg_',
  decodeRequest,
  encodeEvents,
  encodeResponse,
  errorFrame,
  encodeError,
};

export const messagesUpstream: UpstreamCodec = {
  dialect: 'messages',
  channelType: 'messages',
  losses: requestLosses,
  encodeRequest,
  decodeEvents,
  decodeResponse,
  decodeError,
};
