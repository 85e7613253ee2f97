import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../../src/codecs/canonical/error.ts';
import type { JsonObject } from '../../../src/codecs/canonical/json.ts';
import type { UpstreamAnswer } from '../../../src/codecs/codec.ts';
import { lastFrameLink } from '../../../src/codecs/videos/answers.ts';
import { arkVideo } from '../../../src/codecs/videos/ark.ts';
import { minimaxVideoV1 } from '../../../src/codecs/videos/minimax-v1.ts';
import { minimaxVideoV2 } from '../../../src/codecs/videos/minimax-v2.ts';
import { decodeVideoRequest, videoRequestDigest } from '../../../src/codecs/videos/request.ts';
import type { Progress, VideoUpstream } from '../../../src/codecs/videos/upstream.ts';

const image = (role?: string): JsonObject => ({
  type: 'image',
  url: 'https://x.example/a.png',
  ...(role === undefined ? {} : { role }),
});
const answer = (body: unknown, status = 200): UpstreamAnswer => ({
  status,
  headers: {},
  text: typeof body === 'string' ? body : JSON.stringify(body),
});

const TASK = 'cgt-1';
const FILE = '9007199254740993';
const progressOf = (upstream: VideoUpstream, given: UpstreamAnswer): Progress => upstream.readProgress(given, TASK);
const found = (given: UpstreamAnswer): Progress => minimaxVideoV1.readLookup(given, FILE);

const addressOf = (length: number): string => 'https://x.example/'.padEnd(length, 'a');

function refusedAt(param: string): (error: unknown) => boolean {
  return (error) => error instanceof GatewayError && error.status === 400 && error.param === param && /\S\.$/.test(error.message);
}

const REFUSALS: readonly (readonly [string, JsonObject, string])[] = [
  ['unknown top-level field', { model: 'm', prompt: 'p', callback_url: 'https://x' }, 'callback_url'],
  ['__proto__ is an unknown field', JSON.parse('{"model":"m","prompt":"p","__proto__":{}}') as JsonObject, '__proto__'],
  ['no model', { prompt: 'p' }, 'model'],
  ['model of a wrong type', { model: 5, prompt: 'p' }, 'model'],
  ['neither prompt nor input', { model: 'm' }, 'prompt'],
  ['duration 0', { model: 'm', prompt: 'p', duration: 0 }, 'duration'],
  ['duration 61', { model: 'm', prompt: 'p', duration: 61 }, 'duration'],
  ['duration 1.5', { model: 'm', prompt: 'p', duration: 1.5 }, 'duration'],
  ['duration as text', { model: 'm', prompt: 'p', duration: '5' }, 'duration'],
  ['51 inputs', { model: 'm', input: Array.from({ length: 51 }, () => image()) }, 'input'],
  ['a data URL', { model: 'm', input: [{ type: 'image', url: 'data:image/png;base64,AA==' }] }, 'input[0].url'],
  ['an unknown role', { model: 'm', input: [image('middle_frame')] }, 'input[0].role'],
  ['a role of another type', { model: 'm', input: [image('reference_video')] }, 'input[0].role'],
  ['input that is no list', { model: 'm', input: image() }, 'input'],
  ['an input that is no object', { model: 'm', input: ['https://x.example/a.png'] }, 'input[0]'],
  ['an input of an unknown type', { model: 'm', input: [{ ...image(), type: 'text' }] }, 'input[0].type'],
  ['an input without a type', { model: 'm', input: [{ url: 'https://x.example/a.png' }] }, 'input[0].type'],
  ['an address of 8193 characters', { model: 'm', input: [{ type: 'image', url: addressOf(8193) }] }, 'input[0].url'],
  ['text that is no address', { model: 'm', input: [{ type: 'image', url: 'a picture' }] }, 'input[0].url'],
  ['a model without a name', { model: '', prompt: 'p' }, 'model'],
  ['an unknown input field', { model: 'm', input: [{ ...image(), weight: 1 }] }, 'input[0].weight'],
  ['provider_options as a list', { model: 'm', prompt: 'p', provider_options: [] }, 'provider_options'],
];

