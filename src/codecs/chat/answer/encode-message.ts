/** The chat form of reasoning entries, tool calls and media. Shared by streams and whole bodies, so that they cannot differ. */
import { audioAs } from '../../audio.ts';
import { notRepresentable } from '../../canonical/error.ts';
import type { MediaItem, ReasoningItem, ToolCallItem } from '../../canonical/item.ts';
import { isObject, type JsonObject } from '../../canonical/json.ts';
import type { ResponseContext } from '../../codec.ts';
import type { InlineData } from '../../media.ts';
import { present } from '../../requests/members.ts';
import { UNKNOWN_FORMAT } from '../details.ts';
import { nonEmptyString, writeImage } from '../wire.ts';
import type { CallsReason } from './outcome.ts';

export const SUMMARY_SEPARATOR = '\n\n';

export function summaryEntry(summary: string, id: string, index: number): JsonObject {
  return { type: 'reasoning.summary', summary, id, format: UNKNOWN_FORMAT, index };
}

/** The id that ties the entries of one reasoning item together. */
export function reasoningId(item: ReasoningItem, context: ResponseContext): string {
  return item.id ?? item.opaque?.itemId ?? context.mint('rs_');
}

export function toolCallHead(item: Pick<ToolCallItem, 'flavour' | 'callId' | 'tool'>, input: string): JsonObject {
  const { flavour, callId: id, tool } = item;
  if (flavour === 'custom') return { id, type: 'custom', custom: { name: tool.name, input } };
  return { id, type: 'function', function: { name: tool.name, arguments: input } };
}

/** A media item as an entry of `images` or as `audio`. Throws where chat has no form for it. */
export function mediaMember(
  item: MediaItem,
  context: ResponseContext,
): { readonly images: JsonObject } | { readonly audio: JsonObject } {
  const { media } = item;
  if (media.type === 'image') {
    const image = writeImage(media);
    if (image !== undefined) return { images: image };
    throw notRepresentable('The answer holds an image that a chat client cannot fetch.');
  }
  if (media.type === 'audio' && media.source.from === 'inline') {
    const transcript = media.reported?.['transcript'];
    const id = item.id ?? context.mint('audio_');
    const data = audioFor(media.source, context);
    return { audio: { id, data, transcript: typeof transcript === 'string' ? transcript : '' } };
  }
  throw notRepresentable(`The answer holds ${media.type} content that chat completions cannot say.`);
}

/** The audio in the format that the client asked for. A client decodes what it asked for, whatever it is sent. */
function audioFor(source: InlineData, { request: { json } }: ResponseContext): string {
  const wanted = isObject(json) && isObject(json['audio']) ? nonEmptyString(json['audio']['format']) : undefined;
  if (wanted === undefined) return source.data;
  const data = audioAs(wanted, source);
  if (data === undefined)
    throw notRepresentable(`The answer holds audio of the type ${source.mime}, not of the format ${wanted}.`);
  return data;
}

/** True when the client uses the deprecated `functions`, so that calls must be in the form `function_call`. */
export function wantsLegacyCalls(context: ResponseContext): boolean {
  const { json } = context.request;
  return isObject(json) && Array.isArray(json['functions']) && !present(json['tools']);
}

/** The finish reason of an answer that calls tools, for this client. */
export function callsReason(context: ResponseContext): CallsReason {
  return wantsLegacyCalls(context) ? 'function_call' : 'tool_calls';
}

/** A message holds one audio: a client would join the pieces of two. */
export function refuseSeveralAudios(): never {
  throw notRepresentable('The answer holds several audios, and a chat message can hold one.');
}

/** `function_call` holds one call. */
export function refuseSeveralLegacyCalls(): never {
  throw notRepresentable('A client of the deprecated function calls can take one call only.');
}
