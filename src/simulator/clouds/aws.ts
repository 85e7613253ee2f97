/**
 * Amazon Bedrock: signatures are checked as AWS checks them, and the sources of keys on an instance and in a container are here,
 * too.
 */
import { createHash, createHmac } from 'node:crypto';
import { type Answer, jsonAnswer } from '../answer.ts';
import type { ReceivedRequest } from '../journal.ts';
import { isObject, type JsonObject, objectOf, parseJson, stringOf } from '../json.ts';
import type { Door, Entered } from './entered.ts';
import { asEventStream, rawAsEventStream } from './event-stream.ts';

export interface AwsAccess {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
  readonly expiresAtMs?: number;
}

export interface AwsCloud {
  readonly region: string;
  /** Keys that are good now. */
  readonly accepted: () => readonly AwsAccess[];
  readonly apiKey?: string;
  /** Absent: every model is there. */
  readonly models?: readonly string[];
  /** What the instance and the container get; undefined: the role was taken away. */
  readonly role?: () => AwsAccess | undefined;
  readonly containerToken?: string;
  /** Who may take the role by a token of another issuer. */
  readonly webIdentity?: { readonly roleArn: string; readonly token: string };
}

const INVOKE = /^\/model\/([^/]+)\/(invoke|invoke-with-response-stream)$/;
const ROLE_LIST = '/latest/meta-data/iam/security-credentials/';
const IMDS_TOKEN = 'imds-token';

export function awsDoor(cloud: AwsCloud | undefined, now: () => number): Door {
  return (request) => {
    const aside = asideAnswer(request, cloud, now);
    if (aside !== undefined) return { request, answer: aside, isAside: true };
    const [, segment, verb] = INVOKE.exec(request.path) ?? [];
    if (segment === undefined) return undefined;
    const refusal = cloud === undefined ? undefined : refusalOf(request, cloud, now);
    if (refusal !== undefined) return { request, answer: refusal };
    return invoke(request, decodeURIComponent(segment), verb === 'invoke-with-response-stream', cloud);
  };
}

function invoke(request: ReceivedRequest, model: string, stream: boolean, cloud: AwsCloud | undefined): Entered {
  const { anthropic_version: version, anthropic_beta: _betas, ...body } = objectOf(request.body);
  if (cloud?.models?.includes(model) === false)
    return { request, answer: awsError(400, 'ValidationException', 'The provided model identifier is invalid.') };
  const extra = ['model', 'stream'].find((name) => name in body);
  if (extra !== undefined)
    return { request, answer: awsError(400, 'ValidationException', `${extra}: Extra inputs are not permitted`) };
  if (stringOf(version) === '')
    return { request, answer: awsError(400, 'ValidationException', 'anthropic_version: Field required') };
  const inner = { ...body, model, ...(stream ? { stream: true } : {}) };
  return {
    request: { ...request, path: '/v1/messages', body: inner, model },
    wrap: (answer) => (answer.status === 200 ? asEventStream(answer) : asAwsError(answer)),
    wrapRaw: rawAsEventStream,
    spoken: (fault) =>
      fault.body === undefined
        ? {
            ...fault,
            body: { message: fault.message ?? 'The simulated cloud was told to fail.' },
            headers: { 'x-amzn-errortype': fault.code ?? NAMES.get(fault.status) ?? 'InternalServerException', ...fault.headers },
          }
        : fault,
  };
}

const NAMES = new Map([
  [400, 'ValidationException'],
  [403, 'AccessDeniedException'],
  [404, 'ResourceNotFoundException'],
  [408, 'ModelTimeoutException'],
  [424, 'ModelErrorException'],
  [429, 'ThrottlingException'],
  [503, 'ServiceUnavailableException'],
]);

function awsError(status: number, name: string, message: string, headers: Readonly<Record<string, string>> = {}): Answer {
  return jsonAnswer(status, JSON.stringify({ message }), {
    'x-amzn-errortype': `${name}:http://internal.amazon.com/coral/com.amazon.bedrock/`,
    'x-amzn-requestid': '00000000-0000-4000-8000-000000000000',
    ...headers,
  });
}

