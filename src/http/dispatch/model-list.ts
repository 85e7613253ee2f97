/**
 * Asking a Channel for its model list: what active probes and `mizu channels test` share. Costs no tokens, and proves way, host
 * and credential.
 */
import type { ChannelType } from '../../codecs/canonical/dialect.ts';
import { ROUTER_MODELS_PATH } from '../../codecs/images/index.ts';
import type { Channel } from '../config/config.ts';
import { type HostedChannel, isHosted } from '../platforms/session.ts';
import type { Clock } from '../../streams/clock.ts';
import { contentTypeOf } from './call-upstream.ts';
import { readErrorText } from './upstream-body.ts';
import type { Upstreams } from './upstream.ts';
import { headerOf, type UpstreamCall, type UpstreamHead } from './upstream-call.ts';

/** Video upstreams have none. */
export function hasModelList(type: ChannelType): boolean {
  return type !== 'ark_video' && type !== 'minimax_video';
}

/** Rejects with the error of the connection, of a credential that cannot be had, or of the signal. */
export function askModelList(upstreams: Upstreams, channel: Channel, signal: AbortSignal, clock: Clock): Promise<UpstreamHead> {
  if (isHosted(channel)) return askHostedList(upstreams, channel, signal, clock);
  const { path: _ownPath, ...options } = channel.options;
  const path = channel.type === 'openrouter_image' ? ROUTER_MODELS_PATH : '/models';
  const headers: Record<string, string> = channel.type === 'messages' ? { 'anthropic-version': '2023-06-01' } : {};
  return upstreams.send(
    { ...channel, options },
    { path, headers },
    { method: 'GET', stream: false, signal, clientHeaders: {}, upstreamModel: '' },
  );
}

/** As with an attempt, a credential that was the fault is replaced, and the list asked for once more. */
async function askHostedList(
  upstreams: Upstreams,
  channel: HostedChannel,
  signal: AbortSignal,
  clock: Clock,
): Promise<UpstreamHead> {
  const { platform } = upstreams.session(channel);
  const { path, has: _names, ...listed } = platform.models(channel.basePath);
  const ask = (): UpstreamCall =>
    upstreams.open(
      channel,
      { path, headers: {} },
      { method: 'GET', stream: false, signal, clientHeaders: {}, upstreamModel: '', listed },
    );
  const call = ask();
  const head = await call.head;
  if (head.status !== 401 && head.status !== 403) return head;
  const text = await readErrorText(head, clock);
  const { again } = platform.refused({ status: head.status, headers: head.headers, text }, call);
  return again ? await ask().head : head;
}

export interface ListVerdict {
  /** `unsure`: the upstream is there, and nothing else was learnt. */
  readonly result: 'good' | 'bad' | 'unsure';
  /** For the operator. */
  readonly note: string;
}

/** By status and content type; the body is not read. */
export function judgeModelList(head: UpstreamHead, channel: Channel): ListVerdict {
  const { status } = head;
  // Clouds give the right to list apart from the right to ask.
  if (status === 403 && isHosted(channel) && !isUnsigned(head))
    return { result: 'unsure', note: 'reached; the credential may not list models' };
  if (status === 401 || status === 403) return { result: 'bad', note: 'the key was refused' };
  if (status === 402) return { result: 'bad', note: 'the account has no credit' };
  if (status === 404 || status === 405) return { result: 'good', note: 'reached; it has no model list' };
  if (status === 429) return { result: 'unsure', note: 'reached; it is limiting requests' };
  if (status >= 400) return { result: 'bad', note: 'the upstream failed' };
  if (status >= 300) return { result: 'bad', note: 'redirects, which are not followed: is base_url right?' };
  if (contentTypeOf(head) === 'text/html') return { result: 'bad', note: 'answers with a web page: is base_url right?' };
  return { result: 'good', note: 'reached' };
}

/** Bedrock says 403 of keys that are no good, too: the name of the exception tells them apart. */
function isUnsigned({ headers }: UpstreamHead): boolean {
  const name = headerOf(headers, 'x-amzn-errortype');
  return name !== '' && !/^AccessDeniedException\b/.test(name);
}
