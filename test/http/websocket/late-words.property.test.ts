/**
 * An upstream that is asked over a WebSocket and says at random what belongs to an answer before: its end once more, words, under
 * either name, before the next answer or within it; a client that cancels, steers and asks too soon. Each turn is told its own
 * words and one end, has one row, and is paid at its own price; nothing stays held.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import fc from 'fast-check';
import { type WebSocket, WebSocketServer } from 'ws';
import { eventually, testGateway } from '../../support/test-gateway.ts';
import { connect, type ServerEvent } from './socket-client.ts';

const ENDS = ['response.completed', 'response.done', 'response.incomplete', 'response.failed'] as const;
const LATE = ['the same end', 'its older name', 'a bare end', 'words'] as const;
type Late = (typeof LATE)[number];

interface Turn {
  /** `error` names no response, `cut` closes the connection. */
  readonly end: (typeof ENDS)[number] | 'error' | 'cut';
  /** Of an answer so many turns before. */
  readonly late: readonly { readonly what: Late; readonly back: number; readonly isWithin: boolean }[];
  readonly client: 'waits' | 'cancels' | 'asks too soon' | 'steers';
}

const turns = fc.array(
  fc.record<Turn>({
    end: fc.constantFrom(...ENDS, ...ENDS, 'error', 'cut'),
    late: fc.array(fc.record({ what: fc.constantFrom(...LATE), back: fc.integer({ min: 1, max: 3 }), isWithin: fc.boolean() }), {
      maxLength: 2,
    }),
    client: fc.constantFrom('waits', 'waits', 'cancels', 'asks too soon', 'steers'),
  }),
  { minLength: 2, maxLength: 6 },
);

/** Of the answer to the `n`th request: what it costs names it. */
const tokensOf = (n: number): number => 1_000 + n;
const nanosOf = (n: number): bigint => BigInt(tokensOf(n) * 1_000 + 20_000);
const wordOf = (n: number): string => `<${n}>`;

function answer(n: number, status: string): object {
  const content = [{ type: 'output_text', text: wordOf(n), annotations: [] }];
  const output = [{ type: 'message', id: `msg_${n}`, role: 'assistant', status: 'completed', content }];
  const usage = { input_tokens: tokensOf(n), output_tokens: 10, total_tokens: tokensOf(n) + 10 };
  const about = { id: `resp_${n}`, object: 'response', created_at: 1, model: 'm', status };
  if (status === 'in_progress') return { ...about, output: [] };
  const why = status === 'incomplete' ? { incomplete_details: { reason: 'max_output_tokens' } } : {};
  const error = status === 'failed' ? { error: { code: 'server_error', message: 'no' } } : {};
  return { ...about, ...why, ...error, output, usage };
}

const statusOf = (end: string): string => (end === 'response.done' ? 'completed' : end.slice('response.'.length));

/** `ended`: the answers that have ended on this connection, by their number. */
function speak(ws: WebSocket, plan: readonly Turn[], ended: Map<number, string>, n: number): void {
  const turn = plan[n] ?? { end: 'response.completed', late: [] };
  const say = (type: string, more: object = {}): void => ws.send(JSON.stringify({ type, sequence_number: 0, ...more }));
  const sayLate = (isWithin: boolean): void => {
    for (const { what, back } of turn.late.filter((each) => each.isWithin === isWithin)) {
      const end = ended.get(n - back);
      if (end === undefined) continue;
      // Within an answer an end that names none, and words, are that answer's.
      if (isWithin && (what === 'a bare end' || what === 'words')) continue;
      if (what === 'the same end') say(end, { response: answer(n - back, statusOf(end)) });
      else if (what === 'its older name') say('response.done', { response: answer(n - back, statusOf(end)) });
      else if (what === 'a bare end') say('response.done');
      else say('response.output_text.delta', { item_id: `msg_${n - back}`, output_index: 0, content_index: 0, delta: 'LATE' });
    }
  };
  sayLate(false);
  say('response.created', { response: answer(n, 'in_progress') });
  sayLate(true);
  if (turn.end === 'cut') ws.terminate();
  else if (turn.end === 'error') say('error', { code: 'server_error', message: 'no', param: null });
  else {
    say(turn.end, { response: answer(n, statusOf(turn.end)) });
    ended.set(n, turn.end);
  }
}

