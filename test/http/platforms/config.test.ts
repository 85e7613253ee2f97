/** What `check` says of Channels behind platforms: which pairs exist, what they need, and what each option changes. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { CHANNEL_TYPES } from '../../../src/codecs/canonical/dialect.ts';
import { PLATFORM_SCHEMAS } from '../../../src/http/config/channel-schema.ts';
import type { Channel } from '../../../src/http/config/config.ts';
import { parseConfig } from '../../../src/http/config/parse.ts';
import { CLOUD_FORMS, cloudChannel, SERVICE_ACCOUNT } from '../../support/clouds.ts';
import { platformOptions } from '../../support/print-options.ts';
import { testRates } from '../../support/test-gateway.ts';

type Env = Readonly<Record<string, string>>;

function parse(channel: object, env: Env = {}): Channel {
  const models = { m: { price: { input: '1', output: '2' } } };
  const text = JSON.stringify({ operations: null, channels: [{ id: 'one', models: ['m'], ...channel }], models });
  const sources = {
    env,
    readFile: () => SERVICE_ACCOUNT,
    parsePrice: (price: unknown) => ({ ok: true as const, value: testRates(price) }),
  };
  const [built] = parseConfig(text, { ...sources, path: '/tmp/mizu.config.json', revision: 1, nowMs: 0 }).channels;
  assert.ok(built !== undefined);
  return built;
}

const refused = (channel: object, words: RegExp, env: Env = {}): void => {
  assert.throws(() => parse(channel, env), words);
};

test('every pair of a type and a platform that does not exist is refused, whatever else is right', () => {
  const pairs = new Set(CLOUD_FORMS.map(({ type, platform }) => `${type} ${platform}`));
  assert.equal(pairs.size, Object.values(PLATFORM_SCHEMAS).flatMap((each) => Object.keys(each)).length);
  for (const type of CHANNEL_TYPES) {
    for (const platform of ['bedrock', 'vertex', 'azure', 'gcp', '', 1, null]) {
      if (pairs.has(`${type} ${platform}`)) continue;
      const words = Object.hasOwn(PLATFORM_SCHEMAS, type)
        ? /channels\[0\]\.platform: must be /
        : /channels\[0\]\.platform: is not possible/;
      refused({ type, platform, base_url: 'http://h', api_key: 'k' }, words);
    }
  }
  for (const form of CLOUD_FORMS) parse(cloudChannel(form, 'http://h'));
});

/** A value of each option that a platform adds. */
const SAMPLES: Readonly<Record<string, unknown>> = {
  region: 'eu-west-1',
  project: 'p',
  location: 'europe-west1',
  deployment: 'd',
  api_version: 'v1',
};

test('an option of another platform is refused by its path, as are auth and path', () => {
  const names = new Set(platformOptions().flatMap(({ option }) => /^options\.(\w+)$/.exec(option.path)?.[1] ?? []));
  assert.deepEqual([...names].filter((name) => name !== 'credentials').sort(), Object.keys(SAMPLES).sort());
  for (const form of CLOUD_FORMS) {
    const own = new Set(
      platformOptions()
        .filter(({ platforms }) => platforms.has(form.platform))
        .map(({ option }) => option.path),
    );
    for (const [name, value] of Object.entries({ ...SAMPLES, auth: 'none', path: '/x' })) {
      const changed = cloudChannel(form, 'http://h', { options: { [name]: value } });
      if (own.has(`options.${name}`)) parse(changed);
      else refused(changed, new RegExp(`channels\\[0\\]\\.options\\.${name}: is not a known key`));
    }
  }
});

const BEDROCK = { type: 'messages', platform: 'bedrock' };
const VERTEX = { type: 'gemini', platform: 'vertex' };
const AZURE = { type: 'responses', platform: 'azure', base_url: 'https://r.openai.azure.com' };
const PLACE = { project: 'p', location: 'global' };

test('a credential is needed, has one source, and stands beside no key', () => {
  refused({ ...BEDROCK, options: { region: 'us-east-1' } }, /options\.credentials: is needed where there is no api_key/);
  const two = { instance: {}, environment: {} };
  refused({ ...BEDROCK, options: { region: 'us-east-1', credentials: two } }, /channels\[0\]\.options\.credentials/);
  refused({ ...BEDROCK, options: { region: 'us-east-1', credentials: {} } }, /channels\[0\]\.options\.credentials/);
  refused({ ...BEDROCK, api_key: 'k', options: { region: 'us-east-1', credentials: { instance: {} } } }, /impossible beside one/);
  refused({ ...VERTEX, options: PLACE }, /credentials/);
  refused({ ...VERTEX, api_key: 'k', options: { ...PLACE, credentials: { metadata: {} } } }, /api_key: is not taken by vertex/);
  refused({ ...AZURE, options: {} }, /options\.credentials: is needed/);
  const portal = `${AZURE.base_url}/openai/deployments/my-gpt-5`;
  refused({ ...AZURE, base_url: portal, api_key: 'k', options: {} }, /base_url: ends before \/openai/);
  parse({ ...BEDROCK, api_key: 'k', options: { region: 'us-east-1' } });
  parse({ ...AZURE, api_key: 'k', options: {} });
});

