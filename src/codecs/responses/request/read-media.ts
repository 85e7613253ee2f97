/** The images, files and audio of a responses request, wherever in its input they stand. */
import { invalid } from '../../canonical/error.ts';
import type { Media, MediaSource } from '../../canonical/item.ts';
import type { JsonObject } from '../../canonical/json.ts';
import {
  isDataUri,
  mimeOfAudioFormat,
  mimeOfFilename,
  parseDataUri,
  pictureOrFile,
  remoteSource,
  sniffMime,
} from '../../media.ts';
import { objectAt, optionalString, requiredName } from '../../requests/members.ts';

/** `input_image`, `input_file`, `input_audio`; undefined for parts of another type. */
export function readMedia(part: JsonObject, at: string): Media | undefined {
  switch (part['type']) {
    case 'input_image': {
      const detail = optionalString(part, 'detail', at);
      const source = readSource(part, at, { url: 'image_url' });
      return { type: pictureOrFile(source), source, ...(detail === undefined ? {} : { detail }), at };
    }
    case 'input_file': {
      const filename = optionalString(part, 'filename', at);
      const source = readSource(part, at, { url: 'file_url', data: 'file_data' });
      return { type: 'file', source, ...(filename === undefined ? {} : { filename }), at };
    }
    case 'input_audio': {
      const audio = objectAt(part['input_audio'], `${at}.input_audio`);
      const data = requiredName(audio, 'data', `${at}.input_audio`);
      const format = requiredName(audio, 'format', `${at}.input_audio`);
      return { type: 'audio', source: { from: 'inline', mime: mimeOfAudioFormat(format), data }, at };
    }
    default:
      return undefined;
  }
}

/** A file id counts before what stands beside it, since the upstream gets that id too (spec rule 2). */
function readSource(part: JsonObject, at: string, keys: { readonly url: string; readonly data?: string }): MediaSource {
  const id = optionalString(part, 'file_id', at);
  if (id !== undefined && id !== '') return { from: 'reference', id };
  const data = keys.data === undefined ? undefined : optionalString(part, keys.data, at);
  const url = optionalString(part, keys.url, at);
  if (data !== undefined && keys.data !== undefined)
    return readFileData(data, optionalString(part, 'filename', at), `${at}.${keys.data}`);
  if (url !== undefined) return readUrl(url, `${at}.${keys.url}`);
  throw invalid(at, `${at} needs ${keys.url}${keys.data === undefined ? '' : `, ${keys.data}`} or file_id.`);
}

function readUrl(url: string, at: string): MediaSource {
  if (!isDataUri(url)) return remoteSource(url);
  const inline = parseDataUri(url);
  if (inline === undefined) throw invalid(at, `${at} is a malformed data URL.`);
  return { from: 'inline', ...inline };
}

/** A data URL keeps its type; bare base64 gets it from the file name, else from its first bytes. */
function readFileData(data: string, filename: string | undefined, at: string): MediaSource {
  if (isDataUri(data)) return readUrl(data, at);
  const named = filename === undefined ? undefined : mimeOfFilename(filename);
  return { from: 'inline', mime: named ?? sniffMime(data) ?? 'application/octet-stream', data };
}
