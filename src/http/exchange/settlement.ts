/**
 * The way of a settlement into the store, which always ends: in the log on the local disk, in the engine, or as one line at
 * error.
 */
import { settlementLost } from '../../store/settlements/lost-row.ts';
import type { RequestLogEntry } from '../../store/request-log.ts';
import type { Reservation } from '../../store/reservations.ts';
import { StoreError } from '../../store/store-error.ts';
import { within } from '../../streams/clock.ts';
import type { Gateway } from '../gateway.ts';
import { STORE_MS } from '../from-store.ts';

/** A reservation as the store gets it: what was handed over can still be given back where the store never answers. */
export class OwnReservation implements Reservation {
  readonly #reservation: Reservation;
  #end: (() => void) | undefined;

  constructor(reservation: Reservation) {
    this.#reservation = reservation;
  }

  release(): void {
    this.#reservation.release();
  }

  handOver(charge: bigint): () => void {
    this.#end = this.#reservation.handOver(charge);
    return this.#end;
  }

  /** Also where the store has it. */
  giveUp(): void {
    this.#reservation.release();
    this.#end?.();
  }
}

/**
 * Resolves when the settlement is on the local disk. Rejects where the store refused it, or did not answer within 10 seconds: the
 * reservation is then given back, and unless the store tells of it, a line at error holds the whole charge. Never throws.
 */
export async function keepSettlement(gateway: Gateway, entry: RequestLogEntry, reservation: OwnReservation): Promise<void> {
  const { store, clock, log } = gateway;
  let settled: PromiseLike<unknown> | undefined;
  let isLate = false;
  try {
    settled = store.settlements.settle({ entry, reservation, strict: true });
    await within(clock, STORE_MS, settled, () => {
      isLate = true;
      return new StoreError('unavailable', `the settlement was not on disk within ${STORE_MS} ms`);
    });
  } catch (thrown) {
    reservation.giveUp();
    // A store that refused has told of it (`Settlements`); one that is unwell goes on trying, and tells where it gives up.
    const isTold = isLate ? !store.health().healthy : thrown instanceof StoreError;
    if (isTold) throw thrown;
    gateway.metrics.settlementLost();
    log.error({ request_id: entry.requestId, err: thrown }, settlementLost(entry));
    if (isLate && settled !== undefined) {
      const written = { request_id: entry.requestId, exchange_id: entry.exchangeId };
      void settled.then(
        () => log.error(written, 'a settlement that was lost has been written after all'),
        () => undefined,
      );
    }
    throw thrown;
  }
}

export function ignoreRejection(promise: PromiseLike<unknown>): Promise<void> {
  return Promise.resolve(promise).then(
    () => undefined,
    () => undefined,
  );
}
