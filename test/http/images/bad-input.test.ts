/** What the image endpoints refuse: each with a status and the name of the field, and before anything is forwarded. */
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { after, afterEach, before, test } from 'node:test';
import { KEY } from '../../support/test-gateway.ts';
import { blob, dataUrl, png, type Studio, studio } from './studio.ts';

let place: Studio;
before(async () => {
  place = await studio();
});
after(() => place[Symbol.asyncDispose]());
afterEach(() => place.sim.reset());

interface Refusal {
  readonly status?: number;
  readonly code?: string;
  readonly param: string | null;
}

async function refused(response: Response, { status = 400, code = 'invalid_request', param }: Refusal): Promise<void> {
  const text = await response.text();
  assert.equal(response.status, status, text);
  const { error } = JSON.parse(text);
  assert.deepEqual([error.code, error.param], [code, param], text);
  assert.equal(place.sim.requests.length, 0, 'nothing was forwarded');
  assert.equal(place.gateway.store.held.size, 0);
}

const generate = (body: object) => place.gateway.post('/v1/images/generations', { model: 'native', prompt: 'x', ...body });
const edit = (body: object) =>
  place.gateway.post('/v1/images/edits', { model: 'native', prompt: 'x', images: [{ image_url: dataUrl() }], ...body });
const text: [string, string][] = [
  ['model', 'native'],
  ['prompt', 'x'],
];

const BODIES: readonly (readonly [string, object, string])[] = [
  ['n of 0', { n: 0 }, 'n'],
  ['n of 11', { n: 11 }, 'n'],
  ['n of 2.5', { n: 2.5 }, 'n'],
  ['n of "2.5"', { n: '2.5' }, 'n'],
  ['n of "2"', { n: '2' }, 'n'],
  ['a stream of two', { n: 2, stream: true }, 'n'],
  ['a stream that is no boolean', { stream: 'yes' }, 'stream'],
  ['no prompt', { prompt: undefined }, 'prompt'],
  ['a blank prompt', { prompt: ' ' }, 'prompt'],
  ['a prompt that is no text', { prompt: 5 }, 'prompt'],
  ['no model', { model: null }, 'model'],
  ['a size that is no text', { size: 1024 }, 'size'],
  ['output_compression of 101', { output_compression: 101 }, 'output_compression'],
  ['another response_format', { response_format: 'png' }, 'response_format'],
];
for (const [name, body, param] of BODIES) {
  test(`generation with ${name}: 400 names ${param}`, async () => refused(await generate(body), { param }));
}

const EDITS: readonly (readonly [string, object, string])[] = [
  ['no images', { images: undefined }, 'images'],
  ['an empty list', { images: [] }, 'images'],
  ['a word beside an image', { images: [{ image_url: dataUrl(), detail: 'high' }] }, 'images[0].detail'],
  ['a word beside the mask', { mask: { file_id: 'file-1', type: 'png' } }, 'mask.type'],
  ['17 images', { images: Array.from({ length: 17 }, () => ({ file_id: 'f' })) }, 'images'],
  ['both references', { images: [{ image_url: dataUrl(), file_id: 'f' }] }, 'images[0]'],
  ['neither reference', { images: [{ file_id: 'f' }, {}] }, 'images[1]'],
  ['an image that is no object', { images: [dataUrl()] }, 'images[0]'],
  ['a file: URL', { images: [{ image_url: 'file:///etc/passwd' }] }, 'images[0].image_url'],
  ['a broken data URL', { images: [{ image_url: 'data:image/png;base64,$$$' }] }, 'images[0].image_url'],
  ['a data URL that is not Base64', { images: [{ image_url: 'data:image/svg+xml,%3Csvg%2F%3E' }] }, 'images[0].image_url'],
  ['an empty data URL', { images: [{ image_url: 'data:image/png;base64,' }] }, 'images[0].image_url'],
  ['a mask with both', { mask: { image_url: dataUrl(), file_id: 'f' } }, 'mask'],
  ['two masks', { mask: [{ file_id: 'a' }, { file_id: 'b' }] }, 'mask'],
  [
    'a mask that is no PNG',
    { mask: { image_url: 'data:image/jpeg;base64,/9j/4AAQSkZJRgABAQEAYABgAAD/2wBDAAgG' } },
    'mask.image_url',
  ],
  ['a mask of another size', { mask: { image_url: dataUrl(png(41, 30, true)) } }, 'mask.image_url'],
];
for (const [name, body, param] of EDITS) {
  test(`JSON edit with ${name}: 400 names ${param}`, async () => refused(await edit(body), { param }));
}

