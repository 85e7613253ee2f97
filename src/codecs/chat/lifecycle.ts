/**
 * The order of a chat-completions stream: this file alone decides which chunk may follow which. `UPSTREAM` is what vendors really
 * send (usage anywhere, repeated finish chunks); `CLIENT` is the stricter order of what the gateway sends.
 */
import { illegal, type Transitions } from '../../streams/lifecycle.ts';
import { isObject, type JsonValue } from '../canonical/json.ts';

const no = illegal;

export type UpstreamState = 'idle' | 'open' | 'called' | 'finished' | 'ended';
/**
 * `note`: a chunk without content (role, filter results, usage, unknown members). `call`: a chunk that begins tool calls and
 * holds nothing else. `called`: the finish reason `tool_calls`. `finish`: any other finish reason.
 */
export type UpstreamVerb = 'note' | 'content' | 'call' | 'called' | 'finish' | 'fail' | 'done';

export const UPSTREAM = {
  //            note              content          call          called              finish              fail           done
  idle: { note: 'idle', content: 'open', call: 'open', called: 'called', finish: 'finished', fail: 'ended', done: no },
  open: { note: 'open', content: 'open', call: 'open', called: 'called', finish: 'finished', fail: 'ended', done: no },
  // Together sends a finish after each call: another call may follow, with a finish of its own.
  called: { note: 'called', content: no, call: 'open', called: 'called', finish: 'finished', fail: 'ended', done: 'ended' },
  // A finish chunk may be repeated; content after it would be lost on clients that stopped reading.
  finished: { note: 'finished', content: no, call: no, called: 'finished', finish: 'finished', fail: 'ended', done: 'ended' },
  ended: { note: no, content: no, call: no, called: no, finish: no, fail: no, done: no },
} as const satisfies Transitions<UpstreamState, UpstreamVerb>;

export type ClientState = 'idle' | 'open' | 'finished' | 'counted' | 'ended' | 'failed';
export type ClientVerb = 'note' | 'content' | 'finish' | 'usage' | 'error' | 'done';

export const CLIENT = {
  //              note            content         finish              usage               error            done
  idle: { note: 'open', content: 'open', finish: 'finished', usage: no, error: 'failed', done: no },
  open: { note: 'open', content: 'open', finish: 'finished', usage: no, error: 'failed', done: no },
  finished: { note: no, content: no, finish: no, usage: 'counted', error: 'failed', done: 'ended' },
  counted: { note: no, content: no, finish: no, usage: no, error: 'failed', done: 'ended' },
  ended: { note: no, content: no, finish: no, usage: no, error: no, done: no },
  failed: { note: no, content: no, finish: no, usage: no, error: no, done: no },
} as const satisfies Transitions<ClientState, ClientVerb>;

/** The members of a delta that hold content of the answer. */
const CONTENT_MEMBERS = [
  'content',
  'refusal',
  'reasoning_content',
  'reasoning',
  'reasoning_text',
  'reasoning_details',
  'reasoning_opaque',
  'thinking_blocks',
  'tool_calls',
  'function_call',
  'images',
  'audio',
] as const;
export type ContentMember = (typeof CONTENT_MEMBERS)[number];

/** True when the delta holds content of the answer. */
export function hasContent(delta: { readonly [key: string]: JsonValue | undefined }): boolean {
  for (const key of CONTENT_MEMBERS) if (!isEmpty(delta[key])) return true;
  return false;
}

/** True when `member` has content and no other member of the delta does. */
export function hasOnly(member: ContentMember, delta: { readonly [key: string]: JsonValue | undefined }): boolean {
  for (const key of CONTENT_MEMBERS) if (isEmpty(delta[key]) === (key === member)) return false;
  return true;
}

/** Some vendors always send `function_call` and `audio` objects: these are empty until one of their texts is not. */
function isEmpty(value: JsonValue | undefined): boolean {
  return isObject(value) ? Object.values(value).every((member) => typeof member === 'number' || isBlank(member)) : isBlank(value);
}

function isBlank(value: JsonValue | undefined): boolean {
  if (Array.isArray(value)) return value.every((entry) => entry === null);
  return value === undefined || value === null || value === '';
}
