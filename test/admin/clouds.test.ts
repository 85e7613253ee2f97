/** Clouds over the admin API: what a Channel's test says of its models, and that no secret is told by any row, journal or log. */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { ADMIN_ROUTES, type AdminRoute } from '../../src/http/admin/routes.ts';
import { startSimulator } from '../../src/simulator/simulator.ts';
import { CLOUD_FORMS, cloudChannel, SECRETS, simulatedClouds, SOURCES } from '../support/clouds.ts';
import { type AdminGateway, adminGateway } from './admin-gateway.ts';

const FORMS = CLOUD_FORMS.filter(({ type }) => type !== 'openai_image').flatMap((form) =>
  Object.keys(SOURCES[form.platform] ?? {}).map((source) => ({ ...form, source, id: `${form.type}-${form.platform}-${source}` })),
);

async function gatewayOf(t: TestContext, clouds: Parameters<typeof simulatedClouds>[0]): Promise<AdminGateway> {
  const simulator = await startSimulator({ clouds: simulatedClouds(clouds) });
  t.after(() => simulator.close());
  const channels = FORMS.map((form) => cloudChannel(form, simulator.url, { id: form.id, models: [form.id] }));
  const models = Object.fromEntries(FORMS.map(({ id }) => [id, { price: { input: '1', output: '5' } }]));
  return await adminGateway(t, { file: { channels, models } });
}

const GONE = {
  aws: { role: () => undefined, accepted: () => [] },
  google: { accounts: [], federation: undefined, revoked: () => true },
  azure: { application: undefined },
};

for (const [name, clouds] of Object.entries({ 'in success': {}, 'in refusal': GONE })) {
  test(`no secret of a cloud is told by the admin API, its journal or the log, ${name}`, async (t) => {
    const gateway = await gatewayOf(t, clouds);
    const told: string[] = [];
    const ask = async (path: string, body?: object): Promise<string> => {
      const { text } = await gateway.ask(path, body === undefined ? {} : { method: 'POST', body });
      told.push(`${path} ${text}`);
      return text;
    };
    await ask('accounts', { name: 'ada', credit: '10' });
    const { key } = JSON.parse((await gateway.ask('keys', { method: 'POST', body: { account: 'ada', name: 'ci' } })).text);
    for (const { id } of FORMS) {
      const answer = await fetch(`http://127.0.0.1:${gateway.running.port}/v1/messages`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model: id, max_tokens: 10, messages: [{ role: 'user', content: 'hi' }] }),
      });
      told.push(`${id} ${await answer.text()}`);
      assert.equal(answer.status, name === 'in success' ? 200 : 502, told.at(-1) ?? '');
      await ask(`channels/${id}/test`, {});
      await ask(`channels/${id}/out-of-service`, { reason: 'a look' });
      await ask(`channels/${id}/in-service`, { reason: 'a look' });
    }
    await ask('channels/test', {});
    gateway.file = { channels: [{ ...cloudChannel(FORMS[0] ?? assert.fail(), 'http://h'), platform: 'vertex' }] };
    await ask('config/check');
    const lists = Object.values<AdminRoute>(ADMIN_ROUTES).filter(
      ({ method, path, isStream }) => method === 'GET' && !path.includes('{') && isStream !== true,
    );
    for (const { path } of lists) await ask(path);
    for (const { id } of JSON.parse(await ask('exchanges')).data) await ask(`exchanges/${id}`);
    for (const path of ['/metrics', '/channels']) await ask(path);
    told.push(...gateway.logLines.map((line) => JSON.stringify(line)));
    const all = told.join('\n').replaceAll('_token_', ' ');
    for (const secret of SECRETS)
      assert.ok(!all.includes(secret), `${secret}: ${all.slice(all.indexOf(secret) - 200, all.indexOf(secret) + 40)}`);
    assert.match(all, /a look/);
  });
}

test('a Channel’s test names the models that the cloud’s list lacks, where names can be compared, and calls that no failure', async (t) => {
  const simulator = await startSimulator({
    clouds: simulatedClouds({
      aws: { models: ['anthropic.claude-a-v1:0', 'anthropic.claude-b-v1:0'] },
      google: { models: ['claude-a', 'gemini-a'] },
    }),
  });
  t.after(() => simulator.close());
  const ARN = 'arn:aws:bedrock:us-east-1:1:';
  const asked: Readonly<Record<string, readonly [names: readonly string[], missing: readonly string[]]>> = {
    'messages on bedrock': [
      [
        'anthropic.claude-a-v1:0',
        'us.anthropic.claude-b-v1:0',
        `${ARN}inference-profile/eu.anthropic.claude-a-v1:0`,
        `${ARN}application-inference-profile/x`,
      ],
      ['anthropic.claude-c-v1:0', `${ARN}inference-profile/us.anthropic.claude-d-v1:0`],
    ],
    'messages on vertex': [['claude-a@20250514', 'claude-a'], ['claude-b']],
    'gemini on vertex': [['gemini-a', 'publishers/google/models/gemini-a', 'projects/p/locations/l/endpoints/1'], ['gemini-b']],
    'chat on azure': [['my-deployment'], []],
  };
  const channels = Object.entries(asked).map(([name, [names, missing]], index) => {
    const form = CLOUD_FORMS.find((one) => one.name === name) ?? assert.fail(name);
    const models = Object.fromEntries([...names, ...missing].map((upstream, at) => [`m${index}-${at}`, upstream]));
    return cloudChannel(form, simulator.url, { id: `c${index}`, models });
  });
  const models = Object.fromEntries(
    channels.flatMap((channel) => Object.keys((channel as { models: object }).models)).map((name) => [name, {}]),
  );
  const gateway = await adminGateway(t, { file: { channels, models } });
  const probes: { id: string; ok: boolean; note: string }[] = (await gateway.ask('channels/test', { method: 'POST', body: {} }))
    .json.data;
  for (const [index, [, missing]] of Object.values(asked).entries()) {
    const { ok, note } = probes.find(({ id }) => id === `c${index}`) ?? assert.fail();
    assert.equal(note, missing.length === 0 ? 'reached' : `not in its list: ${missing.join(', ')}`);
    assert.equal(ok, true);
  }
});
