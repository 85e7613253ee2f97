/**
 * An image endpoint from the request to the settled end. Without a stream each picture is an exchange of its own: routed, billed
 * and logged by itself, answered together in the order of their index. With a stream the 200 and a comment go out before anything
 * is forwarded.
 */
import type { GatewayError } from '../../codecs/canonical/error.ts';
import {
  DONE,
  encodeImageAnswerInSteps,
  encodeImageEvents,
  encodeImageFailure,
  type ImageAnswer,
  type ImageOperation,
  type ImageRequest,
  joinAnswers,
} from '../../codecs/images/index.ts';
import type { Frame } from '../../codecs/codec.ts';
import { openAiErrorType } from '../../codecs/errors/openai.ts';
import type { Channel, Model } from '../config/config.ts';
import { isClientGone, toGatewayError } from '../errors.ts';
import { checkModel, limited } from '../exchange/admit.ts';
import { fallbacksOf, inService } from '../exchange/candidates.ts';
import { endUserOf } from '../exchange/end-user.ts';
import { type Asked, Exchange } from '../exchange/exchange.ts';
import { type Committed, Waiting } from '../exchange/reply.ts';
import type { Call } from '../gateway.ts';
import { arrivingBody } from '../request/arriving-body.ts';
import { identify } from '../request/authenticate.ts';
import { imageAttempts } from './attempt.ts';
import { estimateImage, imageUsage } from './billing.ts';
import { checkAnyFit, imageChannels } from './need.ts';
import { receiveImageRequest } from './receive.ts';

/** How many pictures of one request are drawn at once. */
const MAX_AT_ONCE = 4;

export async function serveImages(call: Call, operation: ImageOperation): Promise<void> {
  const { config } = call;
  const principal = await identify(call);
  const body = await arrivingBody(call, principal, config.limits.multipartBytes);
  const request = await receiveImageRequest(call, operation, body);
  call.notes.model = request.model;
  call.notes.stream = request.stream;
  const model = checkModel(config, principal, request.model);
  const find = (its: Model) => imageChannels(config, principal.account.class, its, request);
  const channels = inService(model, () => find(model)) ?? [];
  const estimate = estimateImage(request);
  const fallbacks = fallbacksOf(config, principal, model, (its) => ({ channels: find(its), estimate }));
  const endUser = endUserOf({ user: request.parameters.get('user') });
  const asked = { principal, model, estimate, stream: request.stream, fallbacks, endUser };
  if (request.count > 1) return await serveSeveral(call, { request, channels }, asked);
  await using exchange = await Exchange.admit(call, asked);
  const picture = new Picture(call, { request, channels }, exchange);
  if (request.stream) await serveStream(call, picture, channels);
  else await serveWhole(call, [picture]);
}

/** All of them are admitted, or the request is refused. */
async function serveSeveral(call: Call, drawing: Drawing, asked: Asked): Promise<void> {
  await using exchanges = new AsyncDisposableStack();
  const pictures: Picture[] = [];
  try {
    for (let index = 0; index < drawing.request.count; index++) {
      // Each has its own row in the log, told apart by a suffix.
      const one = { ...call, requestId: `${call.requestId}-${index + 1}`, notes: {} };
      pictures.push(new Picture(one, drawing, exchanges.use(await Exchange.admit(one, { ...asked, isLimited: false }))));
    }
    const { principal, model, estimate } = asked;
    const demand = { requests: pictures.length, tokens: estimate.input * pictures.length };
    await limited(call, principal, model, demand);
    for (const { notes } of pictures) if (call.notes.limit !== undefined) notes.limit = call.notes.limit;
  } catch (thrown) {
    for (const { exchange } of pictures) exchange.withdraw();
    throw thrown;
  }
  // A picture that failed among others is its own row's failure, not the request's.
  call.notes.admitted = true;
  await serveWhole(call, pictures);
  const made = pictures.filter(({ answer }) => answer !== undefined).length;
  if (made < pictures.length)
    call.gateway.log.info({ request_id: call.requestId, asked: pictures.length, made }, 'some pictures failed');
}

interface Drawing {
  readonly request: ImageRequest;
  readonly channels: readonly Channel[];
}

/** One picture, which is one exchange. */
class Picture {
  readonly exchange: Exchange;
  readonly request: ImageRequest;
  /** The picture, once it is drawn. */
  answer: ImageAnswer | undefined;
  failure: GatewayError | undefined;
  /** How long the client may take nothing of it; until a Channel has drawn it, the configuration's own limit. */
  writeStallMs: number;
  readonly notes: Call['notes'];
  readonly #call: Call;
  readonly #channels: readonly Channel[];

  constructor(call: Call, { request, channels }: Drawing, exchange: Exchange) {
    this.#call = call;
    this.writeStallMs = call.config.writeStallMs;
    this.notes = call.notes;
    this.request = request;
    this.#channels = channels;
    this.exchange = exchange;
  }

