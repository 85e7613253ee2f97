/** Decodes the content of chat messages into items: strings and parts, with media as content, URL or reference. */
import { invalid } from '../../canonical/error.ts';
import type { CacheBreakpoint, Item, Media, MediaSource, Part, Role } from '../../canonical/item.ts';
import { isObject, type JsonObject, type JsonValue } from '../../canonical/json.ts';
import { mimeOfAudioFormat, mimeOfFilename, parseDataUri, pictureOrFile, sniffMime, sourceOfUrl } from '../../media.ts';
import { readCacheControl, readPromptBreakpoint } from '../../requests/cache-breakpoints.ts';
import { objectAt, optionalString, present, requiredName, requiredString, stringAt, wrongType } from '../../requests/members.ts';
import { endsStep, type Steps } from '../../steps.ts';

/** The types of text parts; some clients use those of responses. */
const TEXT_TYPES: ReadonlySet<string> = new Set(['text', 'input_text', 'output_text']);

/** The role and the ordinal of the message that content stands in. */
export interface Source {
  readonly role: Role;
  readonly turn: number;
}

/** The items of a message's `content`: one for a string, one for each part of a list. */
export function* readContent(content: JsonValue | undefined, at: string, source: Source): Steps<Item[]> {
  if (typeof content === 'string') return [{ kind: 'text', text: content, citations: [], at, ...source }];
  if (!Array.isArray(content)) throw wrongType(at, 'a string or an array of parts');
  const items: Item[] = [];
  for (const [index, part] of content.entries()) {
    if (endsStep(index)) yield;
    items.push(readPart(part, `${at}[${index}]`, source));
  }
  return items;
}

function readPart(value: JsonValue, at: string, { role, turn }: Source): Item {
  if (typeof value === 'string') return { kind: 'text', role, text: value, citations: [], at, turn };
  const part = objectAt(value, at);
  const type = requiredString(part, 'type', at);
  const breakpoint = breakpointOf(part, at);
  const facts = { at, turn, ...(breakpoint === undefined ? {} : { breakpoint }) };
  if (TEXT_TYPES.has(type)) return { kind: 'text', role, text: requiredString(part, 'text', at), citations: [], ...facts };
  if (type === 'refusal') return { kind: 'refusal', text: requiredString(part, 'refusal', at), ...facts };
  const media = readMedia(type, part, at);
  if (media !== undefined) return { kind: 'media', role, media, ...facts };
  // Parts of one vendor (thinking, …), for upstreams of the same dialect only.
  return { kind: 'native', dialect: 'chat', role, body: part, ...facts };
}

/** The cache breakpoint of a part: that of routers, or OpenAI's. */
export function breakpointOf(part: JsonObject, at: string): CacheBreakpoint | undefined {
  return readCacheControl(part, at) ?? readPromptBreakpoint(part, at);
}

/** The parts of a tool result; images and files in it are an extension of routers. */
export function* readResultParts(content: JsonValue | undefined, at: string): Steps<Part[]> {
  if (typeof content === 'string') return [{ kind: 'text', text: content }];
  if (!present(content)) return [];
  if (!Array.isArray(content)) throw wrongType(at, 'a string or an array of parts');
  const parts: Part[] = [];
  for (const [index, part] of content.entries()) {
    if (endsStep(index)) yield;
    parts.push(readResultPart(part, `${at}[${index}]`));
  }
  return parts;
}

function readResultPart(value: JsonValue, at: string): Part {
  const part = objectAt(value, at);
  const type = requiredString(part, 'type', at);
  if (TEXT_TYPES.has(type)) return { kind: 'text', text: requiredString(part, 'text', at) };
  const media = readMedia(type, part, at);
  return media === undefined ? { kind: 'native', dialect: 'chat', body: part } : { kind: 'media', media };
}

