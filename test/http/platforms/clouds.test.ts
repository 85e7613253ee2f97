/** Every door of every cloud, over sockets: each source of credentials lets a request in, and the answer reads as the vendor's own. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startSimulator } from '../../../src/simulator/simulator.ts';
import { CLOUD_FORMS, cloudChannel, simulatedClouds, SOURCES } from '../../support/clouds.ts';
import { testGateway } from '../../support/test-gateway.ts';

const REPLY = { pieces: [{ type: 'text', text: 'Hello there, cloud.' }] } as const;
const modelsOf = (type: string): object => ({
  m: { ...(type === 'openai_image' ? { kind: 'image' } : {}), price: { input: '1', output: '2' } },
});

for (const form of CLOUD_FORMS) {
  for (const source of Object.keys(SOURCES[form.platform] ?? {})) {
    test(`${form.name}, credentials from ${source}: streams and whole answers`, async () => {
      const simulator = await startSimulator({ clouds: simulatedClouds() });
      const channel = cloudChannel({ ...form, source }, simulator.url);
      await using gateway = await testGateway({ channels: [channel], models: modelsOf(form.type) });
      if (form.type === 'openai_image') {
        const answer = await gateway.post('/v1/images/generations', { model: 'm', prompt: 'a cat' });
        assert.equal(answer.status, 200, await answer.clone().text());
        await simulator.close();
        return;
      }
      for (const stream of [false, true]) {
        simulator.enqueue({ reply: REPLY, strict: true, match: ({ model }) => model === 'm' });
        const answer = await gateway.post('/v1/messages', {
          ...{ model: 'm', max_tokens: 50, stream },
          messages: [{ role: 'user', content: 'hi' }],
        });
        const text = await answer.text();
        assert.equal(answer.status, 200, text + gateway.logLines.join(''));
        assert.ok(text.includes(stream ? 'message_stop' : 'Hello there, cloud.'), text);
      }
      await simulator.close();
    });
  }
}
