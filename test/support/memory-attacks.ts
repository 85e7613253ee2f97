/**
 * The ways in which a key makes the gateway keep something, each driven up to its bound and beyond: what `memory-law.ts` holds to
 * the documented sum.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { WebSocket } from 'ws';
import type { Attack, Rig } from './memory-law.ts';
import { KEY } from './test-gateway.ts';

const MIB = 1024 * 1024;

const isAttack = ({ text }: { readonly text: string }): boolean => text.includes('"model":"m"');

/** Many requests whose answers do not end; returns their statuses once all have one, and how to let go of them. */
async function hold(rig: Rig, bodies: readonly string[], path: string): Promise<{ statuses: number[]; end: () => void }> {
  const pieces = [{ type: 'text' as const, text: 'one two three four five six seven eight nine ten '.repeat(20) }];
  rig.simulator.enqueue({ reply: { pieces }, pace: { ms: 500 }, times: bodies.length, match: isAttack });
  const controllers = bodies.map(() => new AbortController());
  const asked = bodies.map((body, at) => rig.post(body, KEY, path, controllers[at]?.signal).then(({ status }) => status));
  const statuses = await Promise.all(asked);
  return {
    statuses,
    end: () => {
      for (const one of controllers) one.abort();
    },
  };
}

function neverAnswer({ simulator }: Rig, times: number): void {
  const reply = { pieces: [{ type: 'text' as const, text: 'one two three' }] };
  simulator.enqueue({ reply, pace: { firstMs: 60_000 }, times, match: isAttack });
}

/** Many requests that the upstream does not answer; returns the statuses of the `refused`, at least, and how to let go. */
async function unanswered(
  rig: Rig,
  times: number,
  refused: number,
  body: string,
  path: string,
): Promise<{ readonly statuses: readonly number[]; readonly end: () => void }> {
  neverAnswer(rig, times);
  const controller = new AbortController();
  const statuses: number[] = [];
  const post = (): void =>
    void rig.post(body, KEY, path, controller.signal).then(
      ({ status }) => statuses.push(status),
      () => undefined,
    );
  // One is taken before the others come: all at once, each may be refused for what the others are going to weigh.
  const received = rig.simulator.requests.length;
  post();
  await someMilliseconds(() => rig.simulator.requests.length > received || statuses.length > 0);
  for (let n = 1; n < times; n++) post();
  await someMilliseconds(() => statuses.length >= refused);
  // One more may be refused a little later.
  await new Promise((resolve) => setTimeout(resolve, 300));
  return { statuses, end: () => controller.abort() };
}

async function someMilliseconds(isOver: () => boolean): Promise<void> {
  for (let tries = 0; !isOver() && tries < 1_200; tries++) await new Promise((resolve) => setTimeout(resolve, 25));
}

const ask = (members: string): string =>
  `{"model":"m","stream":true,"max_tokens":9,"messages":[{"role":"user","content":"hi"}]${members}}`;

