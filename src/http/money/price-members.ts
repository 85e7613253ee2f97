/**
 * The members of requests and answers that change what an upstream charges, by protocol: what each does, and where its price
 * stands. A test compares both tables with the types of the vendors' SDKs, so a member that is new there needs an entry here.
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
  | 'unseen';

type RequestMembers = Readonly<Record<string, RequestRule>>;

function members(rules: Readonly<Partial<Record<RequestRule, string>>>): RequestMembers {
  return Object.fromEntries(
    Object.entries(rules).flatMap(([rule, names]) => names.split(/\s+/).map((name) => [name, rule as RequestRule])),
  );
}

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
  }),
  responses: members({
    none: `model access_programs background conversation include metadata moderation parallel_tool_calls previous_response_id
      prompt_cache_key prompt_cache_retention reasoning safety_identifier store stream stream_options temperature text tool_choice
      top_logprobs top_p truncation user betas`,
    counted: 'input instructions max_output_tokens max_tool_calls context_management image prompt multi_agent',
    tools: 'tools',
    service_tiers: 'service_tier',
    lifetimes: 'prompt_cache_options',
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
  }),
};

/**
 * What becomes of a member of a report of usage.
 * - a name of a price: its count is charged at that price. `total`: a sum of others, or a part that is charged within its whole.
 * - `container`: its members have entries of their own. `modifier`: it names the price that was served.
 * - `pass`: passes with counts of their own. `flagged`: it is told in the flags of the charge. `none`: no price.
 */
export type UsageRule =
  | 'input'
  | 'cached_input'
  | 'cache_write_5m'
  | 'cache_write_30m'
  | 'cache_write_1h'
  | 'cache_write_12h'
  | 'cache_write_unsplit'
  | 'output'
  | 'reasoning'
  | 'image_input'
  | 'image_output'
  | 'audio_input'
  | 'audio_output'
  | 'web_search'
  | 'web_fetch'
  | 'total'
  | 'container'
  | 'modifier'
  | 'pass'
  | 'flagged'
  | 'none';

/** By the SDK's name of the type, then by member. */
export const USAGE_MEMBERS: Readonly<Record<string, Readonly<Record<string, UsageRule>>>> = {
  CompletionUsage: {
    prompt_tokens: 'input',
    completion_tokens: 'output',
    total_tokens: 'total',
    prompt_tokens_details: 'container',
    completion_tokens_details: 'container',
  },
  'CompletionUsage.PromptTokensDetails': {
    audio_tokens: 'audio_input',
    cache_write_tokens: 'cache_write_unsplit',
    cached_tokens: 'cached_input',
    image_tokens: 'image_input',
    text_tokens: 'total',
  },
  'CompletionUsage.CompletionTokensDetails': {
    accepted_prediction_tokens: 'total',
    audio_tokens: 'audio_output',
    reasoning_tokens: 'reasoning',
    rejected_prediction_tokens: 'total',
    text_tokens: 'total',
  },
  ResponseUsage: {
    input_tokens: 'input',
    input_tokens_details: 'container',
    output_tokens: 'output',
    output_tokens_details: 'container',
    total_tokens: 'total',
  },
  'ResponseUsage.InputTokensDetails': {
    cache_write_tokens: 'cache_write_unsplit',
    cached_tokens: 'cached_input',
    cache_write_tokens_details: 'container',
  },
  'ResponseUsage.InputTokensDetails.CacheWriteTokensDetails': {
    ttl_12h_tokens: 'cache_write_12h',
    ttl_30m_tokens: 'cache_write_30m',
  },
  'ResponseUsage.OutputTokensDetails': { reasoning_tokens: 'reasoning' },
  'Response.ToolUsage': { image_gen: 'pass', web_search: 'container' },
  'Response.ToolUsage.ImageGen': {
    input_tokens: 'input',
    input_tokens_details: 'container',
    output_tokens: 'output',
    total_tokens: 'total',
    cached_tokens: 'cached_input',
    cached_tokens_details: 'container',
    output_tokens_details: 'container',
  },
  'Response.ToolUsage.WebSearch': { num_requests: 'web_search' },
  BetaUsage: {
    cache_creation: 'container',
    cache_creation_input_tokens: 'cache_write_unsplit',
    cache_read_input_tokens: 'cached_input',
    fallback_credit: 'flagged',
    inference_geo: 'modifier',
    input_tokens: 'input',
    iterations: 'pass',
    output_tokens: 'output',
    output_tokens_details: 'container',
    server_tool_use: 'container',
    service_tier: 'modifier',
    speed: 'modifier',
  },
  BetaCacheCreation: { ephemeral_1h_input_tokens: 'cache_write_1h', ephemeral_5m_input_tokens: 'cache_write_5m' },
  BetaOutputTokensDetails: { thinking_tokens: 'reasoning' },
  BetaServerToolUsage: { web_fetch_requests: 'web_fetch', web_search_requests: 'web_search' },
  GenerateContentResponseUsageMetadata: {
    cacheTokensDetails: 'total',
    cachedContentTokenCount: 'cached_input',
    candidatesTokenCount: 'output',
    candidatesTokensDetails: 'container',
    promptTokenCount: 'input',
    promptTokensDetails: 'container',
    thoughtsTokenCount: 'reasoning',
    toolUsePromptTokenCount: 'input',
    toolUsePromptTokensDetails: 'total',
    totalTokenCount: 'total',
    initialPromptTokenCount: 'total',
    trafficType: 'modifier',
    serviceTier: 'modifier',
  },
};

/**
 * The passes that an answer of a messages upstream lists. `total`: the totals of the answer hold it. `pass`: it is charged on
 * top, at the price of its model where it names one. `modifier`: it names the model whose price the totals have.
 */
export const ITERATIONS: Readonly<Record<string, 'total' | 'pass' | 'modifier'>> = {
  message: 'total',
  compaction: 'pass',
  advisor_message: 'pass',
  fallback_message: 'modifier',
};
