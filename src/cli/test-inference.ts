/**
 * `channels test` by a real request: the shortest question, sent as a client's would be, outside the ledger, the request log and
 * the circuits.
 */
import { GatewayError } from '../codecs/canonical/error.ts';
import type { CodecSet } from '../codecs/codec-set.ts';
import type { Channel, Config, Model } from '../http/config/config.ts';
import type { Upstreams } from '../http/dispatch/upstream.ts';
import { attemptWhole } from '../http/text/attempt.ts';
import type { Clock } from '../streams/clock.ts';
import type { Mint } from '../codecs/codec.ts';
import { LargeWork } from '../http/request/large-work.ts';
import { LoopTurns } from '../streams/loop-turns.ts';

export interface Inference {
  readonly ok: boolean;
  readonly status?: number;
  readonly note: string;
  /** That was asked, as clients name it. */
  readonly model?: string;
}

export interface InferenceParts {
  readonly config: Config;
  readonly codecs: CodecSet;
  readonly upstreams: Upstreams;
  readonly clock: Clock;
  readonly mint: Mint;
}

/** The console gives up on an answer after 30 s. */
export const INFERENCE_MS = 25_000;
/** Enough for a word of any model; some vendors take no less. */
const MAX_TOKENS = 16;
const MOST_WORDS = 300;

/** The model of that name, or the first of the Channel that answers with text. */
export function modelToAsk(channel: Channel, { models }: Config, name: string | undefined): Model | undefined {
  const names = name === undefined ? [...channel.models.keys()] : channel.models.has(name) ? [name] : [];
  return names.map((each) => models.get(each)).find((model) => model?.kind === 'text');
}

/** What went wrong upstream is in the result; what no upstream can have caused is thrown. */
export async function testByInference(channel: Channel, model: Model, parts: InferenceParts): Promise<Inference> {
  const { config, codecs, upstreams, clock, mint } = parts;
  const upstreamModel = channel.models.get(model.name) ?? model.name;
  const body = { model: model.name, max_completion_tokens: MAX_TOKENS, messages: [{ role: 'user', content: 'Say OK.' }] };
  const request = codecs.client('chat').decodeRequest(JSON.stringify(body), body, { open: () => undefined });
  const note: { upstreamStatus?: number } = {};
  const target = { channel, upstreamModel, model: model.name, without: new Set<never>(), note };
  const gateway = { upstreams, codecs, clock, largeWork: new LargeWork(), streamTurns: new LoopTurns(), mint };
  const call = { gateway, config, request: { headers: {} } };
  const answered = (ok: boolean, words: string): Inference => ({
    ok,
    ...(note.upstreamStatus === undefined ? {} : { status: note.upstreamStatus }),
    note: words,
    model: model.name,
  });
  try {
    const { whole } = await attemptWhole(
      { ...target, signal: AbortSignal.timeout(INFERENCE_MS) },
      { call, request, model, party: '', seal: () => '' },
    );
    const { usage } = whole;
    const counted = usage === undefined ? 'no usage was reported' : `${usage.output ?? 0} output tokens`;
    return answered(true, `${upstreamModel} answers: ${counted}`);
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    return answered(error.details.upstream?.status === 429, wordsOf(error, channel, upstreamModel, note.upstreamStatus));
  }
}

function wordsOf({ message, details }: GatewayError, channel: Channel, model: string, answered: number | undefined): string {
  const { reason, upstream } = details;
  const status = upstream?.status ?? answered;
  const own = (upstream?.text ?? message).replaceAll(/\s+/g, ' ').trim();
  const said = own === '' ? '' : `: ${own.slice(0, MOST_WORDS)}`;
  if (reason === 'undecodable' || reason === 'malformed_event' || reason === 'illegal_lifecycle')
    return `answers, but not as type ${channel.type} does: are type and base_url right?${said}`;
  if (reason === 'truncated' || reason === 'empty') return `its answer ends before anything is said${said}`;
  if (reason?.startsWith('credential_') === true) return `no credential could be had${said}`;
  if (status === 401 || status === 403) return `the key was refused${said}`;
  if (status === 402) return `the account has no credit${said}`;
  if (status === 404) return `does not serve ${model}, or not at this address${said}`;
  if (status === 429) return `reached; it is limiting requests${said}`;
  if (status !== undefined && status >= 300 && status < 400) return 'redirects, which are not followed: is base_url right?';
  if (status !== undefined && status >= 400 && status < 500) return `refuses the request for ${model}${said}`;
  return `the upstream failed${said}`;
}
