/** Members of a request whose presence is a feature. An encoder that has no member for one notes it as a loss. */
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
  cache: 'cache breakpoint',
  fallbacks: 'fallback models',
} as const satisfies Partial<Record<keyof CanonicalRequest, RequestFeature>>;

export type FeatureMember = keyof typeof FEATURES;

/** Calls `note` with the feature of each of the `members` that the request has. An empty list counts as absent. */
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
