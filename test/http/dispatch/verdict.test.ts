/** What a failed attempt means: the whole table, without a socket. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  byClient,
  type ErrorDetails,
  GatewayError,
  notConvertible,
  notRepresentable,
  refusedOutput,
} from '../../../src/codecs/canonical/error.ts';
import { failureOf, finalError, isTransient, noneFit, reportTo, verdictOf } from '../../../src/http/dispatch/verdict.ts';
import { refusedPart } from '../../../src/http/dispatch/refused-part.ts';
import { Health, type Permit } from '../../../src/http/dispatch/health.ts';
import { createFakeClock } from '../../support/fake-clock.ts';
import { channelsOf } from './channels.ts';

const fault = (details: ErrorDetails): GatewayError => new GatewayError('upstream_error', 'It failed.', details);
const said = (status: number, text = ''): GatewayError => fault({ reason: 'http_status', upstream: { status, text } });

/** What the circuit is told. */
function findingOf(error: GatewayError): string {
  const found: string[] = [];
  const permit: Permit = {
    answering: () => found.push('answering'),
    succeeded: () => found.push('succeeded'),
    failed: () => found.push('failed'),
    rateLimited: (ms) => found.push(`rateLimited ${ms}`),
    refused: () => found.push('refused'),
    forbidden: () => found.push('forbidden'),
    unknownModel: () => found.push('unknownModel'),
    missing: () => found.push('missing'),
    nothing: () => found.push('nothing'),
  };
  reportTo(permit, error);
  return found.join();
}

const FEWER =
  'This request requires more credits, or fewer max_tokens. You requested up to 65536 tokens, but can only afford N. To increase, …';

const DENIED = 'The caller does not have permission to execute the specified operation';
const UNSAFE = 'Content violates usage guidelines. Team: t, API key ID: k, Model: grok-4, Failed check: SAFETY_CHECK_TYPE_BIO';

const TOO_LARGE =
  'Request too large for gpt-x in organization org-1 on tokens per min (TPM): Limit 30000, Requested 45678. The input or output tokens must be reduced in order to run successfully.';

