/**
 * Every error code that a cloud documents: what it says of the Channel, that the next one answers, and what the client of each
 * protocol reads.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type CloudForm, CLOUD_FORMS, cloudChannel } from '../../support/clouds.ts';
import { MODELS, testGateway } from '../../support/test-gateway.ts';
import { startVendors } from '../../support/upstream-forms.ts';
import { drawn } from '../../support/sampled.ts';

/** What rests: the Channel for this model or as a whole, for as long as it was told or after several of them; nothing. */
type Rests = 'model' | 'channel' | 'told' | 'counted' | 'nothing';

interface Case {
  readonly code: string;
  readonly status: number;
  readonly body: object | string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly rests: Rests;
  /** What the operator reads; default: `code`. */
  readonly logged?: string;
  /** What the client is told as its own fault: the status, and the words. Absent: 502, in general words. */
  readonly client?: readonly [status: number, words: RegExp];
  /** The code that clients of the OpenAI protocols read; default `upstream_error`. */
  readonly shown?: string;
  /** How often the Channel is asked before the client is told; default once. */
  readonly asked?: number;
  /** Seconds of the client's `retry-after`. */
  readonly after?: number;
}

const aws = (status: number, code: string, message: string, rests: Rests, more: Partial<Case> = {}): Case => ({
  ...{ code, status, rests, body: { message } },
  headers: { 'x-amzn-errortype': `${code}:http://internal.amazon.com/coral/com.amazon.bedrock/` },
  ...more,
});
const DENIED = 'User: arn:aws:sts::111122223333:assumed-role/mizu/i-0 is not authorized to perform: bedrock:InvokeModel';
const ONE_MODEL = `${DENIED} on resource: arn:aws:bedrock:us-east-1::foundation-model/m because no identity-based policy allows it`;

const BEDROCK: readonly Case[] = [
  aws(403, 'AccessDeniedException', `${DENIED}`, 'channel'),
  aws(403, 'AccessDeniedException', ONE_MODEL, 'model'),
  aws(403, 'AccessDeniedException', "You don't have access to the model with the specified model ID.", 'model'),
  aws(403, 'AccessDeniedException', 'Your account is not authorized to invoke this API operation.', 'channel'),
  aws(400, 'ValidationException', 'Your account is not authorized to invoke this API operation.', 'channel'),
  aws(400, 'ValidationException', 'messages: at least one message is required', 'nothing', { client: [400, /at least one/] }),
  aws(400, 'ValidationException', 'Input is too long for requested model.', 'nothing', {
    ...{ client: [400, /too long/], shown: 'context_length_exceeded' },
  }),
  aws(400, 'ValidationException', 'The provided model identifier is invalid.', 'model'),
  aws(400, 'ValidationException', 'Operation not allowed', 'model'),
  aws(400, 'ValidationException', 'The model is not supported in this region.', 'model'),
  aws(
    400,
    'ValidationException',
    'Invocation of model ID anthropic.m with on-demand throughput isn’t supported. Retry your request with the ID or ARN of an inference profile.',
    'model',
  ),
  aws(
    400,
    'ValidationException',
    'Access to Anthropic models is not allowed from unsupported countries, regions, or territories.',
    'channel',
  ),
  aws(400, 'ValidationError', 'messages.0: role is wrong', 'nothing', { client: [400, /role is wrong/] }),
  aws(404, 'ResourceNotFoundException', 'Could not resolve the foundation model from the provided model identifier.', 'model'),
  aws(404, 'FTUFormNotFilled', 'Model use case details have not been submitted for this account.', 'model'),
  aws(404, 'UnknownOperationException', '', 'model'),
  aws(408, 'ModelTimeoutException', 'The model took too long.', 'counted'),
  aws(424, 'ModelErrorException', 'The model failed.', 'counted'),
  aws(429, 'ModelNotReadyException', 'The model is not ready.', 'counted', { asked: 4 }),
  aws(429, 'ThrottlingException', 'Too many requests, please wait before trying again.', 'counted'),
  aws(429, 'ThrottlingException', 'Too many requests.', 'told', {
    ...{ headers: { 'retry-after': '30', 'x-amzn-errortype': 'ThrottlingException' }, after: 30 },
  }),
  aws(400, 'ServiceQuotaExceededException', 'Your request exceeds the service quota for your account.', 'counted'),
  aws(400, 'ConflictException', 'A conflict occurred.', 'nothing'),
  aws(500, 'InternalServerException', 'Internal.', 'counted'),
  aws(500, 'InternalFailure', 'Internal.', 'counted'),
  aws(503, 'ServiceUnavailableException', 'Bedrock is unable to process your request.', 'counted'),
  aws(503, 'ServiceUnavailable', 'Bedrock is unable to process your request.', 'counted'),
  aws(400, 'IncompleteSignature', 'The request signature does not conform to AWS standards.', 'channel'),
  aws(403, 'InvalidClientTokenId', 'The security token included in the request is invalid.', 'channel'),
  aws(403, 'ExpiredTokenException', 'The security token included in the request is expired', 'channel'),
  aws(403, 'UnrecognizedClientException', 'The security token included in the request is invalid.', 'channel'),
  aws(400, 'NotAuthorized', 'You do not have permission to perform this action.', 'channel'),
  aws(400, 'OptInRequired', 'The account needs a subscription for the service.', 'channel'),
  aws(400, 'RequestExpired', 'The request reached the service too late.', 'channel'),
  aws(403, 'AccessDeniedException', DENIED, 'channel', { headers: {}, body: { Message: DENIED }, logged: 'http_status' }),
  { code: 'a proxy', status: 502, body: '<html>Bad Gateway</html>', rests: 'counted', logged: 'http_status' },
];

