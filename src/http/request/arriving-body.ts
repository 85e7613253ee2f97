/** What decides whether a body is read, and how much of it: the money and the memory that its key has. */
import type { IncomingMessage } from 'node:http';
import type { Principal } from '../../store/keys.ts';
import type { Call } from '../gateway.ts';
import type { KeySlot } from './key-slots.ts';
import { FREE_BODY_BYTES, noMoney } from './solvency.ts';

export interface ArrivingBody {
  /** Held until the response closes. */
  readonly slot: KeySlot;
  /** To be called with the bytes that were received, and with those they were decompressed to. Throws the refusal. */
  readonly weigh: (bytes: number) => void;
}

/**
 * Asked once the key is known and before the body is read. Throws `insufficient_balance` for a large body of a key without money,
 * `rate_limited` or `overloaded` where there is no room for it, and `client_closed_request`.
 */
export function arrivingBody(call: Call, { key }: Principal, maxBytes: number): ArrivingBody | Promise<ArrivingBody> {
  const { keySlots, solvency } = call.gateway;
  const size = leastSize(call.request);
  const enter = (hasMoney: boolean): ArrivingBody => {
    if (!hasMoney && (size ?? 0) > FREE_BODY_BYTES) throw noMoney();
    const slot = keySlots.enter(call, key.id, maxBytes);
    return {
      slot,
      weigh(bytes) {
        if (!hasMoney && bytes > FREE_BODY_BYTES) throw noMoney();
        slot.growTo(bytes);
      },
    };
  };
  const isFree = size !== undefined && size <= FREE_BODY_BYTES && call.request.headers['content-encoding'] === undefined;
  return isFree ? enter(true) : solvency.hasMoney(key.id).then(enter);
}

/** As the head declares it; undefined where it does not. */
function leastSize({ headers }: IncomingMessage): number | undefined {
  return headers['transfer-encoding'] === undefined ? Number(headers['content-length'] ?? 0) : undefined;
}