const FORMS: readonly (readonly [string, readonly (readonly [string, string | Blob, string?])[], string])[] = [
  ['no file', text, 'image'],
  ['an image that is text', [...text, ['image', 'https://a.example/x.png']], 'image'],
  ['an empty file', [...text, ['image', blob(Buffer.alloc(0))]], 'image'],
  ['17 files', [...text, ...Array.from({ length: 17 }, () => ['image[]', blob()] as const)], 'image'],
  ['two masks', [...text, ['image', blob()], ['mask', blob()], ['mask[]', blob()]], 'mask'],
  [
    'a mask that is no PNG',
    [...text, ['image', blob()], ['mask', blob(Buffer.from('GIF89a..........................'), 'image/gif')]],
    'mask',
  ],
  ['a mask of another size', [...text, ['image', blob()], ['mask', blob(png(40, 31, true))]], 'mask'],
  ['n of 0', [...text, ['n', '0'], ['image', blob()]], 'n'],
  ['n of 11', [...text, ['n', '11'], ['image', blob()]], 'n'],
  ['n of "2.5"', [...text, ['n', '2.5'], ['image', blob()]], 'n'],
  ['a stream that is no boolean', [...text, ['stream', '1'], ['image', blob()]], 'stream'],
  ['two prompts', [...text, ['prompt', 'y'], ['image', blob()]], 'prompt'],
  ['a file where text belongs', [...text, ['size', blob()], ['image', blob()]], 'size'],
  [
    'no model',
    [
      ['prompt', 'x'],
      ['image', blob()],
    ],
    'model',
  ],
  ['5000 parts', [...text, ...Array.from({ length: 4998 }, (_, index) => [`f${index}`, 'x'] as const)], 'body'],
];
for (const [name, parts, param] of FORMS) {
  test(`F24: form with ${name}: 400 names ${param}`, async () => refused(await place.form(parts), { param }));
}

const PART = 'content-disposition: form-data; name="prompt"\r\n\r\nx\r\n';
const RAW: readonly (readonly [string, string, string])[] = [
  [
    'a truncated body',
    'multipart/form-data; boundary=b',
    `--b\r\n${PART}--b\r\ncontent-disposition: form-data; name="image"; filename="a.png"\r\n\r\nabc`,
  ],
  ['a body that ends in a boundary line', 'multipart/form-data; boundary=b', `--b\r\n${PART}--b`],
  ['a wrong boundary', 'multipart/form-data; boundary=other', `--b\r\n${PART}--b--\r\n`],
  ['no boundary', 'multipart/form-data', `--b\r\n${PART}--b--\r\n`],
  ['an empty boundary', 'multipart/form-data; boundary=""', `--b\r\n${PART}--b--\r\n`],
  ['a boundary of 71 characters', `multipart/form-data; boundary=${'b'.repeat(71)}`, `--${'b'.repeat(71)}\r\n${PART}`],
  ['a part without a name', 'multipart/form-data; boundary=b', '--b\r\ncontent-disposition: form-data\r\n\r\nx\r\n--b--\r\n'],
  ['a part without a disposition', 'multipart/form-data; boundary=b', '--b\r\nx-other: 1\r\n\r\nx\r\n--b--\r\n'],
  ['an empty body', 'multipart/form-data; boundary=b', ''],
  ['64 KB of part headers', 'multipart/form-data; boundary=b', `--b\r\nx-long: ${'a'.repeat(65_536)}\r\n${PART}--b--\r\n`],
  [
    'a part header that is no UTF-8',
    'multipart/form-data; boundary=b',
    '--b\r\ncontent-disposition: form-data; name="\xff\xfe"\r\n\r\nx\r\n--b--\r\n',
  ],
];
for (const [name, contentType, body] of RAW) {
  test(`F24: form with ${name}: 400 names body`, async () => {
    const response = await fetch(`${place.gateway.url}/v1/images/edits`, {
      method: 'POST',
      headers: { authorization: `Bearer ${KEY}`, 'content-type': contentType },
      body: Buffer.from(body, 'latin1'),
    });
    await refused(response, { param: 'body' });
  });
}

