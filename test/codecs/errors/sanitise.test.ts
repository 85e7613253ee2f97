import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readErrorMembers, refusal, statusOfMembers } from '../../../src/codecs/errors/upstream.ts';
import { sanitise } from '../../../src/codecs/errors/sanitise.ts';

test('what identifies the upstream or our credential never reaches a client', () => {
  const text =
    'Incorrect API key provided: sk-proj-abc123def456. See https://platform.openai.com/account/api-keys or mail help@openai.com; host api.openai.com:443, org-9f8e7d6c5b4a at 10.0.0.12:8080 Bearer abc.def-ghi';
  const safe = sanitise(text, 'fallback');
  for (const leak of ['sk-proj', 'openai.com', 'https', '10.0.0.12', 'org-9f8', 'abc.def', 'help@'])
    assert.ok(!safe.includes(leak), `${leak} in ${safe}`);
});

test('an HTML page and nothing at all become the fallback; long text is cut', () => {
  assert.equal(sanitise('<!DOCTYPE html><html><body>nginx', 'fallback'), 'fallback');
  assert.equal(sanitise('  ', 'fallback'), 'fallback');
  assert.ok(sanitise('word '.repeat(1000), 'fallback').length <= 1024);
});

test('a stack trace is cut off, whoever wrote it, and what is left is shown', () => {
  const traces = [
    '\n    at Object.<anonymous> (/srv/app/route.js:12:7)\n    at async run (/srv/app/main.js:1:1)',
    '\n\tat com.vendor.Chat.run(Chat.java:10)',
    '\n   at Vendor.Chat.Run() in /src/Chat.cs:line 10',
    '\\n    at /srv/app/route.js:12:7',
    ' at handle (/srv/app/route.js:12:7)',
    '\nTraceback (most recent call last):\n  File "/srv/app/main.py", line 3, in run\nKeyError: 1',
    ' File "/srv/app/main.py", line 3, in run',
    '\n\ngoroutine 17 [running]:\nmain.run()',
  ];
  for (const trace of traces)
    assert.equal(sanitise(`max_tokens is too large${trace}`, 'fallback'), 'max_tokens is too large', trace);
  assert.equal(sanitise('Traceback (most recent call last):\n  File "/srv/app/main.py"', 'fallback'), 'fallback');
});

test('hosts of all kinds, account ids and what only a terminal or a browser would read', () => {
  const cases: Record<string, string> = {
    'no route to api.vendor.xyz:8443': 'no route to [host]',
    'served by pod-1.vendor.example': 'served by [host]',
    'of llm--serve.modal.run, eu-1.vendor.eu and gpu.corp': 'of [host], [host] and [host]',
    'organization 6f9619ff-8b86-d011-b42d-00c04fc964ff': 'organization [redacted]',
    'by user-AbCdEf123456, req_011CSHoEeqs5C35K2UUqR7Fy, key-****abcd and api_12345678':
      'by [redacted], [redacted], [redacted] and [redacted]',
    'arn:aws:bedrock:us-east-1:123456789012:model/x is not there': '[redacted] is not there',
    'projects/my-project-1/locations/us': 'projects/[redacted]/locations/us',
    'no `projects/my-project-1/locations/us-east5/publishers/anthropic/models/claude-sonnet-4-5@20250929`':
      'no `projects/[redacted]/models/claude-sonnet-4-5@20250929`',
    '\u001b[1;31mtoo long\u001b[0m': 'too long',
    'too long <script>alert("x")</script> for <STYLE>p{}': 'too long   for',
    '<h1>Bad</h1><hr><span onclick="x()">request</span>': 'Bad   request',
  };
  for (const [text, safe] of Object.entries(cases)) assert.equal(sanitise(text, 'fallback'), safe);
});

test('a key of whoever stands behind the upstream is known by its form', () => {
  const letters = 'aB3dE5gH'.repeat(5);
  const forms = ['hf_', 'nvapi-', 'ghp_', 'gho_', 'github_pat_', 'glpat-', 'pplx-', 'r8_', 'fw_', 'tgp_v1_', 'csk-', 'xoxb-'];
  const keys = [
    ...forms.map((form) => `${form}${letters.slice(0, 30)}`),
    'AKIAIOSFODNN7EXAMPLE',
    'ASIAIOSFODNN7EXAMPLE',
    'LTAI5tAbCdEfGhIjKlMnOpQr',
    `dapi${'0123456789abcdef'.repeat(2)}`,
    'ya29.a0AfH6SMBx_abc',
    `AQ.${letters.slice(0, 30)}`,
    'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjMifQ.abcDEF123-_x',
  ];
  for (const key of keys) {
    for (const [before, behind] of [
      [' ', ' '],
      ["'", "'"],
      ['=', ','],
      ['(', ')'],
    ] as const)
      assert.equal(sanitise(`of${before}${key}${behind}is wrong`, ''), `of${before}[redacted]${behind}is wrong`, key);
  }
  for (const text of [
    'hf_transformers_pipeline is unknown',
    'fw_a is no number',
    'No output for call_AbCdEf1234567890abcd',
    'an EYJAFJALLA',
  ])
    assert.equal(sanitise(text, ''), text);
});

