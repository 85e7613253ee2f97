/** Arbitrary bodies of the image and embedding endpoints: a request, or a 400 that names a member. Nobody's prototype changes. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { bodyBytes, bodyLength } from '../../../src/codecs/bodies/pieces.ts';
import { GatewayError } from '../../../src/codecs/canonical/error.ts';
import { isObject, parseJson } from '../../../src/codecs/canonical/json.ts';
import { readEmbeddingRequest } from '../../../src/codecs/embeddings/index.ts';
import { IMAGE_UPSTREAMS, type ImageRequest, readImageForm, readImageJson } from '../../../src/codecs/images/index.ts';

const names =
  'model prompt n stream size quality images mask image_url file_id input encoding_format response_format __proto__ constructor'.split(
    ' ',
  );
const value: fc.Arbitrary<unknown> = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom<unknown>(
      'm',
      'x',
      1,
      0,
      11,
      true,
      null,
      'data:image/png;base64,iVBORw0KGgo=',
      'https://a.example/x',
      'url',
      'float',
    ),
    fc.jsonValue({ maxDepth: 1 }),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.array(fc.tuple(fc.constantFrom(...names), tie('value')), { maxLength: 4 }).map((entries) => Object.fromEntries(entries)),
  ),
})).value;
const text = fc
  .array(fc.tuple(fc.constantFrom(...names), value), { maxLength: 8 })
  .map((members) => JSON.stringify(Object.fromEntries([['model', 'm'], ['prompt', 'x'], ...members])));

function is400(error: unknown): boolean {
  return error instanceof GatewayError && error.status === 400;
}

function encodeEverywhere(request: ImageRequest): void {
  for (const upstream of IMAGE_UPSTREAMS.values()) {
    const channel = { generationTool: true, defaults: { size: '8x8' } };
    const refused = upstream.refuse(request, channel);
    if (refused !== undefined) {
      assert.ok(is400(refused));
      continue;
    }
    const target = {
      ...channel,
      upstreamModel: 'up',
      stream: request.stream,
      override: (json: string) => json,
      mint: (prefix: string) => `${prefix}0f`,
    };
    const { body, contentType } = upstream.encode(request, target);
    const bytes = Buffer.concat([...bodyBytes(body)]);
    assert.equal(bytes.length, bodyLength(body));
    if (contentType !== 'application/json') continue;
    const json = parseJson(bytes.toString());
    assert.ok(isObject(json) && json['model'] === 'up');
  }
}

test('image bodies', () => {
  fc.assert(
    fc.property(text, fc.constantFrom('generation' as const, 'edit' as const), (body, operation) => {
      const json = parseJson(body);
      if (!isObject(json)) return;
      let request: ImageRequest;
      try {
        request = readImageJson(operation, body, json);
      } catch (error) {
        assert.ok(is400(error), String(error));
        return;
      }
      encodeEverywhere(request);
    }),
    { numRuns: 300 },
  );
  assert.equal(Object.keys(Object.prototype).length, 0);
});

test('image forms', () => {
  const part = fc.record({
    name: fc.constantFrom(...names, 'image', 'image[]', 'image[0]', 'mask[]'),
    filename: fc.option(fc.string(), { nil: undefined }),
    mime: fc.option(fc.constantFrom('image/png', 'text/plain', 'a\r\nb'), { nil: undefined }),
    content: fc.oneof(
      fc.uint8Array(),
      fc.constantFrom('m', '1', '2.5', 'true', '').map((word) => new Uint8Array(Buffer.from(word))),
    ),
  });
  fc.assert(
    fc.property(fc.array(part, { maxLength: 8 }), (parts) => {
      let request: ImageRequest;
      try {
        request = readImageForm(
          parts.map(({ name, filename, mime, content }) => ({
            name,
            ...(filename === undefined ? {} : { filename }),
            ...(mime === undefined ? {} : { mime }),
            chunks: [content],
            size: content.length,
          })),
        );
      } catch (error) {
        assert.ok(is400(error), String(error));
        return;
      }
      encodeEverywhere(request);
    }),
  );
});

test('embedding bodies', () => {
  fc.assert(
    fc.property(text, (body) => {
      const json = parseJson(body);
      if (!isObject(json)) return;
      try {
        assert.ok(readEmbeddingRequest(body, json).count > 0);
      } catch (error) {
        assert.ok(is400(error), String(error));
      }
    }),
  );
});
