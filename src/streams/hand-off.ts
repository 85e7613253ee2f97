/**
 * The readable half of a hop: it holds nothing that its reader has not asked for, and it can end with a failure after its last
 * batch (a plain `controller.error()` would throw that batch away).
 */
import { StreamError } from './stream-error.ts';

export interface HandOff<Out> {
  readonly readable: ReadableStream<readonly Out[]>;
  /** Undefined while the reader is waiting; otherwise settles when it asks. Rejects with the reason of a cancel. */
  demand(): Promise<void> | undefined;
  /** Hands over one batch; an empty one is not handed over. */
  give(batch: readonly Out[]): void;
  /** A last batch, then the end. Does nothing after a cancel. */
  close(last: readonly Out[]): void;
  /** A last batch, then the failure once that batch was taken. Does nothing after a cancel. */
  fail(last: readonly Out[], reason: unknown): void;
}

interface Waiter {
  readonly resolve: () => void;
  readonly reject: (reason: unknown) => void;
}

/** `onCancel` is called once when the reader leaves; a pending `demand()` is rejected with the same reason. */
export function createHandOff<Out>(onCancel: (reason: unknown) => void): HandOff<Out> {
  let controller: ReadableStreamDefaultController<readonly Out[]> | undefined;
  let wanted = false;
  let waiter: Waiter | undefined;
  let doom: { readonly reason: unknown } | undefined;
  let over = false;

  const readable = new ReadableStream<readonly Out[]>(
    {
      start(given) {
        controller = given;
      },
      pull(given) {
        if (doom !== undefined) {
          given.error(doom.reason);
          return;
        }
        wanted = true;
        waiter?.resolve();
        waiter = undefined;
      },
      cancel(given) {
        over = true;
        const reason: unknown = given ?? new StreamError('cancelled', 'the reader left');
        waiter?.reject(reason);
        waiter = undefined;
        onCancel(reason);
      },
    },
    { highWaterMark: 0 },
  );

  const give = (batch: readonly Out[]): void => {
    if (batch.length === 0 || over) return;
    wanted = false;
    controller?.enqueue(batch);
  };

  return {
    readable,
    demand() {
      if (wanted) return undefined;
      return new Promise<void>((resolve, reject) => {
        waiter = { resolve, reject };
      });
    },
    give,
    close(last) {
      if (over) return;
      give(last);
      over = true;
      controller?.close();
    },
    fail(last, reason) {
      if (over) return;
      if (last.length === 0) controller?.error(reason);
      else {
        doom = { reason };
        give(last);
      }
      over = true;
    },
  };
}
