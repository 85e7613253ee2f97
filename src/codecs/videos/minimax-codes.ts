/** `base_resp` of MiniMax: an error inside an HTTP 200, known by its number (protocol notes, "base_resp.status_code"). */
import { isObject, type JsonObject } from '../canonical/json.ts';
import type { UpstreamAnswer } from '../codec.ts';
import { sanitise } from '../errors/sanitise.ts';
import { bodyOf, idText, submissionRefusal } from './answers.ts';
import type { Submission, VideoFailure } from './upstream.ts';

/** It will not make this video: sensitive input or output, invalid parameters. */
const REFUSED = new Set([1026, 1027, 2013]);
/**
 * Limits, load, and refusals of our credential, with the HTTP status that each stands for. Every other code (1000, 1001, 1013, …)
 * leaves open whether a task was made.
 */
const NOT_TAKEN: ReadonlyMap<number, number> = new Map([
  [1002, 429],
  [1004, 401],
  [1008, 402],
  [1033, 503],
  [1039, 429],
  [1041, 429],
  [2049, 401],
  [2056, 429],
]);

export function statusCode(body: JsonObject | undefined): number | undefined {
  const base = body?.['base_resp'];
  const value = isObject(base) ? base['status_code'] : undefined;
  const code = typeof value === 'string' ? Number(value) : value;
  return typeof code === 'number' ? code : undefined;
}

/** The answer to a submission, of either version: an id without an error number, an error number, or an HTTP status. */
export function readSubmission(answer: UpstreamAnswer): Submission {
  const body = bodyOf(answer);
  if (answer.status < 200 || answer.status > 299) {
    const byStatus = submissionRefusal(answer);
    const byCode = byStatusCode(body);
    return byStatus.kind === 'notTaken' || byCode.kind === 'unclear' ? byStatus : byCode;
  }
  const id = body === undefined ? undefined : idText(answer.text, ['task_id']);
  return (statusCode(body) ?? 0) === 0 && id !== undefined ? { kind: 'accepted', upstreamId: id } : byStatusCode(body);
}

/** What a submission without a task id came to. */
function byStatusCode(body: JsonObject | undefined): Submission {
  const code = statusCode(body);
  if (code !== undefined && REFUSED.has(code)) return { kind: 'refused', error: failureByCode(body) };
  const status = code === undefined ? undefined : NOT_TAKEN.get(code);
  if (status !== undefined)
    return { kind: 'notTaken', error: { code: 'upstream_error', message: 'The upstream did not take the task.' }, status };
  return { kind: 'unclear', reason: `an answer without a task id, status_code ${code ?? 'missing'}` };
}

export function failureByCode(body: JsonObject | undefined): VideoFailure {
  const base = body?.['base_resp'];
  const code = statusCode(body) ?? 0;
  // The message of code 0 is "success": it speaks of the query.
  const message = code !== 0 && isObject(base) && typeof base['status_msg'] === 'string' ? base['status_msg'] : undefined;
  return {
    code: code === 0 ? 'generation_failed' : String(code),
    message: sanitise(message, 'The upstream could not make the video.'),
  };
}
