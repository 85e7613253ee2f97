/** Media parts of an answer. */
import type { Media } from '../../canonical/item.ts';
import type { JsonObject } from '../../canonical/json.ts';
import { mimeOfFilename, sniffMime } from '../../media.ts';
import { malformed, optionalObject, optionalString } from './decode-chunk.ts';

/** The media of a part with `inlineData` or `fileData`. */
export function readMedia(part: JsonObject): Media {
  const inline = optionalObject(part, 'inlineData');
  if (inline !== undefined) {
    const data = optionalString(inline, 'data');
    if (data === undefined) throw malformed('inlineData');
    const mime = optionalString(inline, 'mimeType') ?? sniffMime(data) ?? 'application/octet-stream';
    return { type: typeOf(mime), source: { from: 'inline', mime, data } };
  }
  const file = optionalObject(part, 'fileData');
  const url = file === undefined ? undefined : optionalString(file, 'fileUri');
  if (file === undefined || url === undefined) throw malformed('fileData');
  const mime = optionalString(file, 'mimeType') ?? mimeOfFilename(url);
  return { type: typeOf(mime ?? ''), source: { from: 'url', url, ...(mime === undefined ? {} : { mime }) } };
}

function typeOf(mime: string): Media['type'] {
  if (mime.startsWith('image/')) return 'image';
  return mime.startsWith('audio/') ? 'audio' : 'file';
}
