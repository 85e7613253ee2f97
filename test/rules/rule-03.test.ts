/** Rule 3: a mask goes with its original image; its size and transparency are kept, since nobody touches its bytes. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bodyBytes } from '../../src/codecs/bodies/pieces.ts';
import type { JsonObject } from '../../src/codecs/canonical/json.ts';
import { IMAGE_UPSTREAMS, readImageJson } from '../../src/codecs/images/index.ts';
import { codecs } from '../../src/codecs/registry.ts';
import { readPngHeader } from '../../src/codecs/images/png.ts';
import { makePng } from '../../src/simulator/png.ts';
import { needOf } from '../../src/http/text/need.ts';
import { convert, sent } from '../failures/through.ts';
import { decodeWith, need } from './requests.ts';

const size = { width: 40, height: 30 };
const picture = makePng(size, 7, false);
const mask = makePng(size, 7, true);
const url = (bytes: Uint8Array): string => `data:image/png;base64,${Buffer.from(bytes).toString('base64')}`;
const EDIT = { model: 'm', prompt: 'x', images: [{ image_url: url(picture) }], mask: { image_url: url(mask) } };

function bodyFor(type: 'openai_image' | 'openrouter_image' | 'responses', body: JsonObject): Buffer {
  const upstream = IMAGE_UPSTREAMS.get(type);
  assert.ok(upstream !== undefined);
  const encoded = upstream.encode(readImageJson('edit', JSON.stringify(body), body), {
    upstreamModel: 'up',
    stream: false,
    generationTool: true,
    defaults: {},
    override: (json) => json,
    mint: (prefix) => `${prefix}0123`,
  });
  return Buffer.concat([...bodyBytes(encoded.body)]);
}

test('rule 3: a native route gets the mask behind its image, with the bytes that the client sent', () => {
  const form = bodyFor('openai_image', EDIT);
  const [image, masked] = [picture, mask].map((bytes) => form.indexOf(Buffer.from(bytes)));
  assert.ok(image !== undefined && masked !== undefined && image > 0 && masked > image);
  assert.match(form.subarray(image, masked).toString('latin1'), /name="mask"/);
  assert.deepEqual(readPngHeader(form.subarray(masked)), readPngHeader(Buffer.from(mask)));
});

test('rule 3: a native route with a link in it gets both as JSON, the mask as it came', () => {
  const images = [{ image_url: 'https://example.com/a.png' }];
  const json = JSON.parse(bodyFor('openai_image', { ...EDIT, images }).toString());
  assert.deepEqual([json.images, json.mask], [images, { image_url: url(mask) }]);
});

test('rule 3: the image tool of a responses Channel gets the mask as input_image_mask beside its image', () => {
  const json = JSON.parse(bodyFor('responses', EDIT).toString());
  assert.equal(json.input[0].content[1].image_url, url(picture));
  assert.deepEqual(json.tools[0].input_image_mask, { image_url: url(mask) });
});

test('rule 3: where a mask cannot go along the edit is refused, never sent without it', () => {
  assert.throws(() => bodyFor('openrouter_image', EDIT), need({ status: 400, param: /^mask$/ }));
});

test('rule 3: a mask of another size is refused, a mask alone is none', () => {
  const other = { ...EDIT, mask: { image_url: url(makePng({ width: 41, height: 30 }, 7, true)) } };
  assert.throws(() => bodyFor('openai_image', other), need({ status: 400, code: 'invalid_request', param: /^mask.image_url$/ }));
  const { images: _, ...alone } = EDIT;
  assert.throws(() => bodyFor('openai_image', alone), need({ status: 400, param: /^images$/ }));
});

const tool = { type: 'image_generation', size: '64x64', input_image_mask: { image_url: url(mask) } };
const asked = (more: object = {}): object => ({
  input: [{ role: 'user', content: [{ type: 'input_image', image_url: url(picture) }] }],
  tools: [tool],
  ...more,
});

test('rule 3: the mask in a responses request stays with its picture on the same protocol', () => {
  const { input, tools } = convert('responses', 'responses', asked());
  assert.equal(input[0].content[0].image_url, url(picture));
  assert.deepEqual(tools, [tool]);
});

test('rule 3: another protocol has no image tool: it is left out by name, and refused where it is required', () => {
  for (const upstream of ['chat', 'messages', 'gemini'] as const) {
    const { body, losses } = sent('responses', upstream, asked());
    assert.doesNotMatch(body, /mask/);
    assert.ok(losses.includes('native tool'));
    const required = asked({ tool_choice: { type: 'image_generation' } });
    assert.throws(() => sent('responses', upstream, required), need({ status: 400, code: 'unsupported_conversion' }));
  }
});

test('rules 2 and 3: a mask, a container or an upload by private file id needs Channels of its scope', () => {
  const by = (client: 'responses' | 'messages', body: object): string | undefined =>
    needOf(codecs, decodeWith(client, body), 'default').referenceAt;
  const masked = { ...tool, input_image_mask: { file_id: 'file-1' } };
  assert.equal(by('responses', asked()), undefined);
  assert.equal(by('responses', asked({ tools: [masked] })), 'tools[0].input_image_mask.file_id');
  const container = { type: 'code_interpreter', container: { type: 'auto', file_ids: ['file-1'] } };
  assert.equal(by('responses', asked({ tools: [container] })), 'tools[0].container.file_ids');
  const upload = { role: 'user', content: [{ type: 'container_upload', file_id: 'file-1' }] };
  assert.equal(by('messages', { max_tokens: 9, messages: [upload] }), 'messages[0].content[0].file_id');
});
