/**
 * Lines for standard error, which may be a file on a full disk or a pipe that nobody reads. Neither ends the process nor keeps it
 * from its end: pino's own writer throws what nobody catches in the one case, and tries for ever in the other. What it does not
 * take waits, bounded, and how many lines are missing is told when it takes some again. A pipe must not block: Node sees to that
 * where `process.stderr` is read once, as every command does. A terminal that is held (Ctrl-S) blocks, and the end with it.
 */
import { write, writeSync } from 'node:fs';

/** Lines are collected for this long into one write: a system call for each costs more than the line. */
const FLUSH_MS = 20;
/** Between two tries of what was refused. */
const RETRY_MS = 1_000;
const BUSY_MS = 100;
/** The most characters that wait. */
const MOST_WAITING = 8 * 1024 * 1024;
/** How often the last lines are tried where their reader is slow: a second in all. */
const LAST_TRIES = 10;

export interface LineOutput {
  /** `line` ends with a line break. */
  write(line: string): void;
}

/** Tests give another file than standard error. */
export function standardError(fd = 2): LineOutput {
  const output = new Lines(fd);
  process.on('exit', () => output.writeLast());
  return output;
}

class Lines implements LineOutput {
  readonly #fd: number;
  /** What waits for the next write, whole lines. */
  #lines = '';
  /** What the file has not taken of the last write. */
  #rest: Uint8Array = new Uint8Array(0);
  #dropped = 0;
  #timer: NodeJS.Timeout | undefined;
  #isWriting = false;
  /** Its reader is gone for good. */
  #isClosed = false;

  constructor(fd: number) {
    this.#fd = fd;
  }

  write(line: string): void {
    if (this.#isClosed) return;
    if (this.#lines.length + this.#rest.length + line.length > MOST_WAITING) {
      this.#dropped += 1;
      return;
    }
    this.#lines += line;
    if (!this.#isWriting) this.#timer ??= setTimeout(this.#flush, FLUSH_MS);
  }

  /** At the exit of the process, when nothing is awaited any more. */
  writeLast(): void {
    if (this.#isClosed) return;
    // What is being written by now is on its way.
    const bytes = this.#isWriting ? Buffer.from(this.#taken()) : Buffer.concat([this.#rest, Buffer.from(this.#taken())]);
    this.#isClosed = true;
    for (let at = 0, tries = 0; at < bytes.length; ) {
      try {
        at += writeSync(this.#fd, bytes, at);
      } catch (error) {
        tries += 1;
        // Without room they are lost: nobody is left to wait for any.
        if (codeOf(error) !== 'EAGAIN' || tries > LAST_TRIES) return;
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, BUSY_MS);
      }
    }
  }

  readonly #flush = (): void => {
    this.#timer = undefined;
    if (this.#isWriting || this.#isClosed) return;
    if (this.#rest.length === 0) this.#rest = Buffer.from(this.#taken());
    if (this.#rest.length === 0) return;
    this.#isWriting = true;
    write(this.#fd, this.#rest, 0, this.#rest.length, null, this.#written);
  };

  readonly #written = (error: NodeJS.ErrnoException | null, count: number): void => {
    this.#isWriting = false;
    if (!error) {
      this.#rest = this.#rest.subarray(count);
      if (this.#rest.length > 0) this.#flush();
      else if (this.#lines !== '') this.#timer ??= setTimeout(this.#flush, FLUSH_MS);
      return;
    }
    if (error.code === 'EPIPE' || error.code === 'EBADF') {
      this.#isClosed = true;
      this.#lines = '';
      return;
    }
    // A process that is done does not stay for its log.
    this.#timer ??= setTimeout(this.#flush, error.code === 'EAGAIN' ? BUSY_MS : RETRY_MS).unref();
  };

  /** What waits, behind a word about what does not. */
  #taken(): string {
    const text = this.#dropped === 0 ? this.#lines : droppedLine(this.#dropped) + this.#lines;
    this.#lines = '';
    this.#dropped = 0;
    return text;
  }
}

function droppedLine(lines: number): string {
  const time = new Date().toISOString();
  return `${JSON.stringify({ level: 'warn', time, lines, msg: 'lines of this log could not be written and are missing' })}\n`;
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}
