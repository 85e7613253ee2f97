/** The order of a legacy completions stream as clients get it. For tests over everything that the encoder emits. */
import { advance, illegal, type Transitions } from '../../streams/lifecycle.ts';
import { isObject, type JsonValue } from '../canonical/json.ts';

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

/** The state after a frame that we sent. Throws LifecycleError. */
export function checkClientFrame(state: ClientState, data: string): ClientState {
  return advance('completions client stream', CLIENT, state, verbOf(data));
}

function verbOf(data: string): ClientVerb {
  if (data === '[DONE]') return 'done';
  const chunk: JsonValue = JSON.parse(data);
  if (!isObject(chunk)) return 'text';
  if (isObject(chunk['error'])) return 'error';
  const choices = Array.isArray(chunk['choices']) ? chunk['choices'] : [];
  const choice: JsonValue | undefined = choices[0];
  if (!isObject(choice)) return 'usage';
  return typeof choice['finish_reason'] === 'string' ? 'finish' : 'text';
}
