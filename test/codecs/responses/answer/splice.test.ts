import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkResponsesStream } from '../../../support/client-order/responses.ts';
import { decodeAll, encodeAll, framesOf } from '../support.ts';

test('encodeEvents, same dialect: a terminal as the only event gets its beginning', () => {
  const terminal =
    '{"type":"response.completed","response":{"id":"r","status":"completed","model":"m","created_at":1750000000,"output":[]}}';
  const frames = encodeAll(decodeAll(framesOf(terminal)).steps);
  checkResponsesStream(frames);
  assert.deepEqual(
    frames.map((frame) => frame.event),
    ['response.created', 'response.in_progress', 'response.completed'],
  );
  for (const { data } of frames) assert.equal(JSON.parse(data).response.created_at, 1_750_000_000);
});