for (const [what, body, param] of REFUSALS) {
  test(`video body refused: ${what}`, () => {
    assert.throws(() => decodeVideoRequest(body), refusedAt(param));
  });
}

test('fifty inputs and both bounds of the duration are accepted', () => {
  assert.equal(
    decodeVideoRequest({ model: 'm', input: Array.from({ length: 50 }, () => image('reference_image')), duration: 60 }).input
      .length,
    50,
  );
  assert.equal(decodeVideoRequest({ model: 'm', prompt: 'p', duration: 1 }).duration, 1);
});

test('an address may have 8192 characters', () => {
  decodeVideoRequest({ model: 'm', input: [{ type: 'image', url: addressOf(8192) }] });
});

test('null is the same as absent, for every field that may be absent', () => {
  const bare = { model: 'm', prompt: 'p' };
  for (const field of ['duration', 'resolution', 'aspect_ratio', 'input', 'provider_options'])
    assert.deepEqual(decodeVideoRequest({ ...bare, [field]: null }), decodeVideoRequest(bare), field);
  const shown = { model: 'm', input: [image()] };
  assert.deepEqual(decodeVideoRequest({ ...shown, prompt: null }), decodeVideoRequest(shown));
  assert.deepEqual(decodeVideoRequest({ model: 'm', input: [{ ...image(), role: null }] }), decodeVideoRequest(shown));
});

test('a body that differs only in key order is the same request', () => {
  const a = videoRequestDigest({ model: 'm', prompt: 'p', provider_options: { a: 1, b: [1, { c: 2, d: 3 }] } });
  assert.equal(a, videoRequestDigest({ provider_options: { b: [1, { d: 3, c: 2 }], a: 1 }, prompt: 'p', model: 'm' }));
  assert.notEqual(a, videoRequestDigest({ model: 'm', prompt: 'p', provider_options: { a: 1, b: [{ c: 2, d: 3 }, 1] } }));
});

test('ark: the whole request on the wire', () => {
  const request = decodeVideoRequest({
    model: 'seedance',
    prompt: 'A cat runs',
    duration: 5,
    resolution: '720p',
    aspect_ratio: '16:9',
    input: [image('first_frame'), image('last_frame')],
    provider_options: { seed: 11, watermark: false, execution_expires_after: 3600 },
  });
  arkVideo.check(request);
  const call = arkVideo.submit(request, 'doubao-1');
  assert.equal(call.path, '/contents/generations/tasks');
  assert.deepEqual(JSON.parse(call.body ?? ''), {
    model: 'doubao-1',
    content: [
      { type: 'text', text: 'A cat runs' },
      { type: 'image_url', image_url: { url: 'https://x.example/a.png' }, role: 'first_frame' },
      { type: 'image_url', image_url: { url: 'https://x.example/a.png' }, role: 'last_frame' },
    ],
    resolution: '720p',
    duration: 5,
    ratio: '16:9',
    seed: 11,
    watermark: false,
    execution_expires_after: 3600,
  });
  assert.equal(arkVideo.expiresAfterSeconds(request), 3600);
});

test('an input without a prompt is sent without a text', () => {
  for (const prompt of [{}, { prompt: '' }]) {
    const { content } = JSON.parse(
      arkVideo.submit(decodeVideoRequest({ model: 'm', ...prompt, input: [image()] }), 'up').body ?? '',
    );
    assert.deepEqual(content, [{ type: 'image_url', image_url: { url: 'https://x.example/a.png' } }]);
  }
});

test('what an HTTP status says of a submission: a refusal, nothing taken, or nothing certain', () => {
  const notTaken = new Set([401, 402, 403, 404, 429]);
  for (const { readSubmission } of [arkVideo, minimaxVideoV1, minimaxVideoV2]) {
    for (let status = 300; status < 600; status += 1) {
      const isRefusal = status >= 400 && status < 500 && status !== 408;
      const said = notTaken.has(status) ? 'notTaken' : isRefusal ? 'refused' : 'unclear';
      assert.equal(readSubmission(answer({ error: { code: 'x', message: 'm' } }, status)).kind, said, String(status));
    }
  }
});

