/**
 * Removes from upstream text what clients must not see: URLs, hosts, addresses, keys, account ids, stack traces and HTML. The
 * result has at most 1 KiB; the full text goes to the request log only (spec, "Errors").
 */

const MAX_CHARS = 1024;

const SECRETS: readonly (readonly [RegExp, string])[] = [
  [/<(script|style)\b[\s\S]*?(?:<\/\1\s*>|$)/gi, ' '],
  [
    /<\/?(?:script|style|iframe|img|svg|math|video|audio|object|embed|link|meta|base|form|input|button|details|table|h[1-6]|[bhtd]r|t[dh]|[abip]|ul|ol|li|div|span|center|strong|em|font|pre)\b[^>]*>?/gi,
    ' ',
  ],
  [/\b[a-z][a-z0-9+.-]*:\/\/[^\s"'<>)\]]+/gi, '[url]'],
  [/[\w.+-]+@[\w-]+(\.[\w-]+)+/g, '[email]'],
  [/\b(bearer|basic)\s+[\w.~+/=-]+/gi, '$1 [redacted]'],
  [/\b(sk|pk|rk|gsk|xai|AIza|org|proj|acct)[-_][\w*.-]{6,}/gi, '[redacted]'],
  // Names of parameters begin like this, too (`user_location`), but only ids have digits, or the stars of a masked key.
  [/\b(key|api|req|user)[-_](?=[\w.-]*[\d*])[\w*.-]{6,}/gi, '[redacted]'],
  // Of whoever stands behind the upstream: its own credential is known, theirs is only known by its form.
  [/\b(?:hf|nvapi|gh[oprsu]|github_pat|glpat|pplx|r8|fw|tgp|csk|xox[abprs])[-_](?=[\w.-]*[\dA-Z])[\w.-]{16,}/g, '[redacted]'],
  [/\b(?:AKIA|ASIA|LTAI)[A-Za-z0-9]{12,}|\bdapi[0-9a-f]{32}|\bya29\.[\w.-]+|\bAQ\.[\w-]{20,}/g, '[redacted]'],
  [/\beyJ[\w-]{8,}\.[\w-]+\.[\w-]*/g, '[redacted]'],
  [/\bAIza[\w-]{20,}/g, '[redacted]'],
  [/\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/gi, '[redacted]'],
  [/\barn:aws[\w-]*:\S+/gi, '[redacted]'],
  // What stays of it is the model's name whole, for which the caller puts the client's.
  [/\bprojects\/[\w-]+\/(?:locations\/[\w-]+\/)?publishers\/[\w-]+\/models\//gi, 'projects/[redacted]/models/'],
  [/\bprojects\/[\w-]+/gi, 'projects/[redacted]'],
  [/\b\d{1,3}(\.\d{1,3}){3}(:\d+)?\b/g, '[address]'],
  [/\[?\b(?:[0-9a-f]{1,4}:){3,7}[0-9a-f]{0,4}\b\]?/gi, '[address]'],
  [
    /\b(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+(?:com|net|org|io|ai|dev|cloud|app|cn|local|internal|lan|corp|co|run|space|tech|xyz|us|eu|uk|de|fr|jp|kr|sg|example|test|invalid)\b(:\d+)?/gi,
    '[host]',
  ],
  [/\blocalhost(:\d+)?\b/gi, '[host]'],
  // A name without a domain, as clusters have them: behind the words of whoever could not reach it (Node, Go, Python).
  [/\b(ENOTFOUND|EAI_AGAIN|ECONNREFUSED|EHOSTUNREACH|dial tcp(?= [\w.-]+:\d)) [a-z0-9][\w.-]*(:\d+)?/gi, '$1 [host]'],
  [/\blookup [a-z0-9][\w.-]*(?=: no such host| on \[address\])/gi, 'lookup [host]'],
  [/\bhost(=['"]?| )[a-z0-9][\w.-]*(?=:\d|['"]?, ?port\b)/gi, 'host$1[host]'],
  [/\b[0-9a-f]{32,}\b/gi, '[redacted]'],
  [/[A-Za-z0-9+/_-]{48,}={0,2}/g, '[redacted]'],
];

/** The beginning of a stack trace of JavaScript, Java, .NET, Python or Go; its line breaks may be escaped. */
const STACK =
  /(?:\n|\\n)(?:\s|\\t)+at\s|\sat \S{1,200} \([^\s()]{1,300}:\d+\)|\bTraceback \(most recent call last\)|\bFile "[^"\n]{1,300}", line \d|\bgoroutine \d+ \[/;

/** Control characters and the colour sequences of terminals. */
const CONTROLS = /(?:\p{Cc}\[[\d;]*m|\p{Cc})+/gu;

/** The text without anything that identifies the upstream or our credential; `fallback` if nothing readable is left. */
export function sanitise(text: string | undefined, fallback: string): string {
  if (text === undefined || /<\s*(!doctype|html|head|body|title)\b/i.test(text)) return fallback;
  const head = text.slice(0, 2 * MAX_CHARS);
  const stack = head.search(STACK);
  let safe = (stack < 0 ? head : head.slice(0, stack)).replace(CONTROLS, ' ');
  for (const [pattern, replacement] of SECRETS) safe = safe.replace(pattern, replacement);
  safe = safe.trim();
  if (safe.length > MAX_CHARS) safe = `${safe.slice(0, MAX_CHARS - 1).trimEnd()}…`;
  return safe === '' ? fallback : safe;
}

/** Error codes of upstreams for an input image that they cannot use. */
export const PICTURE_FAULTS = [
  'invalid_image',
  'invalid_image_format',
  'invalid_image_file',
  'invalid_image_mode',
  'invalid_mask_image_format',
  'invalid_base64_image',
  'invalid_image_url',
  'image_too_large',
  'image_too_small',
  'image_parse_error',
  'image_content_policy_violation',
  'image_file_too_large',
  'unsupported_image_media_type',
  'empty_image_file',
  'failed_to_download_image',
  'image_file_not_found',
] as const;

/** Error codes for requests that a vendor's policies refuse. */
export const POLICY_FAULTS = ['bio_policy', 'cyber_policy', 'misalignment_policy_violation'] as const;

/**
 * Values of `error.details.error_code` of messages upstreams. The official client has a class for each and falls back to requests
 * without a thread.
 */
export const MESSAGES_FAULTS = [
  'available_tools_limit_exceeded',
  'compaction_block_ambiguous',
  'compaction_block_misplaced',
  'compaction_content_mismatch',
  'compaction_incomplete_turn',
  'compaction_nothing_to_summarize',
  'compaction_signature_invalid',
  'compaction_too_many_tool_references',
  'compaction_tool_changes_mismatch',
  'thread_unsupported_request',
  'tool_name_conflict',
  'tool_reference_unresolved',
] as const;

/** Upstream error codes that a client may see with a deterministic 400, 413 or 422; every other becomes `upstream_error`. */
const SHOWN_CODES = new Set([
  'context_length_exceeded',
  'content_policy_violation',
  'content_filter',
  ...PICTURE_FAULTS,
  ...POLICY_FAULTS,
  ...MESSAGES_FAULTS,
  'invalid_prompt',
  'invalid_value',
  'missing_required_parameter',
  'unknown_parameter',
  'unsupported_parameter',
  'unsupported_value',
  'string_above_max_length',
  'string_too_long',
  'array_above_max_length',
  'integer_above_max_value',
  'integer_below_min_value',
  'rate_limit_exceeded',
  'server_error',
  'server_is_overloaded',
  'slow_down',
  'vector_store_timeout',
  'request_too_large',
  'moderation_blocked',
  // Codes of another gateway of this kind as an upstream.
  'upstream_error',
  'unsupported_conversion',
  'item_not_found',
  'response_not_representable',
  'cancelled',
]);

/** An upstream's code if clients may see it. Any code outside the list could name a host, a key or an account. */
export function shownUpstreamCode(code: string | undefined): string | undefined {
  return code !== undefined && SHOWN_CODES.has(code) ? code : undefined;
}
