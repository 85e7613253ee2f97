/** Audio of an upstream in the format that a client asked for: passed on, put behind a header, or not to be had. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { audioAs } from '../../src/codecs/audio.ts';

const SAMPLES = Buffer.from([1, 0, 2, 0, 3, 0, 4, 0]);
const data = SAMPLES.toString('base64');
const as = (format: string, mime: string): string | undefined => audioAs(format, { mime, data });

test('a file of the format is passed on; another is not to be had without a transcoder', () => {
  assert.equal(as('mp3', 'audio/mpeg'), data);
  assert.equal(as('MP3', 'audio/mp3'), data);
  assert.equal(as('wav', 'audio/wav'), data);
  assert.equal(as('mp3', 'audio/wav'), undefined);
  assert.equal(as('opus', 'audio/L16;rate=24000'), undefined);
});

test('samples are pcm16 at 24,000 a second of one channel alone', () => {
  for (const mime of ['audio/pcm', 'audio/L16', 'audio/L16;codec=pcm;rate=24000', 'audio/pcm; rate="24000"; channels=1'])
    assert.equal(as('pcm16', mime), data, mime);
  assert.equal(as('pcm16', 'audio/L16;rate=16000'), undefined);
  assert.equal(as('pcm16', 'audio/L16;rate=24000;channels=2'), undefined);
});

test('samples become a WAVE file of their rate and channels', () => {
  for (const [mime, rate, channels] of [
    ['audio/L16', 24_000, 1],
    ['audio/L16;rate=16000', 16_000, 1],
    ['audio/pcm;rate=48000;channels=2', 48_000, 2],
  ] as const) {
    const file = Buffer.from(as('wav', mime) ?? '', 'base64');
    assert.equal(file.toString('latin1', 0, 4) + file.toString('latin1', 8, 16), 'RIFFWAVEfmt ');
    assert.equal(file.readUInt32LE(4), file.length - 8);
    assert.deepEqual(
      [file.readUInt16LE(20), file.readUInt16LE(22), file.readUInt32LE(24), file.readUInt32LE(28), file.readUInt16LE(32)],
      [1, channels, rate, rate * channels * 2, channels * 2],
    );
    assert.deepEqual([file.readUInt16LE(34), file.toString('latin1', 36, 40), file.readUInt32LE(40)], [16, 'data', 8]);
    assert.deepEqual(file.subarray(44), SAMPLES);
  }
});