function asAwsError(answer: Answer): Answer {
  const body = parseJson(answer.frames.map(({ text }) => text).join(''));
  const message = isObject(body) && isObject(body.error) ? stringOf(body.error.message) : 'failed';
  return awsError(answer.status, NAMES.get(answer.status) ?? 'InternalServerException', message);
}

function asideAnswer(request: ReceivedRequest, cloud: AwsCloud | undefined, now: () => number): Answer | undefined {
  const { path, method, headers } = request;
  if (path === '/latest/api/token') {
    const isAsked = method === 'PUT' && Number(headers['x-aws-ec2-metadata-token-ttl-seconds']) > 0;
    return isAsked ? textAnswer(200, IMDS_TOKEN) : textAnswer(400, '');
  }
  if (path.startsWith(ROLE_LIST)) {
    if (headers['x-aws-ec2-metadata-token'] !== IMDS_TOKEN) return textAnswer(401, '');
    const role = cloud?.role?.();
    if (role === undefined) return textAnswer(404, '');
    return path === ROLE_LIST ? textAnswer(200, 'simulated-role') : jsonAnswer(200, keysJson(role, now, { Code: 'Success' }));
  }
  if (path === '/v2/credentials/simulated') {
    if (headers.authorization !== cloud?.containerToken) return jsonAnswer(401, '{"message":"unauthorised"}');
    const role = cloud?.role?.();
    return role === undefined ? jsonAnswer(403, '{"message":"the role was revoked"}') : jsonAnswer(200, keysJson(role, now));
  }
  if (path === '/' && method === 'POST') return stsAnswer(request, cloud, now);
  if (path !== '/foundation-models') return undefined;
  const refusal = cloud === undefined ? undefined : refusalOf(request, cloud, now);
  const modelSummaries = (cloud?.models ?? []).map((modelId) => ({ modelId, providerName: 'Anthropic' }));
  return refusal ?? jsonAnswer(200, JSON.stringify({ modelSummaries }));
}

function stsAnswer({ text }: ReceivedRequest, cloud: AwsCloud | undefined, now: () => number): Answer | undefined {
  const form = new URLSearchParams(text);
  if (form.get('Action') !== 'AssumeRoleWithWebIdentity') return undefined;
  const refuse = (status: number, code: string, message: string): Answer =>
    textAnswer(
      status,
      `<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">\n  <Error>\n    <Type>Sender</Type>\n    <Code>${code}</Code>\n    <Message>${message}</Message>\n  </Error>\n</ErrorResponse>`,
    );
  const role = cloud?.role?.();
  if (form.get('Version') !== '2011-06-15' || !form.get('RoleSessionName'))
    return refuse(400, 'ValidationError', 'a parameter is missing');
  if (form.get('WebIdentityToken') !== cloud?.webIdentity?.token)
    return refuse(400, 'InvalidIdentityToken', `Couldn't verify the token ${form.get('WebIdentityToken') ?? ''}`);
  if (role === undefined || form.get('RoleArn') !== cloud?.webIdentity?.roleArn)
    return refuse(403, 'AccessDenied', 'Not authorized to perform sts:AssumeRoleWithWebIdentity');
  const end = new Date(role.expiresAtMs ?? now() + 3_600_000).toISOString();
  return textAnswer(
    200,
    `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>${role.accessKeyId}</AccessKeyId><SecretAccessKey>${role.secretAccessKey}</SecretAccessKey><SessionToken>${role.sessionToken ?? ''}</SessionToken><Expiration>${end}</Expiration></Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`,
  );
}

function textAnswer(status: number, text: string): Answer {
  return { ...jsonAnswer(status, text), headers: { 'content-type': 'text/plain' } };
}

function keysJson(access: AwsAccess, now: () => number, more: JsonObject = {}): string {
  return JSON.stringify({
    ...more,
    AccessKeyId: access.accessKeyId,
    SecretAccessKey: access.secretAccessKey,
    Token: access.sessionToken,
    Expiration: new Date(access.expiresAtMs ?? now() + 3_600_000).toISOString(),
  });
}

