/** Audio in the format that a client asked for. Samples become a WAVE file by a header; nothing here decodes or compresses. */
import { audioFormatOf, essenceOf, type InlineData } from './media.ts';

/** Of samples whose type does not say it, and of the format `pcm16`. */
const RATE = 24_000;
const BYTES_A_SAMPLE = 2;
const HEADER_BYTES = 44;

/** Base64 of the audio in the format of this word (`wav`, `pcm16`, `mp3`, …); undefined where only a transcoder could make it. */
export function audioAs(format: string, audio: InlineData): string | undefined {
  const word = format.toLowerCase();
  if (audioFormatOf(audio.mime) === word && word !== 'pcm16') return audio.data;
  if (!/^audio\/(?:l16|pcm)$/i.test(essenceOf(audio.mime))) return undefined;
  const rate = numberIn(audio.mime, 'rate') ?? RATE;
  const channels = numberIn(audio.mime, 'channels') ?? 1;
  if (word === 'wav') return waveFile(audio.data, rate, channels);
  return word === 'pcm16' && rate === RATE && channels === 1 ? audio.data : undefined;
}

function numberIn(mime: string, parameter: string): number | undefined {
  const digits = new RegExp(`;\\s*${parameter}="?(\\d{1,6})`, 'i').exec(mime)?.[1];
  return digits === undefined ? undefined : Number(digits);
}

/** Samples of 16 bits, little-endian, behind the header of a RIFF file. */
function waveFile(base64: string, rate: number, channels: number): string {
  const samples = Buffer.from(base64, 'base64');
  const header = Buffer.alloc(HEADER_BYTES);
  header.write('RIFF', 0, 'latin1');
  header.writeUInt32LE(HEADER_BYTES - 8 + samples.length, 4);
  header.write('WAVEfmt ', 8, 'latin1');
  header.writeUInt32LE(16, 16);
  header.writeUInt16LE(1, 20);
  header.writeUInt16LE(channels, 22);
  header.writeUInt32LE(rate, 24);
  header.writeUInt32LE(rate * channels * BYTES_A_SAMPLE, 28);
  header.writeUInt16LE(channels * BYTES_A_SAMPLE, 32);
  header.writeUInt16LE(BYTES_A_SAMPLE * 8, 34);
  header.write('data', 36, 'latin1');
  header.writeUInt32LE(samples.length, 40);
  return Buffer.concat([header, samples]).toString('base64');
}
