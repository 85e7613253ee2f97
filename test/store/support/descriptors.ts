/** Descriptors of this process put out of order: how a disk that fails under an open file is played. Linux alone lists them. */
import assert from 'node:assert/strict';
import { closeSync, existsSync, openSync, readdirSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';

const DESCRIPTORS = '/proc/self/fd';

/** Why a test that breaks descriptors must be skipped, or false. */
export const noDescriptors: string | false = existsSync(DESCRIPTORS) ? false : 'this system does not list descriptors';

/** All that are open on the file. */
export function descriptorsOf(path: string): number[] {
  return readdirSync(DESCRIPTORS)
    .map(Number)
    .filter((descriptor) => {
      const name = join(DESCRIPTORS, String(descriptor));
      return existsSync(name) && readlinkSync(name) === path;
    });
}

/** From now on what is written to `descriptor`, or synced, fails: nothing can be written where it leads. */
export function breakDescriptor(t: TestContext, descriptor: number): void {
  closeSync(descriptor);
  const others: number[] = [];
  for (;;) {
    const opened = openSync('/dev/null', 'r');
    if (opened === descriptor) break;
    others.push(opened);
    assert.ok(opened < descriptor, 'its number was taken');
  }
  t.after(() => others.forEach(closeSync));
}
