/**
 * In the primary: connections on their way to a worker. The primary hands one over and keeps it until the worker says what became
 * of it. A worker that ends first says nothing, and Node then does nothing: the client would stay connected to nobody, and the
 * primary would keep the descriptor, for as long as the client waits.
 */
import cluster, { type Worker } from 'node:cluster';
import { isObject } from '../../codecs/canonical/json.ts';

/** Node's own, which it hands from process to process. */
interface Connection {
  close(): void;
}

/** `isServed`: whether another worker takes connections now, to which they can go. Otherwise they are closed. */
export function passOnWhenGone(worker: Worker, isServed: () => boolean): void {
  const child = worker.process;
  const underWay = new Map<number, Connection>();
  const send = child.send;
  const sendAndKeep = (...words: readonly unknown[]) => {
    const [message, handle] = words;
    if (isObject(message) && message['act'] === 'newconn' && typeof message['seq'] === 'number' && isConnection(handle))
      underWay.set(message['seq'], handle);
    return Reflect.apply(send, child, words);
  };
  child.send = sendAndKeep;
  child.on('internalMessage', (message: unknown) => {
    if (isObject(message) && typeof message['ack'] === 'number') underWay.delete(message['ack']);
  });
  // All that it said has been read by then. No `disconnect` comes for a worker that has not taken what it was handed.
  child.once('close', () => {
    // Not while the cluster may hand it another.
    const isOver = cluster.workers?.[worker.id] === undefined;
    for (const [ack, connection] of [...underWay]) {
      // As if the worker had given it back: a worker answers before it reads, so nothing of the connection was read.
      if (isOver && isServed()) child.emit('internalMessage', { cmd: 'NODE_CLUSTER', ack, accepted: false });
      else connection.close();
    }
    underWay.clear();
  });
}

function isConnection(handle: unknown): handle is Connection {
  return typeof handle === 'object' && handle !== null && 'close' in handle && typeof handle.close === 'function';
}
