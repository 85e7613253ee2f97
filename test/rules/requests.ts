/** A client's request decoded, for rules that the canonical form decides. */
import type { CanonicalRequest } from '../../src/codecs/canonical/request.ts';
import { type ClientName, clientOf } from '../failures/through.ts';
import { openForTests } from '../support/wire.ts';

export { gatewayError as need } from '../failures/gateway-error.ts';

export function decodeWith(client: ClientName, body: object): CanonicalRequest {
  const text = JSON.stringify({ model: 'logical-model', ...body });
  return clientOf(client).decodeRequest(text, JSON.parse(text), { open: openForTests });
}