test('whatever the body says, an error status is a failed query', () => {
  const link = 'https://r.example/v.mp4';
  const good = { base_resp: { status_code: 0 } };
  for (const status of [300, 404, 500]) {
    for (const result of [
      progressOf(arkVideo, answer({ status: 'succeeded', content: { video_url: link } }, status)),
      progressOf(arkVideo, answer({ status: 'failed' }, status)),
      progressOf(minimaxVideoV1, answer({ status: 'Success', file_id: '1', ...good }, status)),
      progressOf(minimaxVideoV1, answer({ status: 'Fail', ...good }, status)),
      found(answer({ file: { download_url: link }, ...good }, status)),
      progressOf(minimaxVideoV2, answer({ task: { status: 'succeeded', content: { url: link } } }, status)),
      progressOf(minimaxVideoV2, answer({ task: { status: 'failed' } }, status)),
    ])
      assert.equal(result.kind, 'queryError', String(status));
  }
  assert.equal(found(answer({ file: { download_url: link }, base_resp: { status_code: 1004 } })).kind, 'queryError');
  for (const upstream of [arkVideo, minimaxVideoV1, minimaxVideoV2])
    for (const body of ['', '{', '[]', 'null']) assert.equal(progressOf(upstream, answer(body)).kind, 'queryError', body);
});

test('an answer about another task or file is a failed query, whatever it says; one that names none is about this one', () => {
  const url = 'https://r.example/v.mp4';
  const good = { base_resp: { status_code: 0 } };
  const done = { status: 'succeeded', content: { video_url: url, url } };
  for (const [id, kind] of [
    [TASK, 'succeeded'],
    [undefined, 'succeeded'],
    ['another', 'queryError'],
    ['x'.repeat(1025), 'queryError'],
    ['..', 'queryError'],
    [7, 'queryError'],
  ] as const) {
    assert.equal(progressOf(arkVideo, answer({ id, ...done })).kind, kind, String(id));
    assert.equal(progressOf(arkVideo, answer({ id, status: 'failed' })).kind, kind === 'succeeded' ? 'failed' : kind);
    assert.equal(progressOf(minimaxVideoV2, answer({ task: { id, ...done } })).kind, kind, String(id));
    const first = progressOf(minimaxVideoV1, answer({ task_id: id, status: 'Success', file_id: FILE, ...good }));
    assert.deepEqual([first.kind, 'id' in first && first.id], kind === 'succeeded' ? ['lookup', FILE] : [kind, false]);
  }
  for (const [file_id, kind] of [
    [`"${FILE}"`, 'succeeded'],
    [FILE, 'succeeded'],
    // As a proxy writes it that reads numbers as doubles.
    ['9007199254740992', 'succeeded'],
    ['1', 'queryError'],
  ] as const) {
    const text = `{"file":{"file_id":${file_id},"download_url":"${url}"},"base_resp":{"status_code":0}}`;
    assert.equal(found(answer(text)).kind, kind, file_id);
  }
});

test('an id is what its text says, escapes and all; what no path can hold is none', () => {
  for (const [upstream, name] of [
    [arkVideo, 'id'],
    [minimaxVideoV1, 'task_id'],
  ] as const) {
    const read = (id: string) => upstream.readSubmission({ ...answer({}), text: `{"${name}":${id}}` });
    for (const [id, upstreamId] of [
      [String.raw`"a\/b"`, 'a/b'],
      [String.raw`"cgt\u002d1"`, 'cgt-1'],
      ['12345678901234567890', '12345678901234567890'],
    ] as const) {
      assert.deepEqual(read(id), { kind: 'accepted', upstreamId });
      const polled = { ...answer({}), text: `{"${name}":${id},"status":"unheard"}` };
      assert.equal(upstream.readProgress(polled, upstreamId).kind, 'unclear', 'it is about this task');
    }
    for (const id of ['""', String.raw`"a\u0000"`, String.raw`"\ud800"`, '1.5', '1e20', 'null', '["a"]', '"."', '".."'])
      assert.equal(read(id).kind, 'unclear', id);
    assert.equal(read(`"${'x'.repeat(1024)}"`).kind, 'accepted');
    for (const id of [`"${'x'.repeat(1025)}"`, '9'.repeat(1025)]) assert.equal(read(id).kind, 'unclear', 'no server takes it');
  }
});

