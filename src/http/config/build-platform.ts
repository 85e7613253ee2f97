/**
 * The platform of a Channel from its entry: default addresses, the one source of its credential, and the rules between the keys.
 */
import { createPrivateKey } from 'node:crypto';
import { defined } from '../../codecs/defined.ts';
import { isObject, tryJson } from '../../codecs/canonical/json.ts';
import type {
  AwsSource,
  AzureSettings,
  BedrockSettings,
  EntraSource,
  GoogleSource,
  PlatformSettings,
  VertexSettings,
} from '../platforms/settings.ts';
import type { ConfigProblem } from './config-error.ts';
import type { HostedEntry } from './schema.ts';

type Environment = Readonly<Record<string, string | undefined>>;
type Refuse = (key: string, message: string) => undefined;
type EntryOf<Name extends HostedEntry['platform']> = Extract<HostedEntry, { readonly platform: Name }>;
type Sources<Name extends HostedEntry['platform']> = NonNullable<EntryOf<Name>['options']['credentials']>;

/** Undefined where problems were appended. */
export function buildPlatform(
  entry: HostedEntry,
  env: Environment,
  at: string,
  problems: ConfigProblem[],
): PlatformSettings | undefined {
  const refuse: Refuse = (key, message) => {
    problems.push({ path: `${at}.${key}`, message });
    return undefined;
  };
  if (entry.platform === 'vertex') {
    if (entry.api_key !== undefined) refuse('api_key', 'is not taken by vertex: see options.credentials');
  } else if ((entry.api_key === undefined) === (entry.options.credentials === undefined)) {
    refuse('options.credentials', 'is needed where there is no api_key, and impossible beside one');
    return undefined;
  }
  for (const [source, keys] of Object.entries<object>(entry.options.credentials ?? {})) {
    for (const [key, value] of Object.entries(keys)) {
      if (/(^|_)url$/.test(key) && typeof value === 'string' && !URL.canParse(value))
        return refuse(`options.credentials.${source}.${key}`, 'is not a URL');
    }
  }
  switch (entry.platform) {
    case 'bedrock':
      return bedrockOf(entry, env, refuse);
    case 'vertex':
      return vertexOf(entry, refuse);
    case 'azure':
      return azureOf(entry, refuse);
  }
}

/** The address that a platform has where `base_url` names none. */
export function defaultAddress(entry: HostedEntry): string {
  switch (entry.platform) {
    case 'bedrock':
      return awsAddress('bedrock-runtime', entry.options.region);
    case 'vertex': {
      const { location } = entry.options;
      if (location === 'global') return 'https://aiplatform.googleapis.com';
      if (location === 'us' || location === 'eu') return `https://aiplatform.${location}.rep.googleapis.com`;
      return `https://${location}-aiplatform.googleapis.com`;
    }
    case 'azure':
      return entry.base_url;
  }
}

/** Domains of AWS's partitions but the first, by the beginning of their regions. */
const DOMAINS: readonly (readonly [RegExp, string])[] = [
  [/^cn-/, 'amazonaws.com.cn'],
  [/^eusc-/, 'amazonaws.eu'],
  [/^us-iso-/, 'c2s.ic.gov'],
  [/^us-isob-/, 'sc2s.sgov.gov'],
  [/^eu-isoe-/, 'cloud.adc-e.uk'],
  [/^us-isof-/, 'csp.hci.ic.gov'],
];

function awsAddress(service: string, region: string): string {
  const domain = DOMAINS.find(([regions]) => regions.test(region))?.[1] ?? 'amazonaws.com';
  return `https://${service}.${region}.${domain}`;
}

function bedrockOf(entry: EntryOf<'bedrock'>, env: Environment, refuse: Refuse): BedrockSettings | undefined {
  const { region, credentials } = entry.options;
  const own = entry.base_url === undefined ? undefined : URL.parse(entry.base_url)?.origin;
  const controlOrigin = own ?? awsAddress('bedrock', region);
  if (credentials === undefined) return { platform: 'bedrock', region, controlOrigin };
  const source = awsSource(credentials, region, env, refuse);
  return source === undefined ? undefined : { platform: 'bedrock', region, controlOrigin, source };
}

