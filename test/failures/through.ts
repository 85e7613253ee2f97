/**
 * Literal upstream answers through the pipeline to a client, and literal requests to an upstream: what the ledger's tests are
 * made of.
 */
import { GatewayError } from '../../src/codecs/canonical/error.ts';
import { fold, type Whole } from '../../src/codecs/canonical/fold.ts';
import type { CanonicalRequest, Refusable } from '../../src/codecs/canonical/request.ts';
import type { ClientCodec, CodecOptions, DecodeContext, Frame, ModelFacts, UpstreamCodec } from '../../src/codecs/codec.ts';
import { CLIENTS, UPSTREAMS } from '../../src/codecs/registry.ts';
import {
  bytesOf,
  decodeBytes,
  decodeContext,
  encodeSteps,
  openForTests,
  ownerOf,
  requestOf,
  responseContext,
  sseText,
  targetOf,
} from '../support/wire.ts';

export type ClientName = 'chat' | 'responses' | 'messages';
export type UpstreamName = ClientName | 'gemini';
/** JSON of either side, read as it comes. */
export type Json = ReturnType<typeof JSON.parse>;

export function clientOf(name: string): ClientCodec {
  const found = CLIENTS.find(({ dialect }) => dialect === name);
  if (found === undefined) throw new Error(`no client speaks ${name}`);
  return found;
}
export function upstreamOf(name: string): UpstreamCodec {
  const found = UPSTREAMS.find(({ dialect }) => dialect === name);
  if (found === undefined) throw new Error(`no upstream speaks ${name}`);
  return found;
}

export interface Heard {
  readonly frames: readonly Frame[];
  /** The JSON of every frame but `[DONE]`. */
  readonly events: readonly Json[];
  readonly names: readonly (string | undefined)[];
  readonly text: string;
  readonly failure: GatewayError | undefined;
  /** The answer as a client that does not stream would get it; undefined where it failed. */
  readonly body: Json;
  readonly whole: Whole | undefined;
}

export interface Changes {
  readonly options?: CodecOptions;
  readonly request?: Partial<CanonicalRequest>;
  readonly toolNames?: DecodeContext['toolNames'];
  readonly upstreamModel?: string;
}

/** SSE text as it stands, or payloads: each becomes an event named by its `type` where the dialect names events. */
export function sse(upstream: UpstreamName, events: readonly (object | string)[]): string {
  return events
    .map((event) => {
      if (typeof event === 'string') return event;
      const type = (event as { type?: string }).type;
      const name = upstream === 'responses' || upstream === 'messages' ? `event: ${type}\n` : '';
      return `${name}data: ${JSON.stringify(event)}\n\n`;
    })
    .join('');
}

export function through(
  upstreamName: UpstreamName,
  clientName: ClientName,
  events: readonly (object | string)[] | Uint8Array,
  { options, request: asked = {}, toolNames, upstreamModel: model }: Changes = {},
): Heard {
  const upstream = upstreamOf(upstreamName);
  const client = clientOf(clientName);
  const request = requestOf(client.dialect, asked);
  const bytes = events instanceof Uint8Array ? events : bytesOf(sse(upstreamName, events));
  const owner = { ...ownerOf(upstream), ...(model === undefined ? {} : { model }) };
  const changes = {
    request,
    owner,
    ...(options === undefined ? {} : { options }),
    ...(toolNames === undefined ? {} : { toolNames }),
  };
  const { steps, failure, events: said } = decodeBytes(upstream, [bytes], changes);
  const context = responseContext(client, owner, { request });
  const frames = encodeSteps(client, steps, context, failure);
  const json = frames.filter(({ data }) => data !== '[DONE]').map(({ data }): Json => JSON.parse(data));
  const whole = failure === undefined ? fold(said) : undefined;
  const failed = whole === undefined || whole.outcome.status === 'failed' || whole.outcome.status === 'cancelled';
  return {
    frames,
    events: json,
    names: frames.map(({ event }) => event),
    text: sseText(frames),
    failure,
    body: failed ? undefined : bodyOf(() => client.encodeResponse(whole, undefined, context)),
    whole,
  };
}

function bodyOf(encode: () => string): Json {
  try {
    return JSON.parse(encode());
  } catch (error) {
    if (error instanceof GatewayError) return undefined;
    throw error;
  }
}

/** A whole JSON answer to a client that does not stream. */
export function wholeThrough(
  upstreamName: UpstreamName,
  clientName: ClientName,
  body: object | string,
  changes: Changes = {},
): Json {
  const upstream = upstreamOf(upstreamName);
  const client = clientOf(clientName);
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const request = requestOf(client.dialect, changes.request);
  const context = decodeContext(ownerOf(upstream), {
    request,
    ...(changes.options === undefined ? {} : { options: changes.options }),
  });
  const step = upstream.decodeResponse(text, context);
  return JSON.parse(
    client.encodeResponse(fold(step.events), step.native, responseContext(client, ownerOf(upstream), { request })),
  );
}

