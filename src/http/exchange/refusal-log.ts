/**
 * Logs a request that was refused before it was dispatched. With an authenticated key it gets a log line and a row of the request log like any
 * exchange, without a charge. Without one it gets a debug line only, since anyone could fill the log (the metrics count it).
 */
import type { GatewayError } from '../../codecs/canonical/error.ts';
import { EXCHANGE_PREFIX } from '../../store/settlement.ts';
import { boundedEntry } from './bounded-entry.ts';
import type { CallContext } from '../gateway.ts';

/** Does nothing for an exchange that has a meter, which writes the row. */
export function logRefusal(call: CallContext, error: GatewayError): void {
  const { gateway, notes, requestId, route } = call;
  if (notes.metered === true) return;
  const { principal } = notes;
  if (principal === undefined) {
    gateway.log.debug({ request_id: requestId, route, code: error.code, message: error.message }, 'refused');
    return;
  }
  const unwritten = gateway.refusals.count(principal.key.id);
  if (unwritten === undefined) {
    gateway.metrics.refusalThinned();
    return;
  }
  const entry = boundedEntry({
    exchangeId: gateway.mint(EXCHANGE_PREFIX),
    requestId,
    ...(call.clientRequestId === undefined ? {} : { clientRequestId: call.clientRequestId }),
    accountId: principal.account.id,
    keyId: principal.key.id,
    endpoint: route,
    model: notes.model ?? '',
    stream: notes.stream ?? false,
    status: 'error',
    httpStatus: error.status,
    errorCode: error.code,
    errorText: unwritten === 0 ? error.message : `${error.message} [${unwritten} refusals before this one have no row]`,
    startedAtMs: call.startedAtMs,
    durationMs: Math.max(0, gateway.clock.now() - call.startedAtMs),
    ip: call.ip,
    attempts: [],
  });
  gateway.log.info(
    {
      request_id: requestId,
      exchange_id: entry.exchangeId,
      trace_id: call.trace?.traceId,
      key_id: entry.keyId,
      account_id: entry.accountId,
      route,
      model: entry.model,
      attempts: 0,
      stream: entry.stream,
      status: error.status,
      error_code: error.code,
      duration_ms: entry.durationMs,
      ...(unwritten === 0 ? {} : { unwritten }),
    },
    'refused',
  );
  // Rows that an unhealthy store cannot write wait in memory, and clients that retry must not fill it with rows that cost nothing.
  if (gateway.store.health().healthy) void gateway.store.settlements.settle({ entry });
}
