/** The messages protocol: a dialect that clients speak and that Channels of type `messages` speak. */
import type { ClientCodec, UpstreamCodec } from '../codec.ts';
import { decodeEvents } from './decode-events.ts';
import { encodeEvents } from './encode-events.ts';
import { encodeRequest } from './encode-request.ts';
import { decodeError, encodeError, errorFrame } from './errors.ts';
import { requestLosses, responseLosses } from './losses.ts';
import { decodeRequest } from './request.ts';
import { decodeResponse, encodeResponse } from './response.ts';

export { checkClientStream } from './lifecycle.ts';

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
