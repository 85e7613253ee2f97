/** A file system that is soon full, for real: in memory, mounted on a folder of its own. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';

/**
 * Its folder, let go of after the test; undefined, and the test is skipped, where mounting is not allowed. `size` as mount reads
 * it: `64k`, `4m`.
 */
export function smallDisk(t: TestContext, size: string): string | undefined {
  const path = mkdtempSync(join(tmpdir(), 'mizu-full-'));
  t.after(() => {
    spawnSync('umount', ['-l', path]);
    rmSync(path, { recursive: true, force: true });
  });
  if (spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', path]).status === 0) return path;
  t.skip('mounting a small file system is not allowed here');
  return undefined;
}