const google = (code: number, status: string, message: string, rests: Rests, more: Partial<Case> = {}): Case => ({
  ...{ code: status, status: code, rests, body: { error: { code, message, status } } },
  ...more,
});
const RESOURCE = 'projects/p/locations/l/publishers/anthropic/models/m';
const retryInfo = (seconds: string): object => ({
  error: {
    ...{ code: 429, message: 'Quota exceeded for online_prediction_requests.', status: 'RESOURCE_EXHAUSTED' },
    details: [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: seconds }],
  },
});
const reason = (code: number, status: string, why: string): object => ({
  error: { code, message: 'No.', status, details: [{ '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: why }] },
});

const VERTEX: readonly Case[] = [
  google(400, 'INVALID_ARGUMENT', 'Request contains an invalid argument.', 'nothing', { client: [400, /invalid argument/] }),
  google(400, 'OUT_OF_RANGE', 'The number of tokens is out of range.', 'nothing', { client: [400, /out of range/] }),
  google(400, 'FAILED_PRECONDITION', 'User location is not supported.', 'channel'),
  google(400, 'FAILED_PRECONDITION', `Publisher Model \`${RESOURCE}\` is not servable in region l.`, 'model'),
  google(400, 'FAILED_PRECONDITION', `Project \`p\` is not allowed to use Publisher Model \`${RESOURCE}\``, 'model'),
  google(401, 'UNAUTHENTICATED', 'Request had invalid authentication credentials.', 'channel'),
  google(403, 'PERMISSION_DENIED', 'Vertex AI API has not been used in project p before or it is disabled.', 'channel'),
  google(
    403,
    'PERMISSION_DENIED',
    `Permission 'aiplatform.endpoints.predict' denied on resource '//aiplatform.googleapis.com/${RESOURCE}' (or it may not exist).`,
    'model',
  ),
  google(404, 'NOT_FOUND', `Publisher Model \`${RESOURCE}\` was not found.`, 'model'),
  google(409, 'ABORTED', 'Aborted.', 'nothing'),
  google(409, 'ALREADY_EXISTS', 'It exists.', 'nothing'),
  google(429, 'RESOURCE_EXHAUSTED', 'Resource exhausted. Please try again later.', 'counted'),
  google(429, 'RESOURCE_EXHAUSTED', '', 'told', { body: retryInfo('34.4s'), after: 35 }),
  google(429, 'RESOURCE_EXHAUSTED', '', 'told', { body: [retryInfo('12s')], after: 12 }),
  google(429, 'RESOURCE_EXHAUSTED', '', 'told', { headers: { 'retry-after': '30' }, after: 30 }),
  google(403, 'PERMISSION_DENIED', '', 'channel', { body: reason(403, 'PERMISSION_DENIED', 'BILLING_DISABLED') }),
  google(400, 'INVALID_ARGUMENT', '', 'channel', { body: reason(400, 'INVALID_ARGUMENT', 'CREDENTIALS_MISSING') }),
  google(499, 'CANCELLED', 'Cancelled.', 'nothing'),
  google(500, 'INTERNAL', 'Internal error encountered.', 'counted'),
  google(500, 'UNKNOWN', 'Unknown.', 'counted'),
  google(500, 'DATA_LOSS', 'Lost.', 'counted'),
  google(501, 'UNIMPLEMENTED', 'Not implemented.', 'counted'),
  google(503, 'UNAVAILABLE', 'The service is unavailable.', 'counted'),
  google(504, 'DEADLINE_EXCEEDED', 'Deadline expired.', 'counted'),
];

const claude = (status: number, type: string, rests: Rests, more: Partial<Case> = {}): Case => ({
  ...{ code: type, status, rests, logged: 'http_status' },
  body: { type: 'error', error: { type, message: 'Words of Anthropic.' }, request_id: 'req_vrtx_1' },
  ...more,
});

/** What passes through `rawPredict` as the vendor said it. */
const CLAUDE_ON_VERTEX: readonly Case[] = [
  claude(400, 'invalid_request_error', 'nothing', { client: [400, /Words of Anthropic/] }),
  claude(413, 'request_too_large', 'nothing', { client: [413, /Words of Anthropic/], shown: 'request_too_large' }),
  claude(429, 'rate_limit_error', 'counted'),
  claude(500, 'api_error', 'counted'),
  claude(529, 'overloaded_error', 'counted'),
];

const azure = (status: number, code: string, message: string, rests: Rests, more: Partial<Case> = {}): Case => ({
  ...{ code, status, rests, body: { error: { code, message } } },
  ...more,
});
const FILTERED = {
  error: {
    message: 'The response was filtered due to the prompt triggering Azure OpenAI’s content management policy.',
    ...{ type: null, param: 'prompt', code: 'content_filter', status: 400 },
    innererror: {
      code: 'ResponsibleAIPolicyViolation',
      content_filter_result: { hate: { filtered: true, severity: 'high' }, jailbreak: { filtered: false, detected: false } },
    },
  },
};

const AZURE: readonly Case[] = [
  azure(400, 'content_filter', '', 'nothing', { body: FILTERED, client: [400, /was filtered/], shown: 'content_filter' }),
  azure(400, 'context_length_exceeded', 'Too many tokens.', 'nothing', {
    ...{ client: [400, /Too many tokens/], shown: 'context_length_exceeded' },
  }),
  azure(400, 'unsupported_parameter', 'No max_tokens.', 'nothing', {
    client: [400, /max_tokens/],
    shown: 'unsupported_parameter',
  }),
  azure(400, 'BadRequest', 'The body is wrong.', 'nothing', { client: [400, /body is wrong/] }),
  azure(400, 'OperationNotSupported', 'The chatCompletion operation does not work with the specified model, m.', 'model'),
  azure(400, 'unknown_model', 'Unknown model: m', 'model'),
  azure(401, '401', 'Access denied due to invalid subscription key or wrong API endpoint.', 'channel'),
  azure(401, 'PermissionDenied', 'The principal lacks the required data action.', 'channel'),
  azure(403, 'AuthenticationTypeDisabled', 'Key based authentication is disabled for this resource.', 'channel'),
  azure(403, 'Forbidden', 'Public access is disabled. Please configure private endpoint.', 'channel'),
  azure(404, 'DeploymentNotFound', 'The API deployment for this resource does not exist.', 'model'),
  azure(404, '404', 'Resource not found', 'model'),
  azure(408, 'Timeout', 'The operation was timeout.', 'counted'),
  azure(429, '429', 'Requests have exceeded the token rate limit. Please retry after 2 seconds.', 'told', {
    ...{ headers: { 'retry-after-ms': '15500', 'retry-after': '16' }, after: 16 },
  }),
  azure(429, 'RateLimitReached', 'Rate limit of 1 per 60s exceeded.', 'told', { headers: { 'retry-after': '59' }, after: 59 }),
  azure(429, 'too_many_requests', 'Too Many Requests', 'counted'),
  azure(429, 'insufficient_quota', 'You exceeded your current quota.', 'counted'),
  azure(500, 'InternalServerError', 'Backend returned unexpected response.', 'counted'),
  azure(503, 'ServiceUnavailable', 'The service is temporarily unable to process your request.', 'counted'),
  // Of the gateway in front of the service.
  {
    code: 'of API Management',
    status: 401,
    body: { statusCode: 401, message: 'Unauthorized.' },
    rests: 'channel',
    logged: 'http_status',
  },
];

const CASES: Readonly<Record<string, readonly Case[]>> = {
  'messages on bedrock': BEDROCK,
  'messages on vertex': [...VERTEX, ...CLAUDE_ON_VERTEX],
  'gemini on vertex': VERTEX,
  'chat on azure': AZURE,
  'responses on azure': AZURE,
};

const USER = [{ role: 'user', content: 'hi' }];
const CLIENTS = [
  ['/v1/messages', { model: 'm', max_tokens: 50, messages: USER }],
  ['/v1/chat/completions', { model: 'm', messages: USER }],
  ['/v1/responses', { model: 'm', input: 'hi' }],
] as const;

const MESSAGES_TYPES: Readonly<Record<number, string>> = { 400: 'invalid_request_error', 413: 'request_too_large' };

function toldAsDocumented(path: string, text: string, status: number, { client, rests, shown = 'upstream_error' }: Case): void {
  const body: { type?: string; error: { type: string; code: string; message: string } } = JSON.parse(text);
  const { type, code, message } = body.error;
  if (path === '/v1/messages') {
    assert.equal(body.type, 'error');
    assert.equal(type, MESSAGES_TYPES[status] ?? 'api_error');
  } else {
    assert.equal(type, status < 500 ? 'invalid_request_error' : 'server_error');
    assert.equal(code, shown);
  }
  // What a vendor says of a model may be shown; of credentials, limits and faults the client reads nothing of its words.
  if (client !== undefined) assert.match(message, client[1]);
  else if (rests !== 'model') assert.match(message, /^The upstream /);
}

async function tried(form: CloudForm, one: Case): Promise<void> {
  const vendors = await startVendors();
  await using _closing = { [Symbol.asyncDispose]: () => vendors.close() };
  const body = typeof one.body === 'string' ? one.body : JSON.stringify(one.body);
  const type = typeof one.body === 'string' ? 'text/html' : 'application/json';
  const raw = { status: one.status, headers: { 'content-type': type, ...one.headers }, body };
  const channels = [cloudChannel(form, vendors.url)];
  const after = { id: 'two', type: 'messages', base_url: vendors.url, models: ['m'], priority: 1 };
  await using alone = await testGateway({ channels, models: MODELS });
  for (const [path, asked] of CLIENTS) {
    const { health, retries } = alone.running.gateway.dispatcher;
    health.keepOnly(new Set());
    retries.keepOnly(new Set());
    vendors.reset();
    vendors.enqueue({ raw, times: 10 });
    const answer = await alone.post(path, asked);
    const text = await answer.text();
    assert.equal(answer.status, one.client?.[0] ?? 502, text);
    toldAsDocumented(path, text, answer.status, one);
    assert.equal(answer.headers.get('retry-after'), one.after === undefined ? null : String(one.after));
    assert.equal(vendors.requests.length, one.asked ?? 1, 'as often as the cloud asks');
    const open = health.report().filter(({ state }) => state === 'open');
    const counted = health.report().some(({ recentFailures }) => recentFailures > 0);
    const rests = open.map(({ model }) => (model === undefined ? 'channel' : one.after === undefined ? 'model' : 'told'));
    assert.deepEqual(rests.length > 0 ? rests : [counted ? 'counted' : 'nothing'], [one.rests]);
    const row = alone.store.settled.at(-1);
    assert.equal(row?.attempts[0]?.errorCode, one.logged ?? one.code);
  }
  await using two = await testGateway({ channels: [...channels, after], models: MODELS });
  vendors.reset();
  vendors.enqueue({ raw });
  const saved = await two.post(...CLIENTS[0]);
  assert.equal(saved.status, 200, await saved.text());
}

for (const [name, cases] of Object.entries(CASES)) {
  const form = CLOUD_FORMS.find((known) => known.name === name) ?? assert.fail(name);
  for (const [index, one] of drawn([...cases.entries()], 8, name))
    test(`${name}: ${one.code} (${one.status}, case ${index})`, () => tried(form, one));
}

test('a model that is not ready is asked for again, as the cloud wishes, until it is', async () => {
  const vendors = await startVendors();
  await using _closing = { [Symbol.asyncDispose]: () => vendors.close() };
  const form = CLOUD_FORMS.find(({ platform }) => platform === 'bedrock') ?? assert.fail();
  await using gateway = await testGateway({ channels: [cloudChannel(form, vendors.url)], models: MODELS });
  const { headers = {}, body } = BEDROCK.find(({ code }) => code === 'ModelNotReadyException') ?? assert.fail();
  vendors.enqueue({ raw: { status: 429, headers, body: JSON.stringify(body) }, times: 2 });
  const answer = await gateway.post(...CLIENTS[0]);
  assert.equal(answer.status, 200, await answer.text());
  assert.equal(vendors.requests.length, 3);
});
