/** Vertex AI: tokens are checked as Google checks them, and the endpoints that give them are here, too. */
import { createVerify } from 'node:crypto';
import { type Answer, jsonAnswer } from '../answer.ts';
import type { ReceivedRequest } from '../journal.ts';
import { isObject, type JsonObject, objectOf, parseJson, stringOf } from '../json.ts';
import type { Door } from './entered.ts';
import { createTokens, type Tokens } from './tokens.ts';

export interface GoogleCloud {
  readonly project: string;
  readonly location: string;
  /** Absent: every model is there. */
  readonly models?: readonly string[];
  readonly accounts?: readonly { readonly email: string; readonly publicKey: string }[];
  /** Of a workload identity: what is exchanged, and for which provider. */
  readonly federation?: { readonly audience: string; readonly subjectToken: string; readonly issuerKey?: string };
  readonly tokenLifeS?: number;
  /** No token is good any more. */
  readonly revoked?: () => boolean;
}

const PREDICT =
  /^\/(v1|v1beta1)\/projects\/([^/]+)\/locations\/([^/]+)\/(?:publishers\/([^/]+)\/models|endpoints|models)\/([^/:]+):(rawPredict|streamRawPredict|generateContent|streamGenerateContent)$/;
const LISTS = /^\/v1beta1\/publishers\/(anthropic|google)\/models$/;
const LENDS = /^\/v1\/projects\/-\/serviceAccounts\/([^/:]+):generateAccessToken$/;
const METADATA = '/computeMetadata/v1/instance/service-accounts/default/token';
const AUDIENCE = 'https://oauth2.googleapis.com/token';

export function googleDoor(cloud: GoogleCloud | undefined, now: () => number, mint: (prefix: string) => string): Door {
  const tokens = createTokens(now, mint, { lifeS: cloud?.tokenLifeS, revoked: cloud?.revoked });
  return (request) => {
    const aside = asideAnswer(request, cloud, tokens, now);
    if (aside !== undefined) return { request, answer: aside, isAside: true };
    const [, , project = '', location = '', publisher, segment, verb = ''] = PREDICT.exec(request.path) ?? [];
    if (segment === undefined) return undefined;
    const model = decodeURIComponent(segment);
    const refusal = cloud === undefined ? undefined : refusalOf(request, cloud, tokens, { project, location, model, publisher });
    if (refusal !== undefined) return { request, answer: refusal };
    if (publisher !== 'anthropic') return { request: { ...request, path: `/v1beta/models/${segment}:${verb}`, model } };
    const { anthropic_version: version, ...body } = objectOf(request.body);
    const stream = verb === 'streamRawPredict';
    const wrong =
      'model' in body
        ? 'model: Extra inputs are not permitted'
        : stringOf(version) === ''
          ? 'anthropic_version: Field required'
          : undefined;
    if (wrong !== undefined || (body.stream === true) !== stream)
      return { request, answer: googleError(400, 'INVALID_ARGUMENT', wrong ?? 'stream: does not fit the method') };
    return { request: { ...request, path: '/v1/messages', body: { ...body, model }, model } };
  };
}

function googleError(code: number, status: string, message: string): Answer {
  return jsonAnswer(code, JSON.stringify({ error: { code, message, status } }, null, 2));
}

interface Place {
  readonly project: string;
  readonly location: string;
  readonly model: string;
  readonly publisher: string | undefined;
}

function refusalOf({ headers }: ReceivedRequest, cloud: GoogleCloud, tokens: Tokens, place: Place): Answer | undefined {
  if (!tokens.isGood(headers.authorization))
    return googleError(401, 'UNAUTHENTICATED', 'Request had invalid authentication credentials. Expected OAuth 2 access token.');
  const resource = `projects/${place.project}/locations/${place.location}/publishers/${place.publisher ?? ''}/models/${place.model}`;
  if (place.project !== cloud.project)
    return googleError(
      403,
      'PERMISSION_DENIED',
      `Permission 'aiplatform.endpoints.predict' denied on resource '//aiplatform.googleapis.com/${resource}' (or it may not exist).`,
    );
  if (place.location !== cloud.location)
    return googleError(
      400,
      'FAILED_PRECONDITION',
      `Publisher Model \`${resource}\` is not servable in region ${place.location}.`,
    );
  if (cloud.models?.includes(place.model) === false)
    return googleError(
      404,
      'NOT_FOUND',
      `Publisher Model \`${resource}\` was not found or your project does not have access to it.`,
    );
  return undefined;
}

