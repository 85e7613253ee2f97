/**
 * Vertex AI: Claude by `rawPredict`, as `@anthropic-ai/vertex-sdk` asks it, and Gemini as `@google/genai` does, with the model in
 * the path and an OAuth token.
 */
import { isObject, type JsonObject, type JsonValue, tryJson } from '../../../codecs/canonical/json.ts';
import type { UpstreamAnswer } from '../../../codecs/codec.ts';
import { textOf } from '../../../codecs/errors/upstream.ts';
import { geminiUpstream } from '../../../codecs/gemini/index.ts';
import { editJson } from '../../../codecs/json/edit.ts';
import type { Outgoing } from '../../dispatch/outgoing.ts';
import { hostedVersion } from '../anthropic-version.ts';
import { bearerOf } from '../bearer.ts';
import { pathSegment } from '../path-segment.ts';
import type { Asked, Means, Platform, Refused } from '../platform.ts';
import type { VertexSettings } from '../settings.ts';
import { googleToken } from './credentials.ts';

const VERSION = 'vertex-2023-10-16';

export function vertexPlatform(settings: VertexSettings, means: Means): Platform {
  const bearer = bearerOf(means.clock, () => googleToken(settings.source, means));
  const at = `projects/${pathSegment(settings.project)}/locations/${pathSegment(settings.location)}`;
  const adapt = settings.publisher === 'anthropic' ? adaptMessages : adaptGemini;
  return {
    adapt: (outgoing, asked, prefix) => adapt(outgoing, asked, `${versioned(prefix, settings)}/`, at),
    authorise: () => bearer.headers(),
    refused: (answer, request) => ({
      ...readable(answer, settings.publisher),
      again: answer.status === 401 && bearer.refused(request),
    }),
    models: (prefix) => ({
      path: `${prefix.replace(VERSION_AT_END, '')}/v1beta1/publishers/${settings.publisher}/models?pageSize=1000`,
      has: hasModel,
    }),
  };
}

/** By the last part of a name, without its version; a list that goes on, and resources of a project, prove nothing. */
function hasModel({ publisherModels: models, nextPageToken: more }: JsonObject, name: string): boolean | undefined {
  if (!Array.isArray(models) || (more !== undefined && more !== '') || name.startsWith('projects/')) return undefined;
  const own = lastPart(name).split('@')[0];
  return models.filter(isObject).some((model) => lastPart(textOf(model['name']) ?? '').split('@')[0] === own);
}

function lastPart(name: string): string {
  return name.slice(name.lastIndexOf('/') + 1);
}

const VERSION_AT_END = /\/v\d[^/]*$/;

/** A base URL may name the version itself. */
function versioned(prefix: string, { apiVersion }: VertexSettings): string {
  return VERSION_AT_END.test(prefix) ? prefix : `${prefix}/${apiVersion}`;
}

function adaptMessages(outgoing: Outgoing, { stream, upstreamModel }: Asked, version: string, at: string): Outgoing {
  const { 'anthropic-version': dated, ...headers } = outgoing.headers;
  const { body } = outgoing;
  const edits = [
    { path: ['model'], value: undefined },
    { path: ['anthropic_version'], value: JSON.stringify(hostedVersion(dated, VERSION)) },
  ];
  // A server that drops what follows a `;` would drop the verb.
  const model = pathSegment(upstreamModel).replaceAll(';', '%3B');
  return {
    ...outgoing,
    path: `${version}${at}/publishers/anthropic/models/${model}:${stream ? 'streamRawPredict' : 'rawPredict'}`,
    headers: { ...headers, accept: 'application/json' },
    ...(typeof body === 'string' ? { body: editJson(body, edits) } : {}),
  };
}

/** The codec's own path ends with the verb. */
function adaptGemini(outgoing: Outgoing, { upstreamModel }: Asked, version: string, at: string): Outgoing {
  const verb = outgoing.path.slice(outgoing.path.lastIndexOf(':'));
  return { ...outgoing, path: version + resourceOf(upstreamModel, at) + verb };
}

/**
 * A resource of a project is its own path; `PUBLISHER/MODEL` and a bare name are models of publishers, as Google's package reads
 * them.
 */
function resourceOf(model: string, at: string): string {
  const segments = model.split('/').map(pathSegment);
  const [first = '', ...others] = segments;
  const path = segments.join('/');
  if (first === 'projects') return path;
  if (first === 'publishers' || first === 'models') return `${at}/${path}`;
  return others.length === 0 ? `${at}/publishers/google/models/${path}` : `${at}/publishers/${first}/models/${others.join('/')}`;
}

/**
 * Google's words for a model that this location or project does not have, with statuses that speak of the request or of a right.
 */
const LACKS_MODEL =
  /^(publisher model .{1,400} (is not servable in region|was not found|is not allowed)|project .{1,200} is not allowed to use publisher model|the requested model .{1,300} is not (available|supported) in|permission 'aiplatform\.endpoints\.predict' denied on resource '[^']{1,400}\/models\/)/i;

/** What Claude itself refuses comes through in its own protocol, and everything else in Google's. */
function readable(answer: UpstreamAnswer, publisher: VertexSettings['publisher']): Pick<Refused, 'answer' | 'error'> {
  const json = tryJson(answer.text);
  const error = errorOf(Array.isArray(json) ? json[0] : json);
  const lacksModel = (answer.status === 400 || answer.status === 403) && LACKS_MODEL.test(textOf(error?.['message']) ?? '');
  const told = lacksModel ? { ...answer, status: 404 } : answer;
  const isForeign = publisher === 'anthropic' && textOf(error?.['status']) !== undefined;
  return { answer: told, ...(isForeign ? { error: geminiUpstream.decodeError(told) } : {}) };
}

function errorOf(json: JsonValue | undefined): JsonObject | undefined {
  const error = isObject(json) ? json['error'] : undefined;
  return isObject(error) ? error : undefined;
}
