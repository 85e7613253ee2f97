/**
 * Keys of AWS from where the configuration says; https://docs.aws.amazon.com/sdkref/latest/guide/standardized-credentials.html
 * has the sources.
 */
import { readSecretFile } from '../secret-file.ts';
import type { JsonObject } from '../../../codecs/canonical/json.ts';
import { askEndpoint, askJson, isToken, nameOf, type Outside, withoutToken } from '../ask-endpoint.ts';
import { credentialError } from '../credential-error.ts';
import type { Means } from '../platform.ts';
import type { Fresh } from '../renewed.ts';
import type { AwsKeys, AwsSource } from '../settings.ts';
import { profileKeys } from './profile.ts';

/** A file names no expiry: it is read again after this long. */
const FILE_MS = 600_000;
const METADATA_TOKEN_S = '21600';

type Source<From extends AwsSource['from']> = Extract<AwsSource, { readonly from: From }>;

/** Rejects with a `credentialError`. */
export async function awsKeys(source: AwsSource, { clock, direct, outside: beyond }: Means): Promise<Fresh<AwsKeys>> {
  const outside = { clock, dispatcher: direct };
  switch (source.from) {
    case 'static':
      return { value: source.keys, expiresAtMs: undefined };
    case 'profile':
      return {
        value: profileKeys(await readSecretFile(source.file), source),
        expiresAtMs: clock.now() + FILE_MS,
      };
    case 'web_identity':
      return await roleKeys(source, { clock, dispatcher: beyond });
    case 'container':
      return await containerKeys(source, outside);
    case 'instance':
      return await instanceKeys(source, outside);
  }
}

async function containerKeys({ url, token, tokenFile }: Source<'container'>, outside: Outside): Promise<Fresh<AwsKeys>> {
  const authorization = tokenFile === undefined ? token : await readSecretFile(tokenFile);
  const headers = authorization === undefined ? {} : { authorization };
  return keysOf(
    await askJson({ url, headers, ...(authorization === undefined ? {} : { secrets: [authorization] }) }, outside),
    url,
  );
}

/**
 * The keys of a role for the token of another issuer, as Kubernetes mounts it
 * (https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRoleWithWebIdentity.html).
 */
async function roleKeys(source: Source<'web_identity'>, outside: Outside): Promise<Fresh<AwsKeys>> {
  const { url, roleArn, sessionName, tokenFile } = source;
  const token = await readSecretFile(tokenFile);
  const body = new URLSearchParams({
    Action: 'AssumeRoleWithWebIdentity',
    Version: '2011-06-15',
    RoleArn: roleArn,
    RoleSessionName: sessionName,
    WebIdentityToken: token,
  }).toString();
  const headers = { accept: 'text/xml', 'content-type': 'application/x-www-form-urlencoded' };
  const xml = await askEndpoint({ url, method: 'POST', headers, body, secrets: [token] }, outside);
  const said = new Map([...xml.matchAll(MEMBERS)].map(([, name = '', value = '']) => [name, value]));
  return keysOf({ ...Object.fromEntries(said), Token: said.get('SessionToken') }, url);
}

/** Elements whose values hold neither entities nor markup. */
const MEMBERS = /<(AccessKeyId|SecretAccessKey|SessionToken|Expiration)>([^<]+)</g;

/** The second version of the service alone: the first gives keys to whoever can make the machine send a GET. */
async function instanceKeys({ url: origin }: Source<'instance'>, outside: Outside): Promise<Fresh<AwsKeys>> {
  const put = {
    url: `${origin}/latest/api/token`,
    method: 'PUT' as const,
    headers: { 'x-aws-ec2-metadata-token-ttl-seconds': METADATA_TOKEN_S },
  };
  const token = (await askEndpoint(put, outside)).trim();
  if (!isToken(token)) throw withoutToken(put.url);
  const headers = { 'x-aws-ec2-metadata-token': token };
  const list = `${origin}/latest/meta-data/iam/security-credentials/`;
  const role = (await askEndpoint({ url: list, headers, secrets: [token] }, outside)).split('\n')[0]?.trim() ?? '';
  if (!/^[\w+=,.@-]+$/.test(role)) throw credentialError('refused', `${list} names no role: the instance has none`);
  const url = list + role;
  return keysOf(await askJson({ url, headers, secrets: [token] }, outside), url);
}

function keysOf(json: JsonObject, url: string): Fresh<AwsKeys> {
  const { Code: code, AccessKeyId: accessKeyId, SecretAccessKey: secretAccessKey, Token: sessionToken, Expiration: end } = json;
  if (typeof code === 'string' && code !== 'Success')
    throw credentialError('refused', `${nameOf(url)} answered ${code.slice(0, 100)}`);
  const expiresAtMs = typeof end === 'string' ? Date.parse(end) : Number.NaN;
  const isWhole = isToken(accessKeyId) && isToken(secretAccessKey) && isToken(sessionToken) && !Number.isNaN(expiresAtMs);
  if (!isWhole) throw credentialError('unreadable', `${nameOf(url)} answered without keys`);
  return { value: { accessKeyId, secretAccessKey, sessionToken }, expiresAtMs };
}
