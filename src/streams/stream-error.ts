/**
 * What can go wrong with bytes, frames and the two ends of a stream. Knows no HTTP status and no protocol: the http room maps a
 * reason to words, the codecs may read `text`.
 */

export type StreamErrorReason =
  /** The input ended inside an event; `text` has the line that was cut off. */
  | 'truncated_event'
  /** The body holds text that is no event stream; `text` has its beginning. */
  | 'not_event_stream'
  | 'event_too_large'
  /** A checksum or a length of a binary message is wrong. */
  | 'damaged_event'
  | 'too_many_bytes'
  /** The body is compressed although nobody asked for that. */
  | 'encoded_body'
  /** The source closed without an end and without an error of its own. */
  | 'source_closed'
  | 'first_data_timeout'
  /** A whole answer had begun when its time was over. */
  | 'unfinished_answer'
  | 'idle_timeout'
  /** The reader took nothing for too long. */
  | 'write_stall'
  | 'client_gone'
  /** The reader of a step cancelled it without saying why. */
  | 'cancelled'
  /** No failure: a step has written everything, so its source is cancelled with this. */
  | 'ended';

/** The one error class of this room. Branch on `reason`, never on the message. */
export class StreamError extends Error {
  override readonly name = 'StreamError';
  readonly reason: StreamErrorReason;
  /**
   * With `not_event_stream` the foreign text, at most 64 Ki characters; with `truncated_event` the beginning of its last line.
   * Unchecked bytes from outside: never shown to a client.
   */
  readonly text: string | undefined;

  constructor(reason: StreamErrorReason, message: string, detail: { readonly text?: string; readonly cause?: unknown } = {}) {
    super(message, detail.cause === undefined ? undefined : { cause: detail.cause });
    this.reason = reason;
    this.text = detail.text;
  }
}

/**
 * The reason of a cancel when everything was written: no failure, and made once for every stream, since an error costs its stack.
 */
export const ENDED = new StreamError('ended', 'everything was written');