const TABLE: readonly (readonly [name: string, error: GatewayError, verdict: string, transient: boolean, finding: string])[] = [
  ['no type can say it', notConvertible('tools', 'No.'), 'unsuitable', false, 'nothing'],
  ['the client cannot be told', notRepresentable('No.'), 'stop', false, 'nothing'],
  ['the client left', new GatewayError('client_closed_request', 'Gone.'), 'stop', false, 'nothing'],
  ['the gateway’s own fault', new GatewayError('internal_error', 'Oh.'), 'stop', false, 'nothing'],
  ['400', said(400), 'deterministic', false, 'nothing'],
  ['401', said(401), 'next', false, 'refused'],
  ['402', said(402), 'next', false, 'refused'],
  ['403', said(403), 'next', false, 'forbidden'],
  ['403 for what was said', said(403, 'Your Input was flagged.'), 'next', false, 'nothing'],
  ['403 of a vendor’s own check', said(403, `{"code":"${DENIED}","error":"${UNSAFE}"}`), 'next', false, 'nothing'],
  [
    '403 of a filter in front of the model',
    said(403, '{"detail":{"error":"Content blocked: email pattern"}}'),
    'next',
    false,
    'nothing',
  ],
  ['403 of a firewall', said(403, '<!DOCTYPE html><title>403 Forbidden</title>'), 'next', false, 'failed'],
  ['403 that is a credential’s', said(403, `{"code":"${DENIED}","error":"The team is blocked"}`), 'next', false, 'forbidden'],
  [
    '403 of a file',
    said(403, 'You do not have permission to access the File abc or it may not exist.'),
    'next',
    false,
    'nothing',
  ],
  ['403 of a cache', said(403, 'CachedContent not found (or permission denied)'), 'next', false, 'nothing'],
  [
    '403 of a store of documents',
    said(403, "Permission 'discoveryengine.servingConfigs.search' denied on resource '//x' (or it may not exist)."),
    'next',
    false,
    'nothing',
  ],
  [
    '403 of Google’s to predict',
    said(403, "Permission 'aiplatform.endpoints.predict' denied on resource '//x' (or it may not exist)."),
    'next',
    false,
    'forbidden',
  ],
  ['404 of a cache', said(404, 'Not found: cached content metadata for 6116704758662168576.'), 'deterministic', false, 'nothing'],
  ['401 of a router’s model', said(401, 'key not allowed to access model. Tried to access m'), 'next', false, 'unknownModel'],
  [
    '403 of a blocked model',
    fault({ upstream: { status: 403, code: 'model_permission_blocked_project', text: 'Blocked at the project level.' } }),
    'next',
    false,
    'unknownModel',
  ],
  ['403 of a free tier', said(403, 'The free tier of the model has been exhausted.'), 'next', false, 'unknownModel'],
  ['403 of a model', said(403, 'Project `proj_1` does not have access to model `m`'), 'next', false, 'unknownModel'],
  [
    '403 of an organisation',
    said(403, 'Your organization must be verified to use the model `m`.'),
    'next',
    false,
    'unknownModel',
  ],
  ['404', said(404), 'next', false, 'missing'],
  ['404 of something else', said(404, 'Voice not found'), 'next', false, 'missing'],
  ['404 of a tool’s model', byClient(said(404, 'The model `other` does not exist.')), 'deterministic', false, 'nothing'],
  ['403 of a tool’s model', byClient(said(403, 'You must be verified to use the model `other`.')), 'next', false, 'nothing'],
  ['404 of a client’s name', said(404, "No file with id 'file_1'"), 'deterministic', false, 'nothing'],
  [
    '404 of an item',
    said(404, "Item with id 'rs_1' not found. Items are not persisted when `store` is set to false."),
    'deterministic',
    false,
    'nothing',
  ],
  ['404 of a prompt', said(404, "Prompt with id 'pmpt_1' not found."), 'deterministic', false, 'nothing'],
  ['404 of an item with such a name', said(404, "Item with id 'rs_model' not found."), 'deterministic', false, 'nothing'],
  ['404 of a model with such a name', said(404, 'The model `file` does not exist.'), 'next', false, 'unknownModel'],
  ['404 of a model beside such a name', said(404, "Model 'm' has no file support"), 'next', false, 'unknownModel'],
  [
    '404 of a router’s providers',
    said(404, 'No allowed providers are available for the selected model.'),
    'next',
    false,
    'nothing',
  ],
  ['404 of a router’s endpoints', said(404, 'No endpoints found that support image input'), 'next', false, 'nothing'],
  ['404 of a router’s policy', said(404, 'No endpoints found matching your data policy'), 'next', false, 'nothing'],
  [
    '404 of a router’s guardrails',
    said(404, 'No endpoints available matching your guardrail restrictions and data policy.'),
    'next',
    false,
    'nothing',
  ],
  ['404 of a router’s model', said(404, 'No endpoints found for a/model.'), 'next', false, 'unknownModel'],
  ['402 of a request that is too large', said(402, FEWER.replace('N', '30104')), 'next', false, 'nothing'],
  [
    '402 of a prompt that is too long',
    said(402, 'Prompt tokens limit exceeded: 64128 > 6964. To increase, …'),
    'next',
    false,
    'nothing',
  ],
  ['402 of any prompt', said(402, 'Prompt tokens limit exceeded: 12 > 0. To increase, …'), 'next', false, 'refused'],
  ['402 of an old router', said(402, '128000 token capacity required, 19484 available.'), 'next', false, 'nothing'],
  ['402 of an account that is empty', said(402, FEWER.replace('N', '0')), 'next', false, 'refused'],
  ['a call that nobody can run', refusedOutput('malformed_event', 'The arguments are no object.'), 'next', false, 'nothing'],
  ['405', said(405), 'next', false, 'nothing'],
  ['408', said(408), 'next', true, 'failed'],
  ['409', said(409), 'next', false, 'nothing'],
  ['413', said(413), 'deterministic', false, 'nothing'],
  ['422', said(422), 'deterministic', false, 'nothing'],
  ['429', said(429), 'next', true, 'rateLimited undefined'],
  ['429 of a request that no minute has room for', said(429, TOO_LARGE), 'next', false, 'nothing'],
  ['429 of a long prompt', said(429, 'Extra usage is required for long context requests.'), 'next', false, 'nothing'],
  [
    '429 of a minute that is full',
    said(429, 'Rate limit reached for gpt-x: Limit 30000, Used 29000.'),
    'next',
    true,
    'rateLimited undefined',
  ],
  ['499', said(499), 'next', false, 'nothing'],
  ['500', said(500), 'next', true, 'failed'],
  ['500 that names a file', said(500, 'The file could not be read'), 'next', true, 'failed'],
  ['401 that names a file', said(401, 'The file is not yours'), 'next', false, 'refused'],
  ['529', said(529), 'next', true, 'failed'],
  ['a status below 400 with the wrong body', said(302), 'next', false, 'failed'],
  ['a broken connection', fault({ reason: 'network' }), 'next', true, 'failed'],
  ['silence', new GatewayError('upstream_error', 'Slow.', { reason: 'timeout' }), 'next', true, 'failed'],
  ['a stream cut short', fault({ reason: 'truncated' }), 'next', false, 'failed'],
  ['an answer that breaks its protocol', fault({ reason: 'illegal_lifecycle' }), 'next', false, 'failed'],
];

