/**
 * The order of a generative-content stream. Real servers repeat the finish reason and send more content after it, so only the end
 * of the stream ends an answer. A blocked prompt and an error object end it at once.
 */
import { illegal, type Transitions } from '../../streams/lifecycle.ts';

const no = illegal;

export type StreamState = 'idle' | 'open' | 'finished' | 'ended';
/**
 * `finish`: a chunk whose candidate has a finish reason. `blocked`: the prompt was refused. `close`: the upstream closed the
 * stream.
 */
export type StreamVerb = 'chunk' | 'finish' | 'blocked' | 'error' | 'close';

export const STREAM = {
  //          chunk              finish              blocked           error           close
  idle: { chunk: 'open', finish: 'finished', blocked: 'ended', error: 'ended', close: no },
  open: { chunk: 'open', finish: 'finished', blocked: 'ended', error: 'ended', close: no },
  finished: { chunk: 'finished', finish: 'finished', blocked: 'ended', error: 'ended', close: 'ended' },
  ended: { chunk: no, finish: no, blocked: no, error: no, close: no },
} as const satisfies Transitions<StreamState, StreamVerb>;
