/** How the admin API writes its answers. */
import type { ServerResponse } from 'node:http';
import { SAFE_HEADERS } from '../server/safe-headers.ts';
import { jsonText } from './json-text.ts';

export interface AdminFailure {
  readonly status: number;
  readonly code: string;
  readonly message: string;
  /** The member of the request that it is about. */
  readonly param?: string | undefined;
  /** Every problem of a configuration. */
  readonly problems?: readonly object[];
  readonly headers?: Readonly<Record<string, string>>;
}

export function writeJson(
  response: ServerResponse,
  status: number,
  value: unknown,
  headers: Readonly<Record<string, string>> = {},
): void {
  const body = jsonText(value);
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    'cache-control': 'no-store',
    ...Object.fromEntries(SAFE_HEADERS),
    ...headers,
  });
  response.end(body);
}

/** `{"error":{"code":…,"message":…}}` */
export function writeFailure(response: ServerResponse, { status, headers, ...error }: AdminFailure): void {
  writeJson(response, status, { error }, headers);
}
