/**
 * The order of a generative-content stream. Chunks may repeat their finish reason and bring more after it (seen from
 * real servers), so only the end of the bytes ends the answer; a blocked prompt and an error object end it at once.
 */
import { advance, illegal, LifecycleError, type Transitions } from '../../streams/lifecycle.ts';

const no = illegal;

export type StreamState = 'idle' | 'open' | 'finished' | 'ended';
/** `finish`: a chunk whose candidate has a finish reason. `blocked`: the prompt was refused. `close`: the bytes ended. */
export type StreamVerb = 'chunk' | 'finish' | 'blocked' | 'error' | 'close';

export const STREAM = {
  //          chunk              finish              blocked           error           close
  idle: { chunk: 'open', finish: 'finished', blocked: 'ended', error: 'ended', close: no },
  open: { chunk: 'open', finish: 'finished', blocked: 'ended', error: 'ended', close: no },
  finished: { chunk: 'finished', finish: 'finished', blocked: 'ended', error: 'ended', close: 'ended' },
  ended: { chunk: no, finish: no, blocked: no, error: no, close: no },
} as const satisfies Transitions<StreamState, StreamVerb>;

/** The verbs in order; true when they are a whole, good stream. For tests and generated streams. */
export function checkStream(verbs: Iterable<StreamVerb>): boolean {
  let state: StreamState = 'idle';
  try {
    for (const verb of verbs) state = advance('stream', STREAM, state, verb);
  } catch (error) {
    if (error instanceof LifecycleError) return false;
    throw error;
  }
  return state === 'ended';
}
