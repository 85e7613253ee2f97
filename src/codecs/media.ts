/**
 * Inline media and data URIs, shared by all dialects. Knows MIME types, file extensions and base64 prefixes. Does not know
 * which protocol takes which media, and never decodes base64 except where text is asked for.
 */
import type { MediaSource } from './canonical/item.ts';

/** Content with its real type: `mime` keeps its parameters (`audio/L16;rate=24000`), type and subtype in lower case. */
export interface InlineData {
  readonly mime: string;
  /** Standard base64 without white space. */
  readonly data: string;
}

const SCHEME = 'data:';
/** Characters before the comma. A longer type is none: what splits it would make as many strings. */
const MAX_TYPE = 1_024;

export function isDataUri(url: string): boolean {
  return url.slice(0, SCHEME.length).toLowerCase() === SCHEME;
}

/**
 * A data URI as inline content: base64 is passed through, a percent-encoded one is encoded. A URI without a type gets the type
 * that its first bytes show, else `text/plain` (RFC 2397). Undefined when it is no data URI, is malformed, or has a type of over
 * 1,024 characters.
 */
export function parseDataUri(uri: string): InlineData | undefined {
  if (!isDataUri(uri)) return undefined;
  const comma = uri.indexOf(',');
  if (comma === -1 || comma > MAX_TYPE) return undefined;
  const [type = '', ...parameters] = uri
    .slice(SCHEME.length, comma)
    .split(';')
    .map((piece) => piece.trim());
  const isBase64 = parameters.at(-1)?.toLowerCase() === 'base64';
  if (isBase64) parameters.pop();
  const data = isBase64 ? readBase64(uri.slice(comma + 1)) : encodePercent(uri.slice(comma + 1));
  if (data === undefined) return undefined;
  const essence = type === '' ? (sniffMime(data) ?? 'text/plain') : type.toLowerCase();
  return { mime: [essence, ...parameters.filter((piece) => piece !== '')].join(';'), data };
}

/** Anything but standard base64 without white space. */
const NOT_PLAIN = /[^A-Za-z0-9+/=]/;

/** By ASCII code: the character of standard base64 that it stands for, 0 for white space, -1 for what has no place in base64. */
const BASE64_CODES = Int16Array.from({ length: 128 }, (_, code) => {
  const character = String.fromCharCode(code);
  if (character === '-') return '+'.charCodeAt(0);
  if (character === '_') return '/'.charCodeAt(0);
  if (/\s/.test(character)) return 0;
  return NOT_PLAIN.test(character) ? -1 : code;
});

/** Base64 as URIs carry it: perhaps percent-encoded, wrapped, or in the alphabet of URLs. Undefined for other characters. */
export function readBase64(payload: string): string | undefined {
  const data = payload.includes('%') ? percentBytes(payload)?.toString('latin1') : payload;
  if (data === undefined || !NOT_PLAIN.test(data)) return data;
  // One pass into one buffer: a pattern would make a string for each of millions of matches.
  const bytes = Buffer.allocUnsafe(data.length);
  let length = 0;
  for (let at = 0; at < data.length; at++) {
    const code = BASE64_CODES[data.charCodeAt(at)] ?? -1;
    if (code === -1) return undefined;
    if (code !== 0) bytes[length++] = code;
  }
  return bytes.toString('latin1', 0, length);
}

function encodePercent(payload: string): string | undefined {
  return percentBytes(payload)?.toString('base64');
}

/** Bytes, not characters: an escape may be a piece of any encoding. One pass, since a body may hold millions of escapes. */
function percentBytes(payload: string): Buffer | undefined {
  const bytes = Buffer.from(payload);
  let length = 0;
  for (let at = 0; at < bytes.length; at++) {
    let byte = bytes[at] ?? 0;
    if (byte === PERCENT) {
      const high = hexDigit(bytes[at + 1]);
      const low = hexDigit(bytes[at + 2]);
      if (high < 0 || low < 0) return undefined;
      byte = high * 16 + low;
      at += 2;
    }
    bytes[length++] = byte;
  }
  return bytes.subarray(0, length);
}

const PERCENT = 0x25;

/** -1 for what is no hexadecimal digit. */
function hexDigit(code: number | undefined): number {
  if (code === undefined) return -1;
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  const letter = code | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1;
}

export function dataUri(inline: InlineData): string {
  return `data:${inline.mime};base64,${inline.data}`;
}

