/**
 * What the libraries of Python send, in their own shapes: each request through the gateway over every upstream, judged by the
 * strict simulated vendors. The bodies are written after what these libraries put on the wire
 * (`test/fixtures/python-clients.json`).
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { testGateway } from '../support/test-gateway.ts';
import { formsConfig, startVendors, upstreamForms } from '../support/upstream-forms.ts';

const simulator = await startVendors({ pace: { cut: 'packet' } });
test.after(() => simulator.close());
test.beforeEach(() => simulator.reset());

const FORMS = upstreamForms(import.meta.filename);
const { channels, models } = formsConfig(FORMS, simulator.url);
const VECTORS = {
  channels: ['chat_completion', 'responses'].map((type) => ({
    ...{ id: `${type}-vectors`, type, base_url: simulator.url, api_key: 'k', models: [`${type}-vectors`] },
  })),
  models: Object.fromEntries(
    ['chat_completion', 'responses'].map((type) => [
      `${type}-vectors`,
      { kind: 'embedding', price: { input: '1', output: '2' } },
    ]),
  ),
};

interface Sent {
  readonly about: string;
  readonly path: string;
  readonly body: Readonly<Record<string, unknown>>;
}
const CLIENTS: Readonly<Record<string, readonly Sent[]>> = JSON.parse(
  readFileSync(join(import.meta.dirname, '../fixtures/python-clients.json'), 'utf8'),
);

for (const [client, bodies] of Object.entries(CLIENTS)) {
  test(`${client}: what it sends is answered over every upstream`, async () => {
    await using gateway = await testGateway({
      channels: [...channels, ...VECTORS.channels],
      models: { ...models, ...VECTORS.models },
      health: { failures: 10_000 },
    });
    const names = (path: string) => (path === '/v1/embeddings' ? Object.keys(VECTORS.models) : Object.keys(models));
    for (const { about, path, body } of bodies) {
      for (const model of names(path)) {
        const answer = await gateway.post(path, { model, ...body });
        const text = await answer.text();
        assert.equal(answer.status, 200, `${about}, over ${model}: ${text}`);
        assert.doesNotMatch(text, /"error":\{|event: error/, `${about}, over ${model}`);
        assert.equal(/^(event|data): /.test(text), body['stream'] === true, `${about}, over ${model}: ${text.slice(0, 80)}`);
      }
    }
  });
}
