/**
 * Every door of every cloud, over sockets: each source of credentials lets a request in, and the answer reads as the vendor's
 * own.
 */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { startSimulator } from '../../../src/simulator/simulator.ts';
import { askModelList, judgeModelList } from '../../../src/http/dispatch/model-list.ts';
import { Upstreams } from '../../../src/http/dispatch/upstream.ts';
import { adjustable, type Clock, systemClock } from '../../../src/streams/clock.ts';
import { CLOUD_FORMS, cloudChannel, SECRETS, simulatedClouds, SOURCES } from '../../support/clouds.ts';
import { fakeUpstream, jsonAnswer } from '../../support/fake-upstream.ts';
import { eventually, testConfig, testGateway } from '../../support/test-gateway.ts';

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

for (const hours of [-3, 3])
  test(`what is asked and signed for clouds goes by the machine's own clock where the gateway goes by another, ${hours} hours off`, async (t) => {
    const clock = adjustable(systemClock);
    clock.adjust(hours * 3_600_000);
    for (const form of CLOUD_FORMS.filter(({ type }) => type === 'messages'))
      for (const source of Object.keys(SOURCES[form.platform] ?? {})) {
        const simulator = await startSimulator({ clouds: simulatedClouds() });
        t.after(() => simulator.close());
        const channel = cloudChannel({ ...form, source }, simulator.url);
        await using gateway = await testGateway({ channels: [channel], models: modelsOf(form.type) }, { clock });
        for (const times of [1, 2]) {
          simulator.enqueue({ reply: REPLY, strict: true, match: ({ model }) => model === 'm' });
          const messages = [{ role: 'user', content: 'hi' }];
          const answer = await gateway.post('/v1/messages', { model: 'm', max_tokens: 50, messages });
          const name = `${form.name}, ${source}, time ${times}`;
          assert.equal(answer.status, 200, `${name}: ${await answer.text()}${gateway.logLines.join('')}`);
          assert.equal(gateway.store.settled.at(-1)?.attempts?.length, 1, name);
        }
      }
  });

test('Bedrock: a body of some megabytes is signed as any other', async () => {
  const whole = { id: 'm', type: 'message', role: 'assistant', model: 'm', content: [{ type: 'text', text: 'hi' }] };
  const usage = { input_tokens: 1, output_tokens: 1 };
  await using upstream = await fakeUpstream(jsonAnswer(200, { ...whole, stop_reason: 'end_turn', usage }));
  const [form] = CLOUD_FORMS.filter(({ platform }) => platform === 'bedrock');
  assert.ok(form !== undefined);
  const channel = cloudChannel({ ...form, source: 'static' }, upstream.url);
  await using gateway = await testGateway({ channels: [channel], models: modelsOf(form.type) });
  const content = `é${'😀 word '.repeat(200_000)}`;
  const answer = await gateway.post('/v1/messages', { model: 'm', max_tokens: 50, messages: [{ role: 'user', content }] });
  assert.equal(answer.status, 200, await answer.text());
  const [{ headers, body = '' } = { headers: new Map() }] = upstream.requests;
  assert.equal(JSON.parse(body).messages[0].content, content);
  assert.equal(headers.get('x-amz-content-sha256'), createHash('sha256').update(body).digest('hex'));
  assert.match(headers.get('authorization') ?? '', /^AWS4-HMAC-SHA256 Credential=/);
});

for (const form of CLOUD_FORMS) {
  test(`${form.name}: the list of models is asked for with the Channel's own credential; a right that is missing says nothing`, async (t) => {
    const simulator = await startSimulator({ clouds: simulatedClouds() });
    t.after(() => simulator.close());
    const [channel] = testConfig({ channels: [cloudChannel(form, simulator.url)], models: modelsOf(form.type) }).channels;
    assert.ok(channel !== undefined);
    const listed = async (clock: Clock = systemClock) => {
      const upstreams = new Upstreams(clock);
      const head = await askModelList(upstreams, channel, AbortSignal.timeout(20_000), clock);
      await upstreams.close();
      return judgeModelList(head, channel).result;
    };
    assert.equal(await listed(), 'good');
    // A clock that is off is no fault of the Channel where the service's own date mends it.
    if (form.platform === 'bedrock') assert.equal(await listed({ ...systemClock, now: () => Date.now() + 3_600_000 }), 'good');
    const isList = ({ path }: { readonly path: string }): boolean => path.endsWith('models');
    const message = 'User is not authorized to perform: bedrock:ListFoundationModels';
    simulator.enqueue({ match: isList, faults: [{ type: 'status', status: 403, body: { message } }] });
    assert.equal(await listed(), 'unsure');
  });
}

test('no secret of any source is told to clients, rows, logs or metrics, in success and in refusal', async () => {
  for (const form of CLOUD_FORMS.filter(({ type }) => type !== 'openai_image')) {
    for (const source of Object.keys(SOURCES[form.platform] ?? {})) {
      for (const changes of [
        {},
        {
          aws: { role: () => undefined, accepted: () => [] },
          google: { accounts: [], federation: undefined, revoked: () => true },
          azure: { application: undefined },
        },
      ]) {
        const simulator = await startSimulator({ clouds: simulatedClouds(changes) });
        await using _closing = { [Symbol.asyncDispose]: () => simulator.close() };
        const channel = cloudChannel({ ...form, source }, simulator.url);
        await using gateway = await testGateway({ channels: [channel], models: modelsOf(form.type) }, { level: 'trace' });
        const answer = await gateway.post('/v1/messages', {
          model: 'm',
          max_tokens: 50,
          messages: [{ role: 'user', content: 'hi' }],
        });
        const text = await answer.text();
        await eventually(() => gateway.store.settled.length > 0, 'a row');
        const rows = JSON.stringify(gateway.store.settled, (_, value) => (typeof value === 'bigint' ? String(value) : value));
        const metrics = (await gateway.running.gateway.metrics.registry.metrics()).replaceAll('_token_', ' ');
        const told = [text, JSON.stringify([...answer.headers]), rows, metrics, ...gateway.logLines].join('\n');
        for (const secret of SECRETS) assert.ok(!told.includes(secret), `${form.name} by ${source} told ${secret}: ${told}`);
      }
    }
  }
});
