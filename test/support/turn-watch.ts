/** The longest turn of this process's event loop, in processor time: what others do to the machine counts for nothing. */
export class TurnWatch {
  #longestMs = 0;
  #isWatching = false;

  /** Forgets what was before. */
  start(): number {
    let before = process.threadCpuUsage();
    const turn = (): void => {
      const { user, system } = process.threadCpuUsage(before);
      before = process.threadCpuUsage();
      this.#longestMs = Math.max(this.#longestMs, (user + system) / 1000);
      if (this.#isWatching) setImmediate(turn);
    };
    this.#longestMs = 0;
    this.#isWatching = true;
    setImmediate(turn);
    return 0;
  }

  /** Milliseconds of the longest since the start. */
  stop(): number {
    this.#isWatching = false;
    return this.#longestMs;
  }
}
