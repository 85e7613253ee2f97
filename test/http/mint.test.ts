import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { createMint } from '../../src/http/mint.ts';

test('ids are 32 hex digits behind their prefix, rise with time, and never repeat', () => {
  let nowMs = Date.parse('2026-03-01T00:00:00Z');
  const mint = createMint(() => nowMs, randomBytes);
  const ids: string[] = [];
  for (let i = 0; i < 1000; i++) {
    ids.push(mint('req_'));
    if (i % 3 === 0) nowMs += 1;
  }
  for (const id of ids) assert.match(id, /^req_[0-9a-f]{32}$/);
  assert.equal(new Set(ids.map((id) => id.slice(-20))).size, ids.length);
  const times = ids.map((id) => id.slice(0, -20));
  assert.deepEqual(times, [...times].sort());
});
