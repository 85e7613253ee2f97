/**
 * A worker that can take no further connection. The primary hands each to the worker whose turn it is. One that is given back
 * goes to another, and a worker has no further turn before it has said what became of its last.
 */
import type { Worker } from 'node:cluster';
import type { Server } from 'node:net';
import { isObject } from '../../codecs/canonical/json.ts';
import type { Clock } from '../../streams/clock.ts';

/** Between two connections that a full worker gives back. Where all are full it costs next to nothing. */
const GIVE_BACK_MS = 10;

/** Gives back one now and then, for a worker that has room: where every worker is full, all would go round without end. */
class GiveBack {
  #from = Number.NEGATIVE_INFINITY;
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  mayOne(): boolean {
    const now = this.#clock.monotonic();
    if (now - this.#from < GIVE_BACK_MS) return false;
    this.#from = now;
    return true;
  }
}

/** At `maxConnections` a worker's server gives back all that is too many, unless it is told to refuse. */
export function refuseWhenAllAreFull(server: Server, clock: Clock): void {
  const giveBack = new GiveBack(clock);
  // Looked at for each connection that is too many, and only in a worker.
  Object.defineProperty(server, 'dropMaxConnection', { get: () => !giveBack.mayOne() });
}

/**
 * In a worker: answers for a connection that did not arrive, because no descriptor is left for it. Nobody else does, so that the
 * primary would hold it, and hand this worker no other.
 */
export function answerForLost(worker: Worker, clock: Clock): void {
  const giveBack = new GiveBack(clock);
  worker.process.on('internalMessage', (message: unknown, handle: unknown) => {
    if (handle !== undefined && handle !== null) return;
    const ack = connectionOf(message);
    // One that is taken is closed by the primary.
    if (ack !== undefined && worker.isConnected()) worker.send({ cmd: 'NODE_CLUSTER', ack, accepted: !giveBack.mayOne() });
  });
}

/** The number of a message that was to bring a connection. */
function connectionOf(message: unknown): number | undefined {
  if (!isObject(message) || message['cmd'] !== 'NODE_HANDLE') return undefined;
  const { msg } = message;
  return isObject(msg) && msg['act'] === 'newconn' && typeof msg['seq'] === 'number' ? msg['seq'] : undefined;
}
