/** Asking a Channel for its model list: what active probes and `mizu channels test` share. Costs no tokens, and proves way, host and credential. */
import type { ChannelType } from '../../codecs/canonical/dialect.ts';
import { ROUTER_MODELS_PATH } from '../../codecs/images/index.ts';
import type { Channel } from '../config/config.ts';
import { isHosted } from '../platforms/session.ts';
import { contentTypeOf } from './call-upstream.ts';
import type { Upstreams } from './upstream.ts';
import type { UpstreamHead } from './upstream-call.ts';

/** Video upstreams have none. */
export function hasModelList(type: ChannelType): boolean {
  return type !== 'ark_video' && type !== 'minimax_video';
}

/** Rejects with the error of the connection, or of the signal. */
export function askModelList(upstreams: Upstreams, channel: Channel, signal: AbortSignal): Promise<UpstreamHead> {
  if (isHosted(channel)) {
    const { path, ...listed } = upstreams.session(channel).platform.models(channel.basePath);
    return upstreams.send(
      channel,
      { path, headers: {} },
      { method: 'GET', stream: false, signal, clientHeaders: {}, upstreamModel: '', listed },
    );
  }
  const { path: _ownPath, ...options } = channel.options;
  const path = channel.type === 'openrouter_image' ? ROUTER_MODELS_PATH : '/models';
  const headers: Record<string, string> = channel.type === 'messages' ? { 'anthropic-version': '2023-06-01' } : {};
  return upstreams.send(
    { ...channel, options },
    { path, headers },
    { method: 'GET', stream: false, signal, clientHeaders: {}, upstreamModel: '' },
  );
}

export interface ListVerdict {
  /** `unsure`: the upstream is there, and nothing else was learnt. */
  readonly result: 'good' | 'bad' | 'unsure';
  /** For the operator. */
  readonly note: string;
}

/** By status and content type; the body is not read. */
export function judgeModelList(head: UpstreamHead): ListVerdict {
  const { status } = head;
  if (status === 401 || status === 403) return { result: 'bad', note: 'the key was refused' };
  if (status === 402) return { result: 'bad', note: 'the account has no credit' };
  if (status === 404 || status === 405) return { result: 'good', note: 'reached; it has no model list' };
  if (status === 429) return { result: 'unsure', note: 'reached; it is limiting requests' };
  if (status >= 400) return { result: 'bad', note: 'the upstream failed' };
  if (status >= 300) return { result: 'bad', note: 'redirects, which are not followed: is base_url right?' };
  if (contentTypeOf(head) === 'text/html') return { result: 'bad', note: 'answers with a web page: is base_url right?' };
  return { result: 'good', note: 'reached' };
}
