/** What is read of the two body forms of the image endpoints: members, images and masks, and what each is refused for. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { FormPart } from '../../../src/codecs/bodies/multipart-reader.ts';
import { GatewayError } from '../../../src/codecs/canonical/error.ts';
import type { JsonObject } from '../../../src/codecs/canonical/json.ts';
import { firstReference, readImageForm, readImageJson } from '../../../src/codecs/images/index.ts';

/** The first bytes of a PNG: all that is read of one. */
function png(width: number, height: number): Buffer {
  const head = Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex');
  const size = Buffer.alloc(8);
  size.writeUInt32BE(width, 0);
  size.writeUInt32BE(height, 4);
  return Buffer.concat([head, size]);
}
const dataUrl = (bytes: Uint8Array, mime = 'image/png') => `data:${mime};base64,${Buffer.from(bytes).toString('base64')}`;
const URL = dataUrl(png(40, 30));

const BASE = { model: 'm', prompt: 'x' };
const generation = (members: JsonObject) => readImageJson('generation', '', { ...BASE, ...members });
const edit = (members: JsonObject) => readImageJson('edit', '', { ...BASE, images: [{ image_url: URL }], ...members });

function refusedAt(param: string, code = 'invalid_request'): (error: unknown) => boolean {
  return (error) =>
    error instanceof GatewayError &&
    error.blame === 'client' &&
    error.code === code &&
    error.param === param &&
    /\S\.$/.test(error.message);
}

function part(name: string, content: string | Uint8Array, changes: Partial<FormPart> = {}): FormPart {
  const bytes = Buffer.from(content);
  // In two pieces, as uploads come.
  return { name, chunks: [bytes.subarray(0, 3), bytes.subarray(3)], size: bytes.length, ...changes };
}
const file = (name: string, content: Uint8Array = png(40, 30), changes: Partial<FormPart> = {}) =>
  part(name, content, { filename: 'a.png', mime: 'image/png', ...changes });
const TEXTS = [part('model', 'm'), part('prompt', 'x')];
const form = (...parts: readonly FormPart[]) => readImageForm([...TEXTS, ...parts]);

describe('members of an image request', () => {
  it('F47: a thousand and no more', () => {
    const many = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`m${at}`, at]));
    assert.equal(generation(many(998)).parameters.size, 998);
    for (const read of [generation, edit])
      assert.throws(() => read(many(999)), { code: 'invalid_request', message: /at most 1000 members\.$/ });
  });

  const BOUNDS: readonly (readonly [string, readonly number[], readonly number[]])[] = [
    ['n', [1, 10], [0, 11, -1, 1.5]],
    ['output_compression', [0, 100], [-1, 101, 0.5]],
    ['partial_images', [0, 3], [-1, 4]],
  ];
  for (const [name, good, bad] of BOUNDS) {
    it(`${name} is from ${good.join(' to ')}, in both forms`, () => {
      for (const value of good) {
        generation({ [name]: value });
        form(part(name, String(value)), file('image'));
      }
      for (const value of bad) {
        assert.throws(() => generation({ [name]: value }), refusedAt(name));
        assert.throws(() => form(part(name, String(value)), file('image')), refusedAt(name));
      }
      for (const value of [true, [], String(good[0])]) assert.throws(() => generation({ [name]: value }), refusedAt(name));
      for (const value of ['', ' 1', '1e0', '0x1']) assert.throws(() => form(part(name, value), file('image')), refusedAt(name));
    });
  }

  it('are texts where the API has texts', () => {
    const names = 'size quality background output_format moderation input_fidelity style user safety_identifier'.split(' ');
    for (const name of names) {
      assert.equal(generation({ [name]: '42' }).parameters.get(name), '42');
      assert.equal(form(part(name, '42'), file('image')).parameters.get(name), '42', 'a number in a form stays text');
      for (const value of [42, true, {}]) assert.throws(() => generation({ [name]: value }), refusedAt(name));
    }
  });

  it('say nothing with null', () => {
    const names = ['n', 'stream', 'size', 'response_format', 'partial_images', 'output_compression', 'future'];
    const { parameters, count, countGiven, stream } = generation(Object.fromEntries(names.map((name) => [name, null])));
    assert.deepEqual([parameters.size, count, countGiven, stream], [0, 1, false, false]);
    for (const name of ['model', 'prompt']) assert.throws(() => generation({ [name]: null }), refusedAt(name));
  });

  it('that no route needs are said to none: previews, and members of gateways', () => {
    const { parameters, unsent } = generation({ partial_images: 2, api_base: 'https://x.test', seed: 1 });
    assert.deepEqual([...parameters.keys()], ['seed']);
    assert.deepEqual(unsent, ['partial_images', 'api_base']);
  });

  it('that decide how many pictures are drawn are said in one spelling only, which the request is weighed by', () => {
    const others = { N: 9, Stream: true, PARTIAL_IMAGES: 3, Prompt: 'another', 'n[]': 4, ſtream: true };
    const { parameters, unsent } = generation({ ...others, seed: 1 });
    assert.deepEqual([...parameters.keys()], ['seed']);
    assert.deepEqual(unsent, Object.keys(others));
    const parts = Object.keys(others).map((name) => part(name, '9'));
    assert.deepEqual([...form(file('image'), ...parts).parameters.keys()], []);
  });

  it('of an edit stay members of a vendor in a generation', () => {
    assert.deepEqual([...generation({ images: [], mask: {} }).parameters.keys()], ['images', 'mask']);
    assert.deepEqual([...edit({ mask: { file_id: 'f' }, quality: 'low' }).parameters.keys()], ['quality']);
  });

  it('response_format is one of two words, stream a boolean, one picture a stream', () => {
    for (const word of ['url', 'b64_json'])
      assert.equal(generation({ response_format: word }).parameters.get('response_format'), word);
    for (const value of ['png', '', 5]) assert.throws(() => generation({ response_format: value }), refusedAt('response_format'));
    for (const value of ['true', 1, {}]) assert.throws(() => generation({ stream: value }), refusedAt('stream'));
    for (const [word, stream] of [
      ['true', true],
      ['True', true],
      ['false', false],
      ['FALSE', false],
    ] as const)
      assert.equal(form(part('stream', word), file('image')).stream, stream);
    for (const word of ['1', 'yes', '']) assert.throws(() => form(part('stream', word), file('image')), refusedAt('stream'));
    assert.equal(generation({ stream: true }).stream, true);
    assert.equal(generation({ stream: true, n: 1 }).countGiven, true);
    assert.equal(generation({ stream: false, n: 2 }).count, 2);
    assert.throws(() => generation({ stream: true, n: 2 }), refusedAt('n'));
  });
});