for (const [name, error, verdict, transient, finding] of TABLE) {
  test(`${name}: ${verdict}, the circuit learns ${finding}`, () => {
    assert.equal(verdictOf(error), verdict);
    assert.equal(isTransient(error), transient);
    assert.equal(findingOf(error), finding);
  });
}

test('the log names a failure by the upstream’s code, else by our reason, else by our code, in the upstream’s words where it had some', () => {
  const upstream = { status: 400, code: 'bad_thing', text: '{"error":"bad"}' };
  assert.deepEqual(failureOf(fault({ reason: 'http_status', upstream })), { errorCode: 'bad_thing', errorText: upstream.text });
  assert.deepEqual(failureOf(fault({ reason: 'truncated' })), { errorCode: 'truncated', errorText: 'It failed.' });
  assert.deepEqual(failureOf(fault({})), { errorCode: 'upstream_error', errorText: 'It failed.' });
});

test('a 429 hands its wait to the circuit; our own figure goes before the upstream’s', () => {
  const upstream = { status: 429, retryAfterMs: 700 };
  assert.equal(findingOf(fault({ upstream })), 'rateLimited 700');
  assert.equal(findingOf(fault({ retryAfterMs: 300, upstream })), 'rateLimited 300');
});

test('a refused opaque value: a 400 or 422 that names one, wherever it does', () => {
  const words = 'thinking_signature_invalid';
  for (const upstream of [{ code: words }, { type: words }, { text: words }]) {
    assert.equal(refusedPart(fault({ upstream: { status: 400, ...upstream } })), 'opaque', JSON.stringify(upstream));
    assert.equal(refusedPart(fault({ upstream: { status: 422, ...upstream } })), 'opaque', JSON.stringify(upstream));
    assert.equal(refusedPart(fault({ upstream: { status: 500, ...upstream } })), undefined, JSON.stringify(upstream));
    assert.equal(refusedPart(fault({ upstream })), undefined, JSON.stringify(upstream));
  }
  const ids = [
    "Invalid 'input[3].id': string too long. Expected a string with maximum length 64, but got 200.",
    "Invalid 'input[0].id': '6f-a'. Expected an ID that begins with 'rs'.",
  ];
  for (const text of ids) assert.equal(refusedPart(fault({ upstream: { status: 400, text } })), 'ids', text);
  assert.equal(refusedPart(fault({ upstream: { status: 400, text: "Invalid 'input[3].name': string too long." } })), undefined);
  assert.equal(refusedPart(new GatewayError('upstream_error', 'Invalid `signature`', { upstream: { status: 400 } })), 'opaque');
  assert.equal(refusedPart(said(400, 'messages.1.content.0: Invalid `data` in `redacted_thinking` block')), 'opaque');
  const modified = '`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified.';
  assert.equal(refusedPart(said(400, modified)), 'opaque');
  assert.equal(refusedPart(said(400, 'max_tokens is too large')), undefined);
});

