/** Members of a request that are a feature by being there: an encoder without a place for one says that it leaves it out. */
import type { RequestFeature } from '../canonical/features.ts';
import type { CanonicalRequest } from '../canonical/request.ts';

const FEATURES = {
  topK: 'top_k',
  seed: 'seed',
  presencePenalty: 'presence and frequency penalty',
  frequencyPenalty: 'presence and frequency penalty',
  logitBias: 'logit bias',
  stop: 'stop sequences',
  logprobs: 'logprobs',
  verbosity: 'verbosity',
  user: 'user',
  metadata: 'metadata',
  serviceTier: 'service tier',
  promptCacheKey: 'prompt cache key',
  safetyIdentifier: 'safety identifier',
  store: 'store',
  include: 'include',
  cacheControl: 'cache breakpoint',
} as const satisfies Partial<Record<keyof CanonicalRequest, RequestFeature>>;

export type FeatureMember = keyof typeof FEATURES;

/** Tells `note` the features of those `members` that the request has; an empty list says nothing. */
export function noteMembers(
  request: CanonicalRequest,
  members: readonly FeatureMember[],
  note: (feature: RequestFeature) => void,
): void {
  for (const member of members) {
    const value = request[member];
    if (value !== undefined && !(Array.isArray(value) && value.length === 0)) note(FEATURES[member]);
  }
}
