/** The linearity law over what is read from a store: pages of video tasks, of the request log, and of what operators list. */
import type { TestContext } from 'node:test';
import { videoUpstream } from '../../../src/codecs/videos/registry.ts';
import { decodeVideoRequest, videoRequestDigest } from '../../../src/codecs/videos/request.ts';
import type { JsonObject } from '../../../src/codecs/canonical/json.ts';
import type { Principal } from '../../../src/store/keys.ts';
import type { Store } from '../../../src/store/store.ts';
import { type AdminGateway, adminGateway } from '../../admin/admin-gateway.ts';
import { VideoGateway } from '../../http/videos/video-gateway.ts';
import { openStore } from '../../store/support/store.ts';
import { fillMonth, MonthClock, monthGateway, monthOwners } from '../month.ts';
import type { Case, OwnBound, Work } from './growth.ts';
import { list } from './schema-shapes.ts';

/** Pages of one size cost about the same, however many rows there are. */
const PAGES: OwnBound = { count: 500, times: 4, limit: 2 };
const WARM = 5;

/** What is made for one size, and let go of in the end. */
class Made implements Pick<TestContext, 'after'> {
  readonly #after: (() => unknown)[] = [];

  readonly after = (end?: unknown): void => {
    if (typeof end === 'function') this.#after.push(() => end());
  };