describe('images of a JSON edit', () => {
  const link = { image_url: 'https://x.test/a.png' };

  it('are 1 to 16', () => {
    assert.equal(edit({ images: Array.from({ length: 16 }, () => link) }).images.length, 16);
    for (const images of [null, [], {}, 'x', Array.from({ length: 17 }, () => link)])
      assert.throws(() => edit({ images }), refusedAt('images'));
  });

  it('are each a link, Base64, or a file id', () => {
    const { images } = edit({
      images: [link, { image_url: 'HTTP://X.test', file_id: null }, { file_id: 'f', image_url: null, note: null }],
    });
    assert.deepEqual(images, [
      { from: 'url', url: link.image_url, at: 'images[0].image_url' },
      { from: 'url', url: 'HTTP://X.test', at: 'images[1].image_url' },
      { from: 'reference', fileId: 'f', at: 'images[2].file_id' },
    ]);
    assert.equal(firstReference(edit({ images: [link, { file_id: 'f' }] })), 'images[1].file_id');
    assert.equal(firstReference(edit({ images: [link], mask: { file_id: 'f' } })), 'mask.file_id');
    assert.equal(firstReference(edit({ images: [link] })), undefined);
    const [inline] = edit({}).images;
    assert.deepEqual(inline, {
      from: 'base64',
      mime: 'image/png',
      data: URL.slice(URL.indexOf(',') + 1),
      at: 'images[0].image_url',
    });
    for (const [reference, param] of [
      [5, 'images[0]'],
      [{}, 'images[0]'],
      [{ ...link, file_id: 'f' }, 'images[0]'],
      [{ ...link, detail: 'low' }, 'images[0].detail'],
      [{ image_url: 5 }, 'images[0].image_url'],
      [{ image_url: '' }, 'images[0].image_url'],
      [{ image_url: 'https://' }, 'images[0].image_url'],
      [{ image_url: 'https:///a.png' }, 'images[0].image_url'],
      [{ image_url: 'file:///a.png' }, 'images[0].image_url'],
      [{ image_url: 'data:image/png;base64,' }, 'images[0].image_url'],
      [{ image_url: 'data:image/png,abc' }, 'images[0].image_url'],
      [{ file_id: 5 }, 'images[0].file_id'],
      [{ file_id: '' }, 'images[0].file_id'],
    ] as const)
      assert.throws(() => edit({ images: [reference] }), refusedAt(param), JSON.stringify(reference));
  });

  it('have the type that they show where they name none', () => {
    const mimeOf = (image_url: string) => {
      const [image] = edit({ images: [{ image_url }] }).images;
      return image?.from === 'base64' ? image.mime : undefined;
    };
    const jpeg = Buffer.from('ffd8ffe000104a464946', 'hex');
    assert.equal(mimeOf(dataUrl(jpeg, '')), 'image/jpeg');
    assert.equal(mimeOf(dataUrl(jpeg, 'application/octet-stream')), 'image/jpeg');
    assert.equal(mimeOf(dataUrl(jpeg, 'IMAGE/WebP')), 'image/webp');
    assert.equal(mimeOf(dataUrl(Buffer.from('hello'), 'binary/octet-stream')), 'application/octet-stream');
  });
});

