/**
 * Makes the folders that the store keeps its files in. Node's own recursive `mkdir` asks for ever below a folder that takes none
 * and calls it missing, as `/proc` does.
 */
import { mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

/** They hold secrets and the words of upstreams: nobody else's to read. */
const OWN = 0o700;

/** Makes `path` and what is missing above it; one that is there is left as it is. Throws the file system's error. */
export function makeFolder(path: string): void {
  if (isFolder(path)) return;
  const above = dirname(path);
  if (above !== path) makeFolder(above);
  try {
    mkdirSync(path, { mode: OWN });
  } catch (error) {
    // Another process was quicker.
    if (!isFolder(path)) throw error;
  }
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}