test('refused raw reasoning: a 400 that says that the content of an item must be empty', () => {
  const tooLong = (path: string, most: number) =>
    said(
      400,
      `Invalid '${path}': array too long. Expected an array with maximum length ${most}, but got an array with length 1 instead.`,
    );
  assert.equal(refusedPart(tooLong('input[12].content', 0)), 'raw');
  assert.equal(refusedPart(tooLong('input[12].content', 10)), undefined);
  assert.equal(refusedPart(tooLong('tools', 0)), undefined);
});

test('refused raw reasoning: a 400 or 422 that says that a message may not say it at all', () => {
  const loc = '["body","messages",2,"assistant","reasoning_content"]';
  for (const words of [
    "'messages.2' : for 'role:assistant' the following must be satisfied[('messages.2' : property 'reasoning_content' is unsupported)]",
    "property 'messages.2.assistant.reasoning' is unsupported",
    'messages[1].reasoning_details: Extra inputs are not permitted',
    "Extra inputs are not permitted, field: 'messages[1].reasoning'",
    "Additional properties are not allowed ('reasoning_content' was unexpected) - 'messages.1'",
    "Property 'messages.2.assistant.reasoning_content'\nis UNSUPPORTED",
  ]) {
    assert.equal(refusedPart(said(400, words)), 'raw', words);
  }
  assert.equal(
    refusedPart(said(422, `{"detail":[{"type":"extra_forbidden","loc":${loc},"msg":"Extra inputs are not permitted"}]}`)),
    'raw',
  );
  for (const words of [
    'The `reasoning_content` in the thinking mode must be passed back to the API.',
    "Unsupported parameter: 'reasoning' is not supported with this model.",
    'Unrecognized request argument supplied: reasoning',
  ]) {
    assert.equal(refusedPart(said(400, words)), undefined, words);
  }
});

test('the error of all: what all refuse alike passes as itself, anything else is a 502 that keeps its cause', () => {
  const refused = fault({ shownCode: 'context_length_exceeded', param: 'messages', upstream: { status: 400 } });
  const agreed = finalError([said(400), refused]);
  assert.equal(agreed.status, 400);
  assert.equal(agreed.shownCode, 'context_length_exceeded');
  assert.equal(agreed.param, 'messages');
  const unknown = said(404, "No file with id 'file_1'");
  assert.equal(finalError([unknown, unknown]).status, 404, 'what the client named is nowhere: asking again would not help');
  assert.equal(finalError([unknown, said(404)]).status, 502);

  for (const errors of [
    [said(500), refused],
    [said(422), refused],
  ]) {
    const mixed = finalError(errors);
    assert.equal(mixed.status, 502);
    assert.equal(mixed.shownCode, 'upstream_error');
    assert.equal(mixed.param, null);
    assert.equal(mixed.details.upstream?.status, 400, 'the log keeps what the last one said');
    assert.equal(mixed.details.cause, refused);
  }
  assert.equal(finalError([said(503), said(503)]).status, 502, 'agreed, but no word on the request');
  assert.equal(finalError([fault({}), fault({})]).status, 502);

  const mute = new GatewayError('response_not_representable', 'It sings.');
  assert.equal(finalError([said(400), mute]), mute);
  const none = finalError([]);
  assert.equal(none.code, 'no_healthy_upstream');
  assert.equal(none.details.retryAfterMs, 1000);
  assert.equal(finalError([fault({ retryAfterMs: 300 })], 700).details.retryAfterMs, 700, 'the wait of all, not of the last');
  assert.equal(finalError([fault({ retryAfterMs: 300 })]).details.retryAfterMs, undefined);
});

test('where no circuit is closed the client is told when the first may be again, and never less than a second', () => {
  const clock = createFakeClock();
  const settings = { failures: 1, windowMs: 1, cooldownMs: 1, rateLimitCooldownMs: 1, refusedCooldownMs: 1 };
  const health = new Health(clock, () => settings);
  health.enter('one', 'm')?.rateLimited(9000);
  health.enter('two', 'm')?.rateLimited(5000);
  const channels = channelsOf({ id: 'one' }, { id: 'two' });
  assert.equal(noneFit(channels, 'm', health).code, 'no_healthy_upstream');
  assert.equal(noneFit(channels, 'm', health).details.retryAfterMs, 5000);
  clock.advance(4900);
  assert.equal(noneFit(channels, 'm', health).details.retryAfterMs, 1000);
});