test('a name without a domain is a host behind the words of whoever could not reach it', () => {
  const cases: Record<string, string> = {
    'Cannot connect to host vllm-backend:8000 ssl:default': 'Cannot connect to host [host]:8000 ssl:default',
    "HTTPConnectionPool(host='gpu_7', port=8000): Max retries": "HTTPConnectionPool(host='[host]', port=8000): Max retries",
    'getaddrinfo ENOTFOUND vllm-backend': 'getaddrinfo ENOTFOUND [host]',
    'connect ECONNREFUSED gpu7:8000': 'connect ECONNREFUSED [host]',
    'getaddrinfo EAI_AGAIN redis and EHOSTUNREACH gpu-2': 'getaddrinfo EAI_AGAIN [host] and EHOSTUNREACH [host]',
    'dial tcp: lookup vllm-backend: no such host': 'dial tcp: lookup [host]: no such host',
    'dial tcp: lookup gpu7 on 10.96.0.10:53: server misbehaving': 'dial tcp: lookup [host] on [address]: server misbehaving',
    'dial tcp gpu7:8000: connection refused': 'dial tcp [host]: connection refused',
  };
  for (const [text, safe] of Object.entries(cases)) assert.equal(sanitise(text, 'fallback'), safe);
  for (const text of ['the lookup table on row 3', 'a host is required', 'dial tcp failed', 'connect to the host: it is gone'])
    assert.equal(sanitise(text, 'fallback'), text);
});

test('ordinary messages stay readable', () => {
  const texts = [
    "Invalid value: 'high'. Supported values are: 'low', 'max' for messages[0].content[1].text.",
    'tools.0.custom.input_schema.properties.id: Input should be a valid dictionary',
    "Unknown parameter: 'tools[0].user_location' with api_version or key_frames.",
    'Unterminated string\nat position 5, line 1',
    'Expected <think> before <tool_call>; got <|im_start|> in file main.py, line 3',
  ];
  for (const text of texts) assert.equal(sanitise(text, 'fallback'), text.replace('\n', ' '));
});

test('E11: numbers become their spelling, empty strings and null are missing; router metadata is the fallback', () => {
  assert.deepEqual(readErrorMembers({ error: { code: 429, message: 'slow', metadata: { error_type: 'rate_limit_exceeded' } } }), {
    message: 'slow',
    code: '429',
    type: 'rate_limit_exceeded',
    param: undefined,
  });
  for (const code of ['constructor', '__proto__']) assert.equal(statusOfMembers({ code }), undefined, code);
  for (const code of ['moderation_blocked', 'content_policy_violation', 'image_content_policy_violation', 'invalid_image_url']) {
    assert.equal(statusOfMembers({ code, type: 'image_generation_user_error' }), 400, code);
    assert.equal(statusOfMembers({ code }), 400, code);
  }
  for (const code of ['OutputImageSensitiveContentDetected', 'InputTextSensitiveContentDetected.PolicyViolation']) {
    assert.equal(statusOfMembers({ code }), 400, code);
  }
  for (const code of ['invalid_encrypted_content', 'thinking_signature_invalid']) {
    assert.equal(statusOfMembers({ code }), 400, `${code}, with which a stream may end before it began`);
  }
  assert.equal(statusOfMembers({ type: 'unprocessable_entity_error' }), 422);
  assert.equal(statusOfMembers(readErrorMembers({ error: { code: '', type: 'overloaded_error', message: null } })), 529);
  assert.equal(readErrorMembers({ code: 'invalid-argument', error: 'text' }).message, 'text');
  assert.equal(readErrorMembers({ detail: 'Invalid API Key' }).message, 'Invalid API Key');
});

test('only a deterministic refusal shows the upstream message', () => {
  const options = { reason: 'http_status', text: 'full text' } as const;
  assert.equal(refusal(400, { message: 'bad temperature' }, options).message, 'bad temperature');
  assert.equal(refusal(401, { message: 'key sk-live-1' }, options).message, 'The upstream refused the gateway.');
  assert.equal(refusal(500, { message: 'db down' }, options).message, 'The upstream failed.');
  assert.equal(refusal(500, {}, options).details.upstream?.text, 'full text');
});
