/**
 * Azure OpenAI (`AzureOpenAI` of the package openai): the deployment in the path and `api-version` in the query, or the `v1`
 * interface, whose `model` is the deployment. Refusals that are about a deployment, not about the request, become a 404.
 */
import { isObject, tryJson } from '../../../codecs/canonical/json.ts';
import { editJson } from '../../../codecs/json/edit.ts';
import type { UpstreamAnswer } from '../../../codecs/codec.ts';
import type { Outgoing } from '../../dispatch/outgoing.ts';
import { bearerOf } from '../bearer.ts';
import { pathSegment } from '../path-segment.ts';
import type { Asked, Means, Platform } from '../platform.ts';
import type { AzureSettings } from '../settings.ts';
import { entraToken } from './entra.ts';

/** Endpoints whose path names the deployment. */
const SCOPED: ReadonlySet<string> = new Set([
  '/completions',
  '/chat/completions',
  '/embeddings',
  '/images/generations',
  '/images/edits',
]);

export function azurePlatform(settings: AzureSettings, means: Means): Platform {
  const { source } = settings;
  const outside = { clock: means.clock, dispatcher: means.outside };
  const bearer = source === undefined ? undefined : bearerOf(means.clock, () => entraToken(source, outside));
  const key = { 'api-key': means.apiKey ?? '' };
  return {
    adapt: (outgoing, asked, prefix) => adapt(settings, outgoing, asked, prefix),
    authorise: () => bearer?.headers() ?? key,
    refused: (answer, request) => ({
      answer: readable(answer),
      again: answer.status === 401 && bearer?.refused(request) === true,
    }),
    models: (prefix) => ({ path: prefixOf(prefix) + pathOf(settings, '/models', '') }),
  };
}

function adapt(settings: AzureSettings, outgoing: Outgoing, { upstreamModel }: Asked, prefix: string): Outgoing {
  const { deployment } = settings;
  const { path, body } = outgoing;
  const headers = { ...outgoing.headers, accept: 'application/json' };
  const isScoped = settings.apiVersion !== undefined && SCOPED.has(path);
  const renamed =
    isScoped || deployment === undefined || typeof body !== 'string'
      ? body
      : editJson(body, [{ path: ['model'], value: JSON.stringify(deployment) }]);
  return {
    ...outgoing,
    headers,
    path: prefixOf(prefix) + pathOf(settings, path, deployment ?? upstreamModel),
    ...(renamed === undefined ? {} : { body: renamed }),
  };
}

/** The resource's own path, without what this file appends. */
function prefixOf(basePath: string): string {
  return basePath.replace(/\/openai(\/v1)?$/, '');
}

/** Words of the `v1` interface, which has no dates. */
const UNDATED: ReadonlySet<string> = new Set(['v1', 'latest', 'preview']);

function pathOf({ apiVersion }: AzureSettings, path: string, deployment: string): string {
  if (apiVersion === undefined || apiVersion === 'v1') return `/openai/v1${path}`;
  if (UNDATED.has(apiVersion)) return `/openai/v1${path}?api-version=${apiVersion}`;
  const scope = SCOPED.has(path) ? `/deployments/${pathSegment(deployment)}` : '';
  return `/openai${scope}${path}?api-version=${encodeURIComponent(apiVersion)}`;
}

/** About the Channel's own map of models, whatever the status: the client cannot mend it. */
const LACKS_MODEL: ReadonlySet<string> = new Set([
  'DeploymentNotFound',
  'OperationNotSupported',
  'unknown_model',
  'model_not_found',
]);

function readable(answer: UpstreamAnswer): UpstreamAnswer {
  const json = tryJson(answer.text);
  const error = isObject(json) ? json['error'] : undefined;
  const code = isObject(error) ? error['code'] : undefined;
  return typeof code === 'string' && LACKS_MODEL.has(code) ? { ...answer, status: 404 } : answer;
}
