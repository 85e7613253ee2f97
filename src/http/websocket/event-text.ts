/** Events of the responses dialect as WebSocket messages: pure JSON, one event each, in the version that the client reads. */
import type { GatewayError } from '../../codecs/canonical/error.ts';
import type { Frame } from '../../codecs/codec.ts';
import { editJson, type JsonEdit } from '../../codecs/json/edit.ts';
import { sliceJson } from '../../codecs/json/text.ts';
import { openAiErrorType } from '../../codecs/errors/openai.ts';
import { retryAfterSeconds } from '../errors.ts';

export interface Spelling {
  /** v1 clients wait for `response.done`. Only the good ending is renamed. */
  readonly isV1: boolean;
  /** The stream id that the client sent: echoed on every event. */
  readonly streamId: string | undefined;
}

/** One event of a turn, as the client of this version reads it. */
export function eventText({ event, data }: Frame, { isV1, streamId }: Spelling): string {
  const edits: JsonEdit[] = [];
  if (isV1 && event === 'response.completed') edits.push({ path: ['type'], value: '"response.done"' });
  // Clients recognise an error by its status.
  if (event === 'error' && sliceJson(data, ['status']) === undefined) edits.push({ path: ['status'], value: '502' });
  if (streamId !== undefined) edits.push({ path: ['stream_id'], value: JSON.stringify(streamId) });
  return edits.length === 0 ? data : editJson(data, edits);
}

/**
 * The message of a turn that failed before its first event. `status` is what it would have been over HTTP, and `more` the headers
 * that it would have had.
 */
export function errorText(error: GatewayError, streamId?: string, more: Readonly<Record<string, string>> = {}): string {
  const { message, param, shownCode: code, status } = error;
  const retryAfter = retryAfterSeconds(error);
  const headers = { ...(retryAfter === undefined ? {} : { 'retry-after': retryAfter }), ...more };
  return JSON.stringify({
    type: 'error',
    sequence_number: 0,
    status,
    error: { type: openAiErrorType(status), code, message, param },
    ...(Object.keys(headers).length === 0 ? {} : { headers }),
    ...(streamId === undefined ? {} : { stream_id: streamId }),
  });
}
