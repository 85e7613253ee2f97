/** The three image upstreams without sockets: what is sent, what is understood, what is refused. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bodyBytes } from '../../../src/codecs/bodies/pieces.ts';
import { GatewayError } from '../../../src/codecs/canonical/error.ts';
import type { JsonObject } from '../../../src/codecs/canonical/json.ts';
import {
  decodeModelList,
  encodeImageAnswer,
  encodeImageEvents,
  IMAGE_UPSTREAMS,
  type ImageAnswer,
  type ImageRequest,
  type ImageUpstream,
  joinAnswers,
  readImageJson,
  rejectsStreaming,
} from '../../../src/codecs/images/index.ts';
import { sseDecode } from '../../../src/streams/sse-decode.ts';
import type { Frame } from '../../../src/codecs/codec.ts';

const upstream = (type: 'openai_image' | 'openrouter_image' | 'responses'): ImageUpstream => {
  const found = IMAGE_UPSTREAMS.get(type);
  if (found === undefined) throw new Error(type);
  return found;
};
const native = upstream('openai_image');
const router = upstream('openrouter_image');
const tool = upstream('responses');
const ALL = [native, router, tool];

const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const URL = `data:image/png;base64,${PNG}`;

function read(operation: 'generation' | 'edit', body: JsonObject): ImageRequest {
  return readImageJson(operation, JSON.stringify(body), body);
}

function sent(
  to: ImageUpstream,
  request: ImageRequest,
  changes: {
    readonly upstreamModel?: string;
    readonly stream?: boolean;
    readonly defaults?: object;
    readonly override?: (json: string) => string;
  } = {},
) {
  const encoded = to.encode(request, {
    upstreamModel: 'up',
    stream: false,
    generationTool: true,
    defaults: {},
    override: (json) => json,
    mint: (prefix) => `${prefix}0123`,
    ...changes,
  });
  return { ...encoded, text: Buffer.concat([...bodyBytes(encoded.body)]).toString() };
}

const BASE = { model: 'm', prompt: 'x' };

test('native: the body goes on as its own text', () => {
  const text = '{"prompt":"x", "model":"m","n":3,"stream":true,"partial_images":2,"seed":1.0,"user":"u"}';
  const request = readImageJson('generation', text.replace('3', '1'), JSON.parse(text.replace('3', '1')));
  assert.equal(
    sent(native, request, { stream: true }).text,
    '{"prompt":"x", "model":"up","n":1,"stream":true,"seed":1.0,"user":"u"}',
  );
  assert.equal(
    sent(native, request, { defaults: { size: '8x8', background: 'opaque' } }).text,
    '{"prompt":"x", "model":"up","n":1,"seed":1.0,"user":"u","size":"8x8","background":"opaque"}',
  );
});

test('native: the format that GPT image models have alone is not said to them, who refuse the word; another is', () => {
  const edit = (format: string) => read('edit', { ...BASE, response_format: format, images: [{ image_url: URL }] });
  for (const upstreamModel of ['gpt-image-1', 'gpt-image-1.5-2025-12-16', 'chatgpt-image-latest', 'openai/gpt-image-2']) {
    const said = (format: string) =>
      sent(native, read('generation', { ...BASE, response_format: format }), { upstreamModel }).text;
    assert.equal(said('b64_json'), JSON.stringify({ model: upstreamModel, prompt: 'x' }));
    assert.equal(said('url'), JSON.stringify({ model: upstreamModel, prompt: 'x', response_format: 'url' }));
    assert.doesNotMatch(sent(native, edit('b64_json'), { upstreamModel }).text, /response_format/);
    assert.match(sent(native, edit('url'), { upstreamModel }).text, /name="response_format"\r\n\r\nurl/);
  }
  for (const upstreamModel of ['dall-e-3', 'seedream-4', 'my-gpt-imager']) {
    const text = sent(native, read('generation', { ...BASE, response_format: 'b64_json' }), { upstreamModel }).text;
    assert.equal(JSON.parse(text).response_format, 'b64_json');
    assert.match(sent(native, edit('b64_json'), { upstreamModel }).text, /name="response_format"/);
  }
});

test('the operator’s changes reach every form', () => {
  const override = (json: string): string => JSON.stringify({ ...JSON.parse(json), moderation: 'low' });
  const edit = read('edit', { ...BASE, images: [{ image_url: URL }] });
  assert.match(sent(native, edit, { override }).text, /name="moderation"\r\n\r\nlow\r\n/);
  assert.equal(JSON.parse(sent(router, edit, { override }).text).moderation, 'low');
  assert.equal(JSON.parse(sent(router, edit, { override }).text).input_references[0].image_url.url, URL);
});

test('a prompt that looks like a slot stays a prompt', () => {
  const edit = read('edit', { ...BASE, prompt: 'slot-0- slot0123-9- "quoted"', images: [{ image_url: URL }] });
  const { prompt, input_references: references } = JSON.parse(sent(router, edit).text);
  assert.equal(prompt.includes('"quoted"'), true);
  assert.equal(references[0].image_url.url, URL);
});

test('a MIME type cannot break out of a header or of JSON', () => {
  for (const mime of ['image/png"\r\nx-evil: 1', 'image/p"ng', 'IMAGE/PNG']) {
    const edit = read('edit', { ...BASE, images: [{ image_url: `data:${mime};base64,${PNG}` }] });
    assert.match(sent(native, edit).text, /\r\ncontent-type: image\/png\r\n\r\n/);
    assert.equal(JSON.parse(sent(tool, edit).text).input[0].content[1].image_url, URL);
  }
});

const WHOLE = {
  ...BASE,
  n: 1,
  size: '8x8',
  quality: 'high',
  background: 'opaque',
  output_format: 'png',
  output_compression: 90,
  moderation: 'low',
  user: 'u',
  safety_identifier: 's',
  resolution: '2K',
  seed: 7,
};

test('a generation as each route is sent it', () => {
  const { model: _model, prompt, moderation, safety_identifier, ...routed } = WHOLE;
  const { n: _n, user, resolution: _resolution, seed: _seed, ...drawn } = routed;
  const request = read('generation', WHOLE);
  const defaults = { size: '1x1', quality: 'low' };
  for (const stream of [false, true]) {
    const streamed = stream ? { stream } : {};
    const body = (to: ImageUpstream) => {
      const { path, contentType, stream: asked, text } = sent(to, request, { stream, defaults });
      assert.deepEqual([contentType, asked], ['application/json', stream]);
      return [path, JSON.parse(text)];
    };
    assert.deepEqual(body(native), ['/images/generations', { ...WHOLE, model: 'up', ...streamed }]);
    assert.deepEqual(body(router), ['/images', { model: 'up', prompt, ...routed, ...streamed }]);
    const toolBody = {
      model: 'up',
      input: [{ role: 'user', content: [{ type: 'input_text', text: prompt }] }],
      tools: [{ type: 'image_generation', ...drawn, moderation }],
      tool_choice: { type: 'image_generation' },
      store: false,
      user,
      safety_identifier,
      ...streamed,
    };
    assert.deepEqual(body(tool), ['/responses', toolBody]);
  }
  for (const to of [native, router]) assert.equal('n' in JSON.parse(sent(to, read('generation', BASE)).text), false);
  const bare = JSON.parse(sent(tool, read('generation', BASE), { defaults }).text);
  assert.deepEqual(bare.tools, [{ type: 'image_generation', ...defaults }]);
});

test('an edit as each route is sent it', () => {
  const edit = (...images: readonly JsonObject[]) => read('edit', { ...BASE, n: 1, user: 'u', images: [...images] });
  const parts = (text: string) =>
    [...text.matchAll(/name="([^"]*)"(?:; filename="([^"]*)")?/g)].map(([, name, file]) => [name, file]);
  const fields = [
    ['model', undefined],
    ['prompt', undefined],
    ['n', undefined],
    ['user', undefined],
  ];
  const one = sent(native, edit({ image_url: URL }), { stream: true });
  assert.equal(one.path, '/images/edits');
  assert.match(one.contentType, /^multipart\/form-data; boundary=/);
  assert.deepEqual(parts(one.text), [...fields, ['stream', undefined], ['image', 'image-1.png']]);
  assert.match(one.text, /name="n"\r\n\r\n1\r\n/);
  assert.match(one.text, /name="stream"\r\n\r\ntrue\r\n/);
  const two = sent(native, edit({ image_url: URL }, { image_url: URL.replace('png', 'jpeg') }));
  assert.deepEqual(parts(two.text), [...fields, ['image[]', 'image-1.png'], ['image[]', 'image-2.jpg']]);
  // What the operator takes out is out of a form too.
  const without = (json: string): string => JSON.stringify({ ...JSON.parse(json), user: null });
  assert.deepEqual(parts(sent(native, edit({ image_url: URL }), { override: without }).text), [
    ...fields.slice(0, 3),
    ['image', 'image-1.png'],
  ]);

  const linked = edit({ image_url: URL }, { image_url: 'https://a.example/x.png' });
  const { path, stream, text } = sent(router, linked, { stream: true });
  assert.deepEqual([path, stream], ['/images', false]);
  assert.deepEqual(JSON.parse(text), {
    model: 'up',
    prompt: 'x',
    n: 1,
    user: 'u',
    input_references: [URL, 'https://a.example/x.png'].map((url) => ({ type: 'image_url', image_url: { url } })),
  });
});

test('what a route refuses before anything is sent, its encoder refuses too', () => {
  const on = { generationTool: true, defaults: {} };
  const file = { file_id: 'f' };
  const cases: readonly (readonly [ImageUpstream, ImageRequest, typeof on, string, string])[] = [
    [router, read('edit', { ...BASE, images: [file] }), on, 'unsupported_conversion', 'images[0].file_id'],
    [
      router,
      read('edit', { ...BASE, images: [{ image_url: URL }], mask: { image_url: URL } }),
      on,
      'unsupported_conversion',
      'mask',
    ],
    [router, read('generation', { ...BASE, response_format: 'url' }), on, 'unsupported_parameter', 'response_format'],
    [tool, read('generation', { ...BASE, response_format: 'url' }), on, 'unsupported_parameter', 'response_format'],
    [tool, read('generation', { ...BASE, style: 'vivid' }), on, 'unsupported_parameter', 'style'],
    [tool, read('generation', BASE), { ...on, generationTool: false }, 'unsupported_parameter', 'model'],
  ];
  for (const [to, request, channel, code, param] of cases) {
    const refusal = to.refuse(request, channel);
    assert.deepEqual([refusal?.status, refusal?.code, refusal?.param], [400, code, param]);
    assert.throws(
      () => to.encode(request, { ...channel, upstreamModel: 'up', stream: false, override: (json) => json, mint: () => 's' }),
      (error) => error instanceof GatewayError && error.code === code && error.param === param,
    );
  }
  const pictures = read('generation', { ...BASE, response_format: 'b64_json' });
  for (const to of ALL) {
    assert.equal(to.refuse(pictures, on), undefined);
    assert.deepEqual(sent(to, pictures).losses, []);
  }
});

test('what a route cannot say is named as a loss', () => {
  const request = read('generation', {
    ...BASE,
    moderation: 'low',
    input_fidelity: 'high',
    response_format: 'b64_json',
    aspect_ratio: '1:1',
  });
  assert.deepEqual(sent(router, request).losses, ['image parameter moderation', 'image parameter input_fidelity']);
  // All that the router's own document names.
  const named = {
    ...{ size: '8x8', quality: 'high', background: 'opaque', output_format: 'png', output_compression: 50, resolution: '1K' },
    ...{ aspect_ratio: '1:1', seed: 1, provider: { only: ['x'] }, user: 'u', session_id: 's', trace: { id: 't' } },
  };
  const routed = sent(router, read('generation', { ...BASE, ...named }));
  assert.deepEqual([JSON.parse(routed.text), routed.losses], [{ model: 'up', prompt: 'x', ...named }, []]);
  assert.deepEqual(sent(tool, request).losses, ['image parameter aspect_ratio']);
});

test('images that a generation brings in a vendor’s own member are never left out', () => {
  const channel = { generationTool: true, defaults: {} };
  const refused = (to: ImageUpstream, member: JsonObject) => to.refuse(read('generation', { ...BASE, ...member }), channel);
  for (const member of [{ image: URL }, { images: [{ image_url: URL }] }, { mask: { image_url: URL } }]) {
    const [name] = Object.keys(member);
    for (const to of [router, tool]) {
      const refusal = refused(to, member);
      assert.deepEqual([refusal?.status, refusal?.code, refusal?.param], [400, 'unsupported_conversion', name]);
    }
    assert.equal(refused(native, member), undefined);
    assert.deepEqual(JSON.parse(sent(native, read('generation', { ...BASE, ...member })).text), {
      ...BASE,
      model: 'up',
      ...member,
    });
  }
  const references = { input_references: [{ type: 'image_url', image_url: { url: URL } }] };
  assert.equal(refused(tool, references)?.param, 'input_references');
  assert.deepEqual(JSON.parse(sent(router, read('generation', { ...BASE, ...references })).text), {
    ...BASE,
    model: 'up',
    ...references,
  });
  for (const to of ALL) assert.equal(refused(to, { image: null, images: [] }), undefined);
});

test('the tool takes links and file ids, as images and as mask', () => {
  const edit = read('edit', {
    ...BASE,
    images: [{ image_url: 'https://a.example/"x".png' }, { file_id: 'f1' }],
    mask: { file_id: 'f2' },
  });
  const body = JSON.parse(sent(tool, edit, { stream: true }).text);
  assert.deepEqual(body.input[0].content.slice(1), [
    { type: 'input_image', image_url: 'https://a.example/"x".png' },
    { type: 'input_image', file_id: 'f1' },
  ]);
  assert.deepEqual(body.tools[0].input_image_mask, { file_id: 'f2' });
  assert.equal(body.stream, true);
});

function decode(from: ImageUpstream, text: string): ImageAnswer {
  const sse = sseDecode({ maxEventBytes: 1 << 20 });
  const decoder = from.decodeEvents();
  const frames: Frame[] = [];
  const answers: ImageAnswer[] = [];
  sse.push(Buffer.from(text), frames);
  sse.end(frames);
  for (const frame of frames) if (!decoder.ended) decoder.push(frame, answers);
  if (!decoder.ended) decoder.end(answers);
  const [answer] = answers;
  if (answer === undefined) throw new Error('no answer');
  return answer;
}

const COMPLETED = `event: image_generation.completed\ndata: {"type":"image_generation.completed","created_at":7,"b64_json":"${PNG}","size":"1024x1024","future":1.0,"usage":{"input_tokens":10,"output_tokens":20,"total_tokens":30}}\n\n`;
const PARTIAL = `event: image_generation.partial_image\ndata: {"type":"image_generation.partial_image","b64_json":"${PNG}","partial_image_index":0}\n\n`;

test('native stream: partials passed over, the completion goes on to the byte, its usage is billed', () => {
  const answer = decode(native, `${PARTIAL}${COMPLETED}data: [DONE]\n\n`);
  const [frame] = encodeImageEvents('generation', answer, 1);
  assert.equal(frame?.data, /data: (.*)\n\n$/s.exec(COMPLETED)?.[1]);
  assert.deepEqual([answer.usage?.billed.input, answer.usage?.billed.output, answer.usage?.billed.imageOutput], [10, 20, 20]);
  const [edited] = encodeImageEvents('edit', answer, 1);
  assert.equal(edited?.event, 'image_edit.completed');
  const json = JSON.parse(edited?.data ?? '');
  assert.deepEqual(
    [json.type, json.created_at, json.size, json.future, json.usage.total_tokens],
    ['image_edit.completed', 7, '1024x1024', 1, 30],
  );
});

test('router stream: its spelling becomes the client’s', () => {
  const event = {
    type: 'image_generation.completed',
    b64_json: PNG,
    media_type: 'image/webp',
    created: 9,
    usage: { prompt_tokens: 5, completion_tokens: 7, total_tokens: 12, completion_tokens_details: { image_tokens: 6 } },
  };
  const answer = decode(router, `: PROCESSING\n\ndata: ${JSON.stringify(event)}\n\ndata: [DONE]\n\n`);
  const [frame] = encodeImageEvents('generation', answer, 1);
  assert.deepEqual(JSON.parse(frame?.data ?? ''), {
    type: 'image_generation.completed',
    created_at: 9,
    b64_json: PNG,
    media_type: 'image/webp',
    usage: { input_tokens: 5, output_tokens: 7, output_tokens_details: { text_tokens: 1, image_tokens: 6 }, total_tokens: 12 },
  });
});

test('Ark and MiniMax streams: each picture in an event of its own, then a completion that only counts', () => {
  const made = (kind: string, changes: object) =>
    `event: ${kind}\ndata: ${JSON.stringify({ type: kind, model: 'seedream', created: 7, image_index: 0, ...changes })}\n\n`;
  const completed = (usage: object) => made('image_generation.completed', { image_index: undefined, created: 9, usage });
  const picture = made('image_generation.partial_succeeded', { url: 'https://x.test/a.png', size: '8x8' });
  const refused = made('image_generation.partial_failed', {
    error: { code: 'OutputImageSensitiveContentDetected', message: 'The output may be sensitive.' },
  });
  const usage = { generated_images: 1, output_tokens: 20, total_tokens: 20 };

  const answer = decode(native, `${picture}${completed(usage)}data: [DONE]\n\n`);
  const [frame, ...more] = encodeImageEvents('generation', answer, 1);
  assert.deepEqual(more, []);
  assert.deepEqual(JSON.parse(frame?.data ?? ''), {
    type: 'image_generation.completed',
    created_at: 9,
    url: 'https://x.test/a.png',
    model: 'seedream',
    size: '8x8',
    usage,
  });
  assert.equal(answer.usage?.billed.imageOutput, 20);

  const edited = decode(native, `${picture}${completed(usage)}`.replaceAll('image_generation', 'image_edit'));
  assert.equal(edited.images[0]?.url, 'https://x.test/a.png');
  assert.equal(decode(native, `${picture}${refused}${completed(usage)}`).images.length, 1);
  for (const text of [`${refused}${completed({ generated_images: 0 })}`, refused, picture, `${picture}data: [DONE]\n\n`]) {
    assert.throws(() => decode(native, text), isUpstreamFault, text);
  }
  assert.throws(() => decode(native, `${refused}${completed(usage)}`), /may be sensitive/);

  // What is told twice is one picture, and costs one; what the completion brings itself stands beside those before it.
  const urls = (text: string) => decode(native, text).images.map(({ url }) => url);
  const [a, b] = ['https://x.test/a.png', 'https://x.test/b.png'];
  const whole = (url: string) => made('image_generation.completed', { url, created_at: 9, usage });
  assert.deepEqual(urls(`${picture}${picture}${completed(usage)}`), [a]);
  assert.deepEqual(urls(`${picture}${whole(a)}`), [a]);
  assert.deepEqual(urls(`${picture}${whole(b)}`), [a, b]);
  const [first, second] = encodeImageEvents('generation', decode(native, `${picture}${whole(b)}`), 1);
  assert.deepEqual([JSON.parse(first?.data ?? '').url, JSON.parse(second?.data ?? '').url], [a, b]);
});

test('pictures that were refused among others of one answer are left out; only refusals are a refusal', () => {
  const refused = { error: { code: 'OutputImageSensitiveContentDetected', message: 'The output may be sensitive.' } };
  const answer = (...data: readonly object[]) => JSON.stringify({ model: 'seedream', created: 7, data });
  const some = native.decodeWhole(answer({ url: 'https://x.test/a.png', size: '8x8' }, refused));
  assert.deepEqual(JSON.parse(encodeImageAnswer(some, 1)), {
    created: 7,
    model: 'seedream',
    data: [{ url: 'https://x.test/a.png', size: '8x8' }],
  });
  assert.throws(() => native.decodeWhole(answer(refused, refused)), /may be sensitive/);
});

test('a link that no picture has is no picture: a page that shows it as a link would run it', () => {
  const whole = (url: string) => () => native.decodeWhole(JSON.stringify({ created: 7, data: [{ url }] }));
  const event = (url: string) => () =>
    decode(native, `data: ${JSON.stringify({ type: 'image_generation.completed', created_at: 7, url })}\n\n`);
  for (const form of [whole, event]) {
    for (const url of [
      'javascript:alert(1)',
      ' JavaScript:alert(1)',
      'java\tscript:alert(1)',
      'file:///etc/a.png',
      'data:text/html,x',
      `javascript:alert(1)//${'x'.repeat(10_000)}`,
      `${' '.repeat(10_000)}javascript:alert(1)`,
      `java${'\n'.repeat(10_000)}script:alert(1)`,
    ])
      assert.throws(form(url), isUpstreamFault, url);
    const long = `https://x.test/${'a'.repeat(10_000)}`;
    for (const url of ['https://x.test/a.png', 'HTTP://x.test/a.png', URL, '/files/a.png', long])
      assert.deepEqual(
        form(url)().images.map((image) => image.url),
        [url],
      );
  }
});

test('a long picture is what it is when it is read at once: in lines, in the alphabet of URLs, broken at any place', () => {
  const MIB = 1024 * 1024;
  const whole = (b64_json: string) => native.decodeWhole(JSON.stringify({ created: 7, data: [{ b64_json }] })).images[0]?.data;
  const long = 'AB+/'.repeat(MIB);
  assert.equal(whole(long), long);
  assert.equal(whole(`${long}AA==`), `${long}AA==`);
  assert.equal(whole(long.replace(/.{76}/g, '$&\n')), long);
  assert.equal(whole(long.replaceAll('+', '-').replaceAll('/', '_')), long);
  for (const at of [0, MIB - 1, MIB, 2 * MIB + 1])
    for (const wrong of ['!', '=', 'é']) assert.throws(() => whole(long.slice(0, at) + wrong + long.slice(at)), isUpstreamFault);
});

test('a picture with such a link beside it comes without the link', () => {
  const good = 'https://x.test/a.png';
  for (const [upstream, entry] of [
    [native, (told: object) => JSON.stringify({ created: 7, data: [told] })],
    [router, (told: object) => JSON.stringify({ created: 7, data: [told] })],
    [native, (told: object) => `data: ${JSON.stringify({ type: 'image_generation.completed', created_at: 7, ...told })}\n\n`],
  ] as const) {
    const shown = (url: string): string => {
      const text = entry({ b64_json: PNG, url });
      const made = text.startsWith('data') ? decode(upstream, text) : upstream.decodeWhole(text);
      assert.deepEqual(
        made.images.map(({ data }) => data),
        [PNG],
      );
      return JSON.stringify(made);
    };
    assert.doesNotMatch(shown('java\tscript:alert(1)'), /script:/);
    assert.ok(shown(good).includes(good));
  }
});

test('a picture in wrapped lines of Base64 is that picture', () => {
  const wrapped = PNG.replace(/.{20}/g, '$&\r\n');
  for (const from of [native, router]) {
    const whole = from.decodeWhole(JSON.stringify({ created: 1, data: [{ b64_json: wrapped }] }));
    assert.equal(JSON.parse(encodeImageAnswer(whole, 1)).data[0].b64_json, PNG);
  }
  assert.throws(() => native.decodeWhole(JSON.stringify({ created: 1, data: [{ b64_json: '\n' }] })), isUpstreamFault);
});

test('a picture that an answer holds twice is one picture', () => {
  for (const from of [native, router]) {
    const whole = from.decodeWhole(JSON.stringify({ created: 1, data: [{ b64_json: PNG }, { b64_json: PNG }] }));
    assert.deepEqual(JSON.parse(encodeImageAnswer(whole, 1)).data, [{ b64_json: PNG }]);
    assert.equal(whole.images.length, 1);
  }
});

test('a picture that comes as a data URL where Base64 belongs is Base64 to the client', () => {
  for (const from of [native, router]) {
    const whole = from.decodeWhole(JSON.stringify({ created: 1, data: [{ b64_json: URL }], error: null }));
    assert.equal(JSON.parse(encodeImageAnswer(whole, 1)).data[0].b64_json, PNG);
    const [frame] = encodeImageEvents('generation', decode(from, COMPLETED.replace(PNG, URL)), 1);
    assert.equal(JSON.parse(frame?.data ?? '').b64_json, PNG);
  }
});

test('an answer without a time gets one, since clients read it', () => {
  for (const [from, created, shown] of [
    [native, 5, 5],
    [router, 5, 5],
    [router, 0, 7],
  ] as const) {
    const whole = from.decodeWhole(JSON.stringify({ created, data: [{ b64_json: PNG }] }));
    assert.equal(JSON.parse(encodeImageAnswer(whole, 7)).created, shown);
  }
  const bare = `data: {"type":"image_generation.completed","b64_json":"${PNG}"}\n\n`;
  const [frame] = encodeImageEvents('generation', decode(native, bare), 7);
  assert.deepEqual(JSON.parse(frame?.data ?? ''), { type: 'image_generation.completed', created_at: 7, b64_json: PNG });
  const shown = JSON.parse(encodeImageAnswer(native.decodeWhole(JSON.stringify({ data: [{ b64_json: PNG }] })), 7));
  assert.deepEqual(shown, { created: 7, data: [{ b64_json: PNG }] });
});

test('usage of nothing but zeros is no report', () => {
  const zeros = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 };
  for (const from of [native, router]) {
    assert.equal(from.decodeWhole(JSON.stringify({ created: 1, data: [{ b64_json: PNG }], usage: zeros })).usage, undefined);
  }
});

test('usage is billed under whichever names an upstream reports it', () => {
  const chat = { prompt_tokens: 5, completion_tokens: 7, total_tokens: 12 };
  const images = { input_tokens: 5, output_tokens: 7, total_tokens: 12 };
  for (const to of [native, router]) {
    for (const usage of [chat, images]) {
      const { billed } = to.decodeWhole(JSON.stringify({ created: 1, data: [{ b64_json: PNG }], usage })).usage ?? {};
      assert.deepEqual([billed?.input, billed?.output, billed?.imageOutput], [5, 7, 7], JSON.stringify(usage));
    }
  }
});

test('counters that are text are counted, and clients read them as numbers', () => {
  const texts = { input_tokens: '5', output_tokens: '7', total_tokens: '12' };
  const shown = { input_tokens: 5, output_tokens: 7, total_tokens: 12 };
  for (const to of [native, router]) {
    const whole = to.decodeWhole(JSON.stringify({ created: 1, data: [{ b64_json: PNG }], usage: texts }));
    assert.deepEqual([whole.usage?.billed.input, whole.usage?.billed.output], [5, 7]);
    const { output_tokens_details, ...usage } = JSON.parse(encodeImageAnswer(whole, 9)).usage;
    assert.deepEqual([usage, output_tokens_details], [shown, { text_tokens: 0, image_tokens: 7 }]);
    const event = { type: 'image_generation.completed', created_at: 1, b64_json: PNG, usage: texts };
    const [frame] = encodeImageEvents('generation', decode(to, sse(event)), 9);
    assert.equal(JSON.parse(frame?.data ?? '').usage.output_tokens, 7);
  }
});

test('a total says the counter that a report leaves out', () => {
  const billed = (usage: object) =>
    native.decodeWhole(JSON.stringify({ created: 1, data: [{ b64_json: PNG }], usage })).usage?.billed ?? {};
  const counters = (usage: object) => [billed(usage).input, billed(usage).output];
  assert.deepEqual(counters({ output_tokens: 20, total_tokens: 20 }), [0, 20]);
  assert.deepEqual(counters({ input_tokens: 5, total_tokens: 25 }), [5, 20]);
  assert.deepEqual(counters({ input_tokens: 5 }), [5, undefined]);
});

test('clients of the images API read its own names of usage, and no prices of routers', () => {
  const shown = {
    input_tokens: 5,
    output_tokens: 7,
    output_tokens_details: { text_tokens: 0, image_tokens: 7 },
    total_tokens: 12,
  };
  const prices = { cost: 0.3, cost_details: { upstream_inference_cost: 0.2 } };
  const chat = { prompt_tokens: 5, completion_tokens: 7, total_tokens: 12 };
  for (const usage of [{ ...shown, ...prices }, chat, { ...chat, ...prices }]) {
    const whole = native.decodeWhole(JSON.stringify({ created: 1, data: [{ b64_json: PNG }], usage }));
    assert.deepEqual(JSON.parse(encodeImageAnswer(whole, 9)).usage, shown);
    assert.deepEqual(joinAnswers([whole, whole]).usage?.shown['cost'], undefined);
    const event = { type: 'image_generation.completed', created_at: 1, b64_json: PNG, usage };
    const [frame] = encodeImageEvents('generation', decode(native, sse(event)), 9);
    assert.deepEqual(JSON.parse(frame?.data ?? ''), { ...event, usage: shown });
  }
  const text = `{ "created": 1, "data": [{"b64_json": "${PNG}"}], "usage": {"input_tokens": 0, "cost": 1} }`;
  assert.equal(encodeImageAnswer(native.decodeWhole(text), 9), text.replace(', "cost": 1', ''));
});

const item = (changes: object = {}) => ({
  id: 'ig_1',
  type: 'image_generation_call',
  status: 'completed',
  result: PNG,
  size: '8x8',
  quality: 'high',
  revised_prompt: 'a better x',
  ...changes,
});
const ended = (changes: object = {}) => ({
  type: 'response.completed',
  response: {
    status: 'completed',
    created_at: 3,
    output: [item()],
    usage: { input_tokens: 100, output_tokens: 10, total_tokens: 110 },
    ...changes,
  },
});
const sse = (...events: readonly { readonly type: string }[]) =>
  events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join('');

test('tool stream: the finished item and its repetition are one picture', () => {
  const done = { type: 'response.output_item.done', output_index: 0, item: item({ status: 'generating' }) };
  const answer = decode(tool, sse({ type: 'response.created' }, done, ended()));
  assert.equal(answer.images.length, 1);
  assert.deepEqual(answer.images[0]?.facts, { quality: 'high', size: '8x8' });
  assert.equal(answer.images[0]?.revisedPrompt, 'a better x');
  assert.equal(decode(tool, sse(done, ended({ output: [] }))).images.length, 1);
  assert.equal(decode(tool, sse(ended())).images.length, 1);
});

test('tool stream: an item that is done has its picture, whatever its repetition says', () => {
  const done = { type: 'response.output_item.done', item: item() };
  const other = PNG.replace('iVBOR', 'iVBOS');
  for (const repeated of [
    item({ result: null }),
    item({ result: '' }),
    item({ result: other }),
    item({ status: 'failed', result: null }),
  ]) {
    const answer = decode(tool, sse(done, ended({ output: [repeated] })));
    assert.deepEqual(
      answer.images.map(({ data }) => data),
      [PNG],
    );
  }
  const unnamed = { type: 'response.output_item.done', item: item({ id: undefined }) };
  assert.equal(decode(tool, sse(unnamed, ended({ output: [item({ id: undefined, result: other })] }))).images.length, 2);
});

test('tool: a call that failed beside one that drew is left out; only failures are a failure', () => {
  const failed = item({ id: 'ig_0', status: 'failed', result: null, error: { code: 'moderation_blocked', message: 'no' } });
  const done = (said: object) => ({ type: 'response.output_item.done', item: said });
  for (const answer of [
    tool.decodeWhole(JSON.stringify(ended({ output: [failed, item()] }).response)),
    decode(tool, sse(done(failed), done(item()), ended({ output: [failed, item()] }))),
  ]) {
    assert.deepEqual(
      answer.images.map(({ data }) => data),
      [PNG],
    );
  }
  for (const read of [
    () => tool.decodeWhole(JSON.stringify(ended({ output: [failed] }).response)),
    () => decode(tool, sse(done(failed), ended({ output: [] }))),
  ]) {
    assert.throws(read, (error) => error instanceof GatewayError && error.shownCode === 'moderation_blocked');
  }
});

test('tool: an answer without a picture fails with what the upstream said instead, for the operator', () => {
  const answer = JSON.stringify(ended({ output: [] }).response);
  assert.throws(
    () => tool.decodeWhole(answer),
    (error) => error instanceof GatewayError && error.details.reason === 'empty' && error.details.upstream?.text === answer,
  );
});

test('tool: text beside a picture is its revised prompt where the picture has none', () => {
  const words = {
    type: 'message',
    content: [
      { type: 'output_text', text: 'A red ' },
      { type: 'refusal', refusal: 'No more.' },
      { type: 'output_text', text: 'door.' },
    ],
  };
  const bare = item({ revised_prompt: undefined });
  const done = (said: object) => ({ type: 'response.output_item.done', item: said });
  for (const answer of [
    tool.decodeWhole(JSON.stringify(ended({ output: [bare, words] }).response)),
    decode(tool, sse(done(bare), done(words), ended({ output: [bare, words] }))),
    decode(tool, sse(done(words), done(bare), ended({ output: [] }))),
  ]) {
    assert.deepEqual(answer.images, [
      { data: PNG, revisedPrompt: 'A red door.', facts: { quality: 'high', size: '8x8' }, beside: {} },
    ]);
  }
  const own = tool.decodeWhole(JSON.stringify(ended({ output: [item(), words] }).response));
  assert.equal(own.images[0]?.revisedPrompt, 'a better x');
});

test('what was said once of several pictures stands with each; what is long, or of very many, with the first alone', () => {
  const picture = (at: number) => ({ b64_json: Buffer.from(`picture ${at}`).toString('base64') });
  const facts = (count: number, said: string) => {
    const text = JSON.stringify({ data: Array.from({ length: count }, (_, at) => picture(at)), said });
    return [native, router].map((from) => from.decodeWhole(text).images.map(({ facts: { said: told } }) => told));
  };
  const texts = (count: number, said: string) => {
    const drawn = Array.from({ length: count }, (_, at) => item({ result: picture(at).b64_json, revised_prompt: undefined }));
    const words = { type: 'message', content: [{ type: 'output_text', text: said }] };
    const text = JSON.stringify(ended({ output: [...drawn, words] }).response);
    return tool.decodeWhole(text).images.map(({ revisedPrompt }) => revisedPrompt);
  };
  for (const told of [...facts(3, 'x'), texts(3, 'x')]) assert.deepEqual(told, ['x', 'x', 'x']);
  const long = 'x'.repeat(600_000);
  for (const told of [...facts(3, long), texts(3, long)]) assert.deepEqual(told, [long, undefined, undefined]);
});

test('tool usage: the picture’s tokens are shown, the model’s are billed beside them', () => {
  const gen = {
    input_tokens: 50,
    input_tokens_details: { image_tokens: 40, text_tokens: 10 },
    output_tokens: 200,
    total_tokens: 250,
  };
  const { usage } = tool.decodeWhole(JSON.stringify(ended({ tool_usage: { image_gen: gen } }).response));
  assert.deepEqual(usage?.shown, gen);
  assert.deepEqual(
    [usage?.billed.input, usage?.billed.imageInput, usage?.billed.output, usage?.billed.imageOutput],
    [150, 40, 210, 200],
  );
  const cached = { ...gen, cached_tokens: 45, cached_tokens_details: { cached_image_tokens: 38, cached_text_tokens: 7 } };
  const again = tool.decodeWhole(JSON.stringify(ended({ tool_usage: { image_gen: cached } }).response)).usage;
  assert.deepEqual([again?.billed.input, again?.billed.cacheRead, again?.billed.imageInput], [105, 45, 2]);
  const texts = { input_tokens: '50', output_tokens: '200', total_tokens: '250' };
  const numbers = tool.decodeWhole(JSON.stringify(ended({ tool_usage: { image_gen: texts } }).response)).usage?.shown;
  assert.deepEqual([numbers?.['input_tokens'], numbers?.['output_tokens']], [50, 200]);
  const zero = { input_tokens: 0, output_tokens: 0, total_tokens: 0 };
  const plain = tool.decodeWhole(JSON.stringify(ended({ tool_usage: { image_gen: zero } }).response)).usage;
  assert.deepEqual(plain?.shown, { input_tokens: 100, output_tokens: 10, total_tokens: 110 });
  assert.equal(plain?.billed.imageOutput, undefined);
});

test('a failure is never a picture', () => {
  const failed = {
    type: 'response.failed',
    response: { status: 'failed', error: { code: 'server_error', message: 'no' }, output: [item()] },
  };
  const cases: readonly (readonly [ImageUpstream, string])[] = [
    [native, ''],
    [native, PARTIAL],
    [native, 'data: [DONE]\n\n'],
    [native, COMPLETED.replace(PNG, '')],
    [native, COMPLETED.replace(PNG, '!!!')],
    [native, 'data: {"type":"error"}\n\n'],
    [native, 'data: {"type":"error","error":{"message":"no"}}\n\n'],
    [native, 'data: [1]\n\n'],
    [native, 'data: {\n\n'],
    [tool, sse({ type: 'response.output_item.done', item: item() } as { type: string })],
    [tool, sse(failed)],
    [tool, sse(ended({ output: [] }))],
    [tool, sse(ended({ output: [item({ result: '' })] }))],
    [tool, sse(ended({ output: [item({ status: 'failed', result: null, error: { message: 'no' } })] }))],
    [tool, sse(ended({ error: { message: 'no' } }))],
    [tool, sse({ type: 'response.completed' })],
    [tool, sse({ type: 'error', code: 'server_error', message: 'no' } as { type: string })],
  ];
  for (const [from, text] of cases) assert.throws(() => decode(from, text), isUpstreamFault, text);
  for (const from of ALL) {
    for (const text of [
      '',
      '[]',
      '{}',
      '<html>',
      '{"data":[]}',
      '{"data":[{}]}',
      '{"data":[{"b64_json":""}]}',
      '{"data":[null]}',
      '{"error":{"message":"no"}}',
      `{"error":"no","created":1,"data":[{"b64_json":"${PNG}"}]}`,
      '{"output":[],"status":"completed"}',
    ]) {
      assert.throws(() => from.decodeWhole(text), isUpstreamFault, `${from.channelType}: ${text}`);
    }
  }
});

function isUpstreamFault(error: unknown): boolean {
  return error instanceof GatewayError && error.blame === 'upstream';
}

test('no completion makes up for what was said before it', () => {
  const failure = { message: 'no', code: 'moderation_blocked' };
  const event = (json: object, name?: string) =>
    `${name === undefined ? '' : `event: ${name}\n`}data: ${JSON.stringify(json)}\n\n`;
  const done = sse({ type: 'response.output_item.done', item: item() } as { type: string }, ended());
  const isBlocked = (error: unknown) => error instanceof GatewayError && error.shownCode === 'moderation_blocked';
  for (const [from, good] of [
    [native, COMPLETED],
    [router, COMPLETED],
    [tool, done],
  ] as const) {
    assert.equal(decode(from, good).images.length, 1);
    for (const said of [event({ type: 'error', error: failure }), event({ error: failure }, 'error')])
      assert.throws(() => decode(from, said + good), isBlocked, said);
    for (const said of [event({ type: 'error' }), event({}, 'error'), 'data: [1]\n\n', 'data: {\n\n', 'data: [DONE]\n\n'])
      assert.throws(() => decode(from, said + good), isUpstreamFault, said);
  }
  assert.throws(
    () => decode(native, event({ ...JSON.parse(/data: (.*)/.exec(COMPLETED)?.[1] ?? ''), error: failure })),
    isBlocked,
  );
  for (const status of ['failed', 'cancelled']) {
    const { response } = ended({ status });
    assert.throws(() => tool.decodeWhole(JSON.stringify(response)), isUpstreamFault, status);
    assert.throws(() => decode(tool, sse({ ...ended({ status }), type: `response.${status}` })), isUpstreamFault, status);
  }
  const blocked = item({ result: null, error: failure });
  assert.throws(() => tool.decodeWhole(JSON.stringify(ended({ output: [blocked] }).response)), isBlocked);
});

test('a completion without a picture, before which none came, is an upstream’s failure', () => {
  for (const from of [native, router]) {
    for (const b64_json of [undefined, null, ''])
      assert.throws(
        () => decode(from, sse({ type: 'image_generation.completed', b64_json } as { type: string })),
        isUpstreamFault,
      );
  }
  assert.throws(
    () => tool.decodeWhole(JSON.stringify(ended({ output: [] }).response)),
    (error) => error instanceof GatewayError && error.shownCode === 'upstream_error',
  );
});

test('an event whose type stands beside its data, and a picture under its other names', () => {
  const named = (event: string, json: object) => `event: ${event}\ndata: ${JSON.stringify(json)}\n\n`;
  for (const from of [native, router]) {
    for (const [event, picture] of [
      ['image_generation.completed', { b64_json: PNG }],
      ['image_edit.completed', { url: 'https://x.test/a.png' }],
      ['response.image_generation.completed', { result: PNG }],
    ] as const) {
      const answer = decode(from, named(event, { ...picture, revised_prompt: 'a better x', created_at: 0, sequence_number: 4 }));
      const [frame] = encodeImageEvents('generation', answer, 7);
      const content = 'url' in picture ? picture : { b64_json: PNG };
      const type = 'image_generation.completed';
      assert.deepEqual(JSON.parse(frame?.data ?? ''), { type, created_at: 7, ...content, revised_prompt: 'a better x' });
    }
  }
  const { response } = ended();
  const answer = decode(tool, named('response.completed', { response }));
  const shown = JSON.parse(encodeImageAnswer(answer, 7));
  assert.deepEqual([shown.created, shown.data.length], [3, 1]);
});

test('what a decoder has answered stays answered', () => {
  for (const [from, text] of [
    [native, COMPLETED],
    [router, COMPLETED],
    [tool, sse(ended())],
  ] as const) {
    const decoder = from.decodeEvents();
    const answers: ImageAnswer[] = [];
    const frame = { event: undefined, data: /data: (.*)\n\n$/s.exec(text)?.[1] ?? '' };
    decoder.push(frame, answers);
    decoder.push(frame, answers);
    decoder.push({ event: 'error', data: '{"type":"error"}' }, answers);
    decoder.end(answers);
    assert.equal(answers.length, 1);
  }
});

test('nothing is said where nothing was: no revised prompt, no usage', () => {
  const bare = ended({ output: [item({ revised_prompt: '', size: undefined, quality: 5 })], usage: null });
  assert.deepEqual(JSON.parse(encodeImageAnswer(tool.decodeWhole(JSON.stringify(bare.response)), 7)), {
    created: 3,
    data: [{ b64_json: PNG }],
  });
});

test('a picture that a filter of the tool refused is the asker’s error', () => {
  const response = { status: 'incomplete', incomplete_details: { reason: 'content_filter' }, output: [] };
  for (const read of [
    () => tool.decodeWhole(JSON.stringify(response)),
    () => decode(tool, sse({ type: 'response.incomplete', response } as { type: string })),
  ]) {
    assert.throws(
      read,
      (error) => error instanceof GatewayError && error.details.upstream?.status === 400 && error.shownCode === 'content_filter',
    );
  }
});

test('several answers as one: index order, sums, agreement', () => {
  const answer = (facts: JsonObject, created: number, tokens: number): ImageAnswer => ({
    images: [{ data: PNG, facts, beside: {} }],
    created,
    usage: { billed: {}, shown: { input_tokens: tokens, input_tokens_details: { image_tokens: 1 }, total_tokens: tokens } },
  });
  const joined = joinAnswers([
    answer({ size: '8x8', model: 'a' }, 0, 5),
    answer({ size: '8x8', model: 'b', quality: 'low' }, 9, 6),
  ]);
  assert.deepEqual(JSON.parse(encodeImageAnswer(joined, 1)), {
    created: 9,
    size: '8x8',
    data: [
      { b64_json: PNG, model: 'a' },
      { b64_json: PNG, model: 'b', quality: 'low' },
    ],
    usage: { input_tokens: 11, input_tokens_details: { image_tokens: 2 }, total_tokens: 11 },
  });
});

test('several answers as one: counters that only some report, and values that cannot be added', () => {
  const shown = (usage: JsonObject): ImageAnswer => ({
    images: [{ data: PNG, facts: {}, beside: {} }],
    usage: { billed: {}, shown: usage },
  });
  const alone = shown({ input_tokens: 1 });
  assert.equal(joinAnswers([alone]), alone);
  const none: ImageAnswer = { images: alone.images };
  assert.deepEqual(joinAnswers([none, alone, none]).usage?.shown, { input_tokens: 1 });
  assert.equal('usage' in joinAnswers([none, none]), false);
  const left = { input_tokens: 1, tier: 'a', details: { x: 1 }, list: [1], none: null, odd: 1 };
  const right = { input_tokens: 2, tier: 'b', details: { x: 2, y: 3 }, list: [2], none: { x: 1 }, odd: '2', output_tokens: 4 };
  assert.deepEqual(joinAnswers([shown(left), shown(right)]).usage?.shown, {
    ...left,
    input_tokens: 3,
    details: { x: 3, y: 3 },
    output_tokens: 4,
  });
});

test('several answers as one: a place that each upstream named is the place among all', () => {
  const together = JSON.stringify({
    object: 'list',
    data: [{ index: 0, url: 'https://x.test/a.png', timings: { inference: 1 } }],
  });
  const { data } = JSON.parse(encodeImageAnswer(joinAnswers([native.decodeWhole(together), native.decodeWhole(together)]), 1));
  assert.deepEqual(
    data.map(({ index, timings }: { index: number; timings: object }) => [index, timings]),
    [
      [0, { inference: 1 }],
      [1, { inference: 1 }],
    ],
  );
});

test('which refusals reject streaming', () => {
  const refusal = (status: number, body: unknown) =>
    native.decodeError({ status, headers: {}, text: typeof body === 'string' ? body : JSON.stringify(body) });
  const message = (text: string) => ({ error: { message: text } });
  for (const text of [
    'Streaming is not supported for this model.',
    "Unsupported parameter: 'stream'.",
    "Unknown parameter: 'stream'.",
    'stream must be false',
    'This model does not support streaming',
    'Unrecognized key: "stream"',
    'Extra inputs are not permitted: stream',
    "you can't stream images",
  ]) {
    assert.equal(rejectsStreaming(refusal(400, message(text))), true, text);
    assert.equal(rejectsStreaming(refusal(422, message(text))), true, text);
    assert.equal(rejectsStreaming(refusal(404, message(text))), false, text);
    assert.equal(rejectsStreaming(refusal(500, message(text))), false, text);
  }
  assert.equal(rejectsStreaming(refusal(400, { error: { message: 'bad value', param: 'stream' } })), true);
  assert.equal(rejectsStreaming(refusal(400, 'Streaming is not supported.')), true);
  assert.equal(rejectsStreaming(refusal(400, { error: { message: 'no', stream: 'not supported' } })), false);
  assert.equal(rejectsStreaming(new GatewayError('upstream_error', 'Streaming is not supported.')), false);
  for (const text of [
    'The upstream is invalid.',
    'A stream in the woods',
    'prompt not supported',
    'size is not supported',
    'Invalid image: unexpected end of stream',
    'The PNG stream is invalid.',
    'Unsupported image: the data stream cannot be read',
    'The stream of bytes is not an image that we accept',
  ]) {
    assert.equal(rejectsStreaming(refusal(400, message(text))), false, text);
  }
  // Words about what was asked for: its prompt or images, a filter's, or quoted ones. Asking again could only be paid twice.
  for (const error of [
    { message: 'stream of consciousness is not supported here', param: 'prompt' },
    { message: 'The stream in it cannot be shown', param: 'images[0].image_url' },
    { message: 'A stream like this is not allowed.', code: 'moderation_blocked' },
    { message: 'A stream like this is not allowed.', code: 'content_policy_violation' },
    { message: "Your prompt 'a mountain stream' is not allowed." },
    { message: 'Your prompt "a mountain stream" is not allowed.' },
  ]) {
    assert.equal(rejectsStreaming(refusal(400, { error })), false, error.message);
  }
  for (const error of [
    { message: 'Extra inputs are not permitted', param: 'body.stream' },
    { message: 'The model does not support streaming.', param: 'model', code: 'unsupported_value' },
    { message: 'Unknown name "stream": cannot find field.', param: null },
    { message: "The model doesn't take 'stream', it isn't supported" },
  ]) {
    assert.equal(rejectsStreaming(refusal(400, { error })), true, error.message);
  }
});

test('the router’s list of models', () => {
  assert.deepEqual(decodeModelList('{"data":[{"id":"a/b","name":"B"},{"name":"no id"}]}'), ['a/b']);
  assert.throws(() => decodeModelList('{"models":[]}'), GatewayError);
});
