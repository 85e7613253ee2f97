/** What an endpoint sends to an upstream, before a Channel adds its own. */
import type { BodyPiece } from '../../codecs/bodies/pieces.ts';
import type { UpstreamRequest } from '../../codecs/codec.ts';

/** What an endpoint sends: a text codec's request, or the same without tools. `contentType` defaults to JSON. */
export type Outgoing = Pick<UpstreamRequest, 'path' | 'headers'> & {
  readonly body?: string | Uint8Array | OutgoingPieces;
  readonly contentType?: string;
};

/** A body that is made while it is sent, at the upstream's pace. */
export interface OutgoingPieces {
  readonly pieces: readonly BodyPiece[];
}

export function isPieces(body: string | Uint8Array | OutgoingPieces): body is OutgoingPieces {
  return typeof body !== 'string' && 'pieces' in body;
}
