/** The header of a PNG: its size, read from the first bytes. Pixels are never decoded. */

export interface PngHeader {
  readonly width: number;
  readonly height: number;
}

/** How many of the first bytes {@link readPngHeader} looks at. */
export const PNG_HEAD_BYTES = 24;

const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);

/** Undefined for bytes that begin no PNG. */
export function readPngHeader(head: Uint8Array): PngHeader | undefined {
  const bytes = Buffer.from(head.buffer, head.byteOffset, head.byteLength);
  if (bytes.length < PNG_HEAD_BYTES || !bytes.subarray(0, SIGNATURE.length).equals(SIGNATURE)) return undefined;
  if (bytes.toString('latin1', 12, 16) !== 'IHDR') return undefined;
  const width = bytes.readUInt32BE(16);
  const height = bytes.readUInt32BE(20);
  return width === 0 || height === 0 ? undefined : { width, height };
}
