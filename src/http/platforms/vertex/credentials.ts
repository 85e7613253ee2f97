/**
 * Access tokens of Google: for the key of a service account (RFC 7523), for a token of another issuer (RFC 8693;
 * https://cloud.google.com/iam/docs/workload-identity-federation), or from the metadata server.
 */
import { createSign } from 'node:crypto';
import type { JsonObject } from '../../../codecs/canonical/json.ts';
import { accessToken, askEndpoint, askJson, isToken, type Outside, withoutToken } from '../ask-endpoint.ts';
import type { Means } from '../platform.ts';
import type { Fresh } from '../renewed.ts';
import { readSecretFile } from '../secret-file.ts';
import type { GoogleSource } from '../settings.ts';

const SCOPE = 'https://www.googleapis.com/auth/cloud-platform';
/** Whom the assertion is for, wherever it is sent. */
const AUDIENCE = 'https://oauth2.googleapis.com/token';
const FORM = { 'content-type': 'application/x-www-form-urlencoded' };
const ASSERTION_S = 3600;

type Source<From extends GoogleSource['from']> = Extract<GoogleSource, { readonly from: From }>;

/** Rejects with a `credentialError`. */
export async function googleToken(source: GoogleSource, { clock, direct, outside }: Means): Promise<Fresh<string>> {
  switch (source.from) {
    case 'service_account':
      return await accountToken(source, { clock, dispatcher: outside });
    case 'workload_identity':
      return await federatedToken(source, { clock, dispatcher: outside });
    case 'metadata': {
      const url = `${source.url}/computeMetadata/v1/instance/service-accounts/default/token`;
      const json = await askJson(
        { url: `${url}?scopes=${encodeURIComponent(SCOPE)}`, headers: { 'metadata-flavor': 'Google' } },
        { clock, dispatcher: direct },
      );
      return accessToken(json, url, clock.now());
    }
  }
}

async function accountToken(source: Source<'service_account'>, outside: Outside): Promise<Fresh<string>> {
  const now = outside.clock.now();
  const assertion = assertionOf(source, Math.floor(now / 1000));
  const body = new URLSearchParams({ grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer', assertion }).toString();
  const { url } = source;
  return accessToken(await askJson({ url, method: 'POST', headers: FORM, body, secrets: [assertion] }, outside), url, now);
}

function assertionOf({ email, keyId, privateKey }: Source<'service_account'>, nowS: number): string {
  const header = { alg: 'RS256', typ: 'JWT', ...(keyId === undefined ? {} : { kid: keyId }) };
  const claims = { iss: email, scope: SCOPE, aud: AUDIENCE, exp: nowS + ASSERTION_S, iat: nowS };
  const unsigned = `${base64(header)}.${base64(claims)}`;
  return `${unsigned}.${createSign('RSA-SHA256').update(unsigned).sign(privateKey, 'base64url')}`;
}

function base64(json: object): string {
  return Buffer.from(JSON.stringify(json)).toString('base64url');
}

async function federatedToken(source: Source<'workload_identity'>, outside: Outside): Promise<Fresh<string>> {
  const { url, audience, tokenType, serviceAccount } = source;
  const subject = await subjectToken(source, outside);
  const body = new URLSearchParams({
    grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
    audience,
    scope: SCOPE,
    requested_token_type: 'urn:ietf:params:oauth:token-type:access_token',
    subject_token: subject,
    subject_token_type: tokenType,
  }).toString();
  const json = await askJson({ url, method: 'POST', headers: FORM, body, secrets: [subject] }, outside);
  const federated = accessToken(json, url, outside.clock.now());
  return serviceAccount === undefined ? federated : await lentToken(source, serviceAccount, federated.value, outside);
}

/** The token of the other issuer. */
async function subjectToken(source: Source<'workload_identity'>, outside: Outside): Promise<string> {
  const { tokenFile, tokenUrl: url = '', tokenHeaders: headers = {}, tokenField } = source;
  if (tokenFile !== undefined) return await readSecretFile(tokenFile);
  const asked = { url, headers, secrets: Object.values(headers) };
  const token = tokenField === undefined ? await askEndpoint(asked, outside) : (await askJson(asked, outside))[tokenField];
  const subject = typeof token === 'string' ? token.trim() : token;
  if (!isToken(subject)) throw withoutToken(url);
  return subject;
}

/** The token of the service account that the federated one may act as. */
async function lentToken(
  { impersonationUrl }: Source<'workload_identity'>,
  account: string,
  token: string,
  outside: Outside,
): Promise<Fresh<string>> {
  const url = `${impersonationUrl}/v1/projects/-/serviceAccounts/${encodeURIComponent(account)}:generateAccessToken`;
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` };
  const body = JSON.stringify({ scope: [SCOPE], lifetime: '3600s' });
  const json: JsonObject = await askJson({ url, method: 'POST', headers, body, secrets: [token] }, outside);
  const { accessToken: value, expireTime: end } = json;
  const expiresAtMs = typeof end === 'string' ? Date.parse(end) : Number.NaN;
  if (!isToken(value) || Number.isNaN(expiresAtMs)) throw withoutToken(url);
  return { value, expiresAtMs };
}
