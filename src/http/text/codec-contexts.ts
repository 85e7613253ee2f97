/** What the codecs are told of a text request and of the Channel that it is sent to. */
import { asSent, type CanonicalRequest } from '../../codecs/canonical/request.ts';
import type { DecodeContext, ModelFacts, RequestContext, Target as CodecTarget, UpstreamRequest } from '../../codecs/codec.ts';
import type { Target } from '../dispatch/plan.ts';
import type { Gateway } from '../gateway.ts';
import type { PreparedRequest } from './prepared-request.ts';

/** For decoding the client's request. */
export function requestContext(
  { envelopes }: Pick<Gateway, 'envelopes'>,
  { principal, item }: Pick<PreparedRequest, 'principal' | 'item'>,
): RequestContext {
  const open = envelopes.opener(principal.account.id);
  return item === undefined ? { open } : { open, item };
}

/** For encoding the request of one attempt. `stored`: of {@link PreparedRequest}. */
export function codecTarget(
  { channel, upstreamModel, without }: Pick<Target, 'channel' | 'upstreamModel' | 'without'>,
  facts: ModelFacts,
  stored: PreparedRequest['stored'],
): CodecTarget {
  const byChannel = stored?.(channel.id);
  return {
    owner: { channelType: channel.type, scope: channel.opaqueScope, model: upstreamModel },
    options: channel.codec,
    facts,
    without,
    ...(byChannel === undefined ? {} : { stored: byChannel }),
  };
}

/** For decoding the answer to what was sent. */
export function decodeContext(
  { mint }: Pick<Gateway, 'mint'>,
  { owner, options }: CodecTarget,
  request: CanonicalRequest,
  { toolNames }: UpstreamRequest,
): DecodeContext {
  return { owner, request: asSent(request), toolNames, options, mint };
}
