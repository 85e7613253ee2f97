/** The generative-content protocol, upstream side only: the gateway offers it to no client. */
import { upstreamCodec } from '../codec.ts';
import { GenerateContentDecoder } from './answer/decode.ts';
import { decodeInSteps as decodeResponseInSteps } from './answer/whole.ts';
import { encodeInSteps } from './request/encode.ts';
import { decodeError } from './errors.ts';
import { requestLosses } from './losses.ts';

export { GenerateContentDecoder } from './answer/decode.ts';

export const geminiUpstream = upstreamCodec({
  dialect: 'gemini',
  channelType: 'gemini',
  losses: requestLosses,
  encodeInSteps,
  decodeEvents: (context) => new GenerateContentDecoder(context),
  decodeResponseInSteps,
  decodeError,
});
