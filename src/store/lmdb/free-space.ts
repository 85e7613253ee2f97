/**
 * How much room is left. LMDB needs free pages even to delete, so below a floor no new work is taken, and a file of real bytes
 * (the ballast) lies beside the data that is given up when the disk is full, so that what is in flight can still be written.
 */
import { existsSync, rmSync, statSync } from 'node:fs';
import { statfs, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { StoreOptions } from '../store.ts';

type Options = Pick<StoreOptions, 'path' | 'freeSpaceFloor' | 'ballastBytes' | 'onProblem'>;

const DEFAULT_FLOOR = 64 * 1024 * 1024;
const DEFAULT_BALLAST = 8 * 1024 * 1024;
const FULL_BYTES = 1024 * 1024;
/** Looks that pass before a ballast that could not be written is tried again. */
const LOOKS_WITHOUT = 60;

export class FreeSpace {
  readonly #path: string;
  readonly #floor: number;
  readonly #ballastBytes: number;
  readonly #ballast: string;
  readonly #onProblem: StoreOptions['onProblem'];
  #low: string | undefined;
  #ballastRefused = false;
  #looksToWait = 0;

  constructor({ path, freeSpaceFloor = DEFAULT_FLOOR, ballastBytes = DEFAULT_BALLAST, onProblem }: Options) {
    this.#path = path;
    this.#floor = freeSpaceFloor;
    this.#ballastBytes = ballastBytes;
    this.#ballast = join(path, 'ballast');
    this.#onProblem = onProblem;
  }

  /** Why there is too little room, or undefined. */
  get low(): string | undefined {
    return this.#low;
  }

  /** Looks at the disk; puts the ballast back when there is room for it and more than the floor. */
  async look(): Promise<void> {
    const free = await this.#freeBytes();
    this.#low = free < this.#floor ? `${free} bytes are free, the floor is ${this.#floor}` : undefined;
    if (this.#ballastBytes === 0 || free < this.#floor + 2 * this.#ballastBytes) return;
    if (existsSync(this.#ballast) && statSync(this.#ballast).size === this.#ballastBytes) return;
    if (this.#looksToWait > 0) this.#looksToWait -= 1;
    else await this.#putBallast();
  }

  /** Less than a transaction may need is left. */
  async isFull(): Promise<boolean> {
    return (await this.#freeBytes()) < FULL_BYTES;
  }

  giveUpBallast(): void {
    rmSync(this.#ballast, { force: true });
    this.#low = 'the disk is full';
  }

  /** A quota is not seen in what the disk has free. The store does without a ballast then, and that is told once. */
  async #putBallast(): Promise<void> {
    try {
      await writeFile(this.#ballast, Buffer.alloc(this.#ballastBytes, 0x6d), { mode: 0o600 });
      this.#ballastRefused = false;
    } catch (error) {
      this.#looksToWait = LOOKS_WITHOUT;
      // What was written of it would take the room that is left. It may not be there, or not be a file at all.
      await unlink(this.#ballast).catch(() => undefined);
      if (!this.#ballastRefused) this.#onProblem?.({ what: 'ballast_not_written', error });
      this.#ballastRefused = true;
    }
  }

  async #freeBytes(): Promise<number> {
    const { bavail, bsize } = await statfs(this.#path);
    return bavail * bsize;
  }
}
