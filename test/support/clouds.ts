/** The clouds as tests ask them: a simulator that checks credentials, and Channels that have the right ones. */
import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Clouds } from '../../src/simulator/clouds/door.ts';

export const AWS_KEYS = {
  accessKeyId: 'AKIDSIMULATED',
  secretAccessKey: 'simulated/secret/key',
  sessionToken: 'simulated-session-token',
};
const rsa = generateKeyPairSync('rsa', {
  modulusLength: 2048,
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  publicKeyEncoding: { type: 'spki', format: 'pem' },
});
const EMAIL = 'mizu@simulated.iam.gserviceaccount.com';
/** Of a key file; the address in it is one that must never be asked. */
export const SERVICE_ACCOUNT = JSON.stringify({
  type: 'service_account',
  client_email: EMAIL,
  private_key: rsa.privateKey,
  private_key_id: 'key-1',
  token_uri: 'http://127.0.0.1:9/never',
});
const AUDIENCE = '//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/k8s';
const SUBJECT_TOKEN = 'eyJhbGciOiJub25lIn0.eyJzdWIiOiJtaXp1In0.c2ln';
const BEDROCK_KEY = 'simulated-bedrock-key';
const CONTAINER_TOKEN = 'simulated-container-token';
const ISSUER_KEY = 'simulated-issuer-key';
const ROLE = 'arn:aws:iam::111122223333:role/mizu';
export const AZURE_KEY = 'simulated-azure-key';
export const ENTRA_SECRET = 'simulated-entra-secret';
/** What no client, row, log or answer may hold: every secret above, and what every token of the clouds begins with. */
export const SECRETS: readonly string[] = [
  ...[AWS_KEYS.secretAccessKey, AWS_KEYS.sessionToken, AZURE_KEY, ENTRA_SECRET, CONTAINER_TOKEN, ISSUER_KEY, BEDROCK_KEY],
  ...['token_', 'PRIVATE KEY', 'eyJ'],
];

let secrets: string | undefined;
let written = 0;

/** A file of a folder that goes with the process. */
export function secretFile(name: string, text: string): string {
  if (secrets === undefined) {
    const folder = mkdtempSync(join(tmpdir(), 'mizu-clouds-'));
    process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
    secrets = folder;
  }
  written += 1;
  const path = join(secrets, `${written}-${name}`);
  writeFileSync(path, text);
  return path;
}

export function simulatedClouds(changes: { aws?: object; google?: object; azure?: object } = {}): Clouds {
  return {
    aws: {
      region: 'us-east-1',
      accepted: () => [AWS_KEYS],
      apiKey: BEDROCK_KEY,
      role: () => AWS_KEYS,
      containerToken: CONTAINER_TOKEN,
      webIdentity: { roleArn: ROLE, token: SUBJECT_TOKEN },
      ...changes.aws,
    },
    google: {
      project: 'simulated-project',
      location: 'us-east5',
      accounts: [{ email: EMAIL, publicKey: rsa.publicKey }],
      federation: { audience: AUDIENCE, subjectToken: SUBJECT_TOKEN, issuerKey: ISSUER_KEY },
      ...changes.google,
    },
    azure: {
      apiKey: AZURE_KEY,
      application: {
        tenantId: 'simulated-tenant',
        clientId: 'simulated-client',
        clientSecret: ENTRA_SECRET,
        assertion: SUBJECT_TOKEN,
      },
      ...changes.azure,
    },
  };
}

const AWS_STATIC = {
  access_key_id: AWS_KEYS.accessKeyId,
  secret_access_key: AWS_KEYS.secretAccessKey,
  session_token: AWS_KEYS.sessionToken,
};

