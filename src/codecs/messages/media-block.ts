/** A picture or a document in an answer. The vendor sends none; other servers of this protocol do, for models that draw. */
import type { CanonicalEvent } from '../canonical/event.ts';
import type { ItemStatus, Media, MediaSource } from '../canonical/item.ts';
import type { JsonObject } from '../canonical/json.ts';
import { sourceOfUrl } from '../media.ts';
import type { Block, BlockHost } from './block.ts';
import { mayString, needObject, needString } from './wire.ts';

export class MediaBlock implements Block {
  readonly kind = 'media';
  readonly #host: BlockHost;
  readonly #media: Media;
  #index = 0;

  constructor(media: Media, host: BlockHost) {
    this.#host = host;
    this.#media = media;
  }

  start(out: CanonicalEvent[]): void {
    this.#index = this.#host.nextIndex();
    out.push({ type: 'item.start', index: this.#index, head: { kind: 'media' } });
  }

  delta(): void {
    // Only unknown deltas fit, and they have no canonical reading.
  }

  stop(status: ItemStatus, out: CanonicalEvent[]): boolean {
    out.push({ type: 'item.end', index: this.#index, item: { kind: 'media', role: 'assistant', media: this.#media }, status });
    return true;
  }

  cut(out: CanonicalEvent[]): void {
    this.stop('incomplete', out);
  }
}

/** What such a block shows; undefined where it comes from a source that is not known here. Throws GatewayError blaming the upstream. */
export function mediaOf(block: JsonObject): Media | undefined {
  const where = `${String(block['type'])} block`;
  const source = sourceOf(needObject(block, 'source', where), where);
  if (source === undefined) return undefined;
  const filename = mayString(block, 'title', where);
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
