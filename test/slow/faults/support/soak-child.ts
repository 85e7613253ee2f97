/**
 * One process of the soak: `node soak-child.ts gateway|bare UPSTREAM`. `gateway` is the whole gateway over a store in memory,
 * with a clock that can leap; `bare` passes every byte through and does nothing else, so that what the machine costs can be told
 * from what we cost. Prints its URL, then one line of JSON for each command on its input: `look`, or `leap MS`.
 */
import { createServer, request as httpRequest } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createInterface } from 'node:readline';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { countTokens } from 'gpt-tokenizer';
import { type Clock, systemClock } from '../../../../src/streams/clock.ts';
import { testGateway } from '../../../support/test-gateway.ts';
import { TYPES } from './rig.ts';

setFlagsFromString('--expose-gc');
const collect: () => void = runInNewContext('gc');

export interface Look {
  readonly heap: number;
  readonly rss: number;
  readonly sockets: number;
  readonly timers: number;
  /** Milliseconds by which timers were late since the look before: 99 of 100 by less. */
  readonly late: number;
  /** The same without what others did with the processor meanwhile: at most the time that this thread itself was working. */
  readonly busy: number;
  /** Since the start. */
  readonly settled: number;
  readonly distinct: number;
  readonly succeeded: number;
  readonly held: number;
  /** Nano-dollars: by the rows, and as the wallet says. */
  readonly charged: string;
  readonly paid: string;
}

/** Time that can be moved on: timers that are due by then fire at once. */
class LeapingClock implements Clock {
  readonly #armed = new Map<{ dueAt: number; fire: () => void }, { cancel(): void }>();
  #ahead = 0;

  get armed(): number {
    return this.#armed.size;
  }

  now = (): number => systemClock.now() + this.#ahead;
  monotonic = (): number => systemClock.monotonic() + this.#ahead;

  setTimeout = (fire: () => void, ms: number): { cancel(): void } => {
    const timer = { dueAt: this.monotonic() + ms, fire };
    this.#arm(timer);
    return { cancel: () => this.#disarm(timer) };
  };

  leap(ms: number): void {
    this.#ahead += ms;
    for (const timer of [...this.#armed.keys()]) {
      this.#disarm(timer);
      this.#arm(timer);
    }
  }

  #arm(timer: { dueAt: number; fire: () => void }): void {
    const ring = (): void => {
      this.#armed.delete(timer);
      timer.fire();
    };
    this.#armed.set(timer, systemClock.setTimeout(ring, Math.max(0, timer.dueAt - this.monotonic())));
  }

  #disarm(timer: { dueAt: number; fire: () => void }): void {
    this.#armed.get(timer)?.cancel();
    this.#armed.delete(timer);
  }
}

const CREDIT = 10n ** 15n;
const [role = '', upstream = ''] = process.argv.slice(2);
const clock = new LeapingClock();
const gateway = role === 'gateway' ? await startGateway() : undefined;
console.log(gateway?.url ?? (await startBare()));

async function startGateway() {
  const started = await testGateway(
    {
      timeouts: { connect_ms: 5000, first_data_ms: 20_000, idle_ms: 20_000, write_stall_ms: 20_000 },
      health: { failures: 1_000_000 },
      dispatch: { max_attempts: 1 },
      channels: TYPES.map((type) => ({ id: `c-${type}`, type, base_url: upstream, api_key: 'k', models: [type] })),
      models: Object.fromEntries(TYPES.map((type) => [type, { price: { input: '1', output: '2' } }])),
    },
    { clock, level: 'info' },
  );
  started.store.walletNanos = CREDIT;
  // Its tables come with the first answer that reports no usage, whenever that is: they belong to the base line.
  countTokens(upstream);
  return started;
}

async function startBare(): Promise<string> {
  const server = createServer((asked, answer) => {
    const onward = httpRequest(upstream + asked.url, { method: asked.method, headers: asked.headers }, (response) => {
      answer.writeHead(response.statusCode ?? 502, response.headers);
      response.pipe(answer);
      response.on('error', () => answer.destroy());
    });
    onward.on('error', () => answer.destroy());
    answer.on('close', () => onward.destroy());
    asked.pipe(onward);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const total = { settled: 0, succeeded: 0, charged: 0n };
const ids = new Set<string>();

const TICK_MS = 5;
const ticks: { late: number; busy: number }[] = [];

/** One timer after another: how late it fires, and how much of that time this thread was working. */
function watch(): void {
  const started = performance.now();
  const used = process.threadCpuUsage();
  setTimeout(() => {
    const late = performance.now() - started - TICK_MS;
    const { user, system } = process.threadCpuUsage(used);
    ticks.push({ late, busy: Math.min(late, (user + system) / 1000) });
    watch();
  }, TICK_MS).unref();
}
watch();

function p99(list: readonly number[]): number {
  return [...list].sort((a, b) => a - b)[Math.floor(list.length * 0.99)] ?? 0;
}

function look(): Look {
  const times = { late: p99(ticks.map(({ late }) => late)), busy: p99(ticks.map(({ busy }) => busy)) };
  for (const row of gateway?.store.settled ?? []) {
    total.settled += 1;
    total.charged += row.charge?.total ?? 0n;
    if (row.status === 'success' && row.clientGone !== true) total.succeeded += 1;
    ids.add(row.exchangeId);
  }
  // What the test itself keeps is not the gateway's.
  for (const list of [gateway?.store.settled, gateway?.store.opened, gateway?.logLines]) if (list !== undefined) list.length = 0;
  collect();
  const { heapUsed, rss } = process.memoryUsage();
  const found: Look = {
    heap: heapUsed - ids.size * 120,
    rss,
    sockets: process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap').length,
    timers: clock.armed,
    ...{ ...times, settled: total.settled, distinct: ids.size, succeeded: total.succeeded },
    held: gateway?.store.held.size ?? 0,
    charged: String(total.charged),
    paid: String(gateway === undefined ? 0n : CREDIT - gateway.store.walletNanos),
  };
  // The collection of this look is not the traffic's.
  setImmediate(() => {
    ticks.length = 0;
  });
  return found;
}

for await (const line of createInterface({ input: process.stdin })) {
  const [command, ms] = line.split(' ');
  if (command === 'leap') clock.leap(Number(ms));
  console.log(JSON.stringify(command === 'look' ? look() : {}));
}
process.exit(0);
