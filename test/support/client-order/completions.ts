/** The order of a legacy completions stream over everything that the gateway wrote. */
import { isObject, type JsonValue } from '../../../src/codecs/canonical/json.ts';
import { CLIENT, type ClientState, type ClientVerb } from '../../../src/codecs/completions/lifecycle.ts';
import { advance } from '../../../src/streams/lifecycle.ts';

/** The state behind a frame. Throws LifecycleError. */
export function afterCompletionsFrame(state: ClientState, data: string): ClientState {
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
