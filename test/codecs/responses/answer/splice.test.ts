import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { checkResponsesStream } from '../../../../src/codecs/responses/lifecycle.ts';
import { casesOf, CREATED, decodeAll, encodeAll, framesOf, readable } from '../support.ts';

for (const { title, block } of casesOf(readFileSync(new URL('./splice.cases.md', import.meta.url), 'utf8'))) {
  test(`encodeEvents, same dialect: ${title}`, () => {
    const frames = encodeAll(decodeAll(framesOf(...block('upstream').map((line) => (line === '…' ? CREATED : line)))).steps);
    checkResponsesStream(frames);
    const expected = block('client').map((line) =>
      line === '…' ? readable(CREATED.replace('"r"', '"R"').replace('"m"', '"M"')) : line,
    );
    assert.deepEqual(
      frames.map((frame) => JSON.parse(readable(frame.data))),
      expected.map((line) => JSON.parse(line)),
    );
    assert.equal(readable(frames.at(-1)?.data ?? ''), expected.at(-1), 'the terminal keeps its spelling');
  });
}

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
