/**
 * One attempt of an image endpoint: one picture from one Channel, whole before it is an answer, so that the next Channel may be tried until
 * then. A stream that the upstream explicitly refuses is asked for once more without one (spec, image rule 4).
 */
import type { IncomingHttpHeaders } from 'node:http';
import { GatewayError, upstreamFault } from '../../codecs/canonical/error.ts';
import type { Frame, Mint } from '../../codecs/codec.ts';
import {
  IMAGE_UPSTREAMS,
  type ImageAnswer,
  type ImageRequest,
  type ImageUpstream,
  type ImageUpstreamRequest,
  rejectsStreaming,
} from '../../codecs/images/index.ts';
import type { BodyReader } from '../../streams/body-source.ts';
import { chain } from '../../streams/chain.ts';
import type { Clock } from '../../streams/clock.ts';
import type { IdleTimers } from '../../streams/idle-timers.ts';
import { sseDecode } from '../../streams/sse-decode.ts';
import type { Stage } from '../../streams/stage.ts';
import { StreamError } from '../../streams/stream-error.ts';
import { tap } from '../../streams/tap.ts';
import type { Channel, Limits } from '../config/config.ts';
import { callUpstream, contentTypeOf } from '../dispatch/call-upstream.ts';
import type { ExchangeTrace } from '../tracing/tracer.ts';
import type { Target } from '../dispatch/dispatch.ts';
import { applyParameters, type Upstreams } from '../dispatch/upstream.ts';
import type { UpstreamHead } from '../dispatch/upstream-call.ts';
import { readErrorText, readWhole } from '../dispatch/upstream-body.ts';

export interface ImageAttemptOptions {
  readonly request: ImageRequest;
  readonly upstreams: Upstreams;
  readonly limits: Limits;
  readonly clientHeaders: IncomingHttpHeaders;
  readonly trace?: ExchangeTrace;
  readonly clock: Clock;
  readonly mint: Mint;
}

export interface MadeAnswer {
  readonly answer: ImageAnswer;
  readonly losses: readonly string[];
}

/** The attempts of one exchange; they share its one fallback to an upstream request without a stream. */
export function imageAttempts(options: ImageAttemptOptions): (target: Target) => Promise<MadeAnswer> {
  let streaming = options.request.stream;
  return async (target) => {
    const upstream = imageUpstream(target.channel);
    const encoded = encode(target, upstream, streaming, options);
    try {
      return await send(target, upstream, encoded, options);
    } catch (thrown) {
      if (!encoded.stream || !(thrown instanceof GatewayError) || !rejectsStreaming(thrown)) throw thrown;
      streaming = false;
      return await send(target, upstream, encode(target, upstream, false, options), options);
    }
  };
}

function imageUpstream(channel: Channel): ImageUpstream {
  const upstream = IMAGE_UPSTREAMS.get(channel.type);
  if (upstream === undefined) throw new Error(`no image codec speaks to channels of type ${channel.type}`);
  return upstream;
}

function encode(target: Target, upstream: ImageUpstream, stream: boolean, options: ImageAttemptOptions): ImageUpstreamRequest {
  const { channel, upstreamModel } = target;
  return upstream.encode(options.request, {
    upstreamModel,
    stream,
    ...channel.image,
    override: (json) => applyParameters(json, channel),
    mint: options.mint,
  });
}

async function send(
  target: Target,
  upstream: ImageUpstream,
  encoded: ImageUpstreamRequest,
  options: ImageAttemptOptions,
): Promise<MadeAnswer> {
  const { path, contentType, body, stream, losses } = encoded;
  const answer = await callUpstream(
    target,
    { path, headers: {}, contentType, body: { pieces: body } },
    { ...options, stream, decodeError: (refused) => upstream.decodeError(refused) },
    (head, timers) => readAnswer(head, timers, stream, upstream, options),
  );
  return { answer, losses };
}

/** A stream or JSON, whichever came: JSON instead of a stream is an answer too. Without a telling type it is what was asked for. */
async function readAnswer(
  head: UpstreamHead,
  timers: IdleTimers,
  stream: boolean,
  upstream: ImageUpstream,
  options: ImageAttemptOptions,
): Promise<ImageAnswer> {
  const type = contentTypeOf(head);
  if (type === 'text/html') {
    const text = await readErrorText(head, options.clock);
    throw upstreamFault('undecodable', 'The upstream answered with a web page.', { status: head.status, text });
  }
  const isStream = type === 'text/event-stream' || (stream && type !== 'application/json');
  if (!isStream) return upstream.decodeWhole(await readWhole(head, options.limits.answerBytes));
  const frames = chain(
    sseDecode({ maxEventBytes: options.limits.eventBytes }),
    tap<Frame>(() => timers.data()),
  );
  return await readStream(head.body, chain(frames, upstream.decodeEvents()), timers);
}

async function readStream(body: BodyReader, stages: Stage<Uint8Array, ImageAnswer>, timers: IdleTimers): Promise<ImageAnswer> {
  const answers: ImageAnswer[] = [];
  try {
    for (;;) {
      const batch = body.take();
      if (batch === undefined) {
        await body.wait();
        continue;
      }
      timers.touch();
      if (batch === null) stages.end(answers);
      else for (const bytes of batch) if (!stages.ended) stages.push(bytes, answers);
      const [answer] = answers;
      if (answer !== undefined) {
        body.cancel(new StreamError('ended', 'the image is whole'));
        return answer;
      }
      if (batch === null) throw upstreamFault('truncated', 'The upstream ended its stream without an image.');
    }
  } catch (thrown) {
    body.cancel(thrown);
    throw thrown;
  }
}
