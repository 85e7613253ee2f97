/**
 * The folder of the settlement log: one file after the other for each process, named by its store and its registration. The files
 * of a dead process are taken over, by renaming, by the next process of the same store that looks.
 */
import { accessSync, constants, existsSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { makeFolder } from '../make-folder.ts';
import { StoreError } from '../store-error.ts';
import { readLines, Segment } from './segment.ts';

/** `STORE-OWNER-NUMBER.segment`, or a spool of version 0.1 and before, which named no store: `PID-OWNER[-NUMBER].spool`. */
const NAME = /^(?:([0-9a-f]{16})-(own_[0-9a-f]+)-(\d+)\.segment|\d+-(own_[0-9a-f]+)(?:-(\d+))?\.spool)$/;

export interface FolderOptions {
  readonly path: string;
  /** What tells this store from every other. */
  readonly storeId: string;
  readonly processId: string;
  /** False only when the process of that registration is known to be dead. */
  readonly mayLive: (processId: string) => Promise<boolean>;
  readonly onProblem: ((problem: { readonly what: string; readonly error?: unknown }) => void) | undefined;
}

interface Found {
  readonly name: string;
  readonly processId: string;
  readonly number: number;
}

/** What a dead process left in one file. */
export interface Orphan {
  readonly path: string;
  readonly lines: readonly string[];
  /** Lines that are not what was written; a torn last one is not among them. */
  readonly damaged: number;
}

export class SegmentFolder {
  readonly #options: FolderOptions;
  #number = 0;
  /** Files that were told of, each once. */
  readonly #told = new Set<string>();

  /** Makes the folder. Throws `StoreError` `unavailable` where it cannot be used. */
  constructor(options: FolderOptions) {
    this.#options = options;
    try {
      makeFolder(options.path);
      accessSync(options.path, constants.R_OK | constants.W_OK | constants.X_OK);
    } catch (error) {
      throw new StoreError('unavailable', `the folder of the settlement log cannot be used: ${messageOf(error)}`, error);
    }
  }

  /** A new file of this process, whoever else has its name. Throws the file system's error. */
  create(): Segment {
    for (;;) {
      const path = this.#nextPath();
      if (!existsSync(path)) return Segment.create(path);
    }
  }

  /** Takes over the files of dead processes of this store, each process's in their order. */
  async orphans(): Promise<Orphan[]> {
    const orphans: Orphan[] = [];
    for (const { name, processId } of this.#found()) {
      if (processId === this.#options.processId || (await this.#options.mayLive(processId))) continue;
      const taken = this.#take(join(this.#options.path, name));
      if (taken !== undefined) orphans.push(taken);
    }
    return orphans;
  }

  #nextPath(): string {
    const { path, storeId, processId } = this.#options;
    this.#number += 1;
    return join(path, `${storeId}-${processId}-${this.#number}.segment`);
  }

  #found(): Found[] {
    const found: Found[] = [];
    for (const name of readdirSync(this.#options.path)) {
      const [, storeId, process, number, spoolProcess, spoolNumber] = NAME.exec(name) ?? [];
      const processId = process ?? spoolProcess;
      if (processId === undefined) continue;
      if (storeId === undefined || storeId === this.#options.storeId)
        found.push({ name, processId, number: Number(number ?? spoolNumber ?? 0) });
      else this.#tell(name, `settlements_of_another_store: ${name} is left as it is`);
    }
    return found.sort((a, b) => a.number - b.number);
  }

  #take(path: string): Orphan | undefined {
    try {
      // It is read before it is taken: what cannot be read stays as it is.
      const { lines, damaged } = readLines(path);
      const mine = this.#nextPath();
      renameSync(path, mine);
      if (lines.length > 0 || damaged > 0) return { path: mine, lines, damaged };
      rmSync(mine);
    } catch (error) {
      // Without the file another process was quicker.
      if (existsSync(path)) this.#tell(path, `settlements_unreadable: ${path} cannot be taken over`, error);
    }
    return undefined;
  }

  #tell(subject: string, what: string, error?: unknown): void {
    if (!this.#told.has(subject)) this.#options.onProblem?.({ what, ...(error === undefined ? {} : { error }) });
    this.#told.add(subject);
  }
}

/** Of every file in the folder of a store at rest. */
export function allLines(path: string): string[][] {
  if (!existsSync(path)) return [];
  return readdirSync(path).flatMap((name) => (NAME.test(name) ? [readLines(join(path, name)).lines] : []));
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
