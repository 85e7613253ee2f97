/** Media of other dialects as items of this one: pictures are calls of its image tool, everything else is refused. */
import { notRepresentable } from '../canonical/error.ts';
import type { Media, OutputItem } from '../canonical/item.ts';
import type { JsonObject } from '../canonical/json.ts';
import type { Emit, ToldItem } from './told.ts';
import { IMAGE_FACTS } from './wire.ts';

/** Throws `response_not_representable` for what the dialect cannot say. Called before anything of a step is written. */
export function checkRepresentable(item: OutputItem): void {
  if (item.kind !== 'media') return;
  const { media } = item;
  if (media.type !== 'image')
    throw notRepresentable(`The answer holds ${media.type} content, which the responses protocol cannot carry.`);
  if (media.source.from !== 'inline') throw notRepresentable('The answer holds an image without its content.');
}

/** What the image tool says between the announcement of its call and the picture. */
export function sayImageProgress(item: ToldItem, emit: Emit): void {
  const place = { item_id: item.id, output_index: item.outputIndex };
  for (const stage of ['in_progress', 'generating', 'completed']) emit(`response.image_generation_call.${stage}`, place);
}

/** The finished call, with what its maker reported of the picture. */
export function finishedImage(item: ToldItem, media: Media): JsonObject {
  const reported = media.reported ?? {};
  const facts = Object.fromEntries(IMAGE_FACTS.flatMap((key) => (reported[key] === undefined ? [] : [[key, reported[key]]])));
  const result = media.source.from === 'inline' ? media.source.data : null;
  return { ...item.announced, status: 'completed', ...formatOf(media), ...facts, result };
}

/** Clients take a picture for PNG where nothing is said. */
function formatOf({ source }: Media): JsonObject {
  const format = source.from === 'inline' ? /^image\/(jpeg|webp)$/.exec(source.mime)?.[1] : undefined;
  return format === undefined ? {} : { output_format: format };
}