/** The body that an upstream gets for a client's request. */
export function convert(
  clientName: ClientName,
  upstreamName: UpstreamName,
  body: object,
  target: { readonly options?: CodecOptions; readonly facts?: ModelFacts; readonly without?: ReadonlySet<Refusable> } = {},
): Json {
  return JSON.parse(sent(clientName, upstreamName, body, target).body);
}

export function sent(
  clientName: ClientName,
  upstreamName: UpstreamName,
  body: object,
  target: { readonly options?: CodecOptions; readonly facts?: ModelFacts; readonly without?: ReadonlySet<Refusable> } = {},
) {
  const upstream = upstreamOf(upstreamName);
  const text = JSON.stringify({ model: 'logical-model', ...body });
  const request = clientOf(clientName).decodeRequest(text, JSON.parse(text), { open: openForTests });
  return upstream.encodeRequest(request, targetOf(ownerOf(upstream), target));
}

// Short spellings of chat chunks.

export const delta = (members: object, finish: string | null = null): object => ({
  id: 'c1',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'm',
  choices: [{ index: 0, delta: members, finish_reason: finish }],
});
export const finish = (reason: string): object => delta({}, reason);
export const usageChunk = (prompt: number, completion: number): object => ({
  id: 'c1',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'm',
  choices: [],
  usage: { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion },
});
export const DONE = 'data: [DONE]\n\n';
export const callDelta = (index: number | undefined, id: string | undefined, name: string | undefined, args: string): object =>
  delta({
    tool_calls: [
      {
        ...(index === undefined ? {} : { index }),
        ...(id === undefined ? {} : { id, type: 'function' }),
        function: { ...(name === undefined ? {} : { name }), arguments: args },
      },
    ],
  });

// Short spellings of a messages stream.

export const messageStart = (id = 'msg_1', usage: object = { input_tokens: 3, output_tokens: 1 }): object => ({
  type: 'message_start',
  message: { id, type: 'message', role: 'assistant', model: 'm', content: [], stop_reason: null, stop_sequence: null, usage },
});
export const block = (index: number, content_block: object, ...deltas: readonly object[]): object[] => [
  { type: 'content_block_start', index, content_block },
  ...deltas.map((one) => ({ type: 'content_block_delta', index, delta: one })),
  { type: 'content_block_stop', index },
];
export const messageEnd = (stop_reason: string, usage: object = { output_tokens: 5 }): object[] => [
  { type: 'message_delta', delta: { stop_reason, stop_sequence: null }, usage },
  { type: 'message_stop' },
];
export const say = (text: string): object => ({ type: 'text_delta', text });

// Short spellings of a responses stream.

export const created = (): object => ({
  type: 'response.created',
  sequence_number: 0,
  response: { id: 'resp_1', object: 'response', created_at: 1, status: 'in_progress', model: 'm', output: [] },
});
export const terminal = (status: string, output: readonly object[], more: object = {}): object => ({
  type: `response.${status}`,
  sequence_number: 99,
  response: {
    id: 'resp_1',
    object: 'response',
    created_at: 1,
    status,
    model: 'm',
    output,
    usage: { input_tokens: 3, output_tokens: 5, total_tokens: 8 },
    ...more,
  },
});
export function messageItem(index: number, id: string, text: string): object[] {
  const at = { item_id: id, output_index: index, content_index: 0 };
  const part = { type: 'output_text', text, annotations: [] };
  return [
    {
      type: 'response.output_item.added',
      output_index: index,
      item: { id, type: 'message', status: 'in_progress', role: 'assistant', content: [] },
    },
    { type: 'response.content_part.added', ...at, part: { ...part, text: '' } },
    { type: 'response.output_text.delta', ...at, delta: text },
    { type: 'response.output_text.done', ...at, text },
    { type: 'response.content_part.done', ...at, part },
    { type: 'response.output_item.done', output_index: index, item: doneMessage(id, text) },
  ];
}
export const doneMessage = (id: string, text: string): object => ({
  id,
  type: 'message',
  status: 'completed',
  role: 'assistant',
  content: [{ type: 'output_text', text, annotations: [] }],
});
export const doneCall = (id: string, callId: string, args: string, name = 'f'): object => ({
  id,
  type: 'function_call',
  status: 'completed',
  call_id: callId,
  name,
  arguments: args,
});
export function callItem(index: number, id: string, callId: string, args: string): object[] {
  return [
    { type: 'response.output_item.added', output_index: index, item: { ...doneCall(id, callId, ''), status: 'in_progress' } },
    { type: 'response.function_call_arguments.delta', item_id: id, output_index: index, delta: args },
    { type: 'response.function_call_arguments.done', item_id: id, output_index: index, arguments: args },
    { type: 'response.output_item.done', output_index: index, item: doneCall(id, callId, args) },
  ];
}
