/** The shapes in which upstreams write errors, read the same by every dialect (semantics 2.2.2). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonValue } from '../../../src/codecs/canonical/json.ts';
import { UPSTREAMS } from '../../../src/codecs/registry.ts';
import {
  decodeJsonError,
  type ErrorMembers,
  readErrorMembers,
  refusal,
  statusOfMembers,
} from '../../../src/codecs/errors/upstream.ts';

const CASES: readonly (readonly [string, JsonValue, ErrorMembers])[] = [
  [
    'an object',
    { error: { message: 'm', type: 't', code: 'c', param: 'p' } },
    { message: 'm', type: 't', code: 'c', param: 'p' },
  ],
  ['a number as code', { error: { message: 'm', code: 429 } }, { message: 'm', code: '429' }],
  ['empty strings are missing', { error: { message: '', type: '', code: '' } }, {}],
  [
    'a router’s metadata',
    { error: { message: 'm', metadata: { provider_code: 'pc', error_type: 'et' } } },
    { message: 'm', code: 'pc', type: 'et' },
  ],
  [
    'direct members before metadata',
    { error: { code: 'c', type: 't', metadata: { provider_code: 'pc', error_type: 'et' } } },
    { code: 'c', type: 't' },
  ],
  [
    'the details of messages',
    { type: 'error', error: { type: 't', message: 'm', details: { error_code: 'dc' } } },
    { message: 'm', code: 'dc', type: 't' },
  ],
  ['a text', { error: 'm', code: 'c' }, { message: 'm', code: 'c' }],
  ['a detail', { detail: 'm' }, { message: 'm' }],
  ['bare members', { message: 'm', code: 'c' }, { message: 'm', code: 'c' }],
  [
    'a list of what is wrong with the body',
    {
      detail: [
        { type: 'int_parsing', loc: ['body', 'max_tokens'], msg: 'must be an integer' },
        { loc: ['body', 'messages', 0, 'role'], msg: 'unknown' },
      ],
    },
    { message: 'max_tokens: must be an integer; messages.0.role: unknown' },
  ],
  ['a list of nothing', { detail: [] }, {}],
  ['a list of texts', { detail: ['x', null] }, {}],
  ['text that is no JSON', 'busy', { message: 'busy' }],
  ['nothing', null, {}],
];

for (const [name, body, members] of CASES) {
  test(name, () => {
    const read = Object.fromEntries(Object.entries(readErrorMembers(body)).filter(([, value]) => value !== undefined));
    assert.deepEqual(read, members);
  });
}

test('a 400 that says our key is wrong is no fault of the client; one that quotes what a client wrote is', () => {
  const statusOf = (message: string) =>
    refusal(400, { message }, { reason: 'http_status', text: message }).details.upstream?.status;
  for (const message of [
    'Incorrect API key provided. You can obtain an API key from https://console.example.',
    'API key not valid. Please pass a valid API key.',
    'Invalid API key: key1234',
  ]) {
    assert.equal(statusOf(message), 401, message);
  }
  for (const message of [
    "Invalid value: 'api key'. Supported values are: 'auto' and 'default'.",
    "Missing required parameter: 'tools[0].api_key'.",
    'The tool api_key is invalid.',
  ]) {
    assert.equal(statusOf(message), 400, message);
  }
});

test('a 400 that says our account has no money left is no fault of the client; a limit of its own user is', () => {
  const read = (message: string, code?: string) => refusal(400, { message, code }, { reason: 'http_status', text: message });
  for (const [message, code] of [
    ['Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade.'],
    ['You have reached your specified API usage limits. You will regain access on 2026-04-01 at 00:00 UTC.'],
    ['You have reached your specified workspace API usage limits. You will regain access on 2026-04-01 at 00:00 UTC.'],
    ['This organization has been disabled.'],
    ['Budget has been exceeded! Current cost: 26.075, Max budget: 0.25'],
    ['Budget has been exceeded! Team=t Current cost: 3000.17, Max budget: 3000.0'],
    ['Billing hard limit has been reached', 'billing_hard_limit_reached'],
    ['Access denied, please make sure your account is in good standing.', 'Arrearage'],
    ['Organization has been restricted. Please reach out to support.', 'organization_restricted'],
    ['Account acme-1 is suspended, possibly due to reaching the monthly spending limit or failure to pay past invoices.'],
  ] as const) {
    const error = read(message, code);
    assert.equal(error.details.upstream?.status, 402, message);
    assert.equal(error.message, 'The upstream refused the gateway.', message);
  }
  const suspended = 'Account acme-1 is suspended, possibly due to reaching the monthly spending limit.';
  const statusOf = (message: string) => refusal(412, { message }, { reason: 'http_status', text: '' }).details.upstream?.status;
  assert.deepEqual([statusOf(suspended), statusOf('Not now.')], [402, 412]);
  assert.equal(read('ExceededBudget: End User=u over budget. Spend=2, Budget=1').details.upstream?.status, 400);
  assert.equal(read('The prompt says that your credit balance is too low').details.upstream?.status, 400);
});

test('a member that a client calls like a message about the key or the account takes no Channel out of service', () => {
  const names = [
    'Your credit balance is too low',
    'This organization has been disabled',
    'Budget has been exceeded! Team',
    'Invalid API key',
    'incorrect api_key provided. Get one at x',
    'missing api-key',
    'API key expired',
    'apikey not found',
  ];
  const refusals = [
    'Extra inputs are not permitted',
    'extra fields not permitted',
    'Additional properties are not allowed',
    'unknown field',
    'Unexpected parameter',
    'Unrecognized argument supplied',
    'Unsupported parameters',
    'property should not exist',
    'is not supported',
  ];
  for (const name of names) {
    for (const [given, why] of refusals.flatMap((why) =>
      [`${name}: ${why}`, `${name} ${why}`].map((message) => [message, why]),
    )) {
      const { details } = refusal(400, { message: given }, { reason: 'http_status', text: given ?? '' });
      assert.equal(details.upstream?.status, 400, `${name}, ${why}`);
    }
  }
});

/** Codes of failed responses that agents act on, and those that speak of the gateway's own account. */
const CODES: readonly (readonly [code: string, status: number | undefined, isShown: boolean])[] = [
  ['cyber_policy', 400, true],
  ['bio_policy', 400, true],
  ['misalignment_policy_violation', 400, true],
  ['failed_to_download_image', 400, true],
  ['server_is_overloaded', 529, true],
  ['slow_down', 503, true],
  ['vector_store_timeout', undefined, true],
  ['insufficient_quota', 429, false],
  ['thread_unsupported_request', undefined, true],
  ['compaction_nothing_to_summarize', undefined, true],
  ['upstream_error', undefined, true],
  ['unsupported_conversion', undefined, true],
  ['response_not_representable', undefined, true],
  ['external_connector_error', 424, false],
  ['usage_not_included', undefined, false],
  ['data_residency_mismatch', undefined, false],
];

