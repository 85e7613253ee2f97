/**
 * `mizu channels test [ID]`: requests the model list of every Channel with its own credential, and reports the answers. A Channel
 * that has no list, or whose list proves nothing, is asked a question; with `--inference` each is.
 */
import type { Static } from 'typebox';
import { isObject, tryJson } from '../codecs/canonical/json.ts';
import { codecs } from '../codecs/registry.ts';
import { decodeModelList } from '../codecs/images/index.ts';
import { askModelList, judgeModelList } from '../http/dispatch/model-list.ts';
import { readErrorText, readWhole } from '../http/dispatch/upstream-body.ts';
import { Upstreams } from '../http/dispatch/upstream.ts';
import type { UpstreamHead } from '../http/dispatch/upstream-call.ts';
import type { Channel, Config } from '../http/config/config.ts';
import { errorCode } from '../http/errors.ts';
import { isHosted } from '../http/platforms/session.ts';
import { RefusedError } from '../http/admin/refusals.ts';
import { TestChannels } from '../http/admin/requests.ts';
import { INFERENCE_MS, type InferenceParts, modelToAsk, testByInference } from './test-inference.ts';
import { table, type Verb, type VerbContext, verb } from './verb.ts';

/** How a Channel answered. */
export interface Probe {
  readonly id: string;
  readonly ok: boolean;
  readonly status?: number;
  readonly ms: number;
  readonly note: string;
  /** It was asked a question of this model. */
  readonly model?: string;
}

/** Asks every Channel, or the one that is named, at the same time. Throws RefusedError where there is none. */
export async function testChannels(
  context: VerbContext,
  { id: only, inference = false, model }: Static<typeof TestChannels>,
): Promise<Probe[]> {
  const { clock, mint } = context;
  const config = context.config();
  const wanted = config.channels.filter(({ id }) => only === undefined || id === only);
  if (wanted.length === 0) throw whyNone(config, only);
  const upstreams = new Upstreams(clock);
  const ask = { parts: { config, codecs, upstreams, clock, mint }, isWanted: inference || model !== undefined, model };
  try {
    return await Promise.all(wanted.map((channel) => probe(channel, ask)));
  } finally {
    await upstreams.close();
  }
}

function whyNone({ disabledChannels }: Config, only: string | undefined): RefusedError {
  if (only === undefined)
    return new RefusedError(disabledChannels.length === 0 ? 'there are no channels' : 'every channel is disabled');
  return disabledChannels.some(({ id }) => id === only)
    ? new RefusedError(`the channel ${only} is disabled`, 'conflict', 'channel_disabled')
    : new RefusedError(`there is no channel ${only}`, 'unknown', 'unknown_channel');
}

const PROBE_MS = 15_000;
const MAX_LIST_BYTES = 16 * 1024 * 1024;

/** Models of the Channel that a router or a cloud does not list: a wrong mapping, or a region that lacks them. */
async function missingModels(upstreams: Upstreams, channel: Channel, head: UpstreamHead): Promise<string[]> {
  const models = [...new Set(channel.models.values())];
  if (channel.type === 'openrouter_image') {
    const known = new Set(decodeModelList(await readWhole(head, MAX_LIST_BYTES)));
    return models.filter((model) => !known.has(model));
  }
  const { has } = isHosted(channel) ? upstreams.session(channel).platform.models(channel.basePath) : {};
  if (has === undefined) return [];
  const list = tryJson(await readWhole(head, MAX_LIST_BYTES));
  return isObject(list) ? models.filter((model) => has(list, model) === false) : [];
}

interface Ask {
  readonly parts: InferenceParts;
  /** Each Channel is asked a question. */
  readonly isWanted: boolean;
  readonly model: string | undefined;
}

async function probe(channel: Channel, { parts, isWanted, model: name }: Ask): Promise<Probe> {
  const { clock } = parts;
  const started = clock.monotonic();
  const model = modelToAsk(channel, parts.config, name);
  const timed = (found: Omit<Probe, 'id' | 'ms'>): Probe => ({
    id: channel.id,
    ms: Math.round(clock.monotonic() - started),
    ...found,
  });
  const none =
    name === undefined ? 'no model that answers with text, so nothing was asked' : `no model ${name} that answers with text`;
  try {
    if (isWanted)
      return timed(model === undefined ? { ok: name === undefined, note: none } : await testByInference(channel, model, parts));
    const { isSilent, ...listed } = await probeList(channel, parts);
    return timed(isSilent && model !== undefined ? await testByInference(channel, model, parts) : listed);
  } catch (error) {
    return timed({ ok: false, note: whyOf(error, isWanted ? INFERENCE_MS : PROBE_MS) });
  }
}

/** `isSilent`: nothing was learnt of whether it would answer. */
async function probeList(
  channel: Channel,
  { upstreams, clock }: InferenceParts,
): Promise<Omit<Probe, 'id' | 'ms'> & { readonly isSilent: boolean }> {
  const head = await askModelList(upstreams, channel, AbortSignal.timeout(PROBE_MS), clock);
  const { status } = head;
  const { result, note } = judgeModelList(head, channel);
  const missing = result === 'good' && status < 300 ? await missingModels(upstreams, channel, head) : [];
  await readErrorText(head, clock);
  return {
    // A router lists every model that it serves; a cloud serves some that its list lacks.
    ok: result !== 'bad' && (missing.length === 0 || isHosted(channel)),
    status,
    note: missing.length === 0 ? note : `not in its list: ${missing.join(', ')}`,
    isSilent: status === 404 || status === 405 || (status === 403 && result === 'unsure'),
  };
}

/** The code of the connection error, with an explanation where there is one. */
function whyOf(error: unknown, patienceMs: number): string {
  if (error instanceof Error && error.name === 'TimeoutError') return `no answer within ${patienceMs / 1000} s`;
  const code = errorCode(error);
  if (code === undefined) return error instanceof Error ? error.message : String(error);
  return `${code}${WORDS[code] === undefined ? '' : `: ${WORDS[code]}`}`;
}

const WORDS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens at that address',
  ENOTFOUND: 'the host name does not exist',
  EAI_AGAIN: 'the DNS server does not answer',
  UND_ERR_CONNECT_TIMEOUT: 'no connection within connect_ms',
  UND_ERR_HEADERS_TIMEOUT: 'no tunnel of the proxy within connect_ms',
  CERT_HAS_EXPIRED: 'the certificate has expired',
  ERR_TLS_CERT_ALTNAME_INVALID: 'the certificate is for another host',
  SELF_SIGNED_CERT_IN_CHAIN: 'the certificate authority is not trusted: see options.ca',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'the certificate is self-signed: see options.ca',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'the certificate authority is not trusted: see options.ca',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'the certificate authority is not trusted: see options.ca',
};

export const CHANNELS: readonly Verb[] = [
  verb({
    name: 'channels test',
    usage: 'test [ID] [--inference] [--model M]',
    does: 'Asks each Channel for its model list with its own credential. `--inference`: asks a model a question. Exit code 1 where one fails.',
    options: TestChannels,
    arguments: ['id'],
    run: testChannels,
    text: (probes) =>
      table([
        ['CHANNEL', 'RESULT', 'STATUS', 'TIME', 'NOTE'],
        ...probes.map(({ id, ok, status, ms, note }) => [id, ok ? 'ok' : 'FAILED', String(status ?? ''), `${ms} ms`, note]),
      ]),
    code: (probes) => (probes.every(({ ok }) => ok) ? 0 : 1),
  }),
];
