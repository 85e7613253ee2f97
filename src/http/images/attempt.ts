/**
 * One attempt of an image endpoint: one picture from one Channel, whole before it is an answer, so that the next Channel may be
 * tried until then. A stream that the upstream explicitly refuses is asked for once more without one (spec, image rule 4).
 */
import { GatewayError, upstreamFault } from '../../codecs/canonical/error.ts';
import { LARGE_EVENT } from '../../codecs/answers/large-events.ts';
import type { Frame } from '../../codecs/codec.ts';
import {
  IMAGE_UPSTREAMS,
  type ImageAnswer,
  type ImageRequest,
  type ImageUpstream,
  type ImageUpstreamRequest,
  rejectsStreaming,
  type UntilAnswer,
} from '../../codecs/images/index.ts';
import type { BodyReader } from '../../streams/body-source.ts';
import type { IdleTimers } from '../../streams/idle-timers.ts';
import { sseDecode } from '../../streams/sse-decode.ts';
import type { Stage } from '../../streams/stage.ts';
import { StreamError } from '../../streams/stream-error.ts';
import type { Channel } from '../config/config.ts';
import { callUpstream, contentTypeOf } from '../dispatch/call-upstream.ts';
import type { Target } from '../dispatch/plan.ts';
import { applyParameters } from '../dispatch/upstream.ts';
import type { UpstreamHead } from '../dispatch/upstream-call.ts';
import { readErrorText, readWhole } from '../dispatch/upstream-body.ts';
import type { CallContext } from '../gateway.ts';
import type { LargeWork } from '../request/large-work.ts';

export interface MadeAnswer {
  readonly answer: ImageAnswer;
  readonly losses: readonly string[];
}

/**
 * The attempts of one exchange; they share its one fallback to an upstream request without a stream. A Channel that needed it is
 * asked for no stream of this model for some minutes.
 */
export function imageAttempts(call: CallContext, request: ImageRequest): (target: Target) => Promise<MadeAnswer> {
  const { unknown } = call.gateway.dispatcher;
  let streaming = request.stream;
  const encode = ({ channel, upstreamModel, without }: Target, upstream: ImageUpstream): ImageUpstreamRequest =>
    upstream.encode(request, {
      upstreamModel,
      stream: streaming && !without.has('picture_stream'),
      ...channel.image,
      override: (json) => applyParameters(json, channel),
      mint: call.gateway.mint,
    });
  return async (target) => {
    const upstream = imageUpstream(target.channel);
    const encoded = encode(target, upstream);
    try {
      return await send(call, target, upstream, encoded);
    } catch (thrown) {
      if (!encoded.stream || !(thrown instanceof GatewayError) || !rejectsStreaming(thrown)) throw thrown;
      streaming = false;
      const made = await send(call, target, upstream, encode(target, upstream));
      unknown.refused(target.channel.id, target.upstreamModel, 'picture_stream');
      return made;
    }
  };
}

function imageUpstream(channel: Channel): ImageUpstream {
  const upstream = IMAGE_UPSTREAMS.get(channel.type);
  if (upstream === undefined) throw new Error(`no image codec speaks to channels of type ${channel.type}`);
  return upstream;
}

async function send(
  call: CallContext,
  target: Target,
  upstream: ImageUpstream,
  { path, contentType, body, stream, losses }: ImageUpstreamRequest,
): Promise<MadeAnswer> {
  const answer = await callUpstream(
    call,
    target,
    { path, headers: {}, contentType, body: { pieces: body } },
    { stream, decodeError: (refused) => upstream.decodeError(refused) },
    (head, timers) => readAnswer(head, timers, stream, upstream, call),
  );
  return { answer, losses };
}

/**
 * A stream or JSON, whichever came: JSON instead of a stream is an answer too. Without a telling type it is what was asked for.
 */
async function readAnswer(
  head: UpstreamHead,
  timers: IdleTimers,
  stream: boolean,
  upstream: ImageUpstream,
  { gateway, config }: CallContext,
): Promise<ImageAnswer> {
  const type = contentTypeOf(head);
  if (type === 'text/html') {
    const text = await readErrorText(head, gateway.clock);
    throw upstreamFault('undecodable', 'The upstream answered with a web page.', { status: head.status, text });
  }
  const isStream = type === 'text/event-stream' || (stream && type !== 'application/json');
  if (!isStream) {
    const text = await readWhole(head, config.limits.answerBytes, gateway.largeWork);
    // All of it has arrived.
    timers.stop();
    return await gateway.largeWork.of(text, upstream.decodeWholeInSteps(text));
  }
  const { eventBytes, answerBytes } = config.limits;
  const frames = sseDecode({ maxEventBytes: eventBytes, undecodedBytes: LARGE_EVENT });
  const decoding = new Decoding(frames, upstream.decodeEvents(), timers, gateway.largeWork);
  return await readStream(head.body, decoding, timers, answerBytes);
}

/** The events of a stream of a picture, each of them read in turns of the event loop where it is large. */
class Decoding {
  readonly #frames: Stage<Uint8Array, Frame>;
  readonly #events: UntilAnswer;
  readonly #timers: IdleTimers;
  readonly #work: LargeWork;

  constructor(frames: Stage<Uint8Array, Frame>, events: UntilAnswer, timers: IdleTimers, work: LargeWork) {
    this.#frames = frames;
    this.#events = events;
    this.#timers = timers;
    this.#work = work;
  }

  get ended(): boolean {
    return this.#events.ended;
  }

  push(bytes: Uint8Array, out: ImageAnswer[]): Promise<void> {
    return this.#read((frames) => this.#frames.push(bytes, frames), out);
  }

  async end(out: ImageAnswer[]): Promise<void> {
    await this.#read((frames) => this.#frames.end(frames), out);
    if (!this.ended) this.#events.end();
  }

  /** What came before a failure is read before it is thrown, and may be the whole answer. */
  async #read(feed: (frames: Frame[]) => void, out: ImageAnswer[]): Promise<void> {
    const frames: Frame[] = [];
    let failure: { readonly thrown: unknown } | undefined;
    try {
      feed(frames);
    } catch (thrown) {
      failure = { thrown };
    }
    for (const frame of frames) {
      if (this.ended) return;
      this.#timers.data();
      const read = this.#work.of(frame.data, this.#events.pushInSteps(frame, out));
      if (read !== undefined) await this.#unheard(read);
    }
    if (failure !== undefined && !this.ended) throw failure.thrown;
  }

  /** The upstream is not read meanwhile: that is not its silence. */
  async #unheard(work: Promise<void>): Promise<void> {
    this.#timers.pause();
    await work;
    this.#timers.resume();
  }
}

/** What was told is kept until the end, so a stream without end is cut at `maxBytes`. */
async function readStream(body: BodyReader, decoding: Decoding, timers: IdleTimers, maxBytes: number): Promise<ImageAnswer> {
  const answers: ImageAnswer[] = [];
  let room = maxBytes;
  try {
    for (;;) {
      const batch = body.take();
      if (batch === undefined) {
        await body.wait();
        continue;
      }
      timers.touch();
      if (batch === null) await decoding.end(answers);
      else
        for (const bytes of batch) {
          if (decoding.ended) break;
          await decoding.push(bytes.subarray(0, room), answers);
          // What follows the end in the same read is not counted.
          if (bytes.length > room && !decoding.ended) throw new StreamError('too_many_bytes', `more than ${maxBytes} bytes`);
          room -= bytes.length;
        }
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
