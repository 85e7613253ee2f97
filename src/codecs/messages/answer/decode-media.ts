/** Reads an image or a document of an answer. The vendor sends none, but other servers of this protocol do, for models that make images. */
import type { Media, MediaSource } from '../../canonical/item.ts';
import type { JsonObject } from '../../canonical/json.ts';
import { sourceOfUrl } from '../../media.ts';
import { nullableString, needObject, needString } from '../wire.ts';

/** Undefined for a source of unknown type. Throws GatewayError blaming the upstream. */
export function mediaOf(block: JsonObject): Media | undefined {
  const where = `${String(block['type'])} block`;
  const source = sourceOf(needObject(block, 'source', where), where);
  if (source === undefined) return undefined;
  const filename = nullableString(block, 'title', where);
  return { type: block['type'] === 'image' ? 'image' : 'file', source, ...(filename === undefined ? {} : { filename }) };
}

function sourceOf(source: JsonObject, where: string): MediaSource | undefined {
  switch (source['type']) {
    case 'base64':
      return { from: 'inline', mime: needString(source, 'media_type', where), data: needString(source, 'data', where) };
    case 'url':
      return sourceOfUrl(needString(source, 'url', where));
    case 'file':
      return { from: 'reference', id: needString(source, 'file_id', where) };
    case 'text':
      return { from: 'text', text: needString(source, 'data', where) };
    default:
      return undefined;
  }
}
