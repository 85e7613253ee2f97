/**
 * The simulator is no stricter than the vendors: what they accepted when it was recorded, it accepts, less other vendors' opaque
 * values.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { type Simulator, startSimulator } from '../../src/simulator/simulator.ts';
import { ask } from './ask.ts';

const fixtures = process.env.MIZU_FIXTURES;
const skip = fixtures === undefined ? 'MIZU_FIXTURES is not set' : false;
/** Values and stored responses of the real vendors are unknown here; two endpoints are not simulated. */
const EXPECTED = [
  /encrypted content .* could not be verified/,
  /Previous response with id/,
  /Invalid `signature` in `thinking` block/,
  /Invalid `data` in `redacted_thinking` block/,
  /Corrupted thought signature/,
  /The reasoning in .* could not be verified/,
  /Invalid URL \(POST .*(count_tokens|input_tokens)\)/,
];

let sim: Simulator;
before(async () => {
  sim = await startSimulator({ pace: { ms: 0, cut: 'packet' } });
});
after(() => sim.close());

for (const folder of [
  'openai-chat',
  'openai-responses',
  'anthropic-messages',
  'gemini',
  'deepseek-chat',
  'openrouter-chat',
  'openai-images',
]) {
  test(`recorded requests of ${folder} are accepted`, { skip }, async () => {
    const lines = readFileSync(join(fixtures ?? '', 'recordings', folder, 'requests.jsonl'), 'utf8')
      .split('\n')
      .filter(Boolean);
    let accepted = 0;
    for (const { response_file, path, status = 200, request } of lines.map((line) => JSON.parse(line))) {
      if (typeof request !== 'object' || request === null || status >= 400) continue;
      const plain = path.replace(/^\/api/, '');
      const heard = await ask(`${sim.url}${plain.startsWith('/v1') ? plain : `/v1${plain}`}`, request);
      if (heard.status < 400) accepted += 1;
      else
        assert.ok(
          EXPECTED.some((pattern) => pattern.test(JSON.parse(heard.text).error.message)),
          `${response_file}: ${heard.text}`,
        );
    }
    assert.ok(accepted > 0);
  });
}
