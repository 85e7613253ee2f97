/**
 * The acceptance tests of Open Responses as they are published, against the gateway over every upstream dialect.
 * MIZU_OPEN_RESPONSES names a checkout of its repository outside of this one, with `zod` 3 installed in it; `bun` is found on the
 * path. Without it nothing runs.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { promisify, stripVTControlCharacters } from 'node:util';
import { startSimulator } from '../../src/simulator/simulator.ts';
import { KEY, testGateway } from '../support/test-gateway.ts';

const CHECKOUT = process.env['MIZU_OPEN_RESPONSES'];
const skip = CHECKOUT === undefined ? 'MIZU_OPEN_RESPONSES names no checkout' : false;

for (const model of ['chat_completion', 'responses', 'messages', 'gemini'] as const) {
  test(`Open Responses as published, upstream ${model}`, { skip }, async () => {
    const simulator = await startSimulator({ pace: { cut: 'packet' } });
    try {
      await using gateway = await testGateway({
        channels: [
          { id: 'one', type: model, base_url: simulator.url, api_key: 'k', models: [model], options: { compaction: 'summary' } },
        ],
        models: { [model]: { price: { input: '1', output: '2' } } },
      });
      const weather = { type: 'tool' as const, name: 'get_weather', arguments: '{"location":"San Francisco, CA"}' };
      simulator.enqueue({ match: ({ text }) => text.includes('get_weather'), reply: { pieces: [weather] } });
      const script = ['run', 'bin/compliance-test.ts', '-u', `${gateway.url}/v1`, '-k', KEY, '-m', model];
      const { stdout } = await promisify(execFile)('bun', script, { cwd: CHECKOUT }).catch((error) => error);
      const text = stripVTControlCharacters(stdout);
      assert.match(text, /\b17 passed, 0 failed, 0 skipped/, text);
    } finally {
      await simulator.close();
    }
  });
}
