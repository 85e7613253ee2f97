import assert from 'node:assert/strict';
import { test } from 'node:test';
import { larger } from './larger.ts';

test('the larger of two numbers', () => {
  assert.deepEqual([larger(1, 2), larger(2, 1), larger(2, 2)], [2, 2, 2]);
});
