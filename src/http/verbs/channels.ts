/** `mizu channels test [ID]`: asks every Channel for its model list with its own credential, and says what came back. */
import { decodeModelList, ROUTER_MODELS_PATH } from '../../codecs/images/index.ts';
import { readErrorText, readWhole } from '../dispatch/upstream-body.ts';
import { Upstreams } from '../dispatch/upstream.ts';
import type { Channel } from '../config/config.ts';
import { errorCode } from '../errors.ts';
import { RefusedError, report, table, UsageError, type Verb } from './verb.ts';

interface Probe {
  readonly id: string;
  readonly ok: boolean;
  readonly status?: number;
  readonly ms: number;
  readonly note: string;
}

export const channels: Verb = async (context) => {
  const [action, only] = context.args;
  if (action !== 'test') throw new UsageError('channels test [ID]');
  const wanted = context.config().channels.filter(({ id }) => only === undefined || id === only);
  if (wanted.length === 0) throw new RefusedError(only === undefined ? 'there are no channels' : `there is no channel ${only}`);
  const upstreams = new Upstreams(context.clock);
  try {
    const probes = await Promise.all(wanted.map((channel) => probe(upstreams, channel, context.clock.monotonic)));
    const rows = probes.map(({ id, ok, status, ms, note }) => [id, ok ? 'ok' : 'FAILED', String(status ?? ''), `${ms} ms`, note]);
    report(context, probes, table([['CHANNEL', 'RESULT', 'STATUS', 'TIME', 'NOTE'], ...rows]));
    return probes.every(({ ok }) => ok) ? 0 : 1;
  } finally {
    await upstreams.close();
  }
};

const PROBE_MS = 15_000;
const MAX_LIST_BYTES = 16 * 1024 * 1024;

/** A router lists what it draws with, so a wrong mapping is found before a client finds it. */
function missingModels(channel: Channel, listed: readonly string[]): string[] {
  const known = new Set(listed);
  return [...new Set(channel.models.values())].filter((model) => !known.has(model));
}

/** A list that the type does not have (404, 405) still proves that the credential and the connection are good. */
async function probe(upstreams: Upstreams, channel: Channel, now: () => number): Promise<Probe> {
  const started = now();
  const path = channel.type === 'openrouter_image' ? ROUTER_MODELS_PATH : '/models';
  const headers: Record<string, string> = channel.type === 'messages' ? { 'anthropic-version': '2023-06-01' } : {};
  const plain: Channel = { ...channel, options: withoutPath(channel.options) };
  try {
    const { status, body } = await upstreams.send(
      plain,
      { path, headers },
      { method: 'GET', stream: false, signal: AbortSignal.timeout(PROBE_MS), clientHeaders: {}, upstreamModel: '' },
    );
    const ok = status < 400 || status === 404 || status === 405;
    if (channel.type === 'openrouter_image' && status < 300) {
      const missing = missingModels(channel, decodeModelList(await readWhole(body, MAX_LIST_BYTES)));
      const note = missing.length === 0 ? noteOf(status) : `not in its list: ${missing.join(', ')}`;
      return { id: channel.id, ok: missing.length === 0, status, ms: Math.round(now() - started), note };
    }
    await readErrorText(body);
    return { id: channel.id, ok, status, ms: Math.round(now() - started), note: noteOf(status) };
  } catch (error) {
    return { id: channel.id, ok: false, ms: Math.round(now() - started), note: errorCode(error) ?? String(error) };
  }
}

function withoutPath(options: Channel['options']): Channel['options'] {
  const { path: _path, ...rest } = options;
  return rest;
}

function noteOf(status: number): string {
  if (status === 401 || status === 403) return 'the key was refused';
  if (status === 404 || status === 405) return 'reached; it has no model list';
  return status < 400 ? 'reached' : 'the upstream failed';
}