  async work(run: () => Promise<unknown>): Promise<Work> {
    for (let count = 0; count < WARM; count += 1) await run();
    return {
      json: [],
      run: async () => {
        await run();
      },
      close: async () => {
        for (const end of this.#after.toReversed()) await end();
      },
    };
  }
}

const VIDEO = { model: 'ark', prompt: 'A cat runs', duration: 5 };
/** Nobody takes up what is not due. */
const NEVER_MS = 8_000_000_000_000;

/** So many video tasks of one key. */
async function tasks(made: Made, count: number): Promise<VideoGateway> {
  const gateway = await VideoGateway.start(made);
  const { principal } = await gateway.principal('sk-mizu-alice');
  await createTasks(gateway.store, principal, count);
  return gateway;
}

async function createTasks(store: Store, principal: Principal, count: number): Promise<void> {
  const times = { nowMs: Date.now(), dueAtMs: NEVER_MS };
  await inTurn(count, (at) => {
    const request = { principal, idempotencyKey: `task ${at}`, bodyHash: 'x', requestJson: JSON.stringify(VIDEO) };
    return store.videos.create({ id: taskId(at), ...request, model: 'ark', priceNanos: 1n, ...times });
  });
}

const taskId = (at: number): string => `video_${String(at).padStart(32, '0')}`;

/** Many at once share a transaction. */
async function inTurn(count: number, make: (at: number) => Promise<unknown>): Promise<void> {
  for (let at = 0; at < count; at += 100) await Promise.all(list(Math.min(100, count - at), (more) => make(at + more)));
}

const taskPages = (what: string, pathOf: (count: number) => string): Case => ({
  name: `videos: ${what}`,
  own: PAGES,
  async work(count) {
    const made = new Made();
    const gateway = await tasks(made, count);
    return made.work(async () => {
      const { status, body } = await gateway.ask('GET', pathOf(count));
      if (status !== 200 || body.data.length === 0) throw new Error(`${status} ${JSON.stringify(body)}`);
    });
  },
});

const UPSTREAMS = (['ark_video', 'minimax_video'] as const).flatMap((type) =>
  (['v1', 'v2'] as const).map((version) => ({ version: `${type} ${version}`, upstream: videoUpstream(type, version) })),
);

/** Each body as every upstream would get it. */
const videoBody = (what: string, body: (count: number) => JsonObject): Case => ({
  name: `video: ${what}`,
  work(count) {
    const json = body(count);
    const run = (): void => {
      const request = decodeVideoRequest(json);
      if (videoRequestDigest(json) === '') throw new Error('a digest has digits');
      for (const { upstream } of UPSTREAMS) upstream?.submit(request, 'u');
    };
    return { json: [JSON.stringify(json)], run };
  },
});

const input = (count: number): JsonObject[] =>
  list(count, (at) => ({ type: 'image', role: 'reference_image', url: `https://host.example/${at}.png` }));

const VIDEOS: readonly Case[] = [
  taskPages('the newest page of so many tasks', () => '/v1/videos?limit=20'),
  taskPages('a page in the middle', (count) => `/v1/videos?limit=20&after=${taskId(count / 2)}`),
  videoBody('a long prompt', (count) => ({ ...VIDEO, prompt: 'word '.repeat(count * 20) })),
  videoBody('options of the provider', (count) => ({
    ...VIDEO,
    provider_options: Object.fromEntries(list(count, (at) => [`name${at}`, at])),
  })),
  {
    // A request has at most fifty, so this is asked whole: as a creation that comes again.
    name: 'video: inputs, over HTTP',
    own: { count: 12, times: 4, limit: 6 },
    async work(count) {
      const made = new Made();
      const gateway = await VideoGateway.start(made);
      const body = { ...VIDEO, model: 'unreachable', input: input(count) };
      return made.work(async () => {
        const answer = await gateway.create(body, 'again');
        if (answer.status !== 202) throw new Error(JSON.stringify(answer.body));
      });
    },
  },
];

interface Listing {
  readonly path: (count: number) => string;
  readonly fill: (store: Store, count: number) => Promise<unknown>;
  readonly own: OwnBound;
}

const cause = (id: string) => ({ id, by: 'rows' });

async function keys(store: Store, count: number): Promise<void> {
  const [owner] = await monthOwners(store, 1);
  if (owner === undefined) throw new Error('one was asked for');
  await inTurn(count, (at) => store.keys.create({ accountId: owner.account.id, name: `key ${at}` }, cause(`k${at}`)));
}

const accounts = (store: Store, count: number): Promise<void> =>
  inTurn(count, (at) => store.accounts.create({ name: `account ${at}` }, cause(`a${at}`)));

/**
 * Pages of what is written without end are read from an index. Lists that grow with the operator's own work are read whole for
 * each page: their cost is a line, of some microseconds a row.
 */
const READ_WHOLE: OwnBound = { count: 2000, times: 4, limit: 6 };

const LISTS: Readonly<Record<string, Listing>> = {
  'keys, one page': { path: () => 'keys?limit=100', fill: keys, own: READ_WHOLE },
  'keys that are searched for': { path: () => 'keys?limit=100&search=nobody', fill: keys, own: READ_WHOLE },
  'accounts, one page': { path: () => 'accounts?limit=100', fill: accounts, own: READ_WHOLE },
  'video tasks, one page': {
    path: () => 'videos?limit=100',
    fill: async (store, count) => {
      const [principal] = await monthOwners(store, 1);
      if (principal === undefined) throw new Error('one was asked for');
      await createTasks(store, principal, count);
    },
    own: READ_WHOLE,
  },
  'the journal, one page': { path: () => 'ledger/journal?limit=100', fill: accounts, own: PAGES },
  'the journal, its last page': { path: (count) => `ledger/journal?limit=100&after=${count - 100}`, fill: accounts, own: PAGES },
};

/** Of so many exchanges, what is asked. */
const EXCHANGES: Readonly<Record<string, (count: number, keyId: string) => string>> = {
  'the newest page': () => 'exchanges?limit=100',
  'the oldest page': () => 'exchanges?limit=100&before=101',
  'a page of a key': (_count, keyId) => `exchanges?limit=100&key=${keyId}`,
  'a page of those that failed': () => 'exchanges?limit=10&status=error',
  one: (count) => `exchanges/month-${count / 2}`,
};

const ADMIN: readonly Case[] = [
  ...Object.entries(LISTS).map(
    ([what, { path, fill, own }]): Case => ({
      name: `admin API: ${what}`,
      own,
      async work(count) {
        const made = new Made();
        const store = await openStore(made);
        await fill(store, count);
        const gateway = await adminGateway(made, { store });
        return made.work(() => ask(gateway, path(count)));
      },
    }),
  ),
  ...Object.entries(EXCHANGES).map(
    ([what, path]): Case => ({
      name: `admin API: exchanges, ${what}`,
      own: PAGES,
      async work(count) {
        const made = new Made();
        const clock = new MonthClock();
        const store = await openStore(made, { clock });
        const owners = await monthOwners(store, 5);
        await fillMonth(store, clock, owners, count);
        const gateway = await monthGateway(made, store);
        return made.work(() => ask(gateway, path(count, owners[0]?.key.id ?? '')));
      },
    }),
  ),
];

async function ask(gateway: AdminGateway, path: string): Promise<void> {
  const { status, text } = await gateway.ask(path);
  if (status !== 200) throw new Error(`${path}: ${status} ${text}`);
}

export const STORE_CASES: readonly Case[] = [...VIDEOS, ...ADMIN];
