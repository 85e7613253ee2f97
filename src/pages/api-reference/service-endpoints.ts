/** What a gateway tells of itself: its health, its pages and documents. */
import { Type } from 'typebox';
import type { EndpointReference } from './endpoint.ts';
import { priceList } from './price-list-schema.ts';

const SERVICE = 'Service';
const more = { additionalProperties: true } as const;
const html = [{ status: 200, text: 'The page.', contentType: 'text/html' }] as const;

export const SERVICE_ENDPOINTS: readonly EndpointReference[] = [
  {
    id: 'ready',
    group: SERVICE,
    method: 'GET',
    path: '/readyz',
    aliasRule: 'none',
    title: 'Readiness',
    summary: 'Whether this gateway can process requests.',
    auth: 'none',
    responses: [
      { status: 200, text: 'Ready.', contentType: 'application/json', schema: Type.Object({ status: Type.String() }) },
      {
        status: 503,
        text: 'Not ready, with the reasons.',
        contentType: 'application/json',
        schema: Type.Object({ status: Type.Literal('unready'), reasons: Type.Array(Type.String()) }),
      },
    ],
    errors: [],
  },
  {
    id: 'prices',
    group: SERVICE,
    method: 'GET',
    path: '/prices.json',
    aliasRule: 'none',
    title: 'Prices',
    summary: 'Every price of the home page, exact, as a decimal string.',
    auth: 'none',
    rules: ['The answer has an `ETag`. Send it back as `If-None-Match`, and an unchanged list is a 304 without a body.'],
    responses: [
      {
        status: 200,
        text: 'The list.',
        contentType: 'application/json',
        schema: priceList,
      },
    ],
    errors: [],
  },
  {
    id: 'openapi',
    group: SERVICE,
    method: 'GET',
    path: '/openapi.json',
    aliasRule: 'none',
    title: 'OpenAPI document',
    summary: 'This reference as OpenAPI 3.1.',
    auth: 'none',
    responses: [{ status: 200, text: 'The document.', contentType: 'application/json', schema: Type.Object({}, more) }],
    errors: [],
  },
  {
    id: 'home',
    group: SERVICE,
    method: 'GET',
    path: '/',
    aliasRule: 'none',
    title: 'Home page',
    summary: 'Current prices and how to call the models.',
    auth: 'none',
    responses: html,
    errors: [],
  },
  {
    id: 'usage-page',
    group: SERVICE,
    method: 'GET',
    path: '/account',
    aliasRule: 'none',
    title: 'Usage page',
    summary: 'Balance and usage for the owner of a key, who pastes it there. It stays in the memory of the tab.',
    auth: 'none',
    responses: html,
    errors: [],
  },
  {
    id: 'apidocs',
    group: SERVICE,
    method: 'GET',
    path: '/apidocs',
    aliasRule: 'none',
    title: 'API docs',
    summary: 'This page.',
    auth: 'none',
    responses: html,
    errors: [],
  },
];
