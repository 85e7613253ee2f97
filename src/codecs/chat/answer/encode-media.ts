/** The media of an answer as the members of a chat message. */
import { audioAs } from '../../audio.ts';
import { notRepresentable } from '../../canonical/error.ts';
import type { MediaItem } from '../../canonical/item.ts';
import { isObject, type JsonObject } from '../../canonical/json.ts';
import type { ResponseContext } from '../../codec.ts';
import type { InlineData } from '../../media.ts';
import { nonEmptyString, writeImage } from '../wire.ts';

/** A media item as an entry of `images` or as `audio`. Throws where chat has no form for it. */
export function mediaMember(
  item: MediaItem,
  context: ResponseContext,
): { readonly images: JsonObject } | { readonly audio: JsonObject } {
  const { media } = item;
  if (media.type === 'image') {
    const image = writeImage(media);
    if (image !== undefined) return { images: image };
    throw notRepresentable('The answer holds an image that a chat client cannot fetch.');
  }
  if (media.type === 'audio' && media.source.from === 'inline') {
    const transcript = media.reported?.['transcript'];
    const id = item.id ?? context.mint('audio_');
    const data = audioFor(media.source, context);
    return { audio: { id, data, transcript: typeof transcript === 'string' ? transcript : '' } };
  }
  throw notRepresentable(`The answer holds ${media.type} content that chat completions cannot say.`);
}

/** The audio in the format that the client asked for. A client decodes what it asked for, whatever it is sent. */
function audioFor(source: InlineData, { request: { json } }: ResponseContext): string {
  const wanted = isObject(json) && isObject(json['audio']) ? nonEmptyString(json['audio']['format']) : undefined;
  if (wanted === undefined) return source.data;
  const data = audioAs(wanted, source);
  if (data === undefined)
    throw notRepresentable(`The answer holds audio of the type ${source.mime}, not of the format ${wanted}.`);
  return data;
}
