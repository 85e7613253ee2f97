/**
 * The law of an exchange: whatever throws, rejects or never answers at any await, and wherever the wall clock jumps, there is one
 * settlement, one row and one line, the reservation is gone, and the client is told in its own dialect, or has its finished
 * answer. The points are found by running.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request } from 'node:http';
import { WebSocket } from 'ws';
import type { Rig } from './exchange-rig.ts';
import { type Mode, modesOf, type Point } from './injector.ts';

export interface Case {
  readonly name: string;
  readonly path: string;
  readonly body: object;
  /** Exchanges that it becomes, once it is admitted. */
  readonly exchanges: number;
  readonly over?: 'websocket';
  /** The request is refused. */
  readonly refused?: true;
  readonly success: RegExp;
  readonly failure: RegExp;
}

const messages = [{ role: 'user', content: 'hi' }];
const OPENAI = /^\{"error":\{"message":/;
const ANTHROPIC = /"type":"error","error":\{"type":/;

/** Every endpoint that is an exchange, with a stream and without. */
export const CASES: readonly Case[] = [
  ...text('chat', '/v1/chat/completions', { messages }, /\[DONE\]/, /^data: \{"error":\{/m, OPENAI),
  ...text('responses', '/v1/responses', { input: 'hi' }, /response\.completed/, /event: (response\.failed|error)\n/, OPENAI),
  ...text('messages', '/v1/messages', { max_tokens: 9, messages }, /event: message_stop/, /event: error\n/, ANTHROPIC),
  ...text('completions', '/v1/completions', { prompt: 'hi' }, /\[DONE\]/, /^data: \{"error":\{/m, OPENAI),
  {
    ...{ name: 'a turn of a WebSocket', path: '/v1/responses', over: 'websocket', exchanges: 1 },
    ...{ body: { type: 'response.create', model: 'm', input: 'hi' } },
    ...{ success: /"type":"response\.completed"/, failure: /"type":"(response\.failed|error)"/ },
  },
  {
    ...{ name: 'a turn over a WebSocket of the upstream', path: '/v1/responses', over: 'websocket', exchanges: 1 },
    ...{ body: { type: 'response.create', model: 's', input: 'hi' } },
    ...{ success: /"type":"response\.completed"/, failure: /"type":"(response\.failed|error)"/ },
  },
  whole('compaction', '/v1/responses/compact', { model: 'c', input: 'hi' }, /response\.compaction/),
  whole(
    'a long prompt',
    '/v1/chat/completions',
    { model: 'm', messages: [{ role: 'user', content: 'long '.repeat(15_000) }] },
    /hello there/,
  ),
  whole('an embedding', '/v1/embeddings', { model: 'e', input: 'hi' }, /"embedding"/),
  whole('a picture', '/v1/images/generations', { model: 'i', prompt: 'a hill' }, /b64_json/),
  { ...whole('two pictures', '/v1/images/generations', { model: 'i', prompt: 'a hill', n: 2 }, /b64_json/), exchanges: 2 },
  {
    ...whole('a picture as a stream', '/v1/images/generations', { model: 'i', prompt: 'a hill', stream: true }, /\.completed/),
    failure: /"type":"error"|^\{"error":|"error":\{/,
  },
  { ...whole('a refusal', '/v1/chat/completions', { model: 'nothing', messages }, /model_not_found/), refused: true },
];

function text(name: string, path: string, body: object, success: RegExp, failure: RegExp, error: RegExp): Case[] {
  const ask = { model: 'm', ...body };
  return [
    { name: `${name}, whole`, path, body: ask, exchanges: 1, success: /hello there/, failure: error },
    {
      ...{ name: `${name}, as a stream`, path, body: { ...ask, stream: true }, exchanges: 1, success },
      failure: new RegExp(`${failure.source}|${error.source}`, 'm'),
    },
  ];
}

function whole(name: string, path: string, body: object, success: RegExp): Case {
  return { name, path, body, exchanges: 1, success, failure: OPENAI };
}

/** The longest deadline of ours (that of the store) and 5 s; where the upstream is silent, its own come first. */
const CLIENT_SECONDS = 15;
const UPSTREAM_SECONDS = 45;
const SETTLED_SECONDS = 30;

interface Client {
  readonly done: Promise<string>;
  leave(): void;
}

/** The answer is whole and a success, in the dialect of the case. */
export function succeeded({ success, failure }: Case, said: string): boolean {
  return success.test(said) && !failure.test(said);
}

/** What runs find: everything that was called between the first byte of the request and the settled end. */
export async function discover(rig: Rig, each: Case): Promise<readonly Point[]> {
  await run(rig, each, new Map());
  return [...rig.injector.points.values()];
}

export function faultsOf(points: readonly Point[]): { readonly point: Point; readonly mode: Mode }[] {
  return points.flatMap((point) => modesOf(point).map((mode) => ({ point, mode })));
}

/** Runs the case with these faults and checks the law. */
export async function run(rig: Rig, each: Case, faults: ReadonlyMap<string, Mode>): Promise<void> {
  const { injector, store, gateway } = rig;
  const { key, secret } = await rig.newKey();
  const client = await connect(rig.url, each, secret);
  rig.takeLines();
  injector.start(faults);
  const exchange = client.send();
  let said: string | undefined;
  let broken: unknown;
  exchange.done.then(
    (answer) => {
      said = answer;
    },
    (error: unknown) => {
      broken = error;
    },
  );
  let left = false;
  injector.onLeave = () => {
    left = true;
    exchange.leave();
  };
  const isUpstream = [...faults.keys()].some((id) => /^upstreams?\./.test(id));
  await rig.pass(() => said === undefined && broken === undefined, isUpstream ? UPSTREAM_SECONDS : CLIENT_SECONDS);
  const lines = [...rig.takeLines()];
  const count = (what: RegExp): number => lines.filter(({ msg }) => what.test(msg)).length;
  const lost = (): number => {
    lines.push(...rig.takeLines());
    return count(/^settlement_lost/);
  };
  const isOver = (): boolean => {
    lines.push(...rig.takeLines());
    return store.admission.reserved(key.id) === 0n && gateway.keySlots.size === 0 && injector.outstanding === 0;
  };
  await rig.pass(() => !isOver() || !isIdle(rig), SETTLED_SECONDS);
  await settle(rig, faults, lost);
  injector.stop();
  rig.jumpBack();
  client.close();
  lines.push(...rig.takeLines());
  const rows = await store.requestLog.list({ keyId: key.id });
  const what = JSON.stringify({
    said: said?.slice(-300),
    broken: String(broken),
    lines: lines.map(({ msg }) => msg),
    rows: rows.length,
  });

  const modes = [...faults.values()];
  const told = [...faults].some(([id, mode]) => id.startsWith('store.settlements.settle') && mode === 'refuse');
  // Until the key is known nobody can have a row.
  const isUnknown = !injector.points.has('store.keys.authenticate#0');
  const isRefused = count(/^refused$/) === 1;
  const expected = isUnknown ? 0 : isRefused ? 1 : each.exchanges;
  assert.equal(count(/^(exchange|refused)$/), expected, `lines: ${what}`);
  const unwritten = isRefused || told ? expected - rows.length : count(/^settlement_lost/) - count(/written after all/);
  assert.equal(rows.length + unwritten, expected, `rows: ${what}`);
  if (isRefused && faults.size > 0 && ![...faults.keys()].some((id) => /settle|health|codecs|mint/.test(id)))
    assert.equal(rows.length, 1, `a refusal has its row: ${what}`);
  assert.equal(new Set(rows.map(({ exchangeId }) => exchangeId)).size, rows.length);
  assert.equal(count(/left without an end/), 0, `its owner ends it: ${what}`);
  assert.equal(store.admission.reserved(key.id), 0n, `reserved: ${what}`);
  assert.equal(gateway.keySlots.size, 0);

  if (left) return;
  assert.ok(said !== undefined, `the client was not told: ${what}`);
  const isSuccess = succeeded(each, said);
  if (each.refused === true) return;
  assert.ok(isSuccess || each.failure.test(said), `in its dialect: ${what}`);
  if (modes.every((mode) => mode === 'jump')) assert.ok(isSuccess, what);
  if (!isSuccess) return;
  // What was answered is paid for.
  for (const { charge, status } of rows) assert.ok(status !== 'success' || (charge?.total ?? 0n) > 0n, `free: ${what}`);
}

function isIdle({ gateway }: Rig): boolean {
  return gateway.inFlight.count === 0;
}

/** What was settled is on disk; a settlement that hangs is given up in its time. */
async function settle(rig: Rig, faults: ReadonlyMap<string, Mode>, lost: () => number): Promise<void> {
  await rig.store.settlements.flush();
  const hangs = [...faults].some(([id, mode]) => id.startsWith('store.settlements.settle') && mode === 'hang');
  if (hangs && rig.injector.hit) await rig.pass(() => lost() === 0, SETTLED_SECONDS).catch(() => undefined);
}

interface Connection {
  send(): Client;
  close(): void;
}

export async function connect(url: string, each: Case, secret: string): Promise<Connection> {
  return each.over === 'websocket' ? await connectSocket(url, each, secret) : connectHttp(url, each, secret);
}

function connectHttp(url: string, { path, body }: Case, secret: string): Connection {
  return {
    send() {
      const { promise, resolve, reject } = Promise.withResolvers<string>();
      const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' };
      const asking = request(url + path, { method: 'POST', headers, agent: false }, (response) => {
        let said = '';
        response.on('data', (bytes: Buffer) => {
          said += bytes.toString();
        });
        // An answer that breaks off has said what it has said.
        response.on('close', () => resolve(said));
        response.on('error', () => undefined);
      });
      asking.on('error', reject);
      asking.end(JSON.stringify(body));
      return { done: promise, leave: () => void asking.destroy() };
    },
    close: () => undefined,
  };
}

async function connectSocket(url: string, { path, body }: Case, secret: string): Promise<Connection> {
  const ws = new WebSocket(url.replace('http', 'ws') + path, { headers: { authorization: `Bearer ${secret}` } });
  ws.on('error', () => undefined);
  await once(ws, 'open');
  return {
    send() {
      const { promise, resolve, reject } = Promise.withResolvers<string>();
      let said = '';
      ws.on('message', (data) => {
        said += `${String(data)}\n`;
        if (/"type":"(response\.(completed|failed|incomplete)|error)"/.test(String(data))) resolve(said);
      });
      ws.on('close', () => reject(new Error('the connection was closed')));
      ws.send(JSON.stringify(body));
      return { done: promise, leave: () => ws.terminate() };
    },
    close: () => ws.terminate(),
  };
}
