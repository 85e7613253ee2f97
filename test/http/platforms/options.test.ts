/**
 * The law of options behind clouds: what a platform adds, down to each key of each source of credentials, changes what a cloud
 * receives. Every other option is that of the same type at its vendor's own door (`test/http/config/option-effects.test.ts`), and
 * those for headers are tried here, too.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TObject } from 'typebox';
import { CHANNEL_SCHEMAS, PLATFORM_SCHEMAS } from '../../../src/http/config/channel-schema.ts';
import type { ReceivedRequest } from '../../../src/simulator/journal.ts';
import {
  AWS_KEYS,
  CLOUD_FORMS,
  type CloudForm,
  cloudChannel,
  SERVICE_ACCOUNT,
  secretFile,
  SOURCES,
} from '../../support/clouds.ts';
import { optionsOf } from '../../support/print-options.ts';
import { testGateway } from '../../support/test-gateway.ts';
import { startVendors } from '../../support/upstream-forms.ts';

const models = ({ type }: CloudForm): object => ({
  m: { ...(type === 'openai_image' ? { kind: 'image' } : {}), price: { input: '1', output: '2' } },
});

/** Another address of the same machine, which the `host` of a request tells. */
const elsewhere = (url: string): string => url.replace('127.0.0.1', 'localhost');

/** Another value of each option of a platform. */
const OTHERS: Readonly<Record<string, (form: CloudForm) => unknown>> = {
  'options.region': () => 'eu-west-1',
  'options.project': () => 'another',
  'options.location': () => 'europe-west1',
  'options.deployment': () => 'another',
  'options.api_version': ({ type }) => (type === 'messages' ? 'v1beta1' : 'v1'),
  'options.headers': () => ({ 'x-extra': 'yes', 'anthropic-beta': 'a-beta' }),
  'options.forward_headers': () => ['x-of-the-client'],
};

/** Another value of each key of a source. */
const KEYS: Readonly<Record<string, (url: string) => unknown>> = {
  access_key_id: () => 'AKIDOTHER',
  secret_access_key: () => 'another',
  session_token: () => 'another',
  name: () => 'default',
  role_arn: () => 'arn:aws:iam::1:role/another',
  session_name: () => 'another',
  token_file: () => secretFile('token', 'another'),
  token_url: (url) => `${url}/issuer/another`,
  token_headers: () => ({ 'x-issuer-key': 'another' }),
  token_field: () => 'another',
  token_type: () => 'urn:ietf:params:oauth:token-type:id_token',
  audience: () => '//iam.googleapis.com/another',
  service_account: () => 'another@simulated.iam.gserviceaccount.com',
  impersonation_url: elsewhere,
  key: () => SERVICE_ACCOUNT.replace('mizu@', 'another@'),
  tenant_id: () => 'another',
  client_id: () => 'another',
  client_secret: () => 'another',
  file: () =>
    secretFile(
      'credentials',
      `[work]\naws_access_key_id = AKIDFILE\naws_secret_access_key = ${AWS_KEYS.secretAccessKey}\naws_session_token = x\n`,
    ),
};

/** Keys that have a default, which no source of the tests writes. */
const DEFAULTED = ['token_type', 'session_name'];

/** What a cloud receives of one request, asides and all; what every request has anew is left out. */
async function received(form: CloudForm, channelOf: (url: string) => object): Promise<string> {
  const simulator = await startVendors();
  await using _closing = { [Symbol.asyncDispose]: () => simulator.close() };
  await using gateway = await testGateway({ channels: [channelOf(simulator.url)], models: models(form) });
  const [path, body] =
    form.type === 'openai_image'
      ? ['/v1/images/generations', { model: 'm', prompt: 'a cat' }]
      : ['/v1/messages', { model: 'm', max_tokens: 50, messages: [{ role: 'user', content: 'hi' }] }];
  await (await gateway.post(path, body, { headers: { 'x-of-the-client': 'here' } })).text();
  const seen = JSON.stringify([...simulator.asides, ...simulator.requests].map(observed)).replaceAll(simulator.url, 'URL');
  return seen.replaceAll(/localhost:\d+/g, 'LOCALHOST').replaceAll(/127\.0\.0\.1:\d+/g, 'HOST');
}

/**
 * Signatures tell of their keys, but also of the time: of those the id and the scope are compared, and whether the cloud took
 * them.
 */
