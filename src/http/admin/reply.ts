/** How the admin API writes its answers. */
import type { ServerResponse } from 'node:http';
import { SAFE_HEADERS } from '../server/safe-headers.ts';
import { jsonText, jsonTextInSteps } from './json-text.ts';
import { GatewayError } from '../../codecs/canonical/error.ts';
import { StoreError } from '../../store/store-error.ts';
import { ConfigError } from '../config/config-error.ts';
import { RefusedError, type RefusalKind } from './refusals.ts';

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
  writeText(response, status, jsonText(value), headers);
}

/** {@link writeJson} of what may hold a long list. */
export async function writeLongJson(
  response: ServerResponse,
  status: number,
  value: unknown,
  headers: Readonly<Record<string, string>>,
): Promise<void> {
  writeText(response, status, await jsonTextInSteps(value), headers);
}

function writeText(response: ServerResponse, status: number, text: string, headers: Readonly<Record<string, string>>): void {
  const body = Buffer.from(text);
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': body.length,
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

const STATUS: Readonly<Record<RefusalKind, number>> = { invalid: 400, unknown: 404, conflict: 409, unavailable: 503 };

/** Undefined for a mistake of ours, which is logged and not told. */
export function failureOf(thrown: unknown): AdminFailure | undefined {
  if (thrown instanceof RefusedError)
    return { status: STATUS[thrown.kind], code: thrown.code, message: thrown.message, param: thrown.member };
  if (thrown instanceof GatewayError)
    return { status: thrown.status, code: thrown.shownCode, message: thrown.message, param: thrown.param ?? undefined };
  if (thrown instanceof ConfigError)
    return { status: 409, code: 'invalid_config', message: thrown.message, problems: thrown.problems };
  // The store is well, and the same amount is as wrong a second later.
  if (thrown instanceof StoreError && thrown.code === 'amount_out_of_range')
    return { status: 409, code: thrown.code, message: thrown.message };
  if (thrown instanceof StoreError)
    return { status: 503, code: 'store_unavailable', message: 'The store is not available.', headers: { 'retry-after': '1' } };
  return undefined;
}

export const INTERNAL: AdminFailure = { status: 500, code: 'internal_error', message: 'The gateway failed.' };
