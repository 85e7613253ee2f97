/** Media as parts: inline content, public URLs and files of this vendor. The gateway fetches nothing. */
import { notConvertible } from '../../canonical/error.ts';
import type { Media, MediaSource } from '../../canonical/item.ts';
import {
  essenceOf,
  type InlineData,
  inUtf8,
  mimeOfContent,
  mimeOfFilename,
  parseDataUri,
  realMime,
  titledText,
} from '../../media.ts';
import type { Part } from '../wire.ts';

/** The part for `media`. Throws `unsupported_conversion` at the media's own path where the protocol has none. */
export function mediaPart(media: Media, at: string | undefined): Part {
  const path = media.at ?? at;
  const { source, filename } = media;
  switch (source.from) {
    case 'inline':
      return { inlineData: inlineData(source, mimeOfContent(source, filename) ?? unknownType(path)) };
    case 'url': {
      const inline = parseDataUri(source.url);
      if (inline !== undefined) return mediaPart({ ...media, source: { from: 'inline', ...inline } }, at);
      const mimeType = media.type === 'video' ? videoType(source.url) : typeOfUrl(media, source);
      return { fileData: { mimeType: mimeType ?? unknownType(path), fileUri: source.url } };
    }
    case 'reference': {
      if (!isFileUri(source.id)) throw notConvertible(path, 'This file id is not a file of the selected upstream.');
      const mimeType = realMime(source.mime) ?? mimeOfFilename(filename ?? '') ?? mimeOfFilename(source.id);
      return { fileData: { ...(mimeType === undefined ? {} : { mimeType }), fileUri: source.id } };
    }
    case 'text':
      return { text: titledText(source.text, filename) };
  }
}

/** The protocol refuses parameters of media types, except those of audio, which describe the samples. */
function inlineData(source: InlineData, mime: string): { mimeType: string; data: string } {
  const essence = essenceOf(mime);
  if (essence.startsWith('audio/')) return { mimeType: mime, data: source.data };
  return { mimeType: essence, data: essence.startsWith('text/') ? inUtf8(source) : source.data };
}

/** What the vendor takes within the response of a function (its guide to function calling, Gemini 3 and later). */
const IN_RESPONSES: ReadonlySet<string> = new Set(['image/png', 'image/jpeg', 'image/webp', 'application/pdf', 'text/plain']);

export function fitsResponse({ inlineData, fileData }: Part): boolean {
  const mime = inlineData?.mimeType ?? fileData?.mimeType;
  return mime === undefined || IN_RESPONSES.has(mime);
}

function typeOfUrl({ filename }: Media, { mime, url }: Extract<MediaSource, { from: 'url' }>): string | undefined {
  return realMime(mime) ?? mimeOfFilename(url) ?? mimeOfFilename(filename ?? '');
}

/** The vendor looks at the video itself; links to its video platform have no extension. */
function videoType(url: string): string {
  const mime = mimeOfFilename(url);
  return mime?.startsWith('video/') === true ? mime : 'video/mp4';
}

function unknownType(path: string | undefined): never {
  throw notConvertible(path, 'The selected upstream needs the media type of this file; give a type or a name with an extension.');
}

/** A name or URI in the vendor's file store or object storage. The http room has checked which credential may read it. */
function isFileUri(id: string): boolean {
  return /^files\/[\w-]+$/.test(id) || /^gs:\/\/\S+$/.test(id) || /^https:\/\/\S+\/files\/[\w-]+$/.test(id);
}
