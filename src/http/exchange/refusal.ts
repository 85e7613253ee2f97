/** A call that was refused before it became an exchange: its line and its row. */
import type { GatewayError } from '../../codecs/canonical/error.ts';
import { EXCHANGE_PREFIX } from '../../store/settlement.ts';
import type { CallContext } from '../gateway.ts';
import { logExchange, rowOf } from './row.ts';
import { ignoreRejection } from './settlement.ts';

/**
 * Ends a call that was refused before it became an exchange. With an authenticated key it gets a line and a row like any
 * exchange, without a charge. Without one it gets a debug line only, since anyone could fill the log (the metrics count it).
 * Never throws.
 */
export function refuseCall(call: CallContext, error: GatewayError): void {
  const { gateway, notes, requestId, route, startedAtMs } = call;
  if (notes.admitted === true) return;
  const { principal } = notes;
  if (principal === undefined) {
    gateway.log.debug({ request_id: requestId, route, code: error.code, message: error.message }, 'refused');
    return;
  }
  const { model = '', stream = false } = notes;
  const durationMs = Math.max(0, gateway.clock.now() - startedAtMs);
  const write = (unwritten: number): void => {
    try {
      const facts = { call, principal, error, status: error.status, attempts: [], model, stream, durationMs, unwritten };
      const entry = rowOf({ ...facts, exchangeId: gateway.mint(EXCHANGE_PREFIX) });
      logExchange(call, entry, 'refused', unwritten === 0 ? {} : { unwritten });
      // Rows that an unhealthy store cannot write wait in memory, and clients that retry must not fill it with rows that cost
      // nothing.
      if (gateway.store.health().healthy) ignoreRejection(gateway.store.settlements.settle({ entry }));
    } catch (thrown) {
      gateway.log.error({ request_id: requestId, err: thrown }, 'a refusal has no row');
    }
  };
  const unwritten = gateway.refusals.count(principal.key.id);
  if (unwritten === undefined) {
    gateway.metrics.refusalThinned();
    gateway.refusals.keep(principal.key.id, write);
  } else write(unwritten);
}
