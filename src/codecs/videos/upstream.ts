/**
 * What a video upstream is to the task worker: three calls and how to read their answers. The worker decides what an answer means
 * for the task and its money; a codec only names which of few things the upstream answered. An unclear answer is never read as a
 * refusal: a task that may exist upstream is not submitted again.
 */
import type { JsonObject } from '../canonical/json.ts';
import type { UpstreamAnswer } from '../codec.ts';
import type { VideoRequest } from './request.ts';

/** One HTTP call, relative to the Channel's base URL. */
export interface VideoCall {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly body?: string;
}

export interface VideoFailure {
  /** The upstream's own code, else a word of ours. */
  readonly code: string;
  /** Fit for clients. */
  readonly message: string;
}

/** What the upstream answered to a submission. */
export type Submission =
  | { readonly kind: 'accepted'; readonly upstreamId: string }
  /** It will not make this video, whoever asks. */
  | { readonly kind: 'refused'; readonly error: VideoFailure }
  /**
   * It took nothing now (limits, our credential): another Channel may, or this one after the time that it named. `status`: the
   * HTTP status of that, be it that a code in a 200 stands for it.
   */
  | { readonly kind: 'notTaken'; readonly error: VideoFailure; readonly status: number; readonly retryAfterMs?: number }
  /** It may have taken the task. */
  | { readonly kind: 'unclear'; readonly reason: string };

/** What the upstream reports of a task. */
export type Progress =
  | { readonly kind: 'pending' }
  | { readonly kind: 'succeeded'; readonly url: string; readonly report: JsonObject }
  /** The result must be looked up with one more call, under an id of its own. */
  | { readonly kind: 'lookup'; readonly call: VideoCall; readonly id: string }
  | { readonly kind: 'failed'; readonly error: VideoFailure }
  /** It answered with a word that nobody knows, which may be an end. */
  | { readonly kind: 'unclear'; readonly reason: string }
  /** The query itself failed: nothing is known that was not known before. */
  | { readonly kind: 'queryError'; readonly reason: string };

export interface VideoUpstream {
  /** Refuses what this Channel cannot express; throws GatewayError naming the field. Called before anything is held. */
  check(request: VideoRequest): void;
  submit(request: VideoRequest, upstreamModel: string): VideoCall;
  readSubmission(answer: UpstreamAnswer): Submission;
  query(upstreamId: string): VideoCall;
  /** An answer about another id than the one that was asked for is a `queryError`. */
  readProgress(answer: UpstreamAnswer, upstreamId: string): Progress;
  /** Reads the answer of a `lookup` of this id. */
  readLookup(answer: UpstreamAnswer, id: string): Progress;
  /** Seconds after which the upstream itself gives up; undefined where that is unknown. */
  expiresAfterSeconds(request: VideoRequest): number | undefined;
}
