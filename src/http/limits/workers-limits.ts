/**
 * Limits of several worker processes: their primary keeps the buckets, and each worker asks it before it admits. Only requests
 * that have a limit cost this question. The counts of other gateways come through a worker, since the primary has no store.
 */
import { isObject } from '../../codecs/canonical/json.ts';
import type { ForeignCount, LimitCount, LimitCounts } from '../../store/limit-counts.ts';
import type { Clock } from '../../streams/clock.ts';
import type { Claim, Demand, LimitBuckets, Taking } from './buckets.ts';
import type { Limits } from './limits.ts';

const LIMITS_TOPIC = 'mizu.limits';
/** A primary that does not answer for this long is as good as gone, and the worker counts alone. */
const ANSWER_MS = 1_000;

type Question =
  | { readonly do: 'take'; readonly ask: number; readonly claims: readonly Claim[]; readonly demand: Demand }
  | { readonly do: 'adjust'; readonly claims: readonly Claim[]; readonly demand: Demand }
  | { readonly do: 'leave'; readonly claims: readonly Claim[] }
  | { readonly do: 'counts'; readonly ask: number; readonly others: readonly ForeignCount[] | null };
type Answer =
  | { readonly do: 'taken'; readonly ask: number; readonly taking: Taking }
  | { readonly do: 'exchange'; readonly ask: number; readonly member: string; readonly counts: readonly LimitCount[] };
type Message = (Question | Answer) & { readonly topic: typeof LIMITS_TOPIC };

/** Only processes of one gateway write to this channel, and they run the same code. */
function isMessage(message: unknown): message is Message {
  return isObject(message) && message['topic'] === LIMITS_TOPIC;
}

/** How a worker reaches its primary. */
export interface PrimaryLink {
  send(message: object): void;
  onMessage(listener: (message: unknown) => void): void;
}

/** In a worker. `alone` counts where the primary does not answer. */
export function workersLimits(link: PrimaryLink, clock: Clock, alone: Limits, counts: LimitCounts): Limits {
  const waiting = new Map<number, (taking: Taking | undefined) => void>();
  /** Questions whose answer came too late: what it took is given back. */
  const late = new Map<number, { readonly claims: readonly Claim[]; readonly demand: Demand }>();
  let asked = 0;
  const send = (question: Question): void => link.send({ topic: LIMITS_TOPIC, ...question });

  const giveBack = (ask: number, { refusal }: Taking): void => {
    const question = late.get(ask);
    late.delete(ask);
    if (question === undefined || refusal !== undefined) return;
    const { claims, demand } = question;
    send({ do: 'adjust', claims, demand: { requests: -demand.requests, tokens: -demand.tokens } });
    send({ do: 'leave', claims });
  };

  link.onMessage((message) => {
    if (!isMessage(message)) return;
    if (message.do === 'taken') {
      const { ask, taking } = message;
      const answer = waiting.get(ask);
      if (answer === undefined) giveBack(ask, taking);
      else answer(taking);
    } else if (message.do === 'exchange') {
      const { ask, member, counts: own } = message;
      // The primary goes on without the others where the store is away, and tells so.
      counts.exchange(member, own).then(
        (others) => send({ do: 'counts', ask, others }),
        () => send({ do: 'counts', ask, others: null }),
      );
    }
  });

  return {
    async take(claims, demand) {
      const ask = ++asked;
      const { promise, resolve } = Promise.withResolvers<Taking | undefined>();
      const timer = clock.setTimeout(() => {
        late.set(ask, { claims, demand });
        resolve(undefined);
      }, ANSWER_MS);
      waiting.set(ask, resolve);
      send({ do: 'take', ask, claims, demand });
      const taking = await promise;
      waiting.delete(ask);
      timer.cancel();
      return taking ?? { ...(await alone.take(claims, demand)), by: alone };
    },
    adjust: (claims, demand) => send({ do: 'adjust', claims, demand }),
    leave: (claims) => send({ do: 'leave', claims }),
  };
}

export interface PrimaryLimits {
  hear(message: unknown, worker: number): void;
  /** What it was answering is over. */
  workerGone(worker: number): void;
  /** Asks a worker to exchange counts. Rejects where it cannot, or does not answer. */
  exchangeBy(worker: number | undefined, member: string, counts: readonly LimitCount[]): Promise<readonly ForeignCount[]>;
}

/** In the primary. `send` gives false where the worker is not there. */
export function primaryLimits(
  buckets: LimitBuckets,
  clock: Clock,
  send: (worker: number, message: object) => boolean,
): PrimaryLimits {
  const now = (): number => Math.floor(clock.monotonic());
  /** By worker: how many requests of each bucket it is answering. */
  const held = new Map<number, Map<string, number>>();
  const waiting = new Map<number, (others: readonly ForeignCount[] | null) => void>();
  let asked = 0;

  const hold = (worker: number, claims: readonly Claim[], change: 1 | -1): void => {
    const mine = held.get(worker) ?? new Map<string, number>();
    held.set(worker, mine);
    for (const { bucket } of claims) mine.set(bucket, Math.max(0, (mine.get(bucket) ?? 0) + change));
  };
  const take = (worker: number, ask: number, claims: readonly Claim[], demand: Demand): void => {
    const taking = buckets.take(claims, demand, now());
    if (taking.refusal === undefined) hold(worker, claims, 1);
    const isThere = send(worker, { topic: LIMITS_TOPIC, do: 'taken', ask, taking });
    if (isThere || taking.refusal !== undefined) return;
    hold(worker, claims, -1);
    buckets.leave(claims);
  };

  return {
    hear(message, worker) {
      if (!isMessage(message)) return;
      switch (message.do) {
        case 'take': {
          const { ask, claims, demand } = message;
          // After all that came in the same turn: the place of a client's last request may be given back by another worker.
          setImmediate(() => take(worker, ask, claims, demand));
          return;
        }
        case 'adjust':
          return buckets.adjust(message.claims, message.demand, now());
        case 'leave':
          hold(worker, message.claims, -1);
          return buckets.leave(message.claims);
        case 'counts':
          waiting.get(message.ask)?.(message.others);
      }
    },
    workerGone(worker) {
      for (const [bucket, count] of held.get(worker) ?? [])
        for (let left = count; left > 0; left--) buckets.leave([{ scope: 'key', bucket, limits: {} }]);
      held.delete(worker);
    },
    async exchangeBy(worker, member, counts) {
      const ask = ++asked;
      const { promise, resolve } = Promise.withResolvers<readonly ForeignCount[] | null>();
      const timer = clock.setTimeout(() => resolve(null), ANSWER_MS);
      waiting.set(ask, resolve);
      const isThere = worker !== undefined && send(worker, { topic: LIMITS_TOPIC, do: 'exchange', ask, member, counts });
      const others = isThere ? await promise : null;
      waiting.delete(ask);
      timer.cancel();
      if (others === null) throw new Error('no worker could exchange the counts of limits');
      return others;
    },
  };
}
