/** The order of a legacy completions stream as clients get it. For tests over everything that the encoder emits. */
import { illegal, type Transitions } from '../../streams/lifecycle.ts';

const no = illegal;

export type ClientState = 'open' | 'finished' | 'counted' | 'ended' | 'failed';
export type ClientVerb = 'text' | 'finish' | 'usage' | 'error' | 'done';

export const CLIENT = {
  //              text          finish              usage               error            done
  open: { text: 'open', finish: 'finished', usage: no, error: 'failed', done: no },
  finished: { text: no, finish: no, usage: 'counted', error: 'failed', done: 'ended' },
  counted: { text: no, finish: no, usage: no, error: 'failed', done: 'ended' },
  ended: { text: no, finish: no, usage: no, error: no, done: no },
  failed: { text: no, finish: no, usage: no, error: no, done: no },
} as const satisfies Transitions<ClientState, ClientVerb>;
