/**
 * A real PNG of any size: stripes in the colours of its prompt's words, else in those of a seed, with or without transparency.
 */
import { crc32, deflateSync } from 'node:zlib';

export interface PngSize {
  readonly width: number;
  readonly height: number;
}

type Rgb = readonly [red: number, green: number, blue: number];

const BLACK: Rgb = [24, 24, 28];
const WHITE: Rgb = [244, 244, 240];
const BLUE: Rgb = [44, 98, 180];
const GREEN: Rgb = [52, 132, 72];
const YELLOW: Rgb = [240, 204, 72];
const COLOURS: Readonly<Record<string, Rgb>> = {
  ...{ red: [196, 48, 44], orange: [228, 128, 44], yellow: YELLOW, green: GREEN, blue: BLUE, purple: [116, 68, 152] },
  ...{ pink: [232, 148, 176], brown: [120, 80, 48], black: BLACK, white: WHITE, grey: [128, 132, 136], gray: [128, 132, 136] },
  ...{ sky: [132, 184, 228], sea: BLUE, water: BLUE, grass: GREEN, forest: GREEN, tree: GREEN, sun: YELLOW, gold: YELLOW },
  ...{ night: BLACK, snow: WHITE, fire: [220, 84, 32], sand: [216, 192, 144], wood: [120, 80, 48] },
};

const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
const RGB = 2;
const RGBA = 6;
/** Row filter "up": a row equal to the one above is all zeros, so that large pictures stay small files. */
const UP = 2;

/** `alpha`: the left half is transparent, as a mask has it. */
export function makePng({ width, height }: PngSize, seed: number, alpha: boolean, colours: readonly Rgb[] = []): Buffer {
  const depth = alpha ? 4 : 3;
  const row = Buffer.alloc(1 + width * depth);
  for (let x = 0; x < width; x += 1) {
    const at = 1 + x * depth;
    const stripe = Math.floor((x * 8) / width);
    row.set(colours[stripe % Math.max(1, colours.length)] ?? seeded(seed, stripe), at);
    if (alpha) row[at + 3] = x * 2 < width ? 0 : 255;
  }
  const pixels = Buffer.alloc(row.length * height);
  row.copy(pixels);
  for (let y = 1; y < height; y += 1) pixels[y * row.length] = UP;
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, alpha ? RGBA : RGB, 0, 0, 0], 8);
  return Buffer.concat([
    SIGNATURE,
    chunk('IHDR', header),
    chunk('IDAT', deflateSync(pixels, { level: 6 })),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

function seeded(seed: number, stripe: number): Rgb {
  return [(seed + stripe * 31) & 0xff, ((seed >>> 8) + stripe * 17) & 0xff, ((seed >>> 16) + stripe * 7) & 0xff];
}

/** Each of the prompt's words that has a colour, in order. */
export function coloursOf(prompt: string): readonly Rgb[] {
  return (prompt.toLowerCase().match(/[a-z]+/g) ?? []).flatMap((word) =>
    Object.hasOwn(COLOURS, word) ? [COLOURS[word] ?? BLACK] : [],
  );
}

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(data.length);
  const check = Buffer.alloc(4);
  check.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, check]);
}

/** Size and transparency from the header; `undefined` for bytes that are no PNG. */
export function readPng(bytes: Uint8Array): (PngSize & { readonly alpha: boolean }) | undefined {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (buffer.length < 33 || !buffer.subarray(0, 8).equals(SIGNATURE) || buffer.toString('latin1', 12, 16) !== 'IHDR')
    return undefined;
  const colour = buffer.readUInt8(25);
  return { width: buffer.readUInt32BE(16), height: buffer.readUInt32BE(20), alpha: colour === RGBA || colour === 4 };
}
