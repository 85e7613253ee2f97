/**
 * Gateways side by side under one load: this one, the pass-through, and any number of others that run already or can be started.
 * What each serves is asked of all that serve it; an answer counts only if it is right.
 */
import { readFileSync } from 'node:fs';
import { answerHolds, type BenchDialect, CLIENT_PATHS, requestBody } from '../fixtures.ts';
import type { Contestant } from './contest.ts';
import { type Gateway, modelOf } from './gateway.ts';
import type { Started } from './processes.ts';
import { startPortkey } from './portkey.ts';

export interface Pair {
  readonly client: BenchDialect;
  readonly upstream: BenchDialect;
}

export interface Subject {
  readonly name: string;
  /** Its process tree is measured; undefined: not known. */
  readonly pid: number | undefined;
  /** Undefined where it does not serve the pair. */
  ask(pair: Pair, shape: string): Contestant['job'] | undefined;
  stop(): Promise<void>;
}

const isStream = (shape: string): boolean => shape !== 'whole';

/** What the client asks of a gateway at `url` under this name of the model. */
function askOf(url: string, headers: Readonly<Record<string, string>>, client: BenchDialect, model: string, shape: string) {
  const stream = isStream(shape);
  return { url, headers, body: requestBody(client, model, stream), mustHold: answerHolds(client, stream) };
}

export function mizuSubject(gateway: Gateway): Subject {
  return {
    name: 'Mizu',
    pid: gateway.pid,
    ask: ({ client, upstream }, shape) =>
      askOf(
        gateway.url + CLIENT_PATHS[client],
        { authorization: `Bearer ${gateway.key}` },
        client,
        modelOf(upstream, shape),
        shape,
      ),
    stop: () => gateway.stop(),
  };
}

/** The floor passes on what the upstream of the pair takes and says. */
export function floorSubject(floor: Started): Subject {
  return {
    name: 'pass-through',
    pid: floor.pid,
    ask: ({ upstream }, shape) => askOf(`http://127.0.0.1:${floor.port}${CLIENT_PATHS[upstream]}`, {}, upstream, shape, shape),
    stop: () => floor.stop(),
  };
}

/** A gateway that runs already, as its `peer.json` tells. */
export interface Peer {
  readonly name: string;
  /** What the paths of the clients stand behind: `http://127.0.0.1:4000`. */
  readonly url: string;
  /** Absent: its processor time and memory are not known. */
  readonly pid?: number;
  /** Sent with every request. */
  readonly headers?: Readonly<Record<string, string>>;
  /**
   * By upstream, the name under which it serves the bench's upstream; `{shape}` stands for the shape, which the upstream must get
   * as its model.
   */
  readonly models: Readonly<Partial<Record<BenchDialect, string>>>;
  /** Protocols that it takes. Default: chat alone. */
  readonly clients?: readonly BenchDialect[];
  /** Paths of clients, where they are other than the vendors'. */
  readonly paths?: Readonly<Partial<Record<BenchDialect, string>>>;
}

export function peerSubject({ name, url, pid, headers = {}, models, clients = ['chat'], paths = {} }: Peer): Subject {
  return {
    name,
    pid,
    ask({ client, upstream }, shape) {
      const model = models[upstream]?.replaceAll('{shape}', shape);
      if (model === undefined || !clients.includes(client)) return undefined;
      return askOf(url.replace(/\/$/, '') + (paths[client] ?? CLIENT_PATHS[client]), headers, client, model, shape);
    },
    stop: () => Promise.resolve(),
  };
}

/** Throws what is wrong with a `peer.json`. */
export function peerOf(json: string): Peer {
  const peer: Partial<Peer> = JSON.parse(json);
  const { name, url, models } = peer;
  if (name === undefined || url === undefined || models === undefined) throw new Error('a peer.json needs name, url and models');
  const known = Object.keys(CLIENT_PATHS);
  for (const dialect of [...Object.keys(models), ...(peer.clients ?? []), ...Object.keys(peer.paths ?? {})])
    if (!known.includes(dialect)) throw new Error(`a peer.json names protocols ${known.join(', ')}, not ${dialect}`);
  return { ...peer, name, url, models };
}

/**
 * `FILE.json` is a {@link Peer}. `NAME=http://[KEY@]HOST:PORT[#PID]` is one that takes chat alone and has the upstream's shapes
 * as models. `portkey=PATH` starts Portkey's gateway, installed elsewhere.
 */
export async function startRival(description: string, upstreamUrl: string): Promise<Subject> {
  if (description.endsWith('.json')) return peerSubject(peerOf(readFileSync(description, 'utf8')));
  const at = description.indexOf('=');
  const [name, where] = [description.slice(0, at), description.slice(at + 1)];
  if (at < 1) throw new Error(`a rival is FILE.json, NAME=URL or portkey=PATH, not ${description}`);
  if (/^https?:/.test(where)) return peerSubject(addressed(name, new URL(where)));
  if (name !== 'portkey') throw new Error(`only portkey can be started from a path, not ${name}`);
  return await startPortkey(where, upstreamUrl);
}

function addressed(name: string, { protocol, host, pathname, username, hash }: URL): Peer {
  return {
    name,
    url: `${protocol}//${host}${pathname.replace(/\/(v1\/?)?$/, '')}`,
    ...(hash === '' ? {} : { pid: Number(hash.slice(1)) }),
    headers: { authorization: `Bearer ${username || 'x'}` },
    models: { chat: '{shape}' },
  };
}
