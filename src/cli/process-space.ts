/**
 * Whose process ids mean the same as ours, by a name: processes of this machine, since it started, in this container. A host's
 * name alone does not tell: machines made of one image may share it, as may containers with a `hostname`, where each gateway has
 * the pid 1. Each took the other for an earlier life of itself, which is dead.
 */
import { readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';

/** Where Linux tells them. Another system has neither, and nothing that is like a container of Linux. */
const BOOT = '/proc/sys/kernel/random/boot_id';
const PIDS = '/proc/self/ns/pid';

export function processSpace(): string {
  const parts = [hostname(), told(() => readFileSync(BOOT, 'utf8').trim()), told(() => readlinkSync(PIDS))];
  return parts.filter((part) => part !== '').join(' ');
}

function told(read: () => string): string {
  try {
    return read();
  } catch {
    return '';
  }
}
