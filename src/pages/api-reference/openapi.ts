/** The reference as an OpenAPI 3.1 document: the same TypeBox schemas, which are JSON Schema already. */
import type { TObject, TSchema } from 'typebox';
import { ERRORS } from '../../codecs/canonical/error.ts';
import { aliasesOf, type EndpointReference, type ResponseReference } from './endpoint.ts';
import { ERROR_TEXTS } from './errors.ts';
import { ref, SHARED_SCHEMAS } from './shared-schemas.ts';

type JsonObject = { readonly [name: string]: unknown };

/** `baseUrl`: named as the server where the configuration gives it; else the document is relative to where it was fetched. */
export function openApiDocument(reference: readonly EndpointReference[], baseUrl: string | undefined): JsonObject {
  const paths = new Map<string, Record<string, JsonObject>>();
  for (const endpoint of reference) {
    const operations = paths.get(endpoint.path) ?? {};
    operations[endpoint.method.toLowerCase()] = operation(endpoint);
    paths.set(endpoint.path, operations);
  }
  return {
    openapi: '3.1.1',
    info: {
      title: 'Mizu',
      version: '1',
      description: 'A multi-protocol model gateway: responses, chat completions, messages, embeddings, images and videos.',
    },
    servers: [{ url: baseUrl ?? '.' }],
    security: [{ bearer: [] }, { apiKey: [] }],
    tags: [...new Set(reference.map(({ group }) => group))].map((name) => ({ name })),
    paths: Object.fromEntries(paths),
    components: {
      schemas: SHARED_SCHEMAS,
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer' },
        apiKey: { type: 'apiKey', in: 'header', name: 'x-api-key' },
      },
    },
  };
}

function operation(endpoint: EndpointReference): JsonObject {
  const { id, group, title, summary, rules = [], auth, headers = [], bodies = [], pathParameters, query } = endpoint;
  const aliases = aliasesOf(endpoint);
  const parameters = [
    ...parametersOf(pathParameters, 'path'),
    ...parametersOf(query, 'query'),
    ...headers.map(({ name, required, text }) => ({
      name,
      in: 'header',
      required,
      description: text,
      schema: { type: 'string' },
    })),
  ];
  return {
    operationId: id,
    tags: [group],
    summary: title,
    description: [summary, ...rules].join('\n\n'),
    ...(auth === 'none' ? { security: [] } : {}),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(bodies.length === 0
      ? {}
      : {
          requestBody: {
            required: true,
            content: Object.fromEntries(bodies.map(({ contentType, schema }) => [contentType, { schema }])),
          },
        }),
    responses: withLimitHeaders(endpoint, { ...successes(endpoint), ...failures(endpoint) }),
    ...(aliases.length === 0 ? {} : { 'x-aliases': aliases }),
  };
}

function parametersOf(schema: TObject | undefined, place: 'path' | 'query'): JsonObject[] {
  if (schema === undefined) return [];
  const required = new Set<string>(schema.required ?? []);
  return Object.entries<TSchema>(schema.properties).map(([name, property]) => ({
    name,
    in: place,
    required: place === 'path' || required.has(name),
    schema: property,
  }));
}

const LIMIT_WORDS = {
  limit: 'The tightest limit that applies, a minute.',
  remaining: 'What is left of it.',
  reset: 'The time until nothing of it is taken any more, for example `12ms`, `1.5s` or `6m0s`.',
};
const MESSAGES_RESET = 'The time at which nothing of it is taken any more, in RFC 3339.';

/** Where limits apply, answers tell how much is left; messages clients read it in the spelling of their SDK, too. */
function withLimitHeaders(
  { errors, errorBody }: EndpointReference,
  responses: Record<string, JsonObject>,
): Record<string, JsonObject> {
  if (!errors.includes('rate_limit_exceeded') || errors.includes('upgrade_required')) return responses;
  const header = (name: string, description: string) =>
    [name, { description: `Only where a limit applies. ${description}`, schema: { type: 'string' } }] as const;
  const headers = Object.fromEntries(
    ['requests', 'tokens'].flatMap((unit) =>
      Object.entries(LIMIT_WORDS).flatMap(([what, text]) => [
        header(`x-ratelimit-${what}-${unit}`, text),
        ...(errorBody === 'messages'
          ? [header(`anthropic-ratelimit-${unit}-${what}`, what === 'reset' ? MESSAGES_RESET : text)]
          : []),
      ]),
    ),
  );
  const limited = Object.entries(responses).map(([status, response]) =>
    Number(status) < 300 || status === '429' ? [status, { ...response, headers }] : [status, response],
  );
  return Object.fromEntries(limited);
}

/** One entry a status: a JSON answer and its stream share theirs. */
function successes({ responses, events = [] }: EndpointReference): Record<string, JsonObject> {
  const byStatus = Map.groupBy(responses, ({ status }) => status);
  return Object.fromEntries(
    [...byStatus].map(([status, group]) => [
      String(status),
      {
        description: group.map(({ text }) => text).join(' '),
        ...contentOf(group),
        ...(events.length === 0 ? {} : { 'x-events': events }),
      },
    ]),
  );
}

function contentOf(group: readonly ResponseReference[]): JsonObject {
  const content = group.flatMap(({ contentType, schema }) =>
    contentType === undefined ? [] : [[contentType, { schema: schema ?? { type: 'string' } }] as const],
  );
  return content.length === 0 ? {} : { content: Object.fromEntries(content) };
}

function failures({ errors, errorBody }: EndpointReference): Record<string, JsonObject> {
  const schema = ref(errorBody === 'messages' ? 'MessagesError' : 'Error');
  const byStatus = Map.groupBy(errors, (code) => ERRORS[code].status);
  return Object.fromEntries(
    [...byStatus].map(([status, codes]) => [
      String(status),
      {
        description: codes.map((code) => `\`${code}\`: ${ERROR_TEXTS[code]}`).join('\n\n'),
        content: { 'application/json': { schema } },
      },
    ]),
  );
}