function awsSource(credentials: Sources<'bedrock'>, region: string, env: Environment, refuse: Refuse): AwsSource | undefined {
  const { static: keys, profile, environment, web_identity: identity, container, instance } = credentials;
  if (keys !== undefined) {
    const { access_key_id: accessKeyId, secret_access_key: secretAccessKey, session_token: sessionToken } = keys;
    return { from: 'static', keys: { accessKeyId, secretAccessKey, ...defined({ sessionToken }) } };
  }
  if (profile !== undefined) {
    const home = env['HOME'] ?? env['USERPROFILE'];
    const file =
      profile.file ?? env['AWS_SHARED_CREDENTIALS_FILE'] ?? (home === undefined ? undefined : `${home}/.aws/credentials`);
    if (file === undefined) return refuse('options.credentials.profile.file', 'is needed where no HOME is set');
    return { from: 'profile', name: profile.name, file };
  }
  if (environment !== undefined) return environmentKeys(env, refuse);
  if (identity !== undefined) return webIdentity(identity, region, env, refuse);
  if (container !== undefined) return containerSource(container, env, refuse);
  return { from: 'instance', url: originOf(instance?.url ?? 'http://169.254.169.254') };
}

function environmentKeys(env: Environment, refuse: Refuse): AwsSource | undefined {
  const { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey, AWS_SESSION_TOKEN: sessionToken } = env;
  if (!accessKeyId || !secretAccessKey)
    return refuse('options.credentials.environment', 'needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment');
  return { from: 'static', keys: { accessKeyId, secretAccessKey, ...(sessionToken ? { sessionToken } : {}) } };
}

function webIdentity(
  identity: NonNullable<Sources<'bedrock'>['web_identity']>,
  region: string,
  env: Environment,
  refuse: Refuse,
): AwsSource | undefined {
  const roleArn = identity.role_arn ?? env['AWS_ROLE_ARN'];
  const tokenFile = identity.token_file ?? env['AWS_WEB_IDENTITY_TOKEN_FILE'];
  const at = 'options.credentials.web_identity';
  if (!roleArn) return refuse(`${at}.role_arn`, 'is needed where AWS_ROLE_ARN is not set');
  if (!tokenFile) return refuse(`${at}.token_file`, 'is needed where AWS_WEB_IDENTITY_TOKEN_FILE is not set');
  const url = identity.url ?? awsAddress('sts', region);
  return { from: 'web_identity', roleArn, tokenFile, sessionName: identity.session_name, url };
}

/** The address that ECS serves relative paths at. */
const CONTAINER_ORIGIN = 'http://169.254.170.2';
/** Whom the environment may name without TLS: the machine itself, ECS, and the Pod Identity of EKS. */
const CONTAINER_HOSTS = /^(localhost|127(\.\d+){3}|\[::1\]|169\.254\.170\.2|169\.254\.170\.23|\[fd00:ec2::23\])$/;

function containerSource(
  container: NonNullable<Sources<'bedrock'>['container']>,
  env: Environment,
  refuse: Refuse,
): AwsSource | undefined {
  const relative = env['AWS_CONTAINER_CREDENTIALS_RELATIVE_URI'];
  const named = container.url ?? (relative ? CONTAINER_ORIGIN + relative : env['AWS_CONTAINER_CREDENTIALS_FULL_URI']);
  if (!named) return refuse('options.credentials.container.url', 'is needed: the environment names no address');
  const { protocol, hostname } = URL.parse(named) ?? { protocol: '', hostname: '' };
  if (protocol === '') return refuse('options.credentials.container.url', 'is not a URL in the environment');
  const isFixed = protocol === 'https:' || (protocol === 'http:' && CONTAINER_HOSTS.test(hostname));
  // A relative path without its slash would name another host.
  if (container.url === undefined && (!isFixed || relative?.startsWith('/') === false))
    return refuse('options.credentials.container.url', 'is no address of a container in the environment');
  const token = env['AWS_CONTAINER_AUTHORIZATION_TOKEN'];
  const tokenFile = container.token_file ?? env['AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE'];
  return { from: 'container', url: named, ...(tokenFile ? { tokenFile } : token ? { token } : {}) };
}

