/** Streams that stay open through a subject, held by a client process of their own. */
import type { CloseJob, OpenJob, OpenResult } from './open-load.ts';
import { mostOpenFiles, type Started, startHarness } from './processes.ts';

/** What a process has open besides its streams. */
const OTHER_FILES = 100;
/** A gateway has two connections for each. */
const FILES_EACH = 2;

/** As many streams of `wanted` as the limit of open files lets one process relay; says so when it is fewer. */
export function possibleStreams(wanted: number): number {
  const most = Math.floor((mostOpenFiles() - OTHER_FILES) / FILES_EACH);
  if (most >= wanted) return wanted;
  console.error(
    `ulimit -Hn is ${mostOpenFiles()}: ${most} streams instead of ${wanted}, which need ${wanted * FILES_EACH + OTHER_FILES}`,
  );
  return most;
}

export class OpenStreams {
  readonly #client: Started;
  readonly #job: Omit<OpenJob, 'open'>;
  private constructor(client: Started, job: Omit<OpenJob, 'open'>) {
    this.#client = client;
    this.#job = job;
  }
  static async start(job: Omit<OpenJob, 'open'>): Promise<OpenStreams> {
    return new OpenStreams(await startHarness('open-load.ts'), job);
  }
  /** Resolves when each of them has said something. */
  async open(count: number): Promise<void> {
    await this.#ask({ ...this.#job, open: count });
  }
  async events(): Promise<number> {
    return (await this.#ask({})).events;
  }
  async close(): Promise<void> {
    await this.#ask({ close: true });
  }
  stop(): Promise<void> {
    return this.#client.stop();
  }
  async #ask(job: OpenJob | CloseJob): Promise<OpenResult> {
    this.#client.process.stdin.write(`${JSON.stringify(job)}\n`);
    const result: OpenResult = JSON.parse(await this.#client.line());
    if (result.failure !== undefined) throw new Error(`${result.failure}, with ${result.open} streams`);
    return result;
  }
}
