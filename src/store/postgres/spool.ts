/**
 * The local file where settlements wait while the database is away: appended to and synced before a row counts as kept, cut to nothing
 * when all of it is in the database. A file whose process has died is taken over, by renaming, by the next process that looks.
 * Knows lines and checksums; what the lines mean the queue says.
 */
import { existsSync, openSync, fsyncSync, closeSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { makeFolder } from '../make-folder.ts';
import { StoreError } from '../store-error.ts';
import { messageOf } from './failure.ts';
import { DEFAULTS, type PostgresOptions } from './options.ts';

export interface Orphan {
  readonly lines: readonly string[];
  /** Lines in the middle of the file that are not what was written; the last line of a killed process is not one of them. */
  readonly damaged: number;
  /** Call when everything in it is in the database. With lines that nobody could read the file is kept, under another name. */
  done(unread: number): void;
}

const NAME = /^(\d+)-(own_[0-9a-f]+)(?:-\d+)?\.spool$/;

/** The spools of this very process: several stores may be open in one. */
const living = new Set<string>();

export class Spool {
  readonly #options: PostgresOptions;
  readonly #owner: string;
  readonly #path: string;
  readonly #maxBytes: number;
  #file: FileHandle | undefined;
  /** Bytes of the lines in the file, and of those that wait for their turn. */
  #written = 0;
  #queued = 0;
  /** A write broke off: behind the lines there may be a part of another one. */
  #torn = false;
  #taken = 0;
  #writing: Promise<void> = Promise.resolve();

  /** Throws `StoreError` `unavailable` when the folder cannot be used. */
  constructor(options: PostgresOptions, owner: string) {
    this.#options = options;
    this.#owner = owner;
    this.#maxBytes = options.spoolMaxBytes ?? DEFAULTS.spoolMaxBytes;
    this.#path = join(options.spoolPath, `${options.process.pid}-${owner}.spool`);
    try {
      makeFolder(options.spoolPath);
    } catch (error) {
      throw new StoreError('unavailable', `the spool folder cannot be used: ${messageOf(error)}`, error);
    }
    living.add(owner);
  }

  /** Bytes that wait in the file. */
  get bytes(): number {
    return this.#written + this.#queued;
  }

  /** True when so many bytes more still fit. */
  hasRoom(bytes: number): boolean {
    return this.bytes + bytes <= this.#maxBytes;
  }

  /** Resolves when the lines are on the disk. Rejects with the file system's error, and then none of them counts as kept. */
  append(lines: readonly string[]): Promise<void> {
    const text = lines.map((line) => `${checksum(line)} ${line}\n`).join('');
    const bytes = Buffer.byteLength(text);
    this.#queued += bytes;
    return this.#next(() => this.#write(text, bytes));
  }

  /** Forgets what was appended before this call: all of it is in the database. */
  clear(): Promise<void> {
    return this.#next(() => this.#remove());
  }

  /** One thing at a time. A failure before this one was told to whoever asked for that, and stops nobody else. */
  #next(work: () => Promise<void>): Promise<void> {
    this.#writing = this.#writing.catch(() => undefined).then(work);
    return this.#writing;
  }

  /** Leaves what waits for the next process. */
  async close(): Promise<void> {
    await this.#next(async () => this.#file?.close());
    this.#file = undefined;
    living.delete(this.#owner);
  }

  /** Takes over the files of processes that are dead. Throws `StoreError` `unavailable` for one that cannot be read, after all others. */
  *orphans(): Generator<Orphan> {
    const failures: StoreError[] = [];
    for (const name of readdirSync(this.#options.spoolPath)) {
      const [, pid, owner] = NAME.exec(name) ?? [];
      if (pid === undefined || owner === undefined || living.has(owner)) continue;
      const { process: self } = this.#options;
      // Our own pid in another owner's name is an earlier life of it.
      if (Number(pid) !== self.pid && self.isAlive(Number(pid))) continue;
      const taken = this.#take(join(this.#options.spoolPath, name));
      if (taken instanceof StoreError) failures.push(taken);
      else if (taken !== undefined) yield taken;
    }
    const [failure] = failures;
    if (failure !== undefined) throw failure;
  }

  #take(path: string): Orphan | StoreError | undefined {
    this.#taken += 1;
    const mine = join(this.#options.spoolPath, `${this.#options.process.pid}-${this.#owner}-${this.#taken}.spool`);
    try {
      renameSync(path, mine);
    } catch (error) {
      // Another process was quicker.
      return existsSync(path) ? unreadable(path, error) : undefined;
    }
    const text = textOf(mine);
    if (text instanceof StoreError) return text;
    const { lines, damaged } = linesOf(text);
    return {
      lines,
      damaged,
      done: (unread) => (unread === 0 ? rmSync(mine, { force: true }) : renameSync(mine, `${mine}.damaged`)),
    };
  }

  async #remove(): Promise<void> {
    const file = this.#file;
    this.#file = undefined;
    await file?.close();
    rmSync(this.#path, { force: true });
    this.#written = 0;
    this.#torn = false;
  }

  async #write(text: string, bytes: number): Promise<void> {
    try {
      if (this.#file === undefined) {
        this.#file = await open(this.#path, 'a', 0o600);
        syncFolder(this.#options.spoolPath);
      }
      // The next line would stand behind that part, and be none.
      if (this.#torn) await this.#file.truncate(this.#written);
      this.#torn = true;
      await this.#file.appendFile(text);
      await this.#file.datasync();
      this.#torn = false;
      this.#written += bytes;
    } finally {
      this.#queued -= bytes;
    }
  }
}

function textOf(path: string): string | StoreError {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    return unreadable(path, error);
  }
}

function unreadable(path: string, error: unknown): StoreError {
  return new StoreError('unavailable', `the spool ${path} cannot be taken over: ${messageOf(error)}`, error);
}

function checksum(line: string): string {
  return crc32(line).toString(16).padStart(8, '0');
}

/** The lines that are whole. The last one may be torn: its writing was never acknowledged. */
export function linesOf(text: string): { readonly lines: string[]; readonly damaged: number } {
  const lines: string[] = [];
  let damaged = 0;
  for (const line of text.slice(0, text.lastIndexOf('\n') + 1).split('\n')) {
    if (line === '') continue;
    const content = line.slice(9);
    if (line[8] === ' ' && checksum(content) === line.slice(0, 8)) lines.push(content);
    else damaged += 1;
  }
  return { lines, damaged };
}

/** A new name in a folder lasts only when the folder itself is synced. */
function syncFolder(path: string): void {
  const folder = openSync(path, 'r');
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}
