/**
 * Every value that a header was sent with. Node's `headers` joins or drops repeated ones, and `headersDistinct` builds a map of
 * all headers.
 */
import type { IncomingMessage } from 'node:http';

/** `name` in lower case. */
export function headerValues({ rawHeaders }: IncomingMessage, name: string): string[] {
  const values: string[] = [];
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const sent = rawHeaders[at];
    if (sent?.length === name.length && sent.toLowerCase() === name) values.push(rawHeaders[at + 1] ?? '');
  }
  return values;
}
