/**
 * Whether the names of the store's files still lead to those that LMDB has open. One that was deleted, moved or restored over
 * stays open: everything would go on as if nothing had happened, and what was charged since would be gone with the next start.
 * Beside a lock that is another, two processes write at once, and the engine ends both by a signal.
 */
import { type BigIntStats, statSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';

const FILES = ['data.mdb', 'lock.mdb'];

export class OwnFiles {
  readonly #folder: string;
  readonly #opened: ReadonlyMap<string, string>;
  #lost: string | undefined;
  #mayWrite = true;

  /** When LMDB has just opened them. */
  constructor(folder: string) {
    this.#folder = folder;
    this.#opened = new Map(FILES.map((file) => [file, identity(statSync(join(folder, file), { bigint: true }))]));
  }

  /** Which is not under its name, or undefined. */
  get lost(): string | undefined {
    return this.#lost;
  }

  /**
   * What is written would be in no file of the folder, or beside others who write: it waits in the settlement log, which is in
   * the folder, for who opens what is there. Where the whole folder has gone nothing is there, and all of it may have been moved.
   */
  get mayWrite(): boolean {
    return this.#mayWrite;
  }

  async look(): Promise<void> {
    const changed: string[] = [];
    for (const [file, opened] of this.#opened) if ((await identityAt(join(this.#folder, file))) !== opened) changed.push(file);
    this.#mayWrite = changed.length === 0 || (await identityAt(this.#folder)) === undefined;
    const wayOut = 'put it back, or restart the gateway on what is there';
    this.#lost =
      changed.length === 0
        ? undefined
        : `${changed[0]} in ${this.#folder} was removed or replaced while the store is open: ${wayOut}`;
  }
}

/** A file that is open keeps its number, so that no other has it. */
function identity({ dev, ino }: BigIntStats): string {
  return `${dev} ${ino}`;
}

async function identityAt(path: string): Promise<string | undefined> {
  try {
    return identity(await stat(path, { bigint: true }));
  } catch (error) {
    if (error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTDIR')) return undefined;
    throw error;
  }
}
