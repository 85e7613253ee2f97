/** Long texts to and from UTF-8 in steps: one of thirty megabytes of emoji would take the engine fifty milliseconds at once. */
import type { Steps } from '../steps.ts';

/** Bytes of a step: a few milliseconds where each character has several. */
export const UTF8_STEP = 2 * 1024 * 1024;

/** The text of all bytes. Throws what the decoder throws, which may have decoded nothing before. */
export function* readUtf8(chunks: Iterable<Uint8Array>, decoder: TextDecoder): Steps<string> {
  let text = '';
  let size = 0;
  for (const chunk of chunks) {
    for (let at = 0; at < chunk.length; at += UTF8_STEP) {
      const piece = chunk.subarray(at, at + UTF8_STEP);
      text += decoder.decode(piece, { stream: true });
      size += piece.length;
      if (size < UTF8_STEP) continue;
      size = 0;
      yield;
    }
  }
  return text + decoder.decode();
}
