/**
 * One gateway that is killed again and again under load, and everything that is known about it from outside: what its clients saw
 * and what the simulated upstream received. After each kill the ledger is opened and must agree.
 */
import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { processSpace } from '../../../src/cli/process-space.ts';
import { type Simulator, startSimulator } from '../../../src/simulator/simulator.ts';
import { openStoreAt } from '../../../src/store/open-store.ts';
import type { Store } from '../../../src/store/store.ts';
import type { EngineName } from '../../support/engines.ts';
import { server } from '../../support/postgres.ts';
import { alive } from '../../store/support/alive.ts';
import { realClock } from '../../store/support/store.ts';
import { GatewayProcess } from './gateway-process.ts';
import { judge, type Kind, type Row } from './judgement.ts';
import { VideoLedger } from './video-ledger.ts';
import { WAYS } from './ways.ts';

export interface CrashReport {
  kills: number;
  killedWhileStarting: number;
  requests: number;
  settled: number;
  interrupted: number;
  unflushed: number;
  neverAdmitted: number;
  tasks: number;
  submitted: number;
  succeeded: number;
  failed: number;
  unknown: number;
  journalRows: number;
  readonly violations: string[];
}

interface Asked {
  readonly kind: Kind;
  readonly sentAtMs: number;
  answeredAtMs?: number;
}

const FUNDS = 10n ** 15n;
/** The most answers that a life of the gateway sees before its kill is due. */
const MOST_ANSWERS = 40;
const TEXT_CLIENTS = 6;
const VIDEO_CLIENTS = 2;

export class CrashLane {
  readonly report: CrashReport = {
    kills: 0,
    killedWhileStarting: 0,
    requests: 0,
    settled: 0,
    interrupted: 0,
    unflushed: 0,
    neverAdmitted: 0,
    tasks: 0,
    submitted: 0,
    succeeded: 0,
    failed: 0,
    unknown: 0,
    journalRows: 0,
    violations: [],
  };
  readonly #folder = mkdtempSync(join(tmpdir(), 'mizu-crash-'));
  readonly #simulator: Simulator;
  readonly #random: () => number;
  readonly #videos: VideoLedger;
  /** A database, or else the folder's own store. */
  readonly #database: string | undefined;
  #secret = '';
  #accountId = '';
  #keyId = '';
  /** What the rows of all rounds charged. */
  #charged = 0n;
  #asked = new Map<string, Asked>();
  /** Entries of the simulator's log that are counted already. */
  #read = 0;

  private constructor(simulator: Simulator, random: () => number, database?: string) {
    this.#simulator = simulator;
    this.#random = random;
    this.#database = database;
    this.#videos = new VideoLedger(this.report);
  }

  static async open(random: () => number, engine: EngineName = 'lmdb'): Promise<CrashLane> {
    const database = engine === 'postgres' ? await (await server()).createDatabase() : undefined;
    const simulator = await startSimulator({ journal: 1_000_000, video: { queueMs: 10, runMs: 20 } });
    const lane = new CrashLane(simulator, random, database);
    await lane.#prepare();
    return lane;
  }