function asideAnswer(
  request: ReceivedRequest,
  cloud: GoogleCloud | undefined,
  tokens: Tokens,
  now: () => number,
): Answer | undefined {
  const { path, headers, text } = request;
  const form = new URLSearchParams(text);
  const give = (): Answer => jsonAnswer(200, JSON.stringify(tokens.give()));
  if (path === '/token') {
    const fault = assertionFault(form, cloud, Math.floor(now() / 1000));
    return fault === undefined ? give() : oauthError('invalid_grant', fault);
  }
  if (path === '/v1/token') {
    const isRight =
      form.get('grant_type') === 'urn:ietf:params:oauth:grant-type:token-exchange' &&
      form.get('audience') === cloud?.federation?.audience &&
      form.get('subject_token') === cloud?.federation?.subjectToken;
    return isRight
      ? give()
      : oauthError('invalid_grant', `The subject token ${form.get('subject_token') ?? ''} is not accepted.`);
  }
  if (path === '/issuer/token') {
    const isKnown = headers['x-issuer-key'] === cloud?.federation?.issuerKey;
    return isKnown
      ? jsonAnswer(200, JSON.stringify({ value: cloud?.federation?.subjectToken }))
      : jsonAnswer(401, '{"message":"no"}');
  }
  if (LENDS.test(path)) {
    if (!tokens.isGood(headers.authorization))
      return googleError(401, 'UNAUTHENTICATED', 'Request had invalid authentication credentials.');
    const { access_token: accessToken, expires_in: seconds } = tokens.give();
    return jsonAnswer(200, JSON.stringify({ accessToken, expireTime: new Date(now() + seconds * 1000).toISOString() }));
  }
  if (path === METADATA) {
    if (headers['metadata-flavor'] !== 'Google') return jsonAnswer(403, '{"error":"Missing Metadata-Flavor:Google header."}');
    return give();
  }
  if (!LISTS.test(path)) return undefined;
  if (cloud !== undefined && !tokens.isGood(headers.authorization)) return googleError(401, 'UNAUTHENTICATED', 'no token');
  return jsonAnswer(
    200,
    JSON.stringify({ publisherModels: (cloud?.models ?? []).map((name) => ({ name: `publishers/x/models/${name}` })) }),
  );
}

function oauthError(error: string, description: string): Answer {
  return jsonAnswer(400, JSON.stringify({ error, error_description: description }));
}

/** What is wrong with the assertion of a service account, in Google's words. */
function assertionFault(form: URLSearchParams, cloud: GoogleCloud | undefined, nowS: number): string | undefined {
  const [head = '', claimed = '', signature = ''] = (form.get('assertion') ?? '').split('.');
  const claims = jsonOf(claimed);
  const account = cloud?.accounts?.find(({ email }) => email === claims.iss);
  if (form.get('grant_type') !== 'urn:ietf:params:oauth:grant-type:jwt-bearer') return 'Unsupported grant type.';
  if (account === undefined) return 'Invalid grant: account not found';
  const isSigned =
    jsonOf(head).alg === 'RS256' &&
    createVerify('RSA-SHA256').update(`${head}.${claimed}`).verify(account.publicKey, signature, 'base64url');
  if (!isSigned) return 'Invalid JWT Signature.';
  const { iat, exp, aud, scope } = claims;
  if (aud !== AUDIENCE) return 'Invalid JWT: Failed audience check.';
  if (scope !== 'https://www.googleapis.com/auth/cloud-platform') return 'Invalid OAuth scope.';
  const isTimely =
    typeof iat === 'number' && typeof exp === 'number' && Math.abs(iat - nowS) < 300 && exp > nowS && exp - iat <= 3600;
  return isTimely ? undefined : 'Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable timeframe.';
}

function jsonOf(part: string): JsonObject {
  const json = parseJson(Buffer.from(part, 'base64url').toString());
  return isObject(json) ? json : {};
}
