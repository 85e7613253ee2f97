/**
 * What a client asks of the image endpoints, whichever body form it came in. Images stay in the form that they arrived in:
 * received bytes, base64 text, a link or a file id; nothing is decoded here and no link is ever opened.
 */
import type { JsonValue } from '../canonical/json.ts';

export type ImageOperation = 'generation' | 'edit';

interface Placed {
  /** The path in the client's body (`images[0].image_url`, `image`). */
  readonly at: string;
}
export type InlineImage = Placed & {
  readonly mime: string;
  readonly filename?: string;
} & (
    | { readonly from: 'bytes'; readonly chunks: readonly Uint8Array[]; readonly size: number }
    | { readonly from: 'base64'; readonly data: string }
  );
export type RemoteImage = Placed &
  ({ readonly from: 'url'; readonly url: string } | { readonly from: 'reference'; readonly fileId: string });
export type ImageInput = InlineImage | RemoteImage;

export interface ImageRequest {
  readonly operation: ImageOperation;
  /** The logical model. */
  readonly model: string;
  readonly prompt: string;
  /** 1 to 16 for an edit, none for a generation. */
  readonly images: readonly ImageInput[];
  readonly mask?: ImageInput;
  /** How many pictures the client wants; each is a request of its own upstream. */
  readonly count: number;
  readonly countGiven: boolean;
  readonly stream: boolean;
  /** Everything else, checked where it is known, in the client's order. Null and gateway-only members are left out. */
  readonly parameters: ReadonlyMap<string, JsonValue>;
  /** Members that no upstream is told, where the client's text goes on. */
  readonly unsent: readonly string[];
  /** The exact body where it was JSON, for a route that speaks the same. */
  readonly text?: string;
}

export function isInline(image: ImageInput): image is InlineImage {
  return image.from === 'bytes' || image.from === 'base64';
}

/** All images, the mask included. */
export function imagesOf(request: ImageRequest): readonly ImageInput[] {
  return request.mask === undefined ? request.images : [...request.images, request.mask];
}

/** The path of the first private file id: only Channels of its scope can read it. */
export function firstReference(request: ImageRequest): string | undefined {
  return imagesOf(request).find(({ from }) => from === 'reference')?.at;
}