test('ark: what each answer says', () => {
  assert.deepEqual(arkVideo.readSubmission(answer({ id: 'cgt-1' })), { kind: 'accepted', upstreamId: 'cgt-1' });
  assert.equal(arkVideo.readSubmission(answer({ error: { code: 'InvalidParameter', message: 'no' } }, 400)).kind, 'refused');
  assert.equal(arkVideo.readSubmission(answer({ error: { code: 'RateLimitExceeded' } }, 429)).kind, 'notTaken');
  assert.equal(arkVideo.readSubmission(answer('<html>', 500)).kind, 'unclear');
  assert.equal(arkVideo.readSubmission(answer('{}')).kind, 'unclear');
  // A task that was taken is never lost for the spelling of its id.
  assert.deepEqual(arkVideo.readSubmission(answer('{"id":9007199254740993}')), {
    kind: 'accepted',
    upstreamId: '9007199254740993',
  });
  assert.equal(progressOf(arkVideo, answer({ status: 'queued' })).kind, 'pending');
  const done = progressOf(arkVideo, answer({ status: 'succeeded', content: { video_url: 'https://r.example/v.mp4' } }));
  assert.equal(done.kind === 'succeeded' && done.url, 'https://r.example/v.mp4');
  assert.equal(progressOf(arkVideo, answer({ status: 'expired' })).kind, 'failed');
  assert.equal(progressOf(arkVideo, answer({ error: {} }, 500)).kind, 'queryError');
  assert.equal(progressOf(arkVideo, answer({})).kind, 'queryError');
});

test('the code of a failure is a word: no text, host or key of the upstream reaches the client in it', () => {
  const codeOf = (error: object): unknown => {
    const result = progressOf(arkVideo, answer({ status: 'failed', error }));
    return result.kind === 'failed' ? result.error.code : undefined;
  };
  const words = ['InputTextSensitiveContentDetected.PolicyViolation', 'InvalidEndpointOrModel.NotFound', '1026'];
  for (const code of words) assert.equal(codeOf({ code, message: 'no' }), code);
  for (const code of [
    'https://x.example/y',
    'sk-abcdefghijklmnop',
    'api.internal.example.com',
    'no such host',
    'x'.repeat(200),
  ]) {
    assert.equal(codeOf({ code, message: 'no' }), 'generation_failed', code);
    assert.equal(codeOf({ code, type: 'BadRequest' }), 'BadRequest', code);
  }
});

test('what each documented status of a task says', () => {
  const ends = { failed: 'generation_failed', cancelled: 'cancelled', expired: 'expired' };
  const codeOf = (result: Progress): unknown => (result.kind === 'failed' ? result.error.code : result.kind);
  for (const read of [
    (status: string) => progressOf(arkVideo, answer({ status, error: null })),
    (status: string) => progressOf(minimaxVideoV2, answer({ task: { status, error: null } })),
  ]) {
    for (const status of ['queued', 'running']) assert.equal(read(status).kind, 'pending', status);
    for (const [status, code] of Object.entries(ends)) assert.equal(codeOf(read(status)), code, status);
  }
  for (const status of ['Preparing', 'Queueing', 'Processing']) {
    assert.equal(progressOf(minimaxVideoV1, answer({ status, base_resp: { status_code: 0 } })).kind, 'pending', status);
  }
  const sensitive = progressOf(minimaxVideoV1, answer({ status: 'Fail', base_resp: { status_code: 1027, status_msg: 'no' } }));
  assert.deepEqual(sensitive, { kind: 'failed', error: { code: '1027', message: 'no' } });
});

