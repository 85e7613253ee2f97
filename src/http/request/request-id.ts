/** A client may name its request; the gateway's own identity of an exchange is another one. */
import type { IncomingMessage } from 'node:http';

/** Undefined for none, and for one that is not fit to be repeated. */
export function clientRequestId({ headers }: IncomingMessage): string | undefined {
  const id = headers['x-request-id'];
  return typeof id === 'string' && /^[\w.:-]{1,128}$/.test(id) ? id : undefined;
}
