/** The API reference against the specification's list, against the route table, and against itself. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PAGE_PATHS } from '../../../src/pages/create-pages.ts';
import { matchRoute, ROUTES } from '../../../src/http/server/route-table.ts';
import { AGENTS } from '../../../src/pages/api-reference/agents.ts';
import { API_REFERENCE, ENDPOINTS } from '../../../src/pages/api-reference/api-reference.ts';
import { ERRORS } from '../../../src/codecs/canonical/error.ts';
import { curlOf, goOf, LANGUAGES, PROTOCOL_EXAMPLES } from '../../../src/pages/api-reference/examples.ts';
import { openApiDocument } from '../../../src/pages/api-reference/openapi.ts';
import { createPages } from '../../../src/pages/create-pages.ts';
import { SAMPLE } from '../../support/pages/sample-prices.ts';

/** Specification, "Overview", the two documents of the pages, and the page of a key's owner. */
const SPECIFIED = [
  'GET /',
  'GET /account',
  'GET /api/codex/usage',
  'GET /apidocs',
  'GET /openapi.json',
  'GET /prices.json',
  'GET /readyz',
  'GET /user/balance',
  'GET /v1/models',
  'GET /v1/models/{id}',
  'GET /v1/responses',
  'GET /v1/usage',
  'GET /v1/videos',
  'GET /v1/videos/{id}',
  'POST /v1/chat/completions',
  'POST /v1/completions',
  'POST /v1/embeddings',
  'POST /v1/images/edits',
  'POST /v1/images/generations',
  'POST /v1/messages',
  'POST /v1/responses',
  'POST /v1/responses/compact',
  'POST /v1/videos',
  'POST /v1/videos/{id}/cancel',
];

test('every endpoint of the specification is in the reference, and one of ours', () => {
  assert.deepEqual(ENDPOINTS.map(({ method, path }) => `${method} ${path}`).sort(), SPECIFIED);
});

test('aliases: four prefixes for synchronous endpoints, codex/ for responses, none for videos and balance', () => {
  const aliases = new Map(ENDPOINTS.map(({ method, path, aliases: list }) => [`${method} ${path}`, [...list].sort()]));
  assert.deepEqual(aliases.get('POST /v1/messages'), ['/api/messages', '/api/v1/messages', '/messages']);
  assert.deepEqual(aliases.get('POST /v1/responses'), [
    '/api/codex/responses',
    '/api/responses',
    '/api/v1/codex/responses',
    '/api/v1/responses',
    '/codex/responses',
    '/responses',
    '/v1/codex/responses',
  ]);
  assert.deepEqual(aliases.get('GET /v1/responses'), aliases.get('POST /v1/responses'));
  for (const exact of ['POST /v1/videos', 'GET /v1/videos/{id}', 'GET /user/balance', 'GET /api/codex/usage', 'GET /readyz']) {
    assert.deepEqual(aliases.get(exact), [], exact);
  }
});

