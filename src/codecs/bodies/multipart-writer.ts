/** Writes a `multipart/form-data` body as pieces. Knows no field. */
import type { BodyPiece } from './pieces.ts';

export interface FormFile {
  readonly filename: string;
  readonly mime: string;
  readonly content: readonly BodyPiece[];
}

export type FormEntry = readonly [name: string, value: string | FormFile];

/** `boundary` must not occur in any value: take a random one. */
export function writeForm(entries: readonly FormEntry[], boundary: string): BodyPiece[] {
  const pieces: BodyPiece[] = [];
  for (const [name, value] of entries) {
    const head = `--${boundary}\r\ncontent-disposition: form-data; name="${escapeName(name)}"`;
    if (typeof value === 'string') pieces.push(`${head}\r\n\r\n${value}\r\n`);
    else {
      const { filename, mime, content } = value;
      pieces.push(`${head}; filename="${escapeName(filename)}"\r\ncontent-type: ${mime}\r\n\r\n`, ...content, '\r\n');
    }
  }
  pieces.push(`--${boundary}--\r\n`);
  return pieces;
}

export function formContentType(boundary: string): string {
  return `multipart/form-data; boundary=${boundary}`;
}

/** As the HTML standard escapes names and file names of forms. */
function escapeName(text: string): string {
  return text.replaceAll('"', '%22').replaceAll('\r', '%0D').replaceAll('\n', '%0A');
}
