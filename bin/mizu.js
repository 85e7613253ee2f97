#!/usr/bin/env node
// The command of the package, in words that also a Node of years ago reads: an older one is told what to do in place of a syntax error.
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const OLDEST = 24;

if (Number.parseInt(process.versions.node, 10) < OLDEST) {
  process.stderr.write(
    `mizu: this is Node ${process.versions.node}, and Mizu needs Node ${OLDEST} or newer: https://nodejs.org\n`,
  );
  process.exitCode = 1;
} else {
  // A checkout runs its sources. A package has JavaScript: Node strips no types below node_modules.
  const sources = new URL('../src/main.ts', import.meta.url);
  await import(existsSync(fileURLToPath(sources)) ? sources.href : new URL('../dist/main.js', import.meta.url).href);
}