  async close(): Promise<void> {
    await this.#simulator.close();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async #prepare(): Promise<void> {
    const { url } = this.#simulator;
    const text = { times: Number.MAX_SAFE_INTEGER, pace: { ms: 2 } };
    const pieces = [{ type: 'text', text: 'one two three four five six seven eight' } as const];
    const says = (word: string) => (request: { readonly text: string }) => request.text.includes(word);
    this.#simulator.enqueue(
      { ...text, match: says('kind-fail'), faults: [{ type: 'status', status: 400 }] },
      { ...text, match: says('kind-unreported'), reply: { pieces, usage: null } },
      { ...text, match: says('kind-'), reply: { pieces, usage: { input: 10, output: 5 } } },
      { times: Number.MAX_SAFE_INTEGER, match: says('film-fails'), video: { queueMs: 5, runMs: 10, outcome: 'failed' } },
    );
    const types = ['chat_completion', 'messages', 'responses'];
    const prices = { price: { input: '5', output: '25' } };
    mkdirSync(join(this.#folder, 'data'));
    writeFileSync(
      join(this.#folder, 'mizu.config.json'),
      JSON.stringify({
        listen: { host: '127.0.0.1', port: 0 },
        operations: null,
        store: { path: './data', ...(this.#database === undefined ? {} : { url: this.#database }) },
        log: { level: 'error' },
        health: { failures: 1_000 },
        channels: [
          ...types.map((type) => ({ id: type, type, base_url: url, api_key: 'k', models: [type] })),
          { id: 'pictures', type: 'openai_image', base_url: url, api_key: 'k', models: ['pictures'] },
          {
            id: 'ark',
            type: 'ark_video',
            base_url: `${url}/api/v3`,
            api_key: 'k',
            models: ['film'],
            options: { poll_interval_ms: 20 },
          },
        ],
        models: {
          ...Object.fromEntries(types.map((type) => [type, prices])),
          pictures: { kind: 'image', ...prices },
          film: { kind: 'video', price: { video: '0.000001' } },
        },
      }),
    );
    const store = await this.#store();
    const account = await store.accounts.create({ name: 'crash', creditNanos: FUNDS }, { id: 'a', by: 'test' });
    if (!account.ok) throw new Error(account.refusal.reason);
    const key = await store.keys.create({ accountId: account.value.id, name: 'k' }, { id: 'k', by: 'test' });
    if (!key.ok) throw new Error(key.refusal.reason);
    await store.close();
    this.#secret = key.value.secret;
    this.#accountId = account.value.id;
    this.#keyId = key.value.key.id;
  }

  #store(): Promise<Store> {
    const path = join(this.#folder, 'data');
    return openStoreAt(this.#database ?? path, {
      localPath: path,
      clock: realClock,
      randomBytes: (size) => randomBytes(size),
      process: { host: processSpace(), pid: process.pid, isAlive: alive },
    });
  }

  #start(): GatewayProcess {
    return new GatewayProcess(join(this.#folder, 'mizu.config.json'));
  }

  /** One life of the gateway, its end at a random point, and what the ledger then says. */
  async round(): Promise<void> {
    const gateway = this.#start();
    let killedAtMs: number;
    if (this.#random() < 0.05) {
      await new Promise((resolve) => setTimeout(resolve, this.#random() * 400));
      killedAtMs = Date.now();
      await gateway.kill();
      this.report.killedWhileStarting += 1;
    } else {
      const url = await gateway.listening();
      const stop = new AbortController();
      const clients = [
        ...Array.from({ length: TEXT_CLIENTS }, () => this.#textClient(url, stop.signal)),
        ...Array.from({ length: VIDEO_CLIENTS }, () => this.#videos.client(url, this.#secret, stop.signal)),
      ];
      await this.#moment(Math.floor(this.#random() * MOST_ANSWERS), this.#random() * 40);
      stop.abort();
      killedAtMs = Date.now();
      await gateway.kill();
      await Promise.all(clients);
    }
    this.report.kills += 1;
    const said = this.#complaintsOf(gateway);
    if (said !== '') this.report.violations.push(`it said: ${said.slice(0, 500)}`);
    await this.#check(killedAtMs);
  }

  /** A database on a busy machine may take too long, and the gateway says so: the ledger shows whether that cost anything. */
  #complaintsOf({ errors }: GatewayProcess): string {
    if (this.#database === undefined) return errors;
    return errors.replace(/^.*"what":"(store_(un)?healthy|database_failed).*\n?/gm, '').trim();
  }

  /** A last life, in which every task that can end ends; it is stopped in good order. */
  async finish(): Promise<void> {
    const gateway = this.#start();
    await gateway.listening();
    const store = await this.#store();
    await this.#videos.settle(store);
    await store.close();
    await gateway.kill('SIGTERM');
    await this.#check(Date.now());
  }

  /** Until so many answers came in this life, and a little longer: a cold or loaded machine gets its load all the same. */
  async #moment(answers: number, moreMs: number): Promise<void> {
    const deadline = Date.now() + 5_000;
    const answered = (): number => [...this.#asked.values()].filter(({ answeredAtMs }) => answeredAtMs !== undefined).length;
    while (answered() < answers && Date.now() < deadline) await new Promise((resolve) => setTimeout(resolve, 3));
    await new Promise((resolve) => setTimeout(resolve, moreMs));
  }

  async #textClient(url: string, stop: AbortSignal): Promise<void> {
    while (!stop.aborted) {
      const way = this.#one(WAYS);
      const kind = this.#one(way.kinds);
      const marker = `r${this.report.requests}-${randomBytes(6).toString('hex')}`;
      this.report.requests += 1;
      const asked: Asked = { kind, sentAtMs: Date.now() };
      this.#asked.set(marker, asked);
      try {
        const stream = kind === 'leaves' || this.#random() < 0.6;
        if (await way.ask({ url, secret: this.#secret, marker, kind, stream })) asked.answeredAtMs = Date.now();
      } catch (error) {
        // The gateway died under it, or it left as it was told to: the ledger is asked what became of it.
        if (!(error instanceof Error)) throw error;
      }
    }
  }

  #one<T>(of: readonly [T, ...T[]]): T {
    return of[Math.floor(this.#random() * of.length)] ?? of[0];
  }

  async #check(killedAtMs: number): Promise<void> {
    const { report } = this;
    const received = this.#received();
    const store = await this.#store();
    try {
      const written = new Map<string, Row[]>();
      for (const marker of this.#asked.keys()) written.set(marker, await rowsOf(store, marker));
      const durableAtMs = newestSettled(written, received);
      for (const [marker, asked] of this.#asked) {
        const rows = written.get(marker) ?? [];
        const seen = received.get(marker);
        const verdict = judge({
          ...asked,
          ...(seen === undefined ? {} : { receivedAtMs: seen.atMs }),
          received: seen?.count ?? 0,
          rows,
          killedAtMs,
          ...(durableAtMs === undefined ? {} : { durableAtMs }),
        });
        if (verdict.fate === 'violation') report.violations.push(`${marker} (${asked.kind}): ${verdict.why}`);
        else if (verdict.fate === 'never_admitted') report.neverAdmitted += 1;
        else report[verdict.fate] += 1;
        for (const row of rows) this.#charged += row.chargedNanos;
      }
      this.#asked = new Map();
      await this.#videos.check(store);
      await this.#checkSums(store);
    } finally {
      await store.close();
    }
  }

  async #checkSums(store: Store): Promise<void> {
    const { report } = this;
    const { rows, differences } = await store.ledger.verify();
    report.journalRows = rows;
    for (const { what, subject, expected, found } of differences)
      report.violations.push(`verify: ${what} ${subject}: ${expected}, not ${found}`);
    const spend = await store.spend.spend(this.#keyId, Date.now());
    const wallet = (await store.accounts.find(this.#accountId))?.walletNanos;
    if (wallet !== FUNDS - spend.total - spend.held)
      report.violations.push(`the wallet holds ${wallet}, not ${FUNDS} - ${spend.total} - ${spend.held}`);
    const settled = this.#charged + (await this.#videos.settledNanos(store));
    if (spend.total !== settled) report.violations.push(`the key spent ${spend.total}, the requests and tasks cost ${settled}`);
  }

  /** What came to the upstream since the last look, by marker; films are told to the ledger of films. */
  #received(): Map<string, { atMs: number; count: number }> {
    const seen = new Map<string, { atMs: number; count: number }>();
    const entries = this.#simulator.requests;
    for (const { text, at, method } of entries.slice(this.#read)) {
      const marker = /\b(r\d+-[0-9a-f]{12}) kind-/.exec(text)?.[1];
      if (marker !== undefined) seen.set(marker, { atMs: at, count: (seen.get(marker)?.count ?? 0) + 1 });
      const film = /\b(film-(?:works|fails)-[0-9a-f]{12})/.exec(text)?.[1];
      if (film !== undefined && method === 'POST') this.#videos.submitted(film);
    }
    this.#read = entries.length;
    return seen;
  }
}

/** When the upstream received the newest request whose settlement is in the ledger. */
function newestSettled(
  written: ReadonlyMap<string, readonly Row[]>,
  received: ReadonlyMap<string, { readonly atMs: number }>,
): number | undefined {
  const times = [...received].flatMap(([marker, { atMs }]) => {
    const isSettled = written.get(marker)?.some(({ status }) => status !== 'interrupted') ?? false;
    return isSettled ? [atMs] : [];
  });
  return times.length === 0 ? undefined : Math.max(...times);
}

async function rowsOf(store: Store, marker: string): Promise<Row[]> {
  const found = await store.requestLog.find(marker);
  return Promise.all(
    found.map(async ({ exchangeId, status, charge }) => {
      const charges = (await store.ledger.journal({ ref: exchangeId })).filter(({ kind }) => kind === 'charge');
      return {
        status,
        chargedNanos: charge?.total ?? 0n,
        estimated: charge?.flags.includes('estimated') === true,
        journaledNanos: charges.reduce((sum, { nanos }) => sum + nanos, 0n),
        journaledCharges: charges.length,
      };
    }),
  );
}