/** `size`: MiB that each bound is set to. */
export function attacks(size: number): readonly Attack[] {
  const bytes = size * MIB;
  const limits = { body_bytes: 4 * bytes, key_body_bytes: 2 * bytes };
  const values = Math.min(249_000, Math.floor((1.5 * bytes) / 110));
  const count = 14;
  const history = { entry_bytes: bytes, key_bytes: 2 * bytes, total_bytes: 4 * bytes };
  const third = Math.floor(bytes / 3);
  /** So large that one copy more is more than what is allowed beside a bound. */
  const answered = { body_bytes: 16 * bytes, key_body_bytes: 8 * bytes };
  return [
    {
      name: 'JSON values in an unknown member, many requests of one key at once',
      file: { limits },
      bound: limits.key_body_bytes,
      async drive(rig) {
        const body = ask(`,"x":[${'{},'.repeat(values)}{}]`);
        const { statuses, end } = await hold(rig, Array<string>(count).fill(body), '/v1/messages');
        assert.ok(statuses.includes(429), `${statuses}`);
        assert.ok(
          statuses.every((status) => status === 200 || status === 429),
          `${statuses}`,
        );
        return end;
      },
    },
    {
      // Kept of each: its items, to be counted, and the bytes that were sent.
      name: 'large bodies of one key at once, being answered',
      file: { limits: answered },
      bound: answered.key_body_bytes * 2,
      async drive(rig) {
        const body = ask(`,"system":"${'x'.repeat(bytes)}"`);
        const { statuses, end } = await hold(rig, Array<string>(count).fill(body), '/v1/messages');
        assert.ok(statuses.includes(200) && statuses.includes(429), `${statuses}`);
        return end;
      },
    },
    {
      // Its text, its values, the body for the upstream and its bytes, and what is to be stored of it.
      name: 'large bodies that no upstream has answered, each with one character that is no ASCII',
      file: { limits },
      bound: limits.key_body_bytes * 5,
      async drive(rig) {
        const body = JSON.stringify({ model: 'm', input: `${'x'.repeat(third)}\u{1f600}` });
        const { statuses, end } = await unanswered(rig, count, count - 3, body, '/v1/responses');
        // Each weighs two thirds of a bound, and the key has two.
        assert.ok(statuses.length >= count - 3 && statuses.every((status) => status === 429), `${statuses}`);
        assert.ok(statuses.length < count, 'alone each is taken');
        return end;
      },
    },
    {
      name: 'turns of many WebSockets that no upstream has answered',
      file: { limits },
      bound: limits.key_body_bytes * 5,
      async drive(rig) {
        neverAnswer(rig, count);
        const create = JSON.stringify({ type: 'response.create', model: 'm', input: 'x'.repeat(third) });
        const sockets = await Promise.all(Array.from({ length: count }, () => socket(rig)));
        const refusals: string[] = [];
        for (const ws of sockets) ws.on('message', (data) => refusals.push(String(data)));
        // One is taken before the others come, as in `unanswered`.
        const [first, ...others] = sockets;
        const received = rig.simulator.requests.length;
        first?.send(create);
        await someMilliseconds(() => rig.simulator.requests.length > received || refusals.length > 0);
        for (const ws of others) ws.send(create);
        await someMilliseconds(() => refusals.length >= count - 6);
        assert.ok(refusals.length >= count - 6, `${refusals.length} were refused`);
        assert.ok(refusals.length < count, 'alone each is taken');
        for (const text of refusals) assert.match(text, /request_too_large|rate_limited/);
        return () => endAll(sockets);
      },
    },
    {
      name: 'responses that are stored to be continued',
      file: { history },
      bound: history.key_bytes,
      async drive(rig) {
        for (let n = 0; n < count * 2; n++) {
          const answer = await rig.post({ model: 'm', input: 'x'.repeat(third) }, KEY, '/v1/responses');
          assert.equal(answer.status, 200);
          await answer.text();
        }
        return () => undefined;
      },
    },
    {
      // What finds an item by its id takes more than the item itself.
      name: 'responses of very many small items that are stored to be continued',
      file: { history, type: 'responses' },
      bound: history.key_bytes,
      async drive(rig) {
        const headers = { 'content-type': 'application/json' };
        const response = { id: 'r', object: 'response', created_at: 1, status: 'completed', model: 'm' };
        for (let n = 0; n < count * 2; n++) {
          const output = Array.from({ length: Math.floor(bytes / 512) }, (_, at) => ({ type: 'x', id: `x${n}_${at}` }));
          const body = JSON.stringify({ ...response, output });
          rig.simulator.enqueue({ raw: { status: 200, headers, body }, match: isAttack });
          const answer = await rig.post({ model: 'm', input: 'x' }, KEY, '/v1/responses');
          assert.equal(answer.status, 200);
          await answer.text();
        }
        return () => undefined;
      },
    },
    {
      name: 'warm-ups that many WebSockets keep',
      file: { history },
      bound: history.key_bytes,
      async drive(rig) {
        const sockets = await Promise.all(Array.from({ length: 40 }, () => socket(rig)));
        for (const ws of sockets) {
          const answered = once(ws, 'message');
          const instructions = 'y'.repeat(third);
          ws.send(
            JSON.stringify({ type: 'response.create', model: 'm', generate: false, input: 'x'.repeat(third), instructions }),
          );
          await answered;
        }
        return () => endAll(sockets);
      },
    },
    {
      name: 'messages that are never finished',
      file: { websocket: { unfinished_bytes: bytes } },
      bound: bytes * 2,
      async drive(rig) {
        const sockets = await Promise.all(Array.from({ length: 20 }, () => socket(rig)));
        const codes: number[] = [];
        for (const ws of sockets) {
          ws.on('close', (code) => codes.push(code));
          ws.send('{"x":"', { fin: false });
          for (let sent = 0; sent < third; sent += 16_384) ws.send('x'.repeat(16_384), { fin: false });
        }
        // Two fit; one more may be on its way.
        await someMilliseconds(() => codes.length >= sockets.length - 4);
        assert.ok(codes.length >= sockets.length - 4, `${codes.length} were closed`);
        assert.ok(codes.includes(1009), `${codes}`);
        return () => endAll(sockets);
      },
    },
    {
      // Of each its text and its values; of the one that is being sent the body for the upstream and its bytes, too.
      name: 'requests that wait in the queue of a Channel',
      file: { limits, options: { max_concurrency: 1, max_queue: 100, queue_ms: 120_000 } },
      bound: limits.key_body_bytes * 2 + third * 2,
      async drive(rig) {
        const body = ask(`,"system":"${'x'.repeat(third)}"`);
        const { statuses, end } = await unanswered(rig, count, count - 6, body, '/v1/messages');
        assert.ok(statuses.length >= count - 6 && statuses.every((status) => status === 429), `${statuses}`);
        return end;
      },
    },
    {
      name: 'envelopes that inflate',
      file: {},
      bound: 64 * MIB,
      async drive(rig) {
        const sealed = await rig.seal('a'.repeat(20 * MIB));
        const block = { type: 'thinking', thinking: 't', signature: sealed };
        const turn = [
          { role: 'assistant', content: [block, { type: 'text', text: 'x' }] },
          { role: 'user', content: 'y' },
        ];
        const messages = [{ role: 'user', content: 'hi' }, ...Array(10).fill(turn).flat()];
        const answer = await rig.post({ model: 'm', max_tokens: 9, messages });
        const said = await answer.text();
        assert.equal(answer.status, 413, said);
        assert.match(said, /encrypted values/);
        return () => undefined;
      },
    },
  ];
}

async function socket(rig: Rig): Promise<WebSocket> {
  const ws = new WebSocket(`${rig.url.replace('http', 'ws')}/v1/responses`, { headers: { authorization: `Bearer ${KEY}` } });
  ws.on('error', () => undefined);
  await once(ws, 'open');
  return ws;
}

function endAll(sockets: readonly WebSocket[]): void {
  for (const ws of sockets) ws.terminate();
}
