/** One HTTP call to a video Channel, bounded in time and bytes, and which Channels can make a request at all. */
import type { GatewayError } from '../../codecs/canonical/error.ts';
import type { UpstreamAnswer } from '../../codecs/codec.ts';
import { videoUpstream } from '../../codecs/videos/registry.ts';
import type { VideoRequest } from '../../codecs/videos/request.ts';
import type { VideoCall, VideoUpstream } from '../../codecs/videos/upstream.ts';
import type { Clock } from '../../streams/clock.ts';
import { toGatewayError } from '../errors.ts';
import type { Channel, Config } from '../config/config.ts';
import { channelsOfModel } from '../dispatch/candidates.ts';
import type { Upstreams } from '../dispatch/upstream.ts';
import { readWhole } from '../dispatch/upstream-body.ts';

/** Answers of video upstreams are small: more is not one. */
const MAX_ANSWER_BYTES = 1024 * 1024;

export interface VideoRoute {
  readonly channel: Channel;
  readonly codec: VideoUpstream;
  readonly upstreamModel: string;
}

/** Undefined for a Channel whose type makes no videos. */
export function routeOf(channel: Channel, model: string): VideoRoute | undefined {
  const codec = videoUpstream(channel.type, channel.video.apiVersion);
  return codec === undefined ? undefined : { channel, codec, upstreamModel: channel.models.get(model) ?? model };
}

/** The Channels that can say this request; the refusal of the first one where none can. */
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

/** `sent: false`: the upstream cannot have seen the call. */
export type CallResult =
  | { readonly answered: true; readonly answer: UpstreamAnswer }
  | { readonly answered: false; readonly sent: boolean; readonly reason: string };

export interface CallOptions {
  readonly upstreams: Upstreams;
  readonly clock: Clock;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/** Never rejects: what became of a call that has no answer is in the result. An answer over 1 MiB counts as none. */
export async function callVideoUpstream(route: VideoRoute, call: VideoCall, options: CallOptions): Promise<CallResult> {
  const abort = new AbortController();
  const onAbort = (): void => abort.abort(options.signal.reason);
  options.signal.addEventListener('abort', onAbort, { once: true });
  if (options.signal.aborted) onAbort();
  const timer = options.clock.setTimeout(() => abort.abort(new Error('timed out')), options.timeoutMs);
  const outgoing = { path: call.path, headers: {}, ...(call.body === undefined ? {} : { body: call.body }) };
  const begun = options.upstreams.open(route.channel, outgoing, {
    stream: false,
    signal: abort.signal,
    clientHeaders: {},
    upstreamModel: route.upstreamModel,
    method: call.method,
  });
  try {
    const head = await begun.head;
    const receivedAtMs = options.clock.now();
    const text = await readWhole(head.body, MAX_ANSWER_BYTES);
    return { answered: true, answer: { status: head.status, headers: head.headers, text, receivedAtMs } };
  } catch (thrown) {
    const reason = thrown instanceof Error ? thrown.message : String(thrown);
    // One that was cut short may be on its way to a connection still: it is not looked at whether that was in time.
    return { answered: false, sent: begun.hasConnection || abort.signal.aborted, reason };
  } finally {
    timer.cancel();
    options.signal.removeEventListener('abort', onAbort);
  }
}
