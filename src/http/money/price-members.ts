/**
 * The members of requests that change what an upstream charges, by protocol: what each does, and where its price stands. A test
 * compares the table with the types of the vendors' SDKs, so a member that is new there needs an entry here. The same test has
 * the members of answers, which the decoders of usage read.
 */

/**
 * What a member of a request does to the vendor's price.
 * - `none`: nothing. `counted`: what it causes is in the usage of the answer.
 * - `tools`: calls of server tools (`text/unpriced-tools.ts`).
 * - `service_tiers`, `speeds`, `geos`: it names one of those prices. The answer tells which one was served.
 * - `lifetimes`: it sets how long a cache lives, each lifetime with a price of its own.
 * - `models`: it names models of the upstream's own that may answer instead.
 * - `calls`: it makes calls that answers do not count, at the price of the meter `web_search`.
 * - `unseen`: it changes the price in a way that our prices cannot express.
 * - `router`: it has a router, or a vendor without an SDK of its own, do paid work or choose who answers at which price.
 */
export type RequestRule =
  | 'none'
  | 'counted'
  | 'tools'
  | 'service_tiers'
  | 'speeds'
  | 'geos'
  | 'lifetimes'
  | 'models'
  | 'calls'
  | 'unseen'
  | 'router';

type RequestMembers = Readonly<Record<string, RequestRule>>;

function members(rules: Readonly<Partial<Record<RequestRule, string>>>): RequestMembers {
  return Object.fromEntries(
    Object.entries(rules).flatMap(([rule, names]) => names.split(/\s+/).map((name) => [name, rule as RequestRule])),
  );
}

/** OpenRouter's (searches and files by plug-in, the provider that answers, stored presets), xAI's and Alibaba's searches. */
const ROUTERS = 'plugins provider preset search_parameters enable_search';

/** Members of the body. OpenAI's tiers `fast` and `priority` are one. */
export const REQUEST_MEMBERS: Readonly<Record<'chat' | 'responses' | 'messages', RequestMembers>> = {
  chat: members({
    none: `model frequency_penalty function_call functions logit_bias logprobs metadata moderation parallel_tool_calls presence_penalty
      prompt_cache_key prompt_cache_retention reasoning_effort response_format safety_identifier seed stop store stream stream_options
      temperature tool_choice top_logprobs top_p user verbosity`,
    counted: 'messages audio max_completion_tokens max_tokens modalities n prediction',
    tools: 'tools',
    service_tiers: 'service_tier',
    lifetimes: 'prompt_cache_options',
    calls: 'web_search_options',
    router: ROUTERS,
  }),
  responses: members({
    none: `model access_programs background conversation include metadata moderation parallel_tool_calls previous_response_id
      prompt_cache_key prompt_cache_retention reasoning safety_identifier store stream stream_options temperature text tool_choice
      top_logprobs top_p truncation user betas`,
    counted: 'input instructions max_output_tokens max_tool_calls context_management image prompt multi_agent',
    tools: 'tools',
    service_tiers: 'service_tier',
    lifetimes: 'prompt_cache_options',
    router: ROUTERS,
  }),
  messages: members({
    none: `model container diagnostics metadata output_config output_format stop_sequences stream tool_choice mcp_servers betas
      user_profile_id workspace_id temperature top_k top_p`,
    counted: 'messages system max_tokens thinking compaction context_management thread',
    tools: 'tools',
    service_tiers: 'service_tier',
    speeds: 'speed',
    geos: 'inference_geo',
    lifetimes: 'cache_control',
    models: 'fallbacks',
    unseen: 'billing_policy fallback_credit_token',
    router: ROUTERS,
  }),
};