function readMedia(type: string, part: JsonObject, at: string): Media | undefined {
  switch (type) {
    case 'image_url':
      return readImage(part['image_url'], at);
    case 'input_audio':
      return readAudio(part, at);
    case 'video_url':
    case 'input_video':
      return readVideo(part, at);
    case 'document_url':
      return readLinkedDocument(part, at);
    case 'file':
      // Some vendors (Mistral, DeepSeek) put `file_id` beside the type.
      if (!present(part['file']) && present(part['file_id'])) return readFile(part, at, at);
      return readFile(objectAt(part['file'], `${at}.file`), `${at}.file`, at);
    default:
      return undefined;
  }
}

function readImage(value: JsonValue | undefined, at: string): Media {
  const path = `${at}.image_url`;
  if (value === '') throw invalid(path, `'${path}' must not be empty.`);
  const image: JsonObject = typeof value === 'string' ? { url: value } : objectAt(value, path);
  const detail = optionalString(image, 'detail', path);
  const source = sourceOfUrl(requiredName(image, 'url', path));
  return { type: pictureOrFile(source), source, ...(detail === undefined ? {} : { detail }), at };
}

/** Mistral's audio is a string: a URL, a data URI, or plain base64, whose type is recognised by its first bytes, if at all. */
function readAudio(part: JsonObject, at: string): Media {
  const path = `${at}.input_audio`;
  if (typeof part['input_audio'] === 'string') {
    const value = requiredName(part, 'input_audio', at);
    const sniffed = sniffMime(value);
    const mime = sniffed?.startsWith('audio/') ? sniffed : 'audio/mpeg';
    return { type: 'audio', source: linkedSource(value) ?? { from: 'inline', mime, data: value }, at };
  }
  const audio = objectAt(part['input_audio'], path);
  const data = requiredString(audio, 'data', path);
  const inline = parseDataUri(data);
  if (inline !== undefined) return { type: 'audio', source: { from: 'inline', ...inline }, at };
  const mime = mimeOfAudioFormat(requiredString(audio, 'format', path));
  return { type: 'audio', source: { from: 'inline', mime, data }, at };
}

/** The source for a data URI, a URL or a private file; undefined for plain base64. */
function linkedSource(value: string): MediaSource | undefined {
  const source = sourceOfUrl(value);
  return source.from !== 'url' || /^https?:\/\//i.test(value) ? source : undefined;
}

/** The part of routers for a video, `input_video` of old. Undefined for a form that they do not have. */
function readVideo(part: JsonObject, at: string): Media | undefined {
  const body = part['video_url'];
  const url = isObject(body) ? body['url'] : body;
  return typeof url === 'string' && url !== '' ? { type: 'video', source: sourceOfUrl(url), at } : undefined;
}

/** Mistral's part for a document on the web. */
function readLinkedDocument(part: JsonObject, at: string): Media {
  const filename = optionalString(part, 'document_name', at);
  const source = sourceOfUrl(requiredName(part, 'document_url', at));
  return { type: 'file', source, ...(filename === undefined ? {} : { filename }), at };
}

/** `file_data` is a data URI, plain base64 beside a file name, or on routers a URL. */
function readFile(file: JsonObject, path: string, at: string): Media {
  const filename = optionalString(file, 'filename', path);
  const named = filename === undefined ? {} : { filename };
  const id = optionalString(file, 'file_id', path);
  if (id !== undefined && id !== '') return { type: 'file', source: { from: 'reference', id }, ...named, at };
  if (!present(file['file_data'])) throw invalid(path, `'${path}' must hold 'file_data' or 'file_id'.`);
  const data = stringAt(file['file_data'], `${path}.file_data`);
  const linked = linkedSource(data);
  if (linked !== undefined) return { type: 'file', source: linked, ...named, at };
  const mime = (filename === undefined ? undefined : mimeOfFilename(filename)) ?? sniffMime(data) ?? 'application/octet-stream';
  return { type: 'file', source: { from: 'inline', mime, data }, ...named, at };
}
