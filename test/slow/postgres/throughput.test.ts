/**
 * 1,000 requests a second from two processes, each admitted, opened and settled, with commits that wait for the disk: the
 * database keeps up, the queue stays short, and the ledger is right to the last one. The bounds are loose: a busy machine must
 * stay within them.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { resolve } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { noPostgres } from '../../support/postgres.ts';

const [PROCESSES, OFFERED, SECONDS, KEYS] = [2, 1_000, 5, 200];

test('two processes settle 1,000 requests a second', { skip: noPostgres, timeout: 120_000 }, async (t) => {
  const args = [resolve('bench/settlements.ts'), ...[PROCESSES, OFFERED, SECONDS, KEYS].map(String)];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  const report: Record<string, unknown> = JSON.parse(stdout);
  t.diagnostic(stdout.trim());
  assert.deepEqual([report['differences'], report['spentIsRight'], report['problems']], [0, true, false]);
  // Each settlement's journal row, and those of the keys and accounts.
  assert.ok(Number(report['journalRows']) >= OFFERED * SECONDS);
  assert.ok(Number(report['settledPerSecond']) >= 0.8 * OFFERED, 'it falls behind');
  assert.ok(Number(report['pendingAtMost']) <= OFFERED, 'the queue grows');
});