/** A URL member of a body as a source: inline where it is a well-formed data URI, else the URL itself. */
export function sourceOfUrl(url: string): MediaSource {
  const inline = parseDataUri(url);
  return inline === undefined ? remoteSource(url) : { from: 'inline', ...inline };
}

/** A bucket, or the file store of an account: what the credential of a Channel can read there is not every client's. */
const PRIVATE = /^gs:\/\/|^https:\/\/generativelanguage\.googleapis\.com\/(?:[\w.-]+\/)?files\//i;

/** A link, unless it is one that only a credential opens: that is a private file, however it is spelled (spec rule 2). */
export function remoteSource(url: string): MediaSource {
  return PRIVATE.test(url) ? { from: 'reference', id: url } : { from: 'url', url };
}

/** The type without its parameters, in lower case. */
export function essenceOf(mime: string): string {
  const semicolon = mime.indexOf(';');
  return (semicolon === -1 ? mime : mime.slice(0, semicolon)).trim().toLowerCase();
}

/** The type under its registered name: vendors refuse JPEG by any other. */
function registeredMime(mime: string): string {
  return mime.replace(/^\s*image\/jpg\b/i, 'image/jpeg');
}

/** The type where it says what the content is: no wildcard, and not merely "bytes". */
export function realMime(mime: string | undefined): string | undefined {
  if (mime === undefined) return undefined;
  const essence = essenceOf(mime);
  return /^[\w.+-]+\/[\w.+-]+$/.test(essence) && essence !== 'application/octet-stream' ? registeredMime(mime) : undefined;
}

/** What inline content is: by its own type, else by its name, else by its first bytes. */
export function mimeOfContent({ mime, data }: InlineData, filename = ''): string | undefined {
  return realMime(mime) ?? mimeOfFilename(filename) ?? sniffMime(data);
}

/** What stands in the place of a picture: clients put PDFs there, too. */
export function pictureOrFile(source: MediaSource): 'image' | 'file' {
  if (source.from !== 'inline') return 'image';
  return mimeOfContent(source)?.startsWith('image/') === false ? 'file' : 'image';
}

/** Text content in UTF-8, for protocols that read no charset. As it came where it is no text of the charset that it names. */
export function inUtf8(inline: InlineData): string {
  const isOther = /;\s*charset=(?!"?(?:utf-?8|us-ascii))/i.test(inline.mime);
  const text = isOther ? textOfInline(inline) : undefined;
  return text === undefined ? inline.data : Buffer.from(text).toString('base64');
}

const UTF_8 = 'utf-8';

/**
 * The text of inline content, by its byte order mark, else by its charset (UTF-8 where none is named or it is unknown). Undefined
 * where the bytes are no text in it, since a replaced character is a lost one. Decodes the base64.
 */
export function textOfInline(inline: InlineData): string | undefined {
  const bytes = Buffer.from(inline.data, 'base64');
  const charset = charsetOfMark(bytes) ?? /;\s*charset="?([^";]+)/i.exec(inline.mime)?.[1] ?? UTF_8;
  try {
    return strictDecoder(charset).decode(bytes);
  } catch (error) {
    if (error instanceof TypeError) return undefined;
    throw error;
  }
}

function charsetOfMark(bytes: Buffer): string | undefined {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return 'utf-16le';
  return bytes[0] === 0xfe && bytes[1] === 0xff ? 'utf-16be' : undefined;
}

function strictDecoder(charset: string): TextDecoder {
  try {
    return new TextDecoder(charset, { fatal: true });
  } catch (error) {
    if (error instanceof RangeError) return new TextDecoder(UTF_8, { fatal: true });
    throw error;
  }
}

