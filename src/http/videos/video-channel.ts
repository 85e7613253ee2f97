/**
 * What is asked of a video Channel: a submission, as an attempt of the loop that serves every endpoint, and a poll; and which
 * Channels can make a request at all.
 */
import { GatewayError, type UpstreamFacts } from '../../codecs/canonical/error.ts';
import { namingModel } from '../../codecs/errors/model-names.ts';
import type { UpstreamAnswer } from '../../codecs/codec.ts';
import { videoUpstream } from '../../codecs/videos/registry.ts';
import type { VideoRequest } from '../../codecs/videos/request.ts';
import type { Progress, Submission, VideoCall, VideoUpstream } from '../../codecs/videos/upstream.ts';
import { toGatewayError, upstreamFailure } from '../errors.ts';
import type { Channel, Config } from '../config/config.ts';
import { type Asker, callUpstream } from '../dispatch/call-upstream.ts';
import { withoutCredentials } from '../dispatch/credentials.ts';
import { channelsOfModel } from '../dispatch/candidates.ts';
import type { Target } from '../dispatch/plan.ts';
import { applyParameters } from '../dispatch/upstream.ts';
import { readWhole } from '../dispatch/upstream-body.ts';
import type { UpstreamCall, UpstreamHead } from '../dispatch/upstream-call.ts';

/** Answers of video upstreams are small: more is not one. */
const MAX_ANSWER_BYTES = 1024 * 1024;
/** What is kept of an upstream's own words. */
const MAX_TEXT_CHARS = 2_000;
/** The longest that a poll may take, whatever `timeouts.first_data_ms` says of submissions. */
const POLL_TIMEOUT_MS = 30_000;

export interface VideoRoute {
  readonly channel: Channel;
  readonly video: NonNullable<Channel['video']>;
  readonly codec: VideoUpstream;
  readonly upstreamModel: string;
}

/** Undefined for a Channel whose type makes no videos. */
export function routeOf(channel: Channel, model: string): VideoRoute | undefined {
  const { video } = channel;
  const codec = video === undefined ? undefined : videoUpstream(channel.type, video.apiVersion);
  if (video === undefined || codec === undefined) return undefined;
  return { channel, video, codec, upstreamModel: channel.models.get(model) ?? model };
}

/** The Channels that can make this video; the refusal of the first one where none can. */
export function routesFor(
  config: Config,
  request: VideoRequest,
  accountClass: string,
): { readonly routes: readonly VideoRoute[]; readonly refusal: GatewayError | undefined } {
  const routes: VideoRoute[] = [];
  let refusal: GatewayError | undefined;
  for (const channel of channelsOfModel(config, request.model, accountClass)) {
    const route = routeOf(channel, request.model);
    if (route === undefined) continue;
    try {
      route.codec.check(request);
      routes.push(route);
    } catch (thrown) {
      refusal ??= toGatewayError(thrown);
    }
  }
  return { routes, refusal };
}

/** No client waits: the gateway asks for itself. */
const asker = (gateway: Asker['gateway']): Asker => ({ gateway, request: { headers: {} } });

/** The id of the task upstream. Rejects with a refusal that is certain, or with an error that is `lost`. */
export async function attemptSubmission(
  target: Target,
  codec: VideoUpstream,
  request: VideoRequest,
  gateway: Asker['gateway'],
): Promise<string> {
  const { channel } = target;
  const { path, method, body } = codec.submit(request, target.upstreamModel);
  let opened: UpstreamCall | undefined;
  /** What the upstream answered was read: nothing that is thrown later is about the connection. */
  let judged: GatewayError | undefined;
  const judge = (answer: UpstreamAnswer): string | GatewayError => {
    const submission = codec.readSubmission(answer);
    if (submission.kind === 'accepted') return submission.upstreamId;
    judged = namingModel(submissionError(submission, answer), target.upstreamModel, target.model ?? target.upstreamModel);
    return judged;
  };
  try {
    return await callUpstream(
      asker(gateway),
      target,
      { path, headers: {}, ...(body === undefined ? {} : { body: applyParameters(body, channel) }) },
      {
        stream: false,
        method,
        onOpen: (call) => {
          opened = call;
        },
        decodeError: (answer) => asError(judge(answer)),
      },
      async (head) => {
        const judged = judge(await answerOf(head, channel, gateway.clock));
        if (typeof judged !== 'string') throw judged;
        return judged;
      },
    );
  } catch (thrown) {
    if (judged !== undefined) throw judged;
    // A call that was cut short from outside is over for its task, whatever became of it: no other Channel is asked.
    if (target.signal.aborted) throw lost(new GatewayError('shutting_down', messageOf(target.signal.reason)));
    const error = upstreamFailure(thrown);
    throw opened?.begun === true ? lost(error) : error;
  }
}