test('every example belongs to an endpoint, every inference endpoint has one, in each language', () => {
  const endpoints = new Set(API_REFERENCE.map(({ id }) => id));
  const shown = new Set(PROTOCOL_EXAMPLES.map(({ endpoint }) => endpoint));
  for (const endpoint of shown) assert.ok(endpoints.has(endpoint), endpoint);
  for (const { id, method } of API_REFERENCE) {
    if (method === 'POST' && id !== 'cancel-video') assert.ok(shown.has(id), `${id} has an example`);
  }
  for (const { id, request, endpoint } of PROTOCOL_EXAMPLES) {
    if (request === undefined) continue;
    const { method, path } = API_REFERENCE.find((entry) => entry.id === endpoint) ?? assert.fail(endpoint);
    assert.deepEqual([request.method, request.path], [method, path], id);
    // Inside single quotes of a shell and backticks of Go.
    assert.doesNotMatch(JSON.stringify(request.body ?? {}), /['`\\]/, id);
    assert.ok(curlOf(request).includes(request.path) && goOf(request).includes(request.path));
  }
});

test('/apidocs: every endpoint, field, event, error and agent, with unique anchors that all links reach', () => {
  const body =
    createPages({ prices: () => SAMPLE })
      .respond('GET', '/apidocs', {})
      ?.body.toString('utf8') ?? '';
  const anchors = [...body.matchAll(/\bid="([^"]+)"/g)].map(([, id]) => id);
  assert.equal(new Set(anchors).size, anchors.length, 'anchors are unique');
  for (const [, target] of body.matchAll(/href="#([^"]+)"/g)) assert.ok(anchors.includes(target), `#${target}`);
  for (const { id, path, events = [] } of API_REFERENCE) {
    assert.ok(anchors.includes(id), id);
    assert.ok(body.includes(`<code>${path}</code>`), path);
    for (const { name } of events) assert.ok(body.includes(`<code>${name.replaceAll('"', '&quot;')}</code>`), name);
  }
  for (const [code, { status }] of Object.entries(ERRORS)) {
    // Whoever has left reads no code.
    if (code === 'client_closed_request') continue;
    assert.ok(body.includes(`<tr id="error-${code}"><th scope="row"><code>${code}</code></th><td>${status}</td>`), code);
  }
  for (const { id } of AGENTS) assert.ok(anchors.includes(id), id);
  for (const field of [
    'previous_response_id',
    'max_tokens',
    'aspect_ratio',
    'image[]',
    'usage.prompt_tokens',
    'billing.frozen',
  ]) {
    assert.ok(body.includes(`<code>${field}</code>`) || body.includes(`.${field}</code>`), field);
  }
  const blocks = [...body.matchAll(/data-protocol="([^"]+)" data-language="([^"]+)"/g)].map(
    ([, protocol, language]) => `${protocol} ${language}`,
  );
  for (const { id } of PROTOCOL_EXAMPLES)
    for (const language of LANGUAGES) assert.ok(blocks.includes(`${id} ${language.id}`), `${id} ${language.id}`);
  assert.doesNotMatch(body, /__BASE_URL__|__MODEL__|undefined|\[object/);
});

test('errors: a video task fails in its own `error`, not as upstream_error; forms are taken by image edits alone', () => {
  const errorsOf = (id: string): readonly string[] => API_REFERENCE.find((entry) => entry.id === id)?.errors ?? assert.fail(id);
  assert.equal(errorsOf('create-video').includes('upstream_error'), false);
  assert.ok(errorsOf('create-video').includes('unsupported_parameter'));
  for (const id of ['create-image', 'edit-image', 'create-video']) assert.ok(errorsOf(id).includes('unsupported_media_type'), id);
  assert.ok(errorsOf('create-completion').includes('response_not_representable'));
});

interface OperationJson {
  readonly operationId: string;
  readonly parameters?: readonly { readonly in: string }[];
  readonly responses: Readonly<Record<string, { readonly description: string }>>;
}

test('/openapi.json: 3.1, every reference resolves, ids are unique, path parameters are declared', () => {
  const document = JSON.parse(JSON.stringify(openApiDocument(API_REFERENCE, 'https://gateway.example.com')));
  assert.match(document.openapi, /^3\.1\./);
  assert.deepEqual(document.servers, [{ url: 'https://gateway.example.com' }]);
  const paths: Readonly<Record<string, Readonly<Record<string, OperationJson>>>> = document.paths;
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.values(methods).map((operation) => ({ path, operation })),
  );
  assert.equal(operations.length, API_REFERENCE.length);
  assert.equal(new Set(operations.map(({ operation }) => operation.operationId)).size, operations.length);
  for (const { path, operation } of operations) {
    const declared = (operation.parameters ?? []).filter((parameter) => parameter.in === 'path');
    assert.equal(declared.length, path.match(/\{/g)?.length ?? 0, operation.operationId);
    for (const [status, { description }] of Object.entries(operation.responses)) {
      assert.match(status, /^[1-5]\d\d$/);
      assert.ok(description.length > 0, `${operation.operationId} ${status}`);
    }
  }
  for (const [, pointer = ''] of JSON.stringify(document).matchAll(/"\$ref":"#\/([^"]+)"/g)) {
    const target = pointer.split('/').reduce((node, name) => node?.[name], document);
    assert.ok(target, pointer);
  }
});

test('the route table and the reference name the same endpoints', () => {
  const routes = [...ROUTES.map(({ method, path }) => `${method} ${path}`), ...PAGE_PATHS.map((path) => `GET ${path}`)];
  assert.deepEqual(routes.sort(), ENDPOINTS.map(({ method, path }) => `${method} ${path}`).sort());
});

test('every alias of the reference is routed to its endpoint, and no other path is', () => {
  for (const { method, path, aliases } of ENDPOINTS) {
    const own = matchRoute(method, path.replace('{id}', 'video_1'));
    for (const alias of aliases) assert.deepEqual(matchRoute(method, alias.replace('{id}', 'video_1')), own, alias);
  }
});
