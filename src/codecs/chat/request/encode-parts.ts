/**
 * Media and text of another dialect as chat content parts. Throws at the client's path for media that chat messages cannot hold.
 */
import { notConvertible } from '../../canonical/error.ts';
import type { CacheBreakpoint, Item, Media, Part } from '../../canonical/item.ts';
import type { JsonObject } from '../../canonical/json.ts';
import type { CodecOptions } from '../../codec.ts';
import { cacheControlOf, promptBreakpointOf } from '../../requests/cache-breakpoints.ts';
import { audioFormatOf, dataUri, filenameOf, titledText } from '../../media.ts';

export function textPart(text: string): JsonObject {
  return { type: 'text', text };
}

/**
 * Only content of the user and the system, and results, have parts for certain: many servers take texts of the assistant as a
 * string alone.
 */
export function holdsBreakpoint(item: Item): boolean {
  if (item.kind === 'text' || item.kind === 'media')
    return item.role !== 'assistant' && (item.kind === 'media' || item.text !== '');
  return item.kind === 'toolResult';
}

/** The member of a part that ends a cached prefix. */
export function cacheMember(breakpoint: CacheBreakpoint, { routerCacheControl }: CodecOptions): JsonObject {
  if (routerCacheControl === true) return { cache_control: cacheControlOf(breakpoint) };
  return { prompt_cache_breakpoint: promptBreakpointOf(breakpoint) };
}

export function mediaPart(media: Media, fallback: string | undefined): JsonObject {
  const at = media.at ?? fallback;
  switch (media.type) {
    case 'image':
      return imagePart(media, at);
    case 'audio':
      return audioPart(media, at);
    case 'video':
      return videoPart(media, at);
    case 'file':
      return filePart(media, at);
  }
}

function imagePart({ source, detail }: Media, at: string | undefined): JsonObject {
  if (source.from !== 'inline' && source.from !== 'url') {
    throw notConvertible(at, 'A chat upstream takes images as content or URL, not by file id.');
  }
  const url = source.from === 'inline' ? dataUri(source) : source.url;
  return { type: 'image_url', image_url: { url, ...(detail === undefined ? {} : { detail }) } };
}

function audioPart({ source }: Media, at: string | undefined): JsonObject {
  if (source.from !== 'inline') throw notConvertible(at, 'A chat upstream takes audio as content only.');
  const format = audioFormatOf(source.mime);
  if (format !== 'wav' && format !== 'mp3') throw notConvertible(at, 'A chat upstream takes audio as wav or mp3 only.');
  return { type: 'input_audio', input_audio: { data: source.data, format } };
}

/** The part of routers. */
function videoPart({ source }: Media, at: string | undefined): JsonObject {
  if (source.from !== 'inline' && source.from !== 'url') {
    throw notConvertible(at, 'A chat upstream takes videos as content or URL, not by file id.');
  }
  return { type: 'video_url', video_url: { url: source.from === 'inline' ? dataUri(source) : source.url } };
}

function filePart({ source, filename }: Media, at: string | undefined): JsonObject {
  switch (source.from) {
    case 'inline':
      return { type: 'file', file: { filename: filename ?? filenameOf(source.mime), file_data: dataUri(source) } };
    case 'reference':
      // The vendor refuses a file name beside it (`mutually_exclusive_parameters`).
      return { type: 'file', file: { file_id: source.id } };
    case 'text':
      return textPart(titledText(source.text, filename));
    case 'url':
      throw notConvertible(at, 'A chat upstream takes files as content or file id, not by URL.');
  }
}

export interface ResultParts {
  readonly text: readonly string[];
  readonly media: readonly Media[];
}

/** Splits a tool result into text, which a tool message can hold, and media, which it cannot. Native parts are left out. */
export function splitResult(content: readonly Part[]): ResultParts {
  const text: string[] = [];
  const media: Media[] = [];
  for (const part of content) {
    if (part.kind === 'text' && part.text !== '') text.push(part.text);
    else if (part.kind === 'media' && part.media.source.from === 'text')
      text.push(titledText(part.media.source.text, part.media.filename));
    else if (part.kind === 'media') media.push(part.media);
  }
  return { text, media };
}
