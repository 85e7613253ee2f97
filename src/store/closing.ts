/** How an engine closes: once, whoever asks how often, and in the order that loses nothing. */
import { StoreError } from './store-error.ts';

export interface Closing {
  /** Writes what waits. */
  readonly settlements: { close(): Promise<void> };
  /** This process among those that share the store. */
  readonly process: { leave(): Promise<void>; abandon(): void };
  /** Closes what the other two needed. */
  readonly engine: () => Promise<void>;
}

export function closeOnce(closing: Closing): () => Promise<void> {
  let closed: Promise<void> | undefined;
  return () => {
    closed ??= close(closing);
    return closed;
  };
}

async function close({ settlements, process, engine }: Closing): Promise<void> {
  await settlements.close();
  try {
    await process.leave();
  } catch (error) {
    // A store that cannot be written is left as a killed process leaves it: the next start finds what was open.
    if (!(error instanceof StoreError)) throw error;
    process.abandon();
  }
  await engine();
}