const MIME_BY_EXTENSION: ReadonlyMap<string, string> = new Map([
  ['png', 'image/png'],
  ['jpg', 'image/jpeg'],
  ['jpeg', 'image/jpeg'],
  ['gif', 'image/gif'],
  ['webp', 'image/webp'],
  ['bmp', 'image/bmp'],
  ['avif', 'image/avif'],
  ['heic', 'image/heic'],
  ['heif', 'image/heif'],
  ['svg', 'image/svg+xml'],
  ['tif', 'image/tiff'],
  ['tiff', 'image/tiff'],
  ['wav', 'audio/wav'],
  ['mp3', 'audio/mpeg'],
  ['aac', 'audio/aac'],
  ['flac', 'audio/flac'],
  ['ogg', 'audio/ogg'],
  ['opus', 'audio/opus'],
  ['m4a', 'audio/mp4'],
  ['mp4', 'video/mp4'],
  ['mpeg', 'video/mpeg'],
  ['mov', 'video/quicktime'],
  ['webm', 'video/webm'],
  ['pdf', 'application/pdf'],
  ['txt', 'text/plain'],
  ['md', 'text/markdown'],
  ['csv', 'text/csv'],
  ['html', 'text/html'],
  ['htm', 'text/html'],
  ['css', 'text/css'],
  ['xml', 'text/xml'],
  ['js', 'text/javascript'],
  ['py', 'text/x-python'],
  ['json', 'application/json'],
  ['rtf', 'application/rtf'],
  ['doc', 'application/msword'],
  ['docx', 'application/vnd.openxmlformats-officedocument.wordprocessingml.document'],
  ['xls', 'application/vnd.ms-excel'],
  ['xlsx', 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet'],
  ['ppt', 'application/vnd.ms-powerpoint'],
  ['pptx', 'application/vnd.openxmlformats-officedocument.presentationml.presentation'],
]);

/** The type that a file name, path or URL shows by its extension (query and fragment are ignored). */
export function mimeOfFilename(name: string): string | undefined {
  const path = name.replace(/[?#].*$/s, '');
  const extension = /\.([A-Za-z0-9]+)$/.exec(path)?.[1];
  return extension === undefined ? undefined : MIME_BY_EXTENSION.get(extension.toLowerCase());
}

const BASE64_PREFIXES: readonly (readonly [string, string])[] = [
  ['iVBORw0KGgo', 'image/png'],
  ['/9j/', 'image/jpeg'],
  ['R0lGOD', 'image/gif'],
  ['Qk', 'image/bmp'],
  ['JVBERi0', 'application/pdf'],
  ['SUQz', 'audio/mpeg'],
  ['ZkxhQ', 'audio/flac'],
  ['T2dnUw', 'audio/ogg'],
];

/** The type that the first bytes of base64 content show, without decoding it. Undefined when they show none. */
export function sniffMime(data: string): string | undefined {
  if (data.startsWith('UklGR')) {
    const form = Buffer.from(data.slice(0, 16), 'base64').toString('latin1', 8, 12);
    if (form === 'WEBP') return 'image/webp';
    return form === 'WAVE' ? 'audio/wav' : undefined;
  }
  return BASE64_PREFIXES.find(([prefix]) => data.startsWith(prefix))?.[1];
}

const AUDIO_FORMATS: readonly (readonly [string, string])[] = [
  ['wav', 'audio/wav'],
  ['wav', 'audio/x-wav'],
  ['wav', 'audio/wave'],
  ['mp3', 'audio/mpeg'],
  ['mp3', 'audio/mp3'],
  ['flac', 'audio/flac'],
  ['opus', 'audio/opus'],
  ['aac', 'audio/aac'],
  ['pcm16', 'audio/pcm'],
];

/** The type of an audio format word (`wav`, `mp3`, `pcm16`, …); an unknown word becomes `audio/<word>`. */
export function mimeOfAudioFormat(format: string): string {
  const word = format.toLowerCase();
  return AUDIO_FORMATS.find(([known]) => known === word)?.[1] ?? `audio/${word}`;
}

/** The format word of an audio type, undefined where there is none. */
export function audioFormatOf(mime: string): string | undefined {
  const essence = essenceOf(mime);
  return AUDIO_FORMATS.find(([, type]) => type === essence)?.[0];
}

/** A name for inline content that came without one: vendors of the chat and responses protocols refuse such a file. */
export function filenameOf(mime: string): string {
  const essence = essenceOf(mime);
  if (essence === 'application/pdf') return 'file.pdf';
  return essence.startsWith('text/') ? 'file.txt' : 'file';
}

/** A document of plain words where there are no documents: its name is their heading, as a client's found results have one. */
export function titledText(text: string, name: string | undefined): string {
  return name === undefined || name === '' ? text : `${name}\n\n${text}`;
}

/** Pieces of base64, each padded for itself, as one. */
export function joinBase64(pieces: readonly string[]): string {
  // A piece of whole groups of four can be joined as it is; only a padded one forces the bytes apart.
  if (pieces.slice(0, -1).every((piece) => piece.length % 4 === 0 && !piece.endsWith('='))) return pieces.join('');
  return Buffer.concat(pieces.map((piece) => Buffer.from(piece, 'base64'))).toString('base64');
}