/** How far the task is; a poll that failed is a `queryError`. Never rejects. */
export async function pollTask(
  { channel, codec, upstreamModel }: VideoRoute,
  upstreamId: string,
  gateway: Asker['gateway'],
  signal: AbortSignal,
): Promise<Progress> {
  const firstDataMs = Math.min(POLL_TIMEOUT_MS, channel.timeouts.firstDataMs);
  const target: Target = {
    channel: { ...channel, timeouts: { ...channel.timeouts, firstDataMs } },
    upstreamModel,
    without: new Set(),
    signal,
    note: {},
  };
  const ask = (call: VideoCall, read: (answer: UpstreamAnswer) => Progress): Promise<Progress> =>
    callUpstream(
      asker(gateway),
      target,
      { path: call.path, headers: {}, ...(call.body === undefined ? {} : { body: call.body }) },
      {
        stream: false,
        method: call.method,
        decodeError: ({ status, text }) => new Error(`HTTP ${status}: ${text.slice(0, MAX_TEXT_CHARS)}`),
      },
      async (head) => read(await answerOf(head, channel, gateway.clock)),
    );
  try {
    const progress = await ask(codec.query(upstreamId), (answer) => codec.readProgress(answer, upstreamId));
    if (progress.kind !== 'lookup') return progress;
    return await ask(progress.call, (answer) => codec.readLookup(answer, progress.id));
  } catch (thrown) {
    // Whatever failed, nothing is known of the task that was not known before.
    return { kind: 'queryError', reason: messageOf(thrown) };
  }
}

async function answerOf(
  { status, headers, body }: UpstreamHead,
  channel: Channel,
  clock: Asker['gateway']['clock'],
): Promise<UpstreamAnswer> {
  const receivedAtMs = (clock.own ?? clock).now();
  const text = withoutCredentials(await readWhole({ headers, body }, MAX_ANSWER_BYTES), channel);
  return { status, headers, text, receivedAtMs };
}

/**
 * What the attempt loop is told of an answer that is no acceptance. An explicit refusal ends the exchange (the request itself is
 * wrong); what was certainly not taken is judged by its status; what is unclear is lost.
 */
function submissionError(
  submission: Exclude<Submission, { readonly kind: 'accepted' }>,
  { status, text }: UpstreamAnswer,
): GatewayError {
  const isRefusal = status < 200 || status > 299;
  const facts: UpstreamFacts = { text: text.slice(0, MAX_TEXT_CHARS), ...(isRefusal ? { status } : {}) };
  const reason = isRefusal ? 'http_status' : 'error_event';
  switch (submission.kind) {
    case 'refused': {
      const { code, message } = submission.error;
      return new GatewayError('invalid_request', message, { reason, shownCode: code, upstream: facts });
    }
    case 'notTaken': {
      const { status: standsFor, retryAfterMs } = submission;
      const wait = retryAfterMs === undefined ? {} : { retryAfterMs };
      const upstream = { ...facts, status: standsFor, ...wait };
      return new GatewayError('upstream_error', submission.error.message, { reason, upstream });
    }
    case 'unclear':
      return new GatewayError('upstream_error', `the answer to the submission was unclear: ${submission.reason}`, {
        reason: isRefusal ? reason : 'undecodable',
        upstream: facts,
        lost: true,
      });
  }
}

function lost({ code, message, details }: GatewayError): GatewayError {
  const why = details.cause === undefined ? message : messageOf(details.cause);
  return new GatewayError(code, `the answer to the submission was lost: ${why}`, { ...details, lost: true });
}

/** No codec reads an acceptance in a status that is an error. */
function asError(judged: string | GatewayError): Error {
  return typeof judged === 'string' ? new Error('an error status was read as an acceptance') : judged;
}

function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}
