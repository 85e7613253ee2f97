/** A finished answer before pace and faults: a status, headers and the body as frames. */
import { DONE, type Frame } from './frame.ts';
import type { JsonValue } from './json.ts';

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly frames: readonly Frame[];
  readonly streamed: boolean;
  /** The dialect's error event after `before` frames; absent: `data: {"error": …}`. */
  readonly failureFrame?: (before: number, error?: JsonValue) => Frame;
}

const JSON_TYPE = 'application/json';

export function jsonAnswer(status: number, text: string, headers: Readonly<Record<string, string>> = {}): Answer {
  return { status, headers: { 'content-type': JSON_TYPE, ...headers }, frames: [{ part: 'terminal', text }], streamed: false };
}

/** A file. */
export function bytesAnswer(bytes: Uint8Array, contentType: string): Answer {
  return {
    status: 200,
    headers: { 'content-type': contentType },
    frames: [{ part: 'terminal', text: '', bytes }],
    streamed: false,
  };
}

export function streamAnswer(
  frames: readonly Frame[],
  contentType: string,
  headers: Readonly<Record<string, string>> = {},
): Answer {
  return {
    status: 200,
    headers: { 'content-type': contentType, 'cache-control': 'no-cache', ...headers },
    frames,
    streamed: true,
  };
}

export const withDone = (frames: readonly Frame[]): readonly Frame[] => [...frames, DONE];
