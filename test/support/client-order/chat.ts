/** The order of a chat-completions stream over everything that the gateway wrote. */
import { isObject, type JsonValue } from '../../../src/codecs/canonical/json.ts';
import { CLIENT, type ClientState, type ClientVerb, hasContent } from '../../../src/codecs/chat/lifecycle.ts';
import { advance, LifecycleError } from '../../../src/streams/lifecycle.ts';

/** Throws LifecycleError at the first frame out of order, and where the stream ends in a state in which none may. */
export function checkChatStream(frames: Iterable<string>): 'ended' | 'failed' {
  let state: ClientState = 'idle';
  for (const data of frames) state = advance('chat client stream', CLIENT, state, clientVerbOf(data));
  if (state === 'ended' || state === 'failed') return state;
  throw new LifecycleError('chat client stream', state, 'end of stream', ['[DONE]', 'error']);
}

/** The verb of a frame that the gateway sent. */
function clientVerbOf(data: string): ClientVerb {
  if (data === '[DONE]') return 'done';
  const chunk: JsonValue = JSON.parse(data);
  if (!isObject(chunk)) return 'content';
  if (isObject(chunk['error'])) return 'error';
  const choices = Array.isArray(chunk['choices']) ? chunk['choices'] : [];
  const choice: JsonValue | undefined = choices[0];
  if (!isObject(choice)) return isObject(chunk['usage']) ? 'usage' : 'note';
  if (typeof choice['finish_reason'] === 'string' && choice['finish_reason'] !== '') return 'finish';
  return isObject(choice['delta']) && hasContent(choice['delta']) ? 'content' : 'note';
}