const SKEW_MS = 300_000;
const SCHEME =
  /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/([^/]+)\/aws4_request, SignedHeaders=([^,]+), Signature=([0-9a-f]{64})$/;

/** Undefined for a request that AWS would let in. */
function refusalOf(request: ReceivedRequest, cloud: AwsCloud, now: () => number): Answer | undefined {
  const { headers } = request;
  const refuse = (name: string, message: string): Answer => awsError(403, name, message, { date: new Date(now()).toUTCString() });
  const { authorization = '' } = headers;
  if (authorization.startsWith('Bearer '))
    return authorization === `Bearer ${cloud.apiKey ?? ''}`
      ? undefined
      : refuse('AccessDeniedException', 'Authentication failed: API Key is invalid.');
  const [, id = '', day = '', region = '', service = '', names = '', signature] = SCHEME.exec(authorization) ?? [];
  if (signature === undefined) return refuse('MissingAuthenticationTokenException', 'Missing Authentication Token');
  const access = cloud.accepted().find(({ accessKeyId }) => accessKeyId === id);
  if (access === undefined || headers['x-amz-security-token'] !== access.sessionToken)
    return refuse('UnrecognizedClientException', 'The security token included in the request is invalid.');
  if (access.expiresAtMs !== undefined && access.expiresAtMs <= now())
    return refuse('ExpiredTokenException', 'The security token included in the request is expired');
  const date = headers['x-amz-date'] ?? '';
  const at = Date.parse(date.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z'));
  if (!(Math.abs(at - now()) <= SKEW_MS))
    return refuse('InvalidSignatureException', `Signature expired: ${date} is now earlier than the time of the service`);
  if (region !== cloud.region || service !== 'bedrock' || !date.startsWith(day))
    return refuse(
      'InvalidSignatureException',
      `Credential should be scoped to a valid region and service, not '${region}/${service}'.`,
    );
  const bodyHash = createHash('sha256').update(request.text).digest('hex');
  const needed = [
    'host',
    'x-amz-date',
    'x-amz-content-sha256',
    ...(access.sessionToken === undefined ? [] : ['x-amz-security-token']),
  ];
  const signed = names.split(';');
  const isSigned = needed.every((name) => signed.includes(name)) && headers['x-amz-content-sha256'] === bodyHash;
  if (isSigned && signature === expected(request, access, { date, day, region, service, signed })) return undefined;
  const told = `The Canonical String for this request should have been 'x-amz-security-token:${headers['x-amz-security-token'] ?? ''}'`;
  return refuse(
    'InvalidSignatureException',
    `The request signature we calculated does not match the signature you provided. ${told}`,
  );
}

interface Scope {
  readonly date: string;
  readonly day: string;
  readonly region: string;
  readonly service: string;
  readonly signed: readonly string[];
}

const hmac = (key: string | Buffer, text: string): Buffer => createHmac('sha256', key).update(text).digest();
const encoded = (text: string): string =>
  encodeURIComponent(text).replace(/[!'()*]/g, (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`);

function expected(request: ReceivedRequest, access: AwsAccess, { date, day, region, service, signed }: Scope): string {
  const path = request.path.split('/').map(encoded).join('/');
  const query = Object.keys(request.query)
    .sort()
    .map((name) => `${encoded(name)}=${encoded(request.query[name] ?? '')}`)
    .join('&');
  const lines = signed.map((name) => `${name}:${(request.headers[name] ?? '').trim()}\n`).join('');
  const canonical = [request.method, path, query, lines, signed.join(';'), request.headers['x-amz-content-sha256']].join('\n');
  const scope = `${day}/${region}/${service}/aws4_request`;
  const text = ['AWS4-HMAC-SHA256', date, scope, createHash('sha256').update(canonical).digest('hex')].join('\n');
  const key = [day, region, service, 'aws4_request'].reduce(hmac, Buffer.from(`AWS4${access.secretAccessKey}`) as Buffer);
  return hmac(key, text).toString('hex');
}
