/** The configurations of docs/clouds.md work: with the addresses of simulators put into them, each of their models answers. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { parse } from 'jsonc-parser';
import { AZURE_KEY, ENTRA_SECRET, SERVICE_ACCOUNT, simulatedClouds } from '../../support/clouds.ts';
import { testGateway } from '../../support/test-gateway.ts';
import { startVendors } from '../../support/upstream-forms.ts';

interface Documented {
  readonly channels: readonly {
    readonly id: string;
    readonly type: string;
    readonly options: { readonly location?: string; readonly credentials?: Readonly<Record<string, object>> };
  }[];
  readonly models: Readonly<Record<string, { readonly kind?: string }>>;
}

const BLOCKS = [...readFileSync('docs/clouds.md', 'utf8').matchAll(/```jsonc\n([\s\S]*?)```/g)].map(([, text = '']) => text);
const SECRETS: Readonly<Record<string, string>> = {
  AZURE_OPENAI_API_KEY: AZURE_KEY,
  AZURE_CLIENT_SECRET: ENTRA_SECRET,
  'file:/run/secrets/service-account.json': SERVICE_ACCOUNT,
};
/** Where the sources of the document are asked by themselves. */
const PATHS: Readonly<Record<string, string>> = { service_account: '/token' };

const bodyOf = (kind: string | undefined, model: string): readonly [path: string, body: object] => {
  if (kind === 'image') return ['/v1/images/generations', { model, prompt: 'a cat' }];
  if (kind === 'embedding') return ['/v1/embeddings', { model, input: 'hi' }];
  return ['/v1/messages', { model, max_tokens: 50, messages: [{ role: 'user', content: 'hi' }] }];
};

test('every block is tried', () => assert.equal(BLOCKS.length, 3));

for (const text of BLOCKS) {
  const documented: Documented = parse(
    text.replaceAll(/"\$\{([^}]+)\}"/g, (_, name: string) => JSON.stringify(SECRETS[name] ?? assert.fail(name))),
  );
  for (const channel of documented.channels) {
    test(`${channel.id} of docs/clouds.md answers for each of its models`, async (t) => {
      const { location = 'us-east5', credentials } = channel.options;
      const simulator = await startVendors({
        clouds: simulatedClouds({
          google: { project: 'my-project', location },
          azure: { application: { tenantId: 'my-tenant', clientId: 'my-application', clientSecret: ENTRA_SECRET } },
        }),
      });
      t.after(() => simulator.close());
      const [source, keys] = Object.entries(credentials ?? {})[0] ?? [];
      const reached = source === undefined ? {} : { [source]: { ...keys, url: simulator.url + (PATHS[source] ?? '') } };
      const options = { ...channel.options, ...(source === undefined ? {} : { credentials: reached }) };
      const { models } = documented;
      await using gateway = await testGateway({ channels: [{ ...channel, base_url: simulator.url, options }], models });
      const named = (channel as { models?: object }).models ?? {};
      for (const model of Array.isArray(named) ? named.map(String) : Object.keys(named)) {
        const [path, body] = bodyOf(models[model]?.kind, model);
        const answer = await gateway.post(path, body);
        assert.equal(answer.status, 200, `${model}: ${await answer.text()}`);
      }
    });
  }
}