function observed({ method, path, query, headers, text, status }: ReceivedRequest): unknown {
  const own = Object.entries(headers)
    .filter(([name]) => !['content-length', 'x-amz-date', 'x-amz-content-sha256'].includes(name))
    .map(([name, value]) => [name, value.replace(/Signature=\w+|token_\w+/, '').replace(/\/\d{8}\//, '/DAY/')]);
  return [method, path, query, own.sort(), status, decodedIn(text).replace(/\d{10}|token_\w+/g, '')];
}

/** With the claims of an assertion in place of its bytes, which differ with the second. */
function decodedIn(text: string): string {
  const [, claims] = /assertion=[\w-]+\.([\w-]+)\./.exec(text) ?? [];
  return claims === undefined ? text : Buffer.from(claims, 'base64url').toString();
}

type Schema = TObject & { readonly properties: Readonly<Record<string, TObject>> };
const schemaOf = ({ type, platform }: CloudForm): Schema =>
  (PLATFORM_SCHEMAS as unknown as Record<string, Record<string, Schema>>)[type]?.[platform] ?? assert.fail();

for (const form of CLOUD_FORMS) {
  const paths = optionsOf(schemaOf(form)).map(({ path }) => path);

  test(`${form.name}: an option is the plain type's own, or is tried here`, () => {
    const plain = new Set(optionsOf(CHANNEL_SCHEMAS[form.type]).map(({ path }) => path));
    const added = paths.filter((path) => !plain.has(path) && path !== 'platform' && !path.startsWith('options.credentials'));
    assert.deepEqual(
      added.filter((path) => OTHERS[path] === undefined),
      [],
    );
  });

  test(`${form.name}: each option changes what the cloud receives`, async () => {
    const before = await received(form, (url) => cloudChannel(form, url));
    const unseen: string[] = [];
    for (const path of Object.keys(OTHERS).filter((each) => paths.includes(each))) {
      const name = path.replace('options.', '');
      const after = await received(form, (url) => cloudChannel(form, url, { options: { [name]: OTHERS[path]?.(form) } }));
      if (after === before) unseen.push(path);
    }
    assert.deepEqual(unseen, []);
  });
}

for (const [platform, sources] of Object.entries(SOURCES)) {
  test(`${platform}: each key of each source of credentials changes what is asked or how requests are signed`, async () => {
    const form = CLOUD_FORMS.find((one) => one.platform === platform) ?? assert.fail();
    const { credentials } = (schemaOf(form).properties['options'] as Schema).properties;
    const declared = new Map(
      Object.entries((credentials as Schema).properties).map(([source, keys]) => [
        source,
        Object.keys((keys as Schema).properties),
      ]),
    );
    const tried = new Set<string>();
    const unseen: string[] = [];
    for (const [name, make] of Object.entries(sources)) {
      const before = await received({ ...form, source: name }, (url) => cloudChannel({ ...form, source: name }, url));
      const [source = '', own] = Object.entries(make('http://h'))[0] ?? [];
      for (const key of [...Object.keys(own), ...DEFAULTED.filter((key) => declared.get(source)?.includes(key))]) {
        tried.add(`${source}.${key}`);
        const other = (url: string): object => {
          const [held] = Object.values(make(url));
          const value = key === 'url' ? elsewhere(String((held as { url: string }).url)) : KEYS[key]?.(url);
          return { [source]: { ...(held as object), [key]: value } };
        };
        const after = await received(form, (url) => cloudChannel(form, url, { options: { credentials: other(url) } }));
        if (after === before) unseen.push(`${name}.${key}`);
      }
    }
    assert.deepEqual(unseen, []);
    const missing = [...declared].flatMap(([source, keys]) =>
      keys.map((key) => `${source}.${key}`).filter((key) => !tried.has(key)),
    );
    assert.deepEqual(missing, []);
  });
}

test('betas reach Bedrock in the body, whoever names them: the client, a header that is passed on, or the operator', async () => {
  const simulator = await startVendors();
  await using _closing = { [Symbol.asyncDispose]: () => simulator.close() };
  const bedrock = CLOUD_FORMS.find(({ platform }) => platform === 'bedrock') ?? assert.fail();
  const cases = [
    [{}, ['of-client']],
    [{ headers: { 'anthropic-beta': 'of-operator' } }, ['of-client', 'of-operator']],
    [{ headers: { 'anthropic-beta': null } }, undefined],
  ] as const;
  for (const [options, betas] of cases) {
    await using gateway = await testGateway({
      channels: [cloudChannel(bedrock, simulator.url, { options })],
      models: models(bedrock),
    });
    const body = { model: 'm', max_tokens: 50, messages: [{ role: 'user', content: 'hi' }] };
    const answer = await gateway.post('/v1/messages', body, { headers: { 'anthropic-beta': 'of-client' } });
    assert.equal(answer.status, 200, await answer.text());
    const sent: { anthropic_beta?: string[] } = JSON.parse(simulator.requests.at(-1)?.text ?? '{}');
    assert.deepEqual(sent.anthropic_beta, betas);
  }
});
