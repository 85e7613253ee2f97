/**
 * A JSON body whose images are filled in last: so it can be edited as a small text, and no image is copied into one large string.
 */
import type { BodyPiece } from '../bodies/pieces.ts';

export interface Slots {
  /** The string that stands for the content until {@link Slots.fill}. */
  hold(content: readonly BodyPiece[]): string;
  /**
   * `json` with every held content in the place of its string. Content must need no JSON escape (data URLs), links are escaped.
   */
  fill(json: string): BodyPiece[];
}

/** `secret` must be unguessable, so that no text of the client can be taken for a slot. */
export function createSlots(secret: string): Slots {
  const held: (readonly BodyPiece[])[] = [];
  return {
    hold(content) {
      held.push(content);
      return `${secret}-${held.length - 1}-`;
    },
    fill(json) {
      if (held.length === 0) return [json];
      const pieces: BodyPiece[] = [];
      const pattern = new RegExp(`${secret}-(\\d+)-`, 'g');
      let from = 0;
      for (const found of json.matchAll(pattern)) {
        pieces.push(json.slice(from, found.index), ...(held[Number(found[1])] ?? []));
        from = found.index + found[0].length;
      }
      pieces.push(json.slice(from));
      return pieces;
    },
  };
}