test('what a source needs is checked when the configuration is read', () => {
  const aws = (credentials: object): object => ({ ...BEDROCK, options: { region: 'us-east-1', credentials } });
  refused(aws({ environment: {} }), /needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY/);
  refused(aws({ container: {} }), /container\.url: is needed: the environment names no address/);
  for (const env of [
    { AWS_CONTAINER_CREDENTIALS_RELATIVE_URI: '@example.com/x' },
    { AWS_CONTAINER_CREDENTIALS_RELATIVE_URI: '.example.com/x' },
    { AWS_CONTAINER_CREDENTIALS_FULL_URI: 'http://example.com/x' },
    { AWS_CONTAINER_CREDENTIALS_FULL_URI: 'http://169.254.169.254/x' },
    { AWS_CONTAINER_CREDENTIALS_FULL_URI: 'file:///etc/passwd' },
  ])
    refused(aws({ container: {} }), /container\.url: is no address of a container/, env as Env);
  for (const url of [
    'http://169.254.170.23/v1',
    'http://[fd00:ec2::23]/v1',
    'http://localhost:8080/x',
    'https://keys.example.com/x',
  ])
    parse(aws({ container: {} }), { AWS_CONTAINER_CREDENTIALS_FULL_URI: url });
  refused(aws({ web_identity: {} }), /web_identity\.role_arn: is needed where AWS_ROLE_ARN is not set/);
  refused(aws({ web_identity: { role_arn: 'r' } }), /web_identity\.token_file: is needed/);
  const identity = (more: object): object => ({
    ...VERTEX,
    options: { ...PLACE, credentials: { workload_identity: { audience: 'a', ...more } } },
  });
  refused(identity({}), /workload_identity\.token_file: is needed, or token_url/);
  refused(identity({ token_file: '/t', token_url: 'http://h' }), /token_file: is needed, or token_url, not both/);
  refused(identity({ token_file: '/t', token_field: 'x' }), /token_url: is what token_headers and token_field are for/);
  refused(aws({ profile: {} }), /profile\.file: is needed where no HOME is set/);
  refused(aws({ instance: { url: 'http://127.0.0.1:x' } }), /instance\.url: is not a URL/);
  const key = (text: string): object => ({ ...VERTEX, options: { ...PLACE, credentials: { service_account: { key: text } } } });
  refused(key('no json'), /service_account\.key: is not the JSON of a key file/);
  refused(key('{}'), /has no client_email or no private_key/);
  refused(key('{"client_email":"a@b","private_key":"x"}'), /is no RSA key/);
  parse(key(['$', '{file:/run/secrets/key.json}'].join('')));
  refused({ ...BEDROCK, options: { region: 'US EAST', credentials: { instance: {} } } }, /options\.region/);
  refused({ ...VERTEX, options: { ...PLACE, project: 'a/b', credentials: { metadata: {} } } }, /options\.project/);
});

test('sources of AWS that the environment completes', () => {
  const source = (credentials: object, env: Env): unknown => {
    const { platform } = parse({ ...BEDROCK, options: { region: 'us-east-1', credentials } }, env);
    return platform?.platform === 'bedrock' ? platform.source : undefined;
  };
  const keys = { AWS_ACCESS_KEY_ID: 'AKID', AWS_SECRET_ACCESS_KEY: 'secret' };
  assert.deepEqual(source({ environment: {} }, keys), {
    from: 'static',
    keys: { accessKeyId: 'AKID', secretAccessKey: 'secret' },
  });
  assert.deepEqual(
    source({ container: {} }, { AWS_CONTAINER_CREDENTIALS_RELATIVE_URI: '/v2/x', AWS_CONTAINER_AUTHORIZATION_TOKEN: 't' }),
    {
      ...{ from: 'container', url: 'http://169.254.170.2/v2/x', token: 't' },
    },
  );
  assert.deepEqual(source({ profile: {} }, { HOME: '/home/a' }), {
    from: 'profile',
    name: 'default',
    file: '/home/a/.aws/credentials',
  });
  assert.deepEqual(source({ web_identity: {} }, { AWS_ROLE_ARN: 'arn', AWS_WEB_IDENTITY_TOKEN_FILE: '/t' }), {
    ...{ from: 'web_identity', roleArn: 'arn', tokenFile: '/t', sessionName: 'mizu', url: 'https://sts.us-east-1.amazonaws.com' },
  });
  assert.deepEqual(source({ instance: {} }, {}), { from: 'instance', url: 'http://169.254.169.254' });
});

test('the configurations of docs/clouds.md are right', () => {
  const blocks = [...readFileSync('docs/clouds.md', 'utf8').matchAll(/```jsonc\n([\s\S]*?)```/g)].map(([, text = '']) => text);
  assert.equal(blocks.length, 3);
  const env = { AWS_SECRET: 's', AZURE_OPENAI_API_KEY: 'k', AZURE_CLIENT_SECRET: 's' };
  for (const text of blocks) {
    const sources = {
      env,
      readFile: () => SERVICE_ACCOUNT,
      parsePrice: (price: unknown) => ({ ok: true as const, value: testRates(price) }),
    };
    const config = parseConfig(text, { ...sources, path: '/tmp/mizu.config.json', revision: 1, nowMs: 0 });
    assert.ok(config.channels.every(({ platform }) => platform !== undefined));
  }
});