function vertexOf(entry: EntryOf<'vertex'>, refuse: Refuse): VertexSettings | undefined {
  const { project, location, api_version: version, credentials } = entry.options;
  const source = googleSource(credentials, refuse);
  if (source === undefined) return undefined;
  const isGemini = entry.type === 'gemini';
  return {
    platform: 'vertex',
    project,
    location,
    apiVersion: version ?? (isGemini ? 'v1beta1' : 'v1'),
    publisher: isGemini ? 'google' : 'anthropic',
    source,
  };
}

function googleSource(credentials: Sources<'vertex'>, refuse: Refuse): GoogleSource | undefined {
  const { service_account: account, workload_identity: identity, metadata } = credentials;
  if (account !== undefined) return serviceAccount(account, refuse);
  if (identity !== undefined) {
    const { token_file: tokenFile, token_url: tokenUrl } = identity;
    const at = 'options.credentials.workload_identity';
    if ((tokenFile === undefined) === (tokenUrl === undefined))
      return refuse(`${at}.token_file`, 'is needed, or token_url, not both');
    if (tokenUrl === undefined && (identity.token_headers ?? identity.token_field) !== undefined)
      return refuse(`${at}.token_url`, 'is what token_headers and token_field are for');
    return {
      from: 'workload_identity',
      audience: identity.audience,
      ...defined({ tokenFile, tokenUrl, tokenHeaders: identity.token_headers, tokenField: identity.token_field }),
      tokenType: identity.token_type,
      url: identity.url ?? 'https://sts.googleapis.com/v1/token',
      impersonationUrl: originOf(identity.impersonation_url ?? 'https://iamcredentials.googleapis.com'),
      ...defined({ serviceAccount: identity.service_account }),
    };
  }
  return { from: 'metadata', url: originOf(metadata?.url ?? 'http://metadata.google.internal') };
}

/** Addresses in the file are not trusted: a token is asked for at the fixed one, or at the operator's own. */
function serviceAccount(
  { key, url }: NonNullable<Sources<'vertex'>['service_account']>,
  refuse: Refuse,
): GoogleSource | undefined {
  const at = 'options.credentials.service_account.key';
  const json = tryJson(key);
  if (!isObject(json)) return refuse(at, 'is not the JSON of a key file');
  const { client_email: email, private_key: privateKey, private_key_id: keyId } = json;
  if (typeof email !== 'string' || typeof privateKey !== 'string') return refuse(at, 'has no client_email or no private_key');
  if (!isRsaKey(privateKey)) return refuse(at, 'has a private_key that is no RSA key');
  return {
    from: 'service_account',
    email,
    privateKey,
    url: url ?? 'https://oauth2.googleapis.com/token',
    ...(typeof keyId === 'string' ? { keyId } : {}),
  };
}

function isRsaKey(pem: string): boolean {
  try {
    return createPrivateKey(pem).asymmetricKeyType === 'rsa';
  } catch {
    // OpenSSL's message could quote it.
    return false;
  }
}

function azureOf({ base_url: url, options }: EntryOf<'azure'>, refuse: Refuse): AzureSettings | undefined {
  // As the portal shows it: the deployment and the version would be there twice.
  if (/\/openai\/deployments\b/.test(url))
    return refuse('base_url', 'ends before /openai: the deployment is a name in models, or options.deployment');
  const { api_version: apiVersion, deployment, credentials } = options;
  return { platform: 'azure', ...defined({ apiVersion, deployment, source: entraSource(credentials) }) };
}

function entraSource(credentials: Sources<'azure'> | undefined): EntraSource | undefined {
  const held = credentials?.client_secret ?? credentials?.workload_identity;
  if (held === undefined) return undefined;
  const { tenant_id: tenantId, client_id: clientId } = held;
  const shared = { tenantId, clientId, url: originOf(held.url ?? 'https://login.microsoftonline.com') };
  return 'client_secret' in held
    ? { from: 'client_secret', ...shared, clientSecret: held.client_secret }
    : { from: 'workload_identity', ...shared, tokenFile: held.token_file };
}

/** Without a slash at its end, so that a path can be appended. */
function originOf(url: string): string {
  return url.replace(/\/+$/, '');
}