/** Every source of credentials, with what it needs of a simulator at this address. */
export const SOURCES: Readonly<Record<string, Readonly<Record<string, (url: string) => object>>>> = {
  bedrock: {
    static: () => ({ static: AWS_STATIC }),
    profile: () => ({
      profile: {
        name: 'work',
        file: secretFile(
          'credentials',
          `# keys\n[default]\naws_access_key_id = other\n\n[work]\naws_access_key_id=${AWS_KEYS.accessKeyId}\naws_secret_access_key = ${AWS_KEYS.secretAccessKey}\naws_session_token = ${AWS_KEYS.sessionToken}\n`,
        ),
      },
    }),
    container: (url) => ({
      container: { url: `${url}/v2/credentials/simulated`, token_file: secretFile('token', `${CONTAINER_TOKEN}\n`) },
    }),
    web_identity: (url) => ({ web_identity: { role_arn: ROLE, token_file: secretFile('token', SUBJECT_TOKEN), url } }),
    instance: (url) => ({ instance: { url } }),
  },
  vertex: {
    service_account: (url) => ({ service_account: { key: SERVICE_ACCOUNT, url: `${url}/token` } }),
    workload_identity: (url) => ({
      workload_identity: { audience: AUDIENCE, token_file: secretFile('token', SUBJECT_TOKEN), url: `${url}/v1/token` },
    }),
    impersonated: (url) => ({
      workload_identity: {
        ...{ audience: AUDIENCE, token_file: secretFile('token', SUBJECT_TOKEN), url: `${url}/v1/token` },
        ...{ service_account: EMAIL, impersonation_url: url },
      },
    }),
    workload_identity_by_address: (url) => ({
      workload_identity: {
        ...{ audience: AUDIENCE, url: `${url}/v1/token`, token_url: `${url}/issuer/token` },
        ...{ token_headers: { 'x-issuer-key': ISSUER_KEY }, token_field: 'value' },
      },
    }),
    metadata: (url) => ({ metadata: { url } }),
  },
  azure: {
    client_secret: (url) => ({
      client_secret: { tenant_id: 'simulated-tenant', client_id: 'simulated-client', client_secret: ENTRA_SECRET, url },
    }),
    workload_identity: (url) => ({
      workload_identity: {
        ...{ tenant_id: 'simulated-tenant', client_id: 'simulated-client' },
        ...{ token_file: secretFile('token', SUBJECT_TOKEN), url },
      },
    }),
  },
};

export interface CloudForm {
  readonly name: string;
  readonly type: 'messages' | 'gemini' | 'chat_completion' | 'responses' | 'openai_image';
  readonly platform: 'bedrock' | 'vertex' | 'azure';
  /** The options beside the credentials. */
  readonly options: object;
  /** The source that most tests use. */
  readonly source: string;
}

const VERTEX = { project: 'simulated-project', location: 'us-east5' };
const AZURE = { api_version: '2024-10-21' };

export const CLOUD_FORMS: readonly CloudForm[] = [
  { name: 'messages on bedrock', type: 'messages', platform: 'bedrock', options: { region: 'us-east-1' }, source: 'static' },
  { name: 'messages on vertex', type: 'messages', platform: 'vertex', options: VERTEX, source: 'service_account' },
  { name: 'gemini on vertex', type: 'gemini', platform: 'vertex', options: VERTEX, source: 'metadata' },
  { name: 'chat on azure', type: 'chat_completion', platform: 'azure', options: AZURE, source: 'client_secret' },
  { name: 'responses on azure', type: 'responses', platform: 'azure', options: AZURE, source: 'client_secret' },
  { name: 'images on azure', type: 'openai_image', platform: 'azure', options: AZURE, source: 'client_secret' },
];

/** A Channel behind a cloud for the model `m`. */
export function cloudChannel(
  form: CloudForm,
  url: string,
  { options = {}, ...changes }: { readonly options?: object; readonly [member: string]: unknown } = {},
): object {
  const credentials = SOURCES[form.platform]?.[form.source]?.(url);
  return {
    ...{ id: 'one', type: form.type, platform: form.platform, base_url: url, models: ['m'] },
    ...changes,
    options: { ...form.options, credentials, ...options },
  };
}
