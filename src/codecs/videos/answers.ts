/** Reading the answers of video upstreams: JSON or nothing, and what an HTTP status means for a submission. */
import { isObject, type JsonObject, type JsonValue, tryJson } from '../canonical/json.ts';
import type { UpstreamAnswer } from '../codec.ts';
import { sliceJson } from '../json/text.ts';
import { sanitise } from '../errors/sanitise.ts';
import { readErrorMembers, retryAfterMs } from '../errors/upstream.ts';
import type { Progress, Submission, VideoFailure } from './upstream.ts';

/** The body as an object; undefined where it is none. */
export function bodyOf(answer: UpstreamAnswer): JsonObject | undefined {
  const value = tryJson(answer.text);
  return isObject(value) ? value : undefined;
}

/**
 * What a path can hold, within what servers take of one: under a longer name, or one that means the path above, a task could
 * never be asked for, and would be under way until its deadline, or for ever.
 */
const ID = /^(?!\.{1,2}$)[^\p{Cc}\p{Cs}]{1,1024}$/u;
/** As many as a client may send of one. */
const MAX_LINK_CHARS = 8192;

/** An id as text; undefined where nothing can be asked for under it. */
export function idText(text: string, path: readonly string[]): string | undefined {
  const named = nameText(text, path);
  return named !== undefined && ID.test(named) ? named : undefined;
}

/** It may come as a number above 2^53, so it is cut from the text and never read as a number. */
function nameText(text: string, path: readonly string[]): string | undefined {
  const slice = sliceJson(text, path) ?? '';
  if (/^\d+$/.test(slice)) return slice;
  const spelled = tryJson(slice);
  return typeof spelled === 'string' && spelled !== '' ? spelled : undefined;
}

/**
 * An answer that names another task or file than the one that was asked for (a cache or a proxy that mixed two up): it proves
 * nothing of this one, and what is in it may be somebody else's. Undefined where it names this one, or none.
 */
export function aboutAnother({ text }: UpstreamAnswer, path: readonly string[], id: string): Progress | undefined {
  const named = nameText(text, path);
  // A proxy that reads numbers as doubles rounds a long one.
  if (named === undefined || named === id || Number(named) === Number(id)) return undefined;
  return { kind: 'queryError', reason: 'the answer is about another task' };
}

/** What is kept, with the task and in the log at each poll, of a status that nobody knows. */
const MAX_STATUS_CHARS = 200;

/** What a status that is in no documentation means: a value may stand for an end, no value means nothing. */
export function unreadStatus(status: JsonValue | undefined, detail = ''): Progress {
  const reason = `status ${JSON.stringify(status ?? null).slice(0, MAX_STATUS_CHARS)}${detail}`;
  return { kind: typeof status === 'string' && status !== '' ? 'unclear' : 'queryError', reason };
}

/** `URL` passes over line breaks, which whoever puts the link into a header would not. */
const LINK = /^https?:\/\/\P{Cc}+$/iu;

/** Where the result is, if that is a link that a client can open. */
export function resultLink(value: JsonValue | undefined): string | undefined {
  if (typeof value !== 'string' || value.length > MAX_LINK_CHARS || !LINK.test(value)) return undefined;
  return URL.canParse(value) ? value : undefined;
}

/**
 * The last frame of the video, where the client asked for it (`return_last_frame`). `report` is what the upstream reported of its
 * success.
 */
export function lastFrameLink(report: JsonValue): string | undefined {
  const content = isObject(report) ? report['content'] : undefined;
  return isObject(content) ? resultLink(content['last_frame_url']) : undefined;
}

/** A task in the words that Ark and MiniMax v2 share. `link`: the member of its `content` that has the link to the video. */
export function readTask(task: JsonObject, link: string): Progress {
  switch (task['status']) {
    case 'queued':
    case 'running':
      return { kind: 'pending' };
    case 'succeeded': {
      const content = task['content'];
      const url = isObject(content) ? resultLink(content[link]) : undefined;
      if (url === undefined) return { kind: 'unclear', reason: 'a success without a result link' };
      return { kind: 'succeeded', url, report: task };
    }
    case 'failed':
      return { kind: 'failed', error: failureOf(task, 'generation_failed') };
    case 'cancelled':
      return { kind: 'failed', error: { code: 'cancelled', message: 'The upstream cancelled the task.' } };
    case 'expired':
      return { kind: 'failed', error: { code: 'expired', message: 'The task expired before it was finished.' } };
    default:
      return unreadStatus(task['status']);
  }
}

/** `{error: {code, message}}` as clients may read it. */
function failureOf(body: JsonObject | undefined, fallbackCode: string): VideoFailure {
  const members = readErrorMembers(body);
  return {
    code: [members.code, members.type].find(isCode) ?? fallbackCode,
    message: sanitise(members.message, 'The upstream could not make the video.'),
  };
}

/** A word that names a failure and nothing of the upstream itself. */
function isCode(word: string | undefined): word is string {
  return word !== undefined && /^[\w.-]{1,100}$/.test(word) && sanitise(word, '') === word;
}

/**
 * What an error status means for a submission. Only a 4xx is an explicit refusal; of a 5xx, and of a timeout, nobody knows
 * whether the task was made before it.
 */
export function submissionRefusal(answer: UpstreamAnswer): Submission {
  const { status } = answer;
  const error = failureOf(bodyOf(answer), 'upstream_error');
  if (status === 401 || status === 402 || status === 403 || status === 404 || status === 429) {
    const wait = retryAfterMs(answer);
    const refused = { code: 'upstream_error', message: 'The upstream did not take the task.' };
    return { kind: 'notTaken', error: refused, status, ...(wait === undefined ? {} : { retryAfterMs: wait }) };
  }
  if (status >= 400 && status < 500 && status !== 408) return { kind: 'refused', error };
  return { kind: 'unclear', reason: `HTTP ${status}` };
}
