/** Real streams (found by MIZU_FIXTURES): every recorded event stream decodes the same whole and cut, up to its recorded end. */
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { test } from 'node:test';
import { type SseEvent, sseDecode } from '../../src/streams/sse-decode.ts';
import { StreamError } from '../../src/streams/stream-error.ts';

const fixtures = process.env['MIZU_FIXTURES'];
const skip = fixtures === undefined && 'MIZU_FIXTURES is not set';
const files = fixtures === undefined ? [] : globSync(`${fixtures}/recordings/**/{*.sse,firebase*streaming*.txt}`).sort();

function decode(bytes: Uint8Array, size: number): { events: SseEvent[]; end: string; text: string | undefined } {
  const events: SseEvent[] = [];
  const stage = sseDecode({ maxEventBytes: 32 * 1024 * 1024 });
  try {
    for (let at = 0; at < bytes.length; at += size) stage.push(bytes.subarray(at, at + size), events);
    stage.end(events);
  } catch (error) {
    assert.ok(error instanceof StreamError);
    return { events, end: error.reason, text: error.text };
  }
  return { events, end: 'well', text: undefined };
}

test('every recorded stream has its events, at any cut', { skip }, () => {
  assert.ok(files.length > 100);
  for (const file of files) {
    const bytes = readFileSync(file);
    const whole = decode(bytes, bytes.length + 1);
    for (const size of [7, 1021]) assert.deepEqual(decode(bytes, size), whole, file);
    const text = bytes.toString();
    if (text.startsWith('{') || text.startsWith('<')) {
      assert.equal(whole.end, 'not_event_stream', file);
      continue;
    }
    // An oracle of its own: blocks between blank lines that hold a data line.
    const blocks = text.split(/\r\n\r\n|\n\n/).filter((block) => /^data:/m.test(block));
    const missing = whole.end === 'truncated_event' ? 1 : 0;
    assert.equal(whole.events.length, blocks.length - missing, `${basename(file)}: ${whole.end}`);
  }
});

test('the recorded error in mid-stream is thrown with its JSON', { skip }, () => {
  const file = files.find((name) => name.endsWith('error-mid-stream.txt'));
  assert.ok(file);
  const { events, end, text } = decode(readFileSync(file), 64);
  assert.deepEqual([events.length, end], [2, 'not_event_stream']);
  assert.equal(JSON.parse(text ?? '').error.status, 'CANCELLED');
});