test('reference materials of each type have a role on the wire, given or not', () => {
  const link = (type: string, role?: string): JsonObject => ({
    type,
    url: 'https://x.example/a',
    ...(role === undefined ? {} : { role }),
  });
  const input = [link('video'), link('video', 'reference_video'), link('audio'), link('audio', 'reference_audio'), link('image')];
  const request = decodeVideoRequest({ model: 'm', prompt: 'p', input });
  for (const upstream of [arkVideo, minimaxVideoV2]) {
    const { content } = JSON.parse(upstream.submit(request, 'up').body ?? '');
    assert.deepEqual(
      content.map(({ type, role }: JsonObject) => [type, role]),
      [
        ['text', undefined],
        ['video_url', 'reference_video'],
        ['video_url', 'reference_video'],
        ['audio_url', 'reference_audio'],
        ['audio_url', 'reference_audio'],
        ['image_url', undefined],
      ],
    );
  }
});

test('a status word that nobody knows may be an end: the outcome is unclear, not the query', () => {
  const unclear = { kind: 'unclear', reason: 'status "dreaming"' };
  assert.deepEqual(progressOf(arkVideo, answer({ status: 'dreaming' })), unclear);
  assert.deepEqual(progressOf(minimaxVideoV2, answer({ task: { status: 'dreaming' } })), unclear);
  assert.equal(progressOf(minimaxVideoV1, answer({ status: 'dreaming', base_resp: { status_code: 0 } })).kind, 'unclear');
  // It is a line of the log at each poll.
  for (const status of ['x'.repeat(500_000), { words: 'x'.repeat(500_000) }])
    assert.ok(JSON.stringify(progressOf(arkVideo, answer({ status }))).length < 300);
  assert.equal(progressOf(minimaxVideoV1, answer({ status: '', base_resp: { status_code: 1002 } })).kind, 'queryError');
});

test('a success has the link of its video, and of its last frame where the upstream made one', () => {
  const url = 'https://r.example/v.mp4';
  const frame = 'https://r.example/last.png';
  const task = { status: 'succeeded', content: { video_url: url, url, last_frame_url: frame } };
  for (const result of [progressOf(arkVideo, answer(task)), progressOf(minimaxVideoV2, answer({ task }))]) {
    assert.deepEqual(result, { kind: 'succeeded', url, report: task });
    assert.equal(result.kind === 'succeeded' && lastFrameLink(result.report), frame);
  }
  for (const report of [null, {}, { content: null }, { content: { last_frame_url: 'a.png' } }])
    assert.equal(lastFrameLink(report), undefined);
});

test('a success without a link to the video is an outcome that is unclear', () => {
  const unclear = { kind: 'unclear', reason: 'a success without a result link' };
  const good = { base_resp: { status_code: 0 } };
  const long = `https://r.example/${'v'.repeat(8192)}`;
  for (const url of [undefined, null, '', 'javascript:alert(1)', 5, long, 'https://r.example/v\r\nset-cookie: a=b']) {
    assert.deepEqual(progressOf(arkVideo, answer({ status: 'succeeded', content: { video_url: url } })), unclear);
    assert.deepEqual(progressOf(minimaxVideoV2, answer({ task: { status: 'succeeded', content: { url } } })), unclear);
    assert.deepEqual(found(answer({ file: { download_url: url }, ...good })), unclear);
  }
  assert.equal(progressOf(minimaxVideoV1, answer({ status: 'Success', ...good })).kind, 'unclear');
  assert.equal(found(answer({ base_resp: { status_code: 1002 } })).kind, 'queryError');
});

