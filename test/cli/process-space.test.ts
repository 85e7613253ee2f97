/** Whose pids tell whether a process lives. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { hostname } from 'node:os';
import { resolve } from 'node:path';
import { test } from 'node:test';
import { processSpace } from '../../src/cli/process-space.ts';
import { noPidNamespaces, PID_NAMESPACE } from '../support/pid-namespace.ts';

const SAY = `import { processSpace } from ${JSON.stringify(resolve('src/cli/process-space.ts'))}; console.log(processSpace())`;

function said(...by: readonly string[]): string {
  const [program = process.execPath, ...args] = [...by, process.execPath, '--input-type=module', '--eval', SAY];
  return execFileSync(program, args, { encoding: 'utf8' }).trim();
}

test('processes of one machine have one space of pids, which begins with the name of the host', () => {
  assert.equal(said(), processSpace());
  assert.equal(processSpace().split(' ')[0], hostname());
});

test('a container whose host has our name has pids of its own', { skip: noPidNamespaces }, () => {
  const space = said(...PID_NAMESPACE);
  assert.equal(space.split(' ')[0], hostname());
  assert.notEqual(space, processSpace());
});
