/**
 * The conversion of one stream in this process, as the gateway wires it, without sockets: what the codecs and stages cost alone.
 */
import type { ChannelType } from '../../src/codecs/canonical/dialect.ts';
import type { Step } from '../../src/codecs/canonical/event.ts';
import type { ClientCodec, DecodeContext, Frame, ResponseContext, UpstreamCodec } from '../../src/codecs/codec.ts';
import { readAnswer, writeAnswer } from '../../src/codecs/pipeline.ts';
import { codecs } from '../../src/codecs/registry.ts';
import { sseDecode, type SseEvent } from '../../src/streams/sse-decode.ts';
import { createSseFramer } from '../../src/streams/sse-encode.ts';
import { type BenchDialect, requestBody } from '../fixtures.ts';

export const DIALECTS: readonly BenchDialect[] = ['chat', 'responses', 'messages'];
export const MAX_EVENT_BYTES = 16 * 1024 * 1024;
const TYPES: Readonly<Record<BenchDialect, ChannelType>> = {
  chat: 'chat_completion',
  responses: 'responses',
  messages: 'messages',
};

export interface Pair {
  readonly client: ClientCodec;
  readonly upstream: UpstreamCodec;
  readonly decoding: DecodeContext;
  readonly encoding: ResponseContext;
}

export function pairOf(client: BenchDialect, upstream: BenchDialect): Pair {
  const clientCodec = codecs.client(client);
  const upstreamCodec = codecs.upstream(TYPES[upstream]);
  let minted = 0;
  const mint = (prefix: string): string => prefix + (minted++).toString(16).padStart(32, '0');
  const text = requestBody(client, 'bench', true);
  const request = clientCodec.decodeRequest(text, JSON.parse(text), { open: () => undefined });
  const owner = { channelType: TYPES[upstream], scope: 'bench', model: 'bench-up' };
  const { toolNames } = upstreamCodec.encodeRequest(request, { owner, options: {}, facts: {}, without: new Set<never>() });
  return {
    client: clientCodec,
    upstream: upstreamCodec,
    decoding: { owner, request, toolNames, options: {}, mint },
    encoding: { responseId: 'resp_bench', model: 'bench', createdAt: 1, request, owner, seal: ({ value }) => value, mint },
  };
}

export function sseEventsOf(reads: readonly Uint8Array[]): SseEvent[] {
  const stage = sseDecode({ maxEventBytes: MAX_EVENT_BYTES });
  const events: SseEvent[] = [];
  for (const read of reads) stage.push(read, events);
  return events;
}

export function decode(pair: Pair, events: readonly Frame[]): Step[] {
  const stage = pair.upstream.decodeEvents(pair.decoding);
  const steps: Step[] = [];
  for (const event of events) stage.push(event, steps);
  return steps;
}

export function encode(pair: Pair, steps: readonly Step[]): Frame[] {
  const stage = pair.client.encodeEvents(pair.encoding);
  const frames: Frame[] = [];
  for (const step of steps) stage.push(step, frames);
  return frames;
}

/** Upstream reads to client writes, one write a read that said something. Throws when the answer did not end well. */
export function convert(pair: Pair, reads: readonly Uint8Array[]): string[] {
  const upstream = readAnswer(pair.upstream.decodeEvents(pair.decoding), MAX_EVENT_BYTES).steps;
  const voice = writeAnswer(pair.client.encodeEvents(pair.encoding), (reason) => {
    throw reason;
  });
  const frame = createSseFramer();
  const writes: string[] = [];
  for (const read of reads) {
    if (upstream.ended) break;
    const steps: Step[] = [];
    upstream.push(read, steps);
    const frames: Frame[] = [];
    voice.push(steps, frames);
    if (frames.length > 0) writes.push(frames.map(frame).join(''));
  }
  if (!voice.over) throw new Error('the bench answer did not end');
  return writes;
}
