import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { newRequestId } from '../../../src/http/request/request-id.ts';

test('no digits of a request id read as a status that agents try again after, and every id is another', () => {
  const given = ['429500502503504529', '4295004', '5555', '01a2245d55c87d03d4f3a12d77995500'];
  for (const digits of given) {
    const id = newRequestId((prefix) => prefix + digits);
    assert.match(id, /^req_[0-9a-f]+$/);
    assert.equal(id.length, 'req_'.length + digits.length);
    assert.doesNotMatch(id, /429|5\d\d/);
  }
  const ids = Array.from({ length: 2_000 }, () => newRequestId((prefix) => prefix + randomBytes(16).toString('hex')));
  assert.equal(new Set(ids).size, ids.length);
  assert.ok(ids.every((id) => !/429|5\d\d/.test(id)));
  assert.equal(
    newRequestId((prefix) => `${prefix}01a2245d1f4daf20`),
    'req_01a2245d1f4daf20',
    'others stay as they are',
  );
});