test('whatever an upstream says late, and whenever its client speaks: each turn has its own words, one end, one row and its price', async () => {
  let plan: readonly Turn[] = [];
  let asked = 0;
  const upstream = new WebSocketServer({ port: 0, host: '127.0.0.1' });
  await once(upstream, 'listening');
  upstream.on('connection', (ws) => {
    const ended = new Map<number, string>();
    ws.on('error', () => undefined);
    ws.on('message', (data) => {
      const { type, input } = JSON.parse(String(data)) as { type: string; input: unknown };
      // The number of the turn: a refused or cancelled one may never come here.
      const n = Number(/turn (\d+)/.exec(JSON.stringify(input))?.[1]);
      asked += 1;
      if (type === 'response.create') setTimeout(speak, 2, ws, plan, ended, n);
    });
  });
  const { port } = upstream.address() as AddressInfo;
  const one = { id: 'one', type: 'responses', base_url: `http://127.0.0.1:${port}`, api_key: 'k', models: ['m'] };
  await using gateway = await testGateway({
    channels: [{ ...one, options: { websocket: true } }],
    models: { m: { price: { input: '1', output: '2' } } },
  });
  const { dispatcher, inFlight, keySlots } = gateway.running.gateway;
  try {
    await fc.assert(
      fc.asyncProperty(turns, async (drawn) => {
        plan = drawn;
        gateway.store.settled.length = 0;
        gateway.store.walletNanos = 1_000_000_000n;
        dispatcher.health.keepOnly(new Set());
        const client = await connect(gateway);
        const isEnd = ({ type, stream_id: lane }: ServerEvent): boolean =>
          lane !== undefined && (type === 'error' || (ENDS as readonly string[]).includes(type));
        const good: number[] = [];
        for (const [n, turn] of plan.entries()) {
          const lane = `lane ${n}`;
          client.send({ type: 'response.create', model: 'm', input: `turn ${n}`, store: false, stream_id: lane });
          if (turn.client === 'asks too soon')
            client.send({ type: 'response.create', model: 'm', input: 'x', stream_id: 'soon' });
          if (turn.client === 'steers') client.send({ type: 'response.steer', previous_response_id: 'none', input: 'x' });
          if (turn.client === 'cancels') client.send({ type: 'response.cancel' });
          const end = await client.next((event) => isEnd(event) && event['stream_id'] !== 'soon');
          assert.equal(end['stream_id'], lane);
          const text = JSON.stringify(client.events.filter((event) => event['stream_id'] === lane));
          const words = new Set(text.match(/<\d+>|LATE/g));
          assert.ok(words.size === 0 || (words.size === 1 && words.has(wordOf(n))), `${[...words]} in turn ${n}`);
          if (end.type === 'response.completed' || end.type === 'response.incomplete') good.push(n);
          else if (turn.client !== 'cancels') assert.ok(/failed|error|cut/.test(turn.end), `${end.type} of ${turn.end}: ${text}`);
        }
        client.ws.terminate();
        await client.closed;
        const { settled, held } = gateway.store;
        await eventually(() => inFlight.count === 0 && keySlots.size === 0 && held.size === 0, 'nothing is held');
        assert.equal(client.events.filter((event) => isEnd(event) && event['stream_id'] !== 'soon').length, plan.length);
        assert.equal(settled.length, plan.length, 'a row each');
        for (const n of good) assert.equal(settled.filter(({ charge }) => charge?.total === nanosOf(n)).length, 1, `turn ${n}`);
      }),
      { numRuns: 60 },
    );
    assert.ok(asked > 0);
  } finally {
    for (const ws of upstream.clients) ws.terminate();
    upstream.close();
  }
});
