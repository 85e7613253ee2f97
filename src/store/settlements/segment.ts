/**
 * One file of the settlement log: lines that are appended and synced, each with its checksum. It goes when the engine has every
 * row that was written in it. Knows nothing of rows.
 */
import { closeSync, fdatasync, fsyncSync, ftruncateSync, openSync, readFileSync, renameSync, rmSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { crc32 } from 'node:zlib';

/** Hex digits of the checksum, and the space behind them. */
const CHECKSUM = 9;
const MOST_BYTES_A_UNIT = 3;
const LINE_BREAK = 10;

export class Segment {
  readonly path: string;
  /** Undefined where another process wrote the file: nothing is appended to it. */
  #file: number | undefined;
  #bytes = 0;
  #isNew = true;
  #isTorn = false;
  #isSyncing = false;
  /** It is closed once its sync has ended: the number of a descriptor that is closed meanwhile may be another file's. */
  #closesLater = false;
  /** Why it could not be synced once: the disk says so once, and forgets what it could not write. */
  #doubt: { readonly error: unknown } | undefined;
  /** Rows of it that the engine does not have yet. */
  rows = 0;
  /** Lines that nobody could read: the file is kept for a person then. */
  readonly unread: number;

  private constructor(path: string, file: number | undefined, unread: number) {
    this.path = path;
    this.#file = file;
    this.unread = unread;
  }

  /** Throws the file system's error, also where the file is there already. */
  static create(path: string): Segment {
    return new Segment(path, openSync(path, 'ax', 0o600), 0);
  }

  /** A file that another process wrote. */
  static adopt(path: string, unread: number): Segment {
    return new Segment(path, undefined, unread);
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** What was written of a refused line stands at its end: the next line would be none. */
  get isTorn(): boolean {
    return this.#isTorn;
  }

  /** In one write. Throws the file system's error, and then nothing of it counts as written. */
  append(bytes: Uint8Array): void {
    if (this.#file === undefined) throw new Error(`${this.path} is closed`);
    let at = 0;
    try {
      while (at < bytes.length) at += writeSync(this.#file, bytes, at);
    } catch (error) {
      if (at > 0) this.#isTorn = !isCut(this.#file, this.#bytes);
      throw error;
    }
    this.#bytes += bytes.length;
  }

  /** Resolves when what was appended before is on the disk. One at a time. Rejects with the file system's error, ever again. */
  async sync(): Promise<void> {
    const file = this.#file;
    if (file === undefined) return;
    if (this.#doubt !== undefined) throw this.#doubt.error;
    this.#isSyncing = true;
    try {
      await synced(file);
      if (this.#isNew) syncFolder(dirname(this.path));
      this.#isNew = false;
    } catch (error) {
      this.#doubt = { error };
      throw error;
    } finally {
      this.#isSyncing = false;
      if (this.#closesLater) this.close();
    }
  }

  /** Leaves what is in it to the next process. */
  close(): void {
    this.#closesLater = this.#isSyncing;
    if (this.#isSyncing) return;
    if (this.#file !== undefined) closeSync(this.#file);
    this.#file = undefined;
  }

  /** The engine has all of it. Throws the file system's error. */
  remove(): void {
    this.close();
    if (this.unread === 0) rmSync(this.path, { force: true });
    else renameSync(this.path, `${this.path}.damaged`);
  }
}

/** The lines of one write. Its bytes hold until the next line is added. */
export class Lines {
  #bytes = Buffer.allocUnsafe(64 * 1024);
  #end = 0;

  get bytes(): Uint8Array {
    return this.#bytes.subarray(0, this.#end);
  }

  clear(): void {
    this.#end = 0;
  }

  /** `content` holds no line break. */
  add(content: string): void {
    this.#makeRoom(CHECKSUM + content.length * MOST_BYTES_A_UNIT + 1);
    const bytes = this.#bytes;
    const start = this.#end + CHECKSUM;
    const end = start + bytes.write(content, start);
    bytes.write(`${checksum(bytes.subarray(start, end))} `, this.#end, 'latin1');
    bytes[end] = LINE_BREAK;
    this.#end = end + 1;
  }

  #makeRoom(size: number): void {
    if (this.#end + size <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafe(2 * (this.#end + size));
    this.#bytes.copy(larger, 0, 0, this.#end);
    this.#bytes = larger;
  }
}

/** The lines that are whole. The last one of a killed process may be torn: its writing was never acknowledged. */
export function readLines(path: string): { readonly lines: string[]; readonly damaged: number } {
  const text = readFileSync(path, 'utf8');
  const lines: string[] = [];
  let damaged = 0;
  for (const line of text.slice(0, text.lastIndexOf('\n') + 1).split('\n')) {
    if (line === '') continue;
    const content = line.slice(CHECKSUM);
    if (line[CHECKSUM - 1] === ' ' && checksum(content) === line.slice(0, CHECKSUM - 1)) lines.push(content);
    else damaged += 1;
  }
  return { lines, damaged };
}

function checksum(content: string | Uint8Array): string {
  return crc32(content)
    .toString(16)
    .padStart(CHECKSUM - 1, '0');
}

function synced(file: number): Promise<void> {
  return new Promise((resolve, reject) => {
    fdatasync(file, (error) => (error === null ? resolve() : reject(error)));
  });
}

/** Whether what stands behind `bytes` was taken back. Of a disk that refuses this too, the write's own error tells. */
function isCut(file: number, bytes: number): boolean {
  try {
    ftruncateSync(file, bytes);
    return true;
  } catch {
    return false;
  }
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
