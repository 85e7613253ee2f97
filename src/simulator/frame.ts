/** One event of a streamed answer in its final bytes, marked with its part in the stream so that faults can aim. */

export type FramePart = 'start' | 'content' | 'terminal' | 'usage' | 'done' | 'comment';

export interface Frame {
  readonly part: FramePart;
  readonly text: string;
  /** Bytes that are no text; then `text` is empty. */
  readonly bytes?: Uint8Array;
}

/** `data:` alone, as chat streams have it. */
export function dataFrame(part: FramePart, json: string): Frame {
  return { part, text: `data: ${json}\n\n` };
}

/** `event:` and `data:`, as responses, messages and image streams have it. */
export function namedFrame(part: FramePart, event: string, json: string): Frame {
  return { part, text: `event: ${event}\ndata: ${json}\n\n` };
}

export const DONE: Frame = { part: 'done', text: 'data: [DONE]\n\n' };
