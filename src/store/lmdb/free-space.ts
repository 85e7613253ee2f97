/**
 * How much room is left. LMDB needs free pages even to delete, so below a floor no new work is taken, and a file of real bytes (the
 * ballast) lies beside the data that is given up when the disk is full, so that what is in flight can still be written.
 */
import { existsSync, rmSync, statSync } from 'node:fs';
import { statfs, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

const FULL_BYTES = 1024 * 1024;

export class FreeSpace {
  readonly #path: string;
  readonly #floor: number;
  readonly #ballastBytes: number;
  readonly #ballast: string;
  #low: string | undefined;

  constructor(path: string, floor: number, ballastBytes: number) {
    this.#path = path;
    this.#floor = floor;
    this.#ballastBytes = ballastBytes;
    this.#ballast = join(path, 'ballast');
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
    await writeFile(this.#ballast, Buffer.alloc(this.#ballastBytes, 0x6d));
  }

  /** Less than a transaction may need is left. */
  async isFull(): Promise<boolean> {
    return (await this.#freeBytes()) < FULL_BYTES;
  }

  giveUpBallast(): void {
    rmSync(this.#ballast, { force: true });
    this.#low = 'the disk is full';
  }

  async #freeBytes(): Promise<number> {
    const { bavail, bsize } = await statfs(this.#path);
    return bavail * bsize;
  }
}
