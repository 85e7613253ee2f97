/** The id that a client gave its request. The gateway's exchange id is always its own. */
import type { IncomingMessage } from 'node:http';

/** Undefined for none, and for one that is too long or holds other characters. */
export function clientRequestId({ headers }: IncomingMessage): string | undefined {
  const id = headers['x-request-id'];
  return typeof id === 'string' && /^[\w.:-]{1,128}$/.test(id) ? id : undefined;
}
