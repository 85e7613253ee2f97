/** Batches in and out of Web Streams, for tests. */

/** A source that gives what is asked for, then ends, or fails with `failure`. `cancelled` says with what it was cancelled. */
export function batchSource<T>(
  batches: readonly (readonly T[])[],
  failure?: Error,
): {
  readonly readable: ReadableStream<readonly T[]>;
  readonly pulled: () => number;
  readonly cancelled: () => readonly unknown[];
} {
  let at = 0;
  const cancelled: unknown[] = [];
  const readable = new ReadableStream<readonly T[]>(
    {
      pull(controller) {
        const batch = batches[at];
        if (batch !== undefined) {
          at++;
          controller.enqueue(batch);
        } else if (failure !== undefined) controller.error(failure);
        else controller.close();
      },
      cancel(reason) {
        cancelled.push(reason);
      },
    },
    { highWaterMark: 0 },
  );
  return { readable, pulled: () => at, cancelled: () => cancelled };
}

/** Everything a stream says, and how it ended. */
export async function collect<T>(
  readable: ReadableStream<readonly T[]>,
): Promise<{ values: T[]; batches: number; failure: unknown }> {
  const values: T[] = [];
  let batches = 0;
  const reader = readable.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return { values, batches, failure: undefined };
      batches++;
      values.push(...value);
    }
  } catch (failure) {
    return { values, batches, failure };
  }
}

/** Lets everything run that is already settled. */
export function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
