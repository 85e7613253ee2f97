/**
 * Access tokens of Microsoft Entra by client credentials (OAuth 2.0;
 * https://learn.microsoft.com/entra/identity-platform/v2-oauth2-client-creds-grant-flow).
 */
import { accessToken, askJson, type Outside } from '../ask-endpoint.ts';
import { readSecretFile } from '../secret-file.ts';
import type { Fresh } from '../renewed.ts';
import type { EntraSource } from '../settings.ts';

const SCOPE = 'https://cognitiveservices.azure.com/.default';
const ASSERTION = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer';

/** Rejects with a `credentialError`. */
export async function entraToken(source: EntraSource, outside: Outside): Promise<Fresh<string>> {
  const url = `${source.url}/${encodeURIComponent(source.tenantId)}/oauth2/v2.0/token`;
  const secret = source.from === 'client_secret' ? source.clientSecret : await readSecretFile(source.tokenFile);
  const proof =
    source.from === 'client_secret' ? { client_secret: secret } : { client_assertion_type: ASSERTION, client_assertion: secret };
  const body = new URLSearchParams({
    client_id: source.clientId,
    scope: SCOPE,
    grant_type: 'client_credentials',
    ...proof,
  }).toString();
  const headers = { 'content-type': 'application/x-www-form-urlencoded' };
  const json = await askJson({ url, method: 'POST', headers, body, secrets: [secret] }, outside);
  return accessToken(json, url, outside.clock.now());
}
