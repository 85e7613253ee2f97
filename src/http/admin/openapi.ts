/** The admin API as an OpenAPI 3.1 document, printed from its rows: their schemas are JSON Schema already. */
import type { TSchema } from 'typebox';
import { ADMIN_PREFIX, ADMIN_ROUTES, type AdminRoute } from './routes.ts';

type JsonObject = { readonly [name: string]: unknown };

const FAILURES: Readonly<Record<string, string>> = {
  400: 'A member is missing, unknown or wrong: `param` names it.',
  401: 'No admin token, or none that is known.',
  403: 'The token may only read, or the request comes from a page of another address.',
  404: 'There is no such thing.',
  409: 'It cannot be done in this state, or the `Idempotency-Key` was used for another request.',
  429: 'Too many sign-ins fail at the moment.',
  503: 'The store is away, or videos are changed at the primary.',
};

const ERROR = {
  type: 'object',
  required: ['error'],
  properties: {
    error: {
      type: 'object',
      required: ['code', 'message'],
      properties: { code: { type: 'string' }, message: { type: 'string' }, param: { type: 'string' } },
    },
  },
};

export function adminDocument(): JsonObject {
  const paths = new Map<string, Record<string, JsonObject>>();
  for (const [name, route] of Object.entries<AdminRoute>(ADMIN_ROUTES)) {
    const path = `${ADMIN_PREFIX}${route.path}`;
    const operations = paths.get(path) ?? {};
    operations[route.method.toLowerCase()] = operation(name, route);
    paths.set(path, operations);
  }
  return {
    openapi: '3.1.1',
    info: { title: 'Mizu admin API', version: '1', description: 'What operators do, on the operations port.' },
    security: [{ bearer: [] }, { session: [] }],
    paths: Object.fromEntries(paths),
    components: {
      schemas: { Error: ERROR },
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer' },
        session: { type: 'apiKey', in: 'cookie', name: 'mizu_session' },
      },
    },
  };
}

function operation(name: string, route: AdminRoute): JsonObject {
  const { method, path, role, summary, request, response, status = 200, isStream } = route;
  const inPath = new Set([...path.matchAll(/\{(\w+)\}/g)].map(([, member = '']) => member));
  const required = new Set<string>(request.required ?? []);
  const members = Object.entries<TSchema>(request.properties);
  const others = members.filter(([member]) => !inPath.has(member));
  const isChange = role === 'write';
  const hasBody = isChange && method !== 'DELETE';
  const parameters = [
    ...members.filter(([member]) => inPath.has(member)).map(([member, schema]) => parameter(member, 'path', true, schema)),
    ...(hasBody ? [] : others.map(([member, schema]) => parameter(member, 'query', required.has(member), schema))),
    ...(isChange ? CHANGE_HEADERS : []),
  ];
  const type = isStream === true ? 'text/event-stream' : 'application/json';
  return {
    operationId: name,
    summary,
    'x-role': role,
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(hasBody ? { requestBody: bodyOf(others, required) } : {}),
    responses: {
      [String(status)]: { description: summary, content: { [type]: { schema: response } } },
      ...Object.fromEntries(Object.entries(FAILURES).map(([code, description]) => [code, failure(description)])),
    },
  };
}

const parameter = (name: string, place: 'path' | 'query' | 'header', required: boolean, schema: object): JsonObject => ({
  name,
  in: place,
  required,
  schema,
});

const CHANGE_HEADERS: readonly JsonObject[] = [
  parameter('Idempotency-Key', 'header', false, { type: 'string', minLength: 1, maxLength: 64 }),
  parameter('x-mizu-reason', 'header', false, { type: 'string', maxLength: 1_000 }),
];

const REASON = { type: 'string', maxLength: 1_000, description: 'Why, for the journal; stronger than the header.' };

function bodyOf(members: readonly (readonly [string, TSchema])[], required: ReadonlySet<string>): JsonObject {
  const names = members.map(([name]) => name).filter((name) => required.has(name));
  return {
    required: names.length > 0,
    content: {
      'application/json': {
        schema: {
          type: 'object',
          properties: { ...Object.fromEntries(members), reason: REASON },
          ...(names.length === 0 ? {} : { required: names }),
          additionalProperties: false,
        },
      },
    },
  };
}

const failure = (description: string): JsonObject => ({
  description,
  content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
});
