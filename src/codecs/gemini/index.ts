/** The generative-content protocol, upstream side only: the gateway offers it to no client. */
import type { UpstreamCodec } from '../codec.ts';
import { GenerateContentDecoder } from './decode-events.ts';
import { decodeResponse } from './decode-response.ts';
import { encodeRequest } from './encode-request.ts';
import { decodeError } from './errors.ts';
import { requestLosses } from './losses.ts';

export { GenerateContentDecoder } from './decode-events.ts';

export const geminiUpstream: UpstreamCodec = {
  dialect: 'gemini',
  channelType: 'gemini',
  losses: requestLosses,
  encodeRequest,
  decodeEvents: (context) => new GenerateContentDecoder(context),
  decodeResponse,
  decodeError,
};
