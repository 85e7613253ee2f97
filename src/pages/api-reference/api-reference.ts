/** The one source of `/apidocs` and `/openapi.json`: every endpoint in the order in which a reader meets them. */
import { ACCOUNT_ENDPOINTS, TEXT_ENDPOINTS } from './account-endpoints.ts';
import { SERVICE_ENDPOINTS } from './service-endpoints.ts';
import { CONVERSATION_ENDPOINTS } from './conversation-endpoints.ts';
import { aliasesOf, type EndpointReference } from './endpoint.ts';
import { MEDIA_ENDPOINTS } from './media-endpoints.ts';

export const API_REFERENCE: readonly EndpointReference[] = [
  ...CONVERSATION_ENDPOINTS,
  ...MEDIA_ENDPOINTS,
  ...TEXT_ENDPOINTS,
  ...ACCOUNT_ENDPOINTS,
  ...SERVICE_ENDPOINTS,
];

export interface EndpointAddress {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  /** Other paths of the same endpoint. */
  readonly aliases: readonly string[];
}

/** What the route table must hold, no more and no less. */
export const ENDPOINTS: readonly EndpointAddress[] = API_REFERENCE.map((endpoint) => ({
  method: endpoint.method,
  path: endpoint.path,
  aliases: aliasesOf(endpoint),
}));