  /** Whether another model may draw it. */
  get hasFallbacks(): boolean {
    return (this.#call.config.models.get(this.request.model)?.fallbacks.length ?? 0) > 0;
  }

  /** Never rejects: what goes wrong is `failure`. */
  async draw(): Promise<void> {
    const { request } = this;
    try {
      const attempts = imageAttempts(this.#call, request);
      const search = { channels: this.#channels, model: request.model };
      const accepted = await this.exchange.dispatch(search, attempts, {
        usageOf: ({ answer }) => imageUsage(request, answer, this.exchange.rates),
      });
      // Its place is free for the next one, which may be of this same request.
      accepted.succeeded();
      this.answer = accepted.answer.answer;
      this.writeStallMs = accepted.channel.timeouts.writeStallMs;
    } catch (thrown) {
      this.failure = toGatewayError(thrown);
    }
  }

  endFirst(): Promise<void> | undefined {
    return this.exchange.endFirst(this.#ending());
  }

  /** A picture that its client has left is paid all the same. */
  end(abandoned?: GatewayError): Promise<void> | undefined {
    this.failure ??= abandoned;
    return this.exchange.end(this.#ending());
  }

  #ending() {
    const { failure: error } = this;
    return { error, ...(this.request.stream ? { status: 200 } : {}) };
  }
}

/** Some pictures are an answer; only none is a failure. */
async function serveWhole(call: Call, pictures: readonly Picture[]): Promise<void> {
  let broken: GatewayError | undefined;
  try {
    await runSome(pictures, MAX_AT_ONCE, (picture) => picture.draw());
    const answers = pictures.flatMap(({ answer }) => (answer === undefined ? [] : [answer]));
    if (answers.length === 0) throw pictures.at(-1)?.failure ?? new Error('no picture and no failure');
    const body = await call.gateway.largeWork.run(encodeImageAnswerInSteps(joinAnswers(answers), seconds(call)));
    const [only] = pictures;
    const headers = pictures.length === 1 && only !== undefined ? only.exchange.answerHeaders() : {};
    await Promise.all(pictures.map((picture) => picture.endFirst()));
    const writeStallMs = Math.max(...pictures.map((picture) => picture.writeStallMs));
    new Waiting(call).answer({ status: 200, body, headers, writeStallMs });
    for (const { answer, exchange } of pictures) if (answer !== undefined) exchange.outputWritten();
  } catch (thrown) {
    broken = toGatewayError(thrown);
    throw broken;
  } finally {
    await Promise.all(pictures.map((picture) => picture.end(broken)));
  }
}

/** Runs at most `width` at once, begun in order. */
async function runSome<Item>(items: readonly Item[], width: number, run: (item: Item) => Promise<void>): Promise<void> {
  const rest = items.values();
  const lane = async (): Promise<void> => {
    for (const item of rest) await run(item);
  };
  await Promise.all(Array.from({ length: Math.min(width, items.length) }, lane));
}

async function serveStream(call: Call, picture: Picture, channels: readonly Channel[]): Promise<void> {
  const { gateway, config } = call;
  let committed: Committed;
  try {
    // Known before the 200 goes out: whether any of the Channels would be let through.
    if (!picture.hasFallbacks) checkAnyFit(channels, picture.request.model, gateway.dispatcher.health);
    committed = new Waiting(call).commit({
      clock: gateway.clock,
      turns: gateway.streamTurns,
      writeStallMs: config.writeStallMs,
      keepAlive: { intervalMs: config.keepAliveMs, immediately: true },
    });
  } catch (thrown) {
    const error = toGatewayError(thrown);
    await picture.exchange.end({ error });
    throw error;
  }
  await picture.draw();
  try {
    const frames = await finalFrames(call, picture);
    committed.writer.waitAtMost(picture.writeStallMs);
    await committed.writer.end(committed.framed(frames));
    if (picture.answer !== undefined) picture.exchange.outputWritten();
    await picture.end();
  } catch (thrown) {
    const error = toGatewayError(thrown);
    await picture.end(error);
    if (!isClientGone(error)) throw error;
  }
}

/** The picture, or why there is none: it was not made, or its charge could not be written. */
async function finalFrames(call: Call, picture: Picture): Promise<Frame[]> {
  const { answer, request } = picture;
  try {
    const frames = answer === undefined ? undefined : [...encodeImageEvents(request.operation, answer, seconds(call)), DONE];
    await picture.endFirst();
    if (frames !== undefined) return frames;
  } catch (thrown) {
    picture.failure ??= toGatewayError(thrown);
  }
  const error = picture.failure ?? toGatewayError(new Error('no picture and no failure'));
  return [encodeImageFailure(error, openAiErrorType(error.status)), DONE];
}

function seconds(call: Call): number {
  return Math.floor(call.startedAtMs / 1000);
}