test('provider options are checked for each Channel', () => {
  const request = (provider_options: JsonObject) => decodeVideoRequest({ model: 'm', prompt: 'p', provider_options });
  assert.throws(() => arkVideo.check(request({ callback_url: 'x' })), refusedAt('provider_options.callback_url'));
  assert.throws(() => arkVideo.check(request({ seed: 1.5 })), refusedAt('provider_options.seed'));
  assert.throws(() => minimaxVideoV1.check(request({ seed: 1 })), refusedAt('provider_options.seed'));
  assert.throws(() => minimaxVideoV2.check(request({ prompt_optimizer: true })), refusedAt('provider_options.prompt_optimizer'));
  for (const wrong of [
    { service_tier: 'fast' },
    { output_format: 5 },
    { generate_audio: 'yes' },
    { execution_expires_after: 60 },
    { seed: -2 },
    { seed: 4_294_967_296 },
    { execution_expires_after: 3599 },
    { execution_expires_after: 259_201 },
  ])
    assert.throws(() => arkVideo.check(request(wrong)), refusedAt(`provider_options.${Object.keys(wrong)[0]}`));
  arkVideo.check(request({ seed: -1, execution_expires_after: 3600 }));
  arkVideo.check(request({ seed: 4_294_967_295, execution_expires_after: 259_200 }));
  for (const output_format of ['mp4', 'mov']) arkVideo.check(request({ output_format }));
  arkVideo.check(request({ service_tier: 'flex', output_format: 'mov', generate_audio: false, execution_expires_after: 3600 }));
  assert.throws(() => minimaxVideoV2.check(request({ extra: 'balanced' })), refusedAt('provider_options.extra'));
  minimaxVideoV1.check(request({ prompt_optimizer: true, fast_pretreatment: false }));
  minimaxVideoV2.check(request({ extra: { prompt_expansion_mode: 'balanced' } }));
});

test('minimax v1 takes frames only, and no aspect ratio', () => {
  assert.throws(
    () => minimaxVideoV1.check(decodeVideoRequest({ model: 'm', prompt: 'p', aspect_ratio: '1:1' })),
    refusedAt('aspect_ratio'),
  );
  assert.throws(
    () => minimaxVideoV1.check(decodeVideoRequest({ model: 'm', input: [image('reference_image')] })),
    refusedAt('input[0]'),
  );
  const last = { ...image('last_frame'), url: 'https://x.example/b.png' };
  const framed = decodeVideoRequest({ model: 'm', prompt: 'p', input: [last, image()] });
  minimaxVideoV1.check(framed);
  const call = minimaxVideoV1.submit(framed, 'Hailuo');
  assert.deepEqual(JSON.parse(call.body ?? ''), {
    model: 'Hailuo',
    prompt: 'p',
    first_frame_image: 'https://x.example/a.png',
    last_frame_image: 'https://x.example/b.png',
  });
});

test('minimax v1: a refusal is an HTTP 200, ids above 2^53 stay exact, and the file is looked up', () => {
  const expected = {
    1026: 'refused',
    1027: 'refused',
    2013: 'refused',
    1000: 'unclear',
    1001: 'unclear',
    1013: 'unclear',
    9999: 'unclear',
  };
  const notTaken = Object.fromEntries([1002, 1004, 1008, 1033, 1039, 1041, 2049, 2056].map((code) => [code, 'notTaken']));
  for (const [code, word] of Object.entries({ ...expected, ...notTaken })) {
    const refused = answer({ task_id: '', base_resp: { status_code: Number(code), status_msg: 'no' } });
    for (const upstream of [minimaxVideoV1, minimaxVideoV2]) assert.equal(upstream.readSubmission(refused).kind, word, code);
  }
  for (const upstream of [minimaxVideoV1, minimaxVideoV2]) {
    const accepted = (text: string) => upstream.readSubmission(answer(text));
    for (const base of ['', ',"base_resp":{"status_code":0}']) {
      assert.deepEqual(accepted(`{"task_id":"10"${base}}`), { kind: 'accepted', upstreamId: '10' });
      assert.deepEqual(accepted(`{"task_id":9007199254740993${base}}`), { kind: 'accepted', upstreamId: '9007199254740993' });
    }
    assert.equal(accepted('{"task_id":"10","base_resp":{"status_code":2013}}').kind, 'refused');
    for (const none of [
      '{"base_resp":{"status_code":0}}',
      '{"task_id":"","base_resp":{"status_code":0}}',
      '{"task_id":"10"',
      '["10"]',
    ])
      assert.equal(accepted(none).kind, 'unclear', none);
  }
  for (const base of [{ base_resp: { status_code: 0, status_msg: 'success' } }, {}])
    assert.deepEqual(progressOf(minimaxVideoV1, answer({ status: 'Fail', ...base })), {
      kind: 'failed',
      error: { code: 'generation_failed', message: 'The upstream could not make the video.' },
    });
  const progress = progressOf(
    minimaxVideoV1,
    answer(`{"task_id":"${TASK}","status":"Success","file_id":${FILE},"base_resp":{"status_code":0}}`),
  );
  assert.deepEqual(progress, { kind: 'lookup', call: { method: 'GET', path: `/files/retrieve?file_id=${FILE}` }, id: FILE });
  assert.deepEqual(found(answer({ file: { download_url: 'https://r.example/v.mp4' } })), {
    kind: 'succeeded',
    url: 'https://r.example/v.mp4',
    report: {},
  });
  assert.equal(found(answer({}, 500)).kind, 'queryError');
  const backup = found(answer({ file: { download_url: '', backup_download_url: 'https://b.example/v.mp4' } }));
  assert.deepEqual(backup, { kind: 'succeeded', url: 'https://b.example/v.mp4', report: {} });
});

