/** A process that holds the write lock of an LMDB store and does nothing: it was stopped in the middle of a change. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createRequire } from 'node:module';

/** Opens a table that every store has, and keeps the lock of a transaction. */
const HOLDER = `const { open } = require(process.argv[1]);
const root = open({ path: process.argv[2], noSubdir: false, maxDbs: 64, overlappingSync: false });
const meta = root.openDB({ name: 'meta' });
root.transactionSync(() => {
  require('node:fs').writeSync(1, 'held');
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 600_000);
});`;

/** Resolves when it holds the lock, with a function that kills it and so gives the lock back. */
export async function holdLock(t: { after(done: () => void): void }, path: string): Promise<() => Promise<void>> {
  const lmdb = createRequire(import.meta.url).resolve('lmdb');
  const holder = spawn(process.execPath, ['-e', HOLDER, lmdb, path], { stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(() => holder.kill('SIGKILL'));
  await once(holder.stdout, 'data');
  return async () => {
    const ended = once(holder, 'exit');
    holder.kill('SIGKILL');
    await ended;
  };
}
