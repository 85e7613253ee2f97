/** What anything thrown is to a client of the admin API. */
import { GatewayError } from '../../codecs/canonical/error.ts';
import { StoreError } from '../../store/store-error.ts';
import { ConfigError } from '../config/config-error.ts';
import { RefusedError, type RefusalKind } from './refusals.ts';
import type { AdminFailure } from './reply.ts';

const STATUS: Readonly<Record<RefusalKind, number>> = { invalid: 400, unknown: 404, conflict: 409, unavailable: 503 };

/** Undefined for a mistake of ours, which is logged and not told. */
export function failureOf(thrown: unknown): AdminFailure | undefined {
  if (thrown instanceof RefusedError)
    return { status: STATUS[thrown.kind], code: thrown.code, message: thrown.message, param: thrown.member };
  if (thrown instanceof GatewayError)
    return { status: thrown.status, code: thrown.shownCode, message: thrown.message, param: thrown.param ?? undefined };
  if (thrown instanceof ConfigError)
    return { status: 409, code: 'invalid_config', message: thrown.message, problems: thrown.problems };
  if (thrown instanceof StoreError)
    return { status: 503, code: 'store_unavailable', message: 'The store is not available.', headers: { 'retry-after': '1' } };
  return undefined;
}

export const INTERNAL: AdminFailure = { status: 500, code: 'internal_error', message: 'The gateway failed.' };
