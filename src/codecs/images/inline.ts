/** Inline images in the forms that upstreams take them, without holding them twice; and their first bytes. */
import type { BodyPiece } from '../bodies/pieces.ts';
import { essenceOf, mimeOfFilename, sniffMime } from '../media.ts';
import type { InlineImage } from './request.ts';

/** The first `count` bytes, or fewer. */
export function headOf(image: InlineImage, count: number): Uint8Array {
  if (image.from === 'bytes') return firstBytes(image.chunks, count);
  return Buffer.from(image.data.slice(0, Math.ceil(count / 3) * 4), 'base64').subarray(0, count);
}

function firstBytes(chunks: readonly Uint8Array[], count: number): Uint8Array {
  const pieces: Uint8Array[] = [];
  let left = count;
  for (const chunk of chunks) {
    if (left <= 0) break;
    pieces.push(chunk.subarray(0, left));
    left -= chunk.length;
  }
  return Buffer.concat(pieces);
}

/** The image's own bytes. */
export function bytesOf(image: InlineImage): BodyPiece[] {
  return image.from === 'bytes' ? [...image.chunks] : [{ decode: image.data }];
}

/** As a `data:` URL. A checked type and base64 need no escape inside a JSON string. */
export function dataUrlOf(image: InlineImage): BodyPiece[] {
  const head = `data:${image.mime};base64,`;
  return image.from === 'bytes' ? [head, { encode: image.chunks }] : [head, image.data];
}

const SNIFFED_BYTES = 16;
const VAGUE: ReadonlySet<string> = new Set(['application/octet-stream', 'binary/octet-stream', 'multipart/form-data']);

/** The type as declared, else by the file name, else by the first bytes. Always a plain `type/subtype`: it goes into headers. */
export function mimeOf(declared: string | undefined, filename: string | undefined, head: () => string): string {
  const essence = declared === undefined ? '' : essenceOf(declared);
  if (/^[a-z0-9.+-]{1,64}\/[a-z0-9.+-]{1,64}$/.test(essence) && !VAGUE.has(essence)) return essence;
  const byName = filename === undefined ? undefined : mimeOfFilename(filename);
  return byName ?? sniffMime(head()) ?? 'application/octet-stream';
}

/** The first bytes of received chunks as base64, for {@link mimeOf}. */
export function headText(chunks: readonly Uint8Array[]): string {
  return Buffer.from(firstBytes(chunks, SNIFFED_BYTES)).toString('base64');
}

const EXTENSIONS: ReadonlyMap<string, string> = new Map([
  ['image/png', 'png'],
  ['image/jpeg', 'jpg'],
  ['image/webp', 'webp'],
  ['image/gif', 'gif'],
  ['image/svg+xml', 'svg'],
]);

/** The client's file name, else one that fits the type: upstreams read it. */
export function filenameOf(image: InlineImage, stem: string): string {
  return image.filename ?? `${stem}.${EXTENSIONS.get(image.mime) ?? 'bin'}`;
}
