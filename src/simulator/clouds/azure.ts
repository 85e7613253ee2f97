/** Azure OpenAI: keys and tokens of Microsoft Entra are checked, and the endpoint that gives the tokens is here, too. */
import { type Answer, jsonAnswer } from '../answer.ts';
import type { ReceivedRequest } from '../journal.ts';
import type { Door } from './entered.ts';
import { createTokens, type Tokens } from './tokens.ts';

export interface AzureCloud {
  readonly apiKey?: string;
  /** Absent: every deployment is there. */
  readonly deployments?: readonly string[];
  readonly application?: {
    readonly tenantId: string;
    readonly clientId: string;
    readonly clientSecret?: string;
    readonly assertion?: string;
  };
  readonly tokenLifeS?: number;
  readonly revoked?: () => boolean;
}

const TOKEN = /^\/([^/]+)\/oauth2\/v2\.0\/token$/;
const SCOPED =
  /^\/openai\/deployments\/([^/]+)(\/(?:chat\/completions|completions|embeddings|images\/generations|images\/edits))$/;
const OPEN =
  /^\/openai(?:\/v1)?(\/(?:responses|responses\/compact|models|chat\/completions|embeddings|images\/generations|images\/edits))$/;
const SCOPE = 'https://cognitiveservices.azure.com/.default';

export function azureDoor(cloud: AzureCloud | undefined, now: () => number, mint: (prefix: string) => string): Door {
  const tokens = createTokens(now, mint, { lifeS: cloud?.tokenLifeS, revoked: cloud?.revoked });
  return (request) => {
    const [, tenant] = TOKEN.exec(request.path) ?? [];
    if (tenant !== undefined) return { request, answer: tokenAnswer(request, tenant, cloud, tokens), isAside: true };
    const [, deployment, scoped] = SCOPED.exec(request.path) ?? [];
    const path = scoped ?? OPEN.exec(request.path)?.[1];
    if (path === undefined) return undefined;
    const refusal = refusalOf(request, deployment === undefined ? request.model : decodeURIComponent(deployment), cloud, tokens);
    const isAside = path === '/models';
    if (refusal !== undefined) return { request, answer: refusal, isAside };
    return { request: { ...request, path: `/v1${path}` }, isAside };
  };
}

function azureError(status: number, code: string, message: string): Answer {
  return jsonAnswer(status, JSON.stringify({ error: { code, message } }), {
    'apim-request-id': '00000000-0000-4000-8000-000000000000',
  });
}

function refusalOf(
  { path, query, headers }: ReceivedRequest,
  deployment: string | undefined,
  cloud: AzureCloud | undefined,
  tokens: Tokens,
): Answer | undefined {
  if (!path.startsWith('/openai/v1/') && !/^\d{4}-\d\d-\d\d(-preview)?$/.test(query['api-version'] ?? ''))
    return azureError(404, '404', 'Resource not found');
  if (cloud === undefined) return undefined;
  const isKnown = headers['api-key'] === undefined ? tokens.isGood(headers.authorization) : headers['api-key'] === cloud.apiKey;
  if (!isKnown)
    return azureError(
      401,
      '401',
      'Access denied due to invalid subscription key or wrong API endpoint. Make sure to provide a valid key for an active subscription and use a correct regional API endpoint for your resource.',
    );
  if (path.endsWith('/models') || deployment === undefined || cloud.deployments === undefined) return undefined;
  if (cloud.deployments.includes(deployment)) return undefined;
  return azureError(
    404,
    'DeploymentNotFound',
    'The API deployment for this resource does not exist. If you created the deployment within the last 5 minutes, please wait a moment and try again.',
  );
}

function tokenAnswer({ text }: ReceivedRequest, tenant: string, cloud: AzureCloud | undefined, tokens: Tokens): Answer {
  const form = new URLSearchParams(text);
  if (cloud === undefined) return jsonAnswer(200, JSON.stringify(tokens.give()));
  const wanted = cloud?.application;
  const isSecret = wanted?.clientSecret !== undefined && form.get('client_secret') === wanted.clientSecret;
  const isAssertion =
    wanted?.assertion !== undefined &&
    form.get('client_assertion') === wanted.assertion &&
    form.get('client_assertion_type') === 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer';
  if (tenant !== wanted?.tenantId || form.get('client_id') !== wanted.clientId || form.get('grant_type') !== 'client_credentials')
    return jsonAnswer(
      400,
      JSON.stringify({
        error: 'unauthorized_client',
        error_description: 'AADSTS700016: The application was not found in the directory.',
      }),
    );
  if (form.get('scope') !== SCOPE)
    return jsonAnswer(
      400,
      JSON.stringify({
        error: 'invalid_scope',
        error_description: 'AADSTS70011: The provided value for the input parameter scope is not valid.',
      }),
    );
  if (!isSecret && !isAssertion)
    return jsonAnswer(
      401,
      JSON.stringify({
        error: 'invalid_client',
        error_description: `AADSTS7000215: Invalid client secret provided: ${form.get('client_secret') ?? ''}.`,
      }),
    );
  return jsonAnswer(200, JSON.stringify(tokens.give()));
}