describe('a mask', () => {
  const masked = (image: Uint8Array, mask: Uint8Array) => [
    () => edit({ images: [{ image_url: dataUrl(image) }], mask: { image_url: dataUrl(mask) } }),
    () => form(file('image', image), file('mask', mask)),
  ];
  const isRefused = (error: unknown) => refusedAt('mask.image_url')(error) || refusedAt('mask')(error);

  it('is a PNG as large as the first image, where both can be seen', () => {
    for (const read of masked(png(40, 30), png(40, 30))) assert.notEqual(read().mask, undefined);
    for (const other of [png(41, 30), png(40, 31), png(296, 30)])
      for (const read of masked(png(40, 30), other)) assert.throws(read, isRefused);
    assert.throws(() => edit({ mask: { image_url: dataUrl(png(4096, 259)) } }), /it is 4096x259, the image 40x30/);
    // The size of a JPEG is not read, nor that of a link.
    for (const read of masked(Buffer.from('ffd8ffe000104a464946', 'hex'), png(40, 30))) assert.notEqual(read().mask, undefined);
    const linked = [{ image_url: 'https://x.test/a.png' }, { image_url: URL }];
    assert.notEqual(edit({ images: linked, mask: { image_url: dataUrl(png(9, 9)) } }).mask, undefined);
    assert.equal(edit({ mask: null }).mask, undefined);
    const later = [{ image_url: URL }, { image_url: dataUrl(png(9, 9)) }];
    assert.notEqual(edit({ images: later, mask: { image_url: URL } }).mask, undefined);
  });

  it('is no PNG where the head of one is broken', () => {
    const whole = png(40, 30);
    const broken = [whole.subarray(0, 23), png(0, 30), png(40, 0), Buffer.from('GIF89a'.padEnd(24, '.'))];
    for (const at of [0, 1, 2, 3, 4, 5, 6, 7, 12, 15]) {
      const bytes = Buffer.from(whole);
      bytes[at] = 0xff;
      broken.push(bytes);
    }
    // Beside an image whose size is not known, nothing but the head itself can be wrong.
    for (const image of [whole, Buffer.from('ffd8ffe000104a464946', 'hex')])
      for (const bytes of broken) for (const read of masked(image, bytes)) assert.throws(read, isRefused, bytes.toString('hex'));
  });
});

describe('a form', () => {
  it('holds images under either name, in their order, and their bytes as they came', () => {
    const { images, mask, parameters } = form(
      file('image[]', png(1, 1)),
      file('mask[]', png(1, 1)),
      file('image', png(2, 2), { filename: 'b.jpg', mime: 'application/octet-stream' }),
      file('image[7]', png(3, 3), { filename: '' }),
      part('size', '8x8'),
    );
    assert.deepEqual(
      images.map(
        (image) =>
          image.from === 'bytes' && [Buffer.concat(image.chunks).readUInt32BE(16), image.mime, image.filename, image.size],
      ),
      [
        [1, 'image/png', 'a.png', 24],
        [2, 'image/jpeg', 'b.jpg', 24],
        [3, 'image/png', undefined, 24],
      ],
    );
    assert.equal(mask?.from, 'bytes');
    assert.deepEqual([...parameters], [['size', '8x8']]);
    assert.equal(form(...Array.from({ length: 16 }, () => file('image'))).images.length, 16);
  });

  it('may hold a picture without a file name, and inputs where nobody chose a file', () => {
    const unchosen = (name: string) => part(name, '', { filename: '', mime: 'application/octet-stream' });
    const { images, mask } = form(
      part('image', png(4, 4), { mime: 'image/png' }),
      unchosen('image'),
      unchosen('mask'),
      unchosen('size'),
    );
    assert.deepEqual([images.length, mask], [1, undefined]);
    const [nameless] = form(file('image', png(5, 5), { filename: '', mime: 'application/octet-stream' })).images;
    assert.equal(nameless?.from === 'bytes' && nameless.mime, 'image/png');
  });

  it('is refused where a part is not what its name says', () => {
    const long = 'x'.repeat(1024 * 1024);
    form(part('user', long), file('image'));
    for (const [parts, param, code] of [
      [[], 'image'],
      [Array.from({ length: 17 }, () => file('image')), 'image'],
      [[file('image'), file('mask'), file('mask')], 'mask'],
      [[part('image', 'https://x.test/a.png')], 'image'],
      [[part('image', png(1, 1), { mime: 'text/plain' })], 'image'],
      [[file('image', Buffer.alloc(0))], 'image'],
      [[file('image', Buffer.alloc(0), { mime: 'application/octet-stream' })], 'image'],
      [[part('image', '', { filename: '', mime: 'image/png' })], 'image'],
      [[file('image'), part('mask', 'text')], 'mask'],
      [[file('image'), part('size', '1x1'), part('size', '1x1')], 'size'],
      [[file('image'), part('size', 'x', { filename: 'a' })], 'size'],
      [[file('image'), part('user', Buffer.from([0xff, 0xfe]))], 'user'],
      [[file('image'), part('user', `${long}x`)], 'user', 'request_too_large'],
    ] as const)
      assert.throws(() => form(...parts), refusedAt(param, code), param);
  });
});
