/** The end of a process that does not end by itself: an exit in good order waits for threads of the store, which may hang. */

/** The log is written a moment after it was said. */
const LAST_WORDS_MS = 1_000;

/** Kills this process `ms` from now, and again and again while `isStuck` says no. Keeps no process alive. */
export function killAfter(ms: number, isStuck: () => boolean): void {
  const look = (): void => {
    if (isStuck()) setTimeout(() => process.kill(process.pid, 'SIGKILL'), LAST_WORDS_MS).unref();
    else killAfter(ms, isStuck);
  };
  setTimeout(look, ms).unref();
}
