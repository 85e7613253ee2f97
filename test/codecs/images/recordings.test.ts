/** Real answers of image upstreams: understood, and the same dialect to the byte. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { GatewayError } from '../../../src/codecs/canonical/error.ts';
import { encodeImageAnswer, IMAGE_UPSTREAMS } from '../../../src/codecs/images/index.ts';

const root = process.env['MIZU_FIXTURES'];
const skip = root === undefined ? 'MIZU_FIXTURES is not set: no recordings' : false;

for (const [folder, type] of [
  ['openai-images', 'openai_image'],
  ['openrouter-images', 'openrouter_image'],
] as const) {
  test(`recordings of ${folder}`, { skip }, () => {
    const upstream = IMAGE_UPSTREAMS.get(type);
    const files = readdirSync(`${root}/recordings/${folder}`).filter((name) => name.endsWith('.json'));
    assert.ok(files.length > 0);
    for (const name of files) {
      const text = readFileSync(`${root}/recordings/${folder}/${name}`, 'utf8');
      const json = JSON.parse(text);
      if (json.error !== undefined) {
        assert.throws(() => upstream?.decodeWhole(text), GatewayError, name);
        continue;
      }
      const answer = upstream?.decodeWhole(text);
      if (answer === undefined) throw new Error(name);
      const said = encodeImageAnswer(answer, 1);
      assert.equal(answer.images.length, json.data.length, name);
      if (type === 'openai_image') assert.equal(said, text, name);
      const shown = JSON.parse(said);
      assert.deepEqual(
        shown.data.map((entry: { b64_json?: string }) => entry.b64_json),
        json.data.map((entry: { b64_json?: string }) => entry.b64_json),
      );
      const used = json.usage?.output_tokens ?? json.usage?.completion_tokens;
      assert.equal(answer.usage?.billed.output, used, name);
      if (type === 'openrouter_image') assert.deepEqual([shown.created, shown.usage.output_tokens], [1, used]);
    }
  });
}