test('F22, F24: a part named __proto__ is a field like any other, and nobody’s prototype', async () => {
  const response = await place.form([...text, ['image', blob()], ['__proto__', 'x'], ['constructor', 'y']]);
  assert.equal(response.status, 400, 'the simulated upstream knows no such field');
  const names = place.sim.requests[0]?.parts.map(({ name }) => name);
  assert.ok(names?.includes('__proto__') && names.includes('constructor'));
  assert.equal(({} as Record<string, unknown>)['x'], undefined);
});

test('form where only JSON is taken: 415', async () => {
  for (const [path, type] of [
    ['/v1/images/generations', 'multipart/form-data; boundary=b'],
    ['/v1/images/edits', 'application/x-www-form-urlencoded'],
    ['/v1/images/edits', 'multipart/mixed; boundary=b'],
  ] as const) {
    const response = await fetch(`${place.gateway.url}${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${KEY}`, 'content-type': type },
      body: '--b--',
    });
    await refused(response, { status: 415, code: 'unsupported_media_type', param: null });
  }
});

test('what is called JSON and is no object is a bad request, not another type', async () => {
  for (const body of ['[1]', '"x"', '', '--b--'])
    await refused(await place.gateway.post('/v1/images/generations', body), { status: 400, param: null });
});

test('JSON that `curl -d` calls a form is taken for what it is, as by the other endpoints', async () => {
  const headers = { 'content-type': 'application/x-www-form-urlencoded' };
  const body = JSON.stringify({ model: 'native', prompt: 'x' });
  const response = await place.gateway.post('/v1/images/generations', body, { headers });
  assert.equal(response.status, 200, await response.text());
});

test('F24: a form over the limit is 413, and the connection says so while it is still being sent', async () => {
  const { port } = new URL(place.gateway.url);
  const socket = connect(Number(port), '127.0.0.1');
  const chunks: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  socket.write(
    `POST /v1/images/edits HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${KEY}\r\ncontent-type: multipart/form-data; boundary=b\r\ncontent-length: ${65 * 1024 * 1024}\r\n\r\n`,
  );
  await new Promise((resolve) => socket.once('data', resolve));
  assert.match(Buffer.concat(chunks).toString(), /^HTTP\/1\.1 413 /);
  socket.destroy();
});

for (const model of ['closed', 'tool', 'router', 'text', 'vectors'] as const) {
  const rows: readonly (readonly [string, object, Refusal])[] = {
    closed: [['without the option', {}, { code: 'unsupported_parameter', param: 'model' }] as const],
    tool: [
      ['style', { style: 'vivid' }, { code: 'unsupported_parameter', param: 'style' }] as const,
      ['response_format url', { response_format: 'url' }, { code: 'unsupported_parameter', param: 'response_format' }] as const,
    ],
    router: [
      ['response_format url', { response_format: 'url' }, { code: 'unsupported_parameter', param: 'response_format' }] as const,
    ],
    text: [['a chat Channel', {}, { code: 'model_kind_mismatch', param: 'model' }] as const],
    vectors: [['an embedding model', {}, { code: 'model_kind_mismatch', param: 'model' }] as const],
  }[model];
  for (const [name, body, refusal] of rows) {
    for (const stream of [false, true]) {
      test(`${model}: ${name} is refused before forwarding, ${stream ? 'with' : 'without'} a stream`, async () => {
        await refused(await generate({ model, stream, ...body }), refusal);
      });
    }
  }
}

test('the router takes no mask and no file id: 400 before forwarding (I5)', async () => {
  await refused(await edit({ model: 'router', mask: { image_url: dataUrl(png(40, 30, true)) } }), {
    code: 'unsupported_conversion',
    param: 'mask',
  });
  await refused(await edit({ model: 'router', images: [{ file_id: 'f' }] }), {
    code: 'unsupported_conversion',
    param: 'images[0].file_id',
  });
});

test('a file id without one scope is refused', async () => {
  await using other = await studio({
    channels: [
      {
        id: 'second',
        type: 'openai_image',
        base_url: 'http://127.0.0.1:1',
        api_key: 'k',
        models: ['native'],
        file_scope: 'other',
      },
    ],
  });
  const response = await other.gateway.post('/v1/images/edits', { model: 'native', prompt: 'x', images: [{ file_id: 'f' }] });
  assert.equal(response.status, 400);
  assert.equal(((await response.json()) as { error: { param: string } }).error.param, 'images[0].file_id');
});