test('minimax: an error number counts beside an error status, too, and as text', () => {
  const base = (code: unknown) => ({ task_id: '10', base_resp: { status_code: code, status_msg: 'no' } });
  for (const { readSubmission } of [minimaxVideoV1, minimaxVideoV2]) {
    for (const status of [200, 400, 500]) {
      assert.deepEqual(readSubmission(answer(base(1026), status)), { kind: 'refused', error: { code: '1026', message: 'no' } });
      assert.equal(readSubmission(answer(base(1008), status)).kind, 'notTaken');
    }
    assert.equal(readSubmission(answer(base(1026), 401)).kind, 'notTaken');
    assert.equal(readSubmission(answer(base(1000), 500)).kind, 'unclear');
    assert.equal(readSubmission(answer(base(1000), 400)).kind, 'refused');
    assert.equal(readSubmission(answer(base('1026'))).kind, 'refused');
    assert.equal(readSubmission(answer(base('0'))).kind, 'accepted');
  }
});

test('minimax: v1 takes one frame of each kind and its resolution, v2 nothing without a prompt', () => {
  const twice = decodeVideoRequest({ model: 'm', prompt: 'p', input: [image(), image('first_frame')] });
  assert.throws(() => minimaxVideoV1.check(twice), refusedAt('input[1]'));
  for (const role of ['reference_video', 'reference_audio']) {
    const type = role.slice('reference_'.length);
    const material = { type, url: 'https://x.example/a' };
    for (const one of [material, { ...material, role }])
      assert.throws(() => minimaxVideoV1.check(decodeVideoRequest({ model: 'm', input: [one] })), refusedAt('input[0]'));
  }
  const sized = minimaxVideoV1.submit(
    decodeVideoRequest({ model: 'm', prompt: 'p', duration: 10, resolution: '768P' }),
    'Hailuo',
  );
  assert.deepEqual(JSON.parse(sized.body ?? ''), { model: 'Hailuo', prompt: 'p', duration: 10, resolution: '768P' });
  for (const prompt of [undefined, ''])
    assert.throws(
      () =>
        minimaxVideoV2.check(decodeVideoRequest({ model: 'm', ...(prompt === undefined ? {} : { prompt }), input: [image()] })),
      refusedAt('prompt'),
    );
});

test('minimax v2: the defaults of the specification', () => {
  const body = (request: JsonObject) =>
    JSON.parse(minimaxVideoV2.submit(decodeVideoRequest(request), 'H3').body ?? '') as JsonObject;
  const textOnly = body({ model: 'm', prompt: 'p' });
  assert.deepEqual([textOnly['duration'], textOnly['resolution'], textOnly['ratio']], [6, '768P', '16:9']);
  assert.equal(body({ model: 'm', prompt: 'p', input: [image('first_frame')] })['ratio'], 'adaptive');
  assert.equal(body({ model: 'm', prompt: 'p', input: [image('first_frame')], aspect_ratio: '1:1' })['ratio'], '1:1');
});
