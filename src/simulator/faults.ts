/**
 * Turns an answer and its ordered faults into a plan of writes, waits and endings. Pure: no socket, no clock.
 * Faults apply in the order in which they are listed, each to the frames that the earlier ones left.
 */
import { gzipSync } from 'node:zlib';
import type { Answer } from './answer.ts';
import { exceptionMessage } from './clouds/event-stream.ts';
import { DONE, type Frame } from './frame.ts';
import type { JsonValue } from './json.ts';
import type { Fault } from './script.ts';

export type Action =
  | { readonly do: 'write'; readonly bytes: Buffer }
  | { readonly do: 'wait'; readonly ms: number }
  | { readonly do: 'stall' }
  | { readonly do: 'cut' };

export interface Plan {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly beforeHeadersMs: number;
  /** No byte is ever sent, not even a status. */
  readonly silent: boolean;
  /** Ends the body after the last action, unless that is `cut` or `stall`. */
  readonly actions: readonly Action[];
}

const HTML =
  '<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n<center><h1>502 Bad Gateway</h1></center>\r\n</body>\r\n</html>\r\n';

type Mark = { readonly before: number; readonly action: Action | { readonly do: 'end' } };

export function planAnswer(answer: Answer, faults: readonly Fault[]): Plan {
  let frames: readonly Frame[] = answer.frames;
  let { status } = answer;
  let headers = { ...answer.headers };
  let beforeHeadersMs = 0;
  let gzip = false;
  let silent = false;
  let limit: { readonly bytes: number; readonly action: 'cut' | 'end' } | undefined;
  const marks: Mark[] = [];

  for (const fault of faults) {
    switch (fault.type) {
      case 'status':
        status = fault.status;
        headers = { 'content-type': typeof fault.body === 'string' ? 'text/plain' : 'application/json', ...fault.headers };
        if (fault.body !== undefined)
          frames = [{ part: 'terminal', text: typeof fault.body === 'string' ? fault.body : JSON.stringify(fault.body) }];
        break;
      case 'html':
        status = fault.status ?? 502;
        headers = { 'content-type': 'text/html' };
        frames = [{ part: 'terminal', text: HTML }];
        break;
      case 'cut':
      case 'end':
        if (fault.atByte !== undefined) limit = { bytes: fault.atByte, action: fault.type };
        else marks.push({ before: fault.at ?? 0, action: { do: fault.type } });
        break;
      case 'stall':
        marks.push({ before: fault.at, action: fault.ms === undefined ? { do: 'stall' } : { do: 'wait', ms: fault.ms } });
        break;
      case 'content-type':
        headers['content-type'] = fault.value;
        break;
      case 'gzip':
        gzip = true;
        headers['content-encoding'] = 'gzip';
        break;
      case 'slow-headers':
        beforeHeadersMs += fault.ms;
        break;
      case 'silent':
        silent = true;
        break;
      default:
        frames = withFault(frames, fault, answer);
    }
  }
  const actions = gzip ? zipped(frames) : placed(frames, marks);
  return { status, headers, beforeHeadersMs, silent, actions: limit === undefined ? actions : truncated(actions, limit) };
}

type FrameFault = Exclude<
  Fault,
  { type: 'status' | 'html' | 'cut' | 'end' | 'stall' | 'content-type' | 'gzip' | 'slow-headers' | 'silent' }
>;

/** The frames after a fault of what is said; all others are of how it is sent. */
function withFault(frames: readonly Frame[], fault: FrameFault, answer: Answer): readonly Frame[] {
  switch (fault.type) {
    case 'error-event': {
      const failure = answer.failureFrame?.(fault.at, fault.error) ?? defaultFailure(fault.error);
      return [...frames.slice(0, fault.at), failure];
    }
    case 'exception':
      return [...frames.slice(0, fault.at), { part: 'content', text: '', bytes: exceptionMessage(fault.name, fault.message) }];
    case 'garbage':
      return frames.toSpliced(fault.at, 0, { part: 'content', text: fault.text ?? 'data: {"not": json\n\n' });
    case 'no-terminal':
      return frames.filter(isBeforeEnding);
    case 'done-only':
      return [...frames.filter(isBeforeEnding), DONE];
  }
}

function isBeforeEnding({ part }: Frame): boolean {
  return part !== 'terminal' && part !== 'usage' && part !== 'done';
}

function defaultFailure(
  error: JsonValue = { error: { message: 'The upstream failed.', type: 'server_error', param: null, code: null } },
): Frame {
  return { part: 'content', text: `data: ${JSON.stringify(error)}\n\n` };
}

function bytesOf({ text, bytes }: Frame): Buffer {
  return bytes === undefined ? Buffer.from(text) : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

function placed(frames: readonly Frame[], marks: readonly Mark[]): Action[] {
  const actions: Action[] = [];
  for (let index = 0; index <= frames.length; index += 1) {
    for (const { before, action } of marks) {
      if (before !== index && !(index === frames.length && before > index)) continue;
      if (action.do === 'end') return actions;
      actions.push(action);
      if (action.do === 'cut' || action.do === 'stall') return actions;
    }
    const frame = frames[index];
    if (frame !== undefined) actions.push({ do: 'write', bytes: bytesOf(frame) });
  }
  return actions;
}

function zipped(frames: readonly Frame[]): Action[] {
  return [{ do: 'write', bytes: gzipSync(Buffer.concat(frames.map(bytesOf))) }];
}

function truncated(
  actions: readonly Action[],
  { bytes, action }: { readonly bytes: number; readonly action: 'cut' | 'end' },
): Action[] {
  const kept: Action[] = [];
  let left = bytes;
  for (const step of actions) {
    if (step.do !== 'write') {
      kept.push(step);
      continue;
    }
    if (left > 0) kept.push({ do: 'write', bytes: step.bytes.subarray(0, left) });
    left -= step.bytes.length;
    if (left <= 0) break;
  }
  return action === 'cut' ? [...kept, { do: 'cut' }] : kept;
}