for (const [code, status, isShown] of CODES) {
  test(`an error inside a stream: ${code}`, () => {
    const members = { code, message: 'm' };
    assert.equal(statusOfMembers(members), status);
    const shown = refusal(status, members, { reason: 'error_event', text: '' }).shownCode;
    assert.equal(shown, isShown ? code : 'upstream_error');
  });
}

test('an unknown model is a 404 under whatever status, unless the request names another model', () => {
  const statusOf = (status: number, param?: string, code = 'model_not_found') =>
    refusal(status, { code, param, message: 'm' }, { reason: 'http_status', text: '' }).details.upstream?.status;
  assert.deepEqual([statusOf(400, 'model'), statusOf(400), statusOf(404), statusOf(500, 'model')], [404, 404, 404, 500]);
  assert.deepEqual([statusOf(400, 'tools[0].model'), statusOf(400, 'model', 'unsupported_value')], [400, 400]);
});

test('an error that answers a stream as its first event is read as one that is plain', () => {
  const error = JSON.stringify({ error: { code: 400, message: 'No such voice.', status: 'INVALID_ARGUMENT' } });
  for (const decodeError of [...UPSTREAMS.map((codec) => codec.decodeError), decodeJsonError]) {
    const read = (text: string) => decodeError({ status: 400, headers: {}, text }).message;
    assert.equal(read(error), 'No such voice.');
    assert.equal(read(`data: ${error}\r\n\r\n`), 'No such voice.');
    assert.equal(read(`event: error\ndata:${error}\n\ndata: [DONE]\n\n`), 'No such voice.');
    assert.equal(read('data: of no kind'), 'data: of no kind');
  }
});

test('a body that is null says nothing, and one of a proxy is read, in every dialect', () => {
  for (const decodeError of [...UPSTREAMS.map((codec) => codec.decodeError), decodeJsonError]) {
    for (const text of ['null', 'data: null\n\n']) {
      assert.equal(decodeError({ status: 400, headers: {}, text }).message, 'The upstream refused the request.');
    }
    assert.equal(decodeError({ status: 400, headers: {}, text: '{"detail":"d"}' }).message, 'd');
  }
});
