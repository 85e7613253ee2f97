/**
 * An image endpoint from the request to the settled end. Without a stream each picture is a request of its own: routed, billed and logged by
 * itself, answered together in the order of their index. With a stream the 200 and a comment go out before anything is forwarded.
 */
import type { GatewayError } from '../../codecs/canonical/error.ts';
import {
  DONE,
  encodeImageAnswer,
  encodeImageEvents,
  encodeImageFailure,
  type ImageOperation,
  type ImageRequest,
  joinAnswers,
} from '../../codecs/images/index.ts';
import type { Frame } from '../../codecs/codec.ts';
import { openAiErrorType } from '../../codecs/errors/openai.ts';
import { type Admitted, checkModel, reserve } from '../exchange/admit.ts';
import { identify } from '../request/authenticate.ts';
import { isClientGone, toGatewayError } from '../errors.ts';
import { Waiting } from '../exchange/reply.ts';
import { arrivingBody } from '../request/arriving-body.ts';
import type { Call } from '../gateway.ts';
import { takeLimits } from '../limits/take-limits.ts';
import { estimateImage } from './billing.ts';
import { checkAnyFit, imageChannels } from './need.ts';
import { PictureRun } from './picture-run.ts';
import { receiveImageRequest } from './receive.ts';

/** How many pictures of one request are drawn at once. */
const MAX_AT_ONCE = 4;

export async function serveImages(call: Call, operation: ImageOperation): Promise<void> {
  const { gateway, config } = call;
  const principal = await identify(call);
  const body = await arrivingBody(call, principal, config.limits.multipartBytes);
  const request = await receiveImageRequest(call, operation, body);
  call.notes.model = request.model;
  call.notes.stream = request.stream;
  const model = checkModel(config, principal, request.model);
  const channels = imageChannels(config, principal.account.class, model, request);
  const admitted: Admitted[] = [];
  try {
    for (let index = 0; index < request.count; index++) {
      admitted.push(await reserve(gateway.store, principal, model, estimateImage(request), gateway.clock.now()));
    }
    const tokens = estimateImage(request).input;
    await takeLimits(call, principal, model, { requests: request.count, tokens: tokens * request.count });
    // Before a run is made, which has a row of its own: what is refused here is in the log as any other refusal.
    if (request.stream) checkAnyFit(channels, model.name, gateway.dispatcher.health);
    const runs = admitted.map((one, index) => new PictureRun(callOf(call, index, request), request, channels, one));
    const [only] = runs;
    if (request.stream && only !== undefined) await serveStream(call, request, only);
    else await serveWhole(call, request, runs);
  } finally {
    for (const { reservation } of admitted) reservation.release();
  }
}

/** Each picture has its own row in the log, told apart by a suffix. */
function callOf(call: Call, index: number, request: ImageRequest): Call {
  if (request.count === 1) return call;
  // A picture that failed among others is its own row's failure, not the request's.
  call.notes.metered = true;
  const { limit } = call.notes;
  return { ...call, requestId: `${call.requestId}-${index + 1}`, notes: limit === undefined ? {} : { limit } };
}

/** Some pictures are an answer; only none is a failure. */
async function serveWhole(call: Call, request: ImageRequest, runs: readonly PictureRun[]): Promise<void> {
  await runSome(runs, MAX_AT_ONCE, (run) => run.draw());
  const answers = runs.flatMap(({ answer }) => (answer === undefined ? [] : [answer]));
  try {
    if (answers.length === 0) throw lastFailure(runs);
    const body = encodeImageAnswer(joinAnswers(answers), seconds(call));
    const [only] = runs;
    const headers = runs.length === 1 && only !== undefined ? only.headers : {};
    await Promise.all(runs.map((run) => run.settleFirst()));
    const patience = runs.flatMap(({ writeStallMs }) => writeStallMs ?? []);
    const writeStallMs = patience.length === 0 ? {} : { writeStallMs: Math.max(...patience) };
    new Waiting(call).answer({ status: 200, body, headers, ...writeStallMs });
    for (const run of runs) run.said();
  } finally {
    await Promise.all(runs.map((run) => run.settle()));
  }
  if (request.count !== answers.length) {
    call.gateway.log.info({ request_id: call.requestId, asked: request.count, made: answers.length }, 'some pictures failed');
  }
}

function lastFailure(runs: readonly PictureRun[]): unknown {
  return runs.at(-1)?.failure ?? new Error('no picture and no failure');
}

/** Runs at most `width` at once, begun in order. */
async function runSome<Item>(items: readonly Item[], width: number, run: (item: Item) => Promise<void>): Promise<void> {
  const rest = items.values();
  const lane = async (): Promise<void> => {
    for (const item of rest) await run(item);
  };
  await Promise.all(Array.from({ length: Math.min(width, items.length) }, lane));
}

async function serveStream(call: Call, request: ImageRequest, run: PictureRun): Promise<void> {
  const { gateway, config } = call;
  const committed = new Waiting(call).commit({
    clock: gateway.clock,
    writeStallMs: config.writeStallMs,
    keepAlive: { intervalMs: config.keepAliveMs, immediately: true },
  });
  await run.draw();
  try {
    const frames = await lastFrames(call, request, run);
    if (run.writeStallMs !== undefined) committed.writer.waitAtMost(run.writeStallMs);
    await committed.writer.end(frames.map(committed.frame));
    run.said();
  } catch (thrown) {
    const gone = toGatewayError(thrown);
    if (!isClientGone(gone)) throw thrown;
    run.left(gone);
  } finally {
    await run.settle();
  }
}

/** The picture, or why there is none: it was not made, or its charge could not be written. */
async function lastFrames(call: Call, request: ImageRequest, run: PictureRun): Promise<Frame[]> {
  const { answer, failure } = run;
  try {
    await run.settleFirst();
    return answer === undefined ? failureFrames(failure) : [...encodeImageEvents(request.operation, answer, seconds(call)), DONE];
  } catch (thrown) {
    const error = toGatewayError(thrown);
    run.left(error);
    return failureFrames(error);
  }
}

function failureFrames(failure: GatewayError | undefined): Frame[] {
  const error = failure ?? toGatewayError(new Error('no picture and no failure'));
  return [encodeImageFailure(error, openAiErrorType(error.status)), DONE];
}

function seconds(call: Call): number {
  return Math.floor(call.startedAtMs / 1000);
}
