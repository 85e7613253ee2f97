/** Media of other dialects: an image becomes a call of the image tool, everything else is refused. */
import { notRepresentable } from '../../canonical/error.ts';
import type { Media, OutputItem } from '../../canonical/item.ts';
import type { JsonObject } from '../../canonical/json.ts';
import type { Emit, SentItem } from './sent-items.ts';
import { IMAGE_FACTS } from '../wire.ts';

/** Throws `response_not_representable` for an image that is only named. Called before anything of a step is written. */
export function checkRepresentable(item: OutputItem): void {
  if (item.kind === 'media' && item.media.source.from !== 'inline')
    throw notRepresentable('The answer holds an image without its content.');
}

/** The progress events of the image tool. */
export function emitImageProgress(item: SentItem, emit: Emit): void {
  const place = { item_id: item.id, output_index: item.outputIndex };
  for (const stage of ['in_progress', 'generating', 'completed']) emit(`response.image_generation_call.${stage}`, place);
}

/** The finished call, with the facts that its upstream reported of the image. */
export function finishedImage(item: SentItem, media: Media): JsonObject {
  const reported = media.reported ?? {};
  const facts = Object.fromEntries(IMAGE_FACTS.flatMap((key) => (reported[key] === undefined ? [] : [[key, reported[key]]])));
  const result = media.source.from === 'inline' ? media.source.data : null;
  return { ...item.announced, status: 'completed', ...formatOf(media), ...facts, result };
}

/** Clients take an image without `output_format` for PNG. */
function formatOf({ source }: Media): JsonObject {
  const format = source.from === 'inline' ? /^image\/(jpeg|webp)$/.exec(source.mime)?.[1] : undefined;
  return format === undefined ? {} : { output_format: format };
}
