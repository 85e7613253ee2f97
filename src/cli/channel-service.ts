/** `mizu channels …`: which Channels get new work, by the file and the store. Their test is `channels.ts`. */
import type { Static } from 'typebox';
import { defined } from '../codecs/defined.ts';
import { refusedBy, RefusedError } from '../http/admin/refusals.ts';
import { Nothing, OneChannel } from '../http/admin/requests.ts';
import type { Channel } from '../http/config/config.ts';
import type { LiveChannel } from '../http/operations/reports.ts';
import { table, type Verb, type VerbContext, verb } from './verb.ts';

export interface ChannelView {
  readonly id: string;
  readonly type: string;
  readonly origin: string;
  readonly priority: number;
  readonly weight: number;
  readonly models: readonly string[];
  readonly state: 'in_service' | 'out_of_service' | 'disabled';
  readonly outOfService?: OutOfService;
  /** Attempts that run on it now. */
  readonly running: number;
  readonly circuits: readonly object[];
}

interface OutOfService {
  readonly by: string;
  readonly sinceMs: number;
  readonly reason?: string;
}

/** Every Channel of the file. `live`: what the running gateway knows of them. */
export async function listChannels(context: VerbContext, live: readonly LiveChannel[] = []): Promise<ChannelView[]> {
  const { channels, disabledChannels } = context.config();
  const store = await context.store();
  const out = new Map((await store.controls.list('channel')).map(({ id, text }) => [id, JSON.parse(text) as OutOfService]));
  const disabled = new Set(disabledChannels);
  return [...channels, ...disabledChannels].map((channel) => viewOf(channel, disabled.has(channel), out.get(channel.id), live));
}

function viewOf(
  { id, type, origin, priority, weight, models }: Channel,
  isDisabled: boolean,
  outOfService: OutOfService | undefined,
  live: readonly LiveChannel[],
): ChannelView {
  const own = live.filter((channel) => channel.id === id);
  return {
    id,
    type,
    origin,
    priority,
    weight,
    models: [...models.keys()],
    state: isDisabled ? 'disabled' : outOfService === undefined ? 'in_service' : 'out_of_service',
    ...defined({ outOfService }),
    running: own.reduce((sum, { running }) => sum + running, 0),
    circuits: own.flatMap(({ worker, circuits }) => circuits.map((circuit) => ({ ...circuit, ...defined({ worker }) }))),
  };
}

/** It gets no new work from any process on the store, across restarts, until it is put back. */
export async function takeOutOfService(context: VerbContext, { id }: Static<typeof OneChannel>): Promise<ChannelView> {
  await shownChannel(context, id);
  const { cause, clock } = context;
  const record: OutOfService = { by: cause.by, sinceMs: clock.now(), ...defined({ reason: cause.note }) };
  const change = { kind: 'channel', id, journalKind: 'channel_out_of_service' } as const;
  const made = await (await context.store()).controls.change({ ...change, text: JSON.stringify(record) }, cause);
  if (!made.ok) throw refusal(made.refusal, `the channel ${id} is out of service already`, 'already_out_of_service');
  return await shownChannel(context, id);
}

export async function putInService(context: VerbContext, { id }: Static<typeof OneChannel>): Promise<ChannelView> {
  // One that the file does not have any more may be put back as well.
  const change = { kind: 'channel', id, journalKind: 'channel_in_service' } as const;
  const made = await (await context.store()).controls.change(change, context.cause);
  if (!made.ok) {
    await shownChannel(context, id);
    throw refusal(made.refusal, `the channel ${id} is not out of service`, 'already_in_service');
  }
  return await shownChannel(context, id);
}

function refusal(refused: { readonly reason: string }, text: string, code: string): RefusedError {
  return refused.reason === 'cause_reused' ? refusedBy(refused) : new RefusedError(text, 'conflict', code);
}

/** Throws RefusedError where the file has no such Channel. */
async function shownChannel(context: VerbContext, id: string): Promise<ChannelView> {
  const found = (await listChannels(context)).find((channel) => channel.id === id);
  if (found === undefined) throw new RefusedError(`there is no channel ${id}`, 'unknown', 'unknown_channel');
  return found;
}

const textOf = ({ id, state }: ChannelView): string => `channel ${id} is ${state.replaceAll('_', ' ')}`;

export const CHANNEL_SERVICE: readonly Verb[] = [
  verb({
    name: 'channels list',
    usage: 'list',
    does: 'All Channels, and which are out of service.',
    options: Nothing,
    run: (context) => listChannels(context),
    text: (channels) =>
      table([
        ['ID', 'TYPE', 'UPSTREAM', 'STATE', 'PRIORITY', 'WEIGHT', 'MODELS'],
        ...channels.map(({ id, type, origin, state, priority, weight, models }) => [
          id,
          type,
          origin,
          state.replaceAll('_', ' '),
          String(priority),
          String(weight),
          models.join(','),
        ]),
      ]),
  }),
  verb({
    name: 'channels out-of-service',
    usage: 'out-of-service ID',
    does: 'Gives the Channel no new work, on all gateways of the store and across restarts.',
    options: OneChannel,
    arguments: ['id'],
    changes: true,
    run: takeOutOfService,
    text: textOf,
  }),
  verb({
    name: 'channels in-service',
    usage: 'in-service ID',
    does: 'Puts the Channel back.',
    options: OneChannel,
    arguments: ['id'],
    changes: true,
    run: putInService,
    text: textOf,
  }),
];
