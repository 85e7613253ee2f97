/**
 * Random walks of a client over one connection: what it is told is what a small model of the session says, whatever the order.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { startSimulator } from '../../../src/simulator/simulator.ts';
import { SESSION } from '../../../src/http/websocket/lifecycle.ts';
import { advance, LifecycleError } from '../../../src/streams/lifecycle.ts';
import { eventually, testGateway } from '../../support/test-gateway.ts';
import { connect, type ServerEvent, type SocketClient } from './socket-client.ts';

const simulator = await startSimulator({ pace: { cut: 'packet' } });
test.after(() => simulator.close());

const TURNS = 8;
const gateway = await testGateway({
  channels: [{ id: 'one', type: 'messages', base_url: simulator.url, api_key: 'k', models: ['m'] }],
  models: { m: { price: { input: '0.001', output: '0.002' } } },
  websocket: { turns: TURNS },
});
test.after(async () => await gateway[Symbol.asyncDispose]());

/** A response as the model remembers it: everything that was said up to it. */
interface Known {
  readonly id: string;
  readonly said: readonly string[];
}

interface Model {
  turns: number;
  open: boolean;
  /** The last completed turn of the connection. */
  retained: Known | undefined;
  /** Turns with `store`, which any connection may continue. */
  stored: Known[];
  /** Ids that cannot be continued. */
  lost: string[];
  words: number;
}

interface Real {
  readonly client: SocketClient;
}

type From = 'nothing' | 'retained' | 'stored' | 'lost';

class Turn implements fc.AsyncCommand<Model, Real> {
  readonly #kind: 'answer' | 'warm-up' | 'incomplete' | 'failed';
  readonly #from: From;
  readonly #store: boolean;
  constructor(kind: 'answer' | 'warm-up' | 'incomplete' | 'failed', from: From, store: boolean) {
    this.#kind = kind;
    this.#from = from;
    this.#store = store;
  }
  check(model: Readonly<Model>): boolean {
    return model.open && (this.#from === 'nothing' || this.#previous(model) !== undefined);
  }
  #previous(model: Readonly<Model>): Known | undefined {
    if (this.#from === 'retained') return model.retained;
    if (this.#from === 'stored') return model.stored.at(-1);
    const id = model.lost.at(-1);
    return this.#from === 'lost' && id !== undefined ? { id, said: [] } : undefined;
  }
  async run(model: Model, { client }: Real): Promise<void> {
    const previous = this.#previous(model);
    const word = `word${model.words++}x`;
    const asked = simulator.requests.length;
    simulator.reset();
    if (this.#kind === 'incomplete')
      simulator.enqueue({ reply: { pieces: [{ type: 'text', text: `answer to ${word}` }], finish: 'length' } });
    else if (this.#kind === 'failed')
      simulator.enqueue({ reply: { pieces: [{ type: 'text', text: 'broken' }] }, faults: [{ type: 'no-terminal' }] });
    else simulator.enqueue({ reply: { pieces: [{ type: 'text', text: `answer to ${word}` }] } });
    const events = await client.turn({
      type: 'response.create',
      model: 'm',
      input: word,
      store: this.#store,
      ...(this.#kind === 'warm-up' ? { generate: false } : {}),
      ...(previous === undefined ? {} : { previous_response_id: previous.id }),
    });
    const end = events.at(-1);
    model.turns += 1;
    if (model.turns > TURNS) {
      assert.equal(codeOf(end), 'websocket_connection_limit_reached');
      assert.equal(simulator.requests.length, 0, `no work (${asked})`);
      await client.closed;
      model.open = false;
      return;
    }
    if (this.#from === 'lost') {
      assert.equal(codeOf(end), 'previous_response_not_found');
      assert.equal(simulator.requests.length, 0);
      return;
    }
    const sent = simulator.requests.at(-1)?.text ?? '';
    if (this.#kind === 'warm-up') assert.equal(simulator.requests.length, 0);
    else for (const said of [...(previous?.said ?? []), word]) assert.ok(sent.includes(said), `${said} in ${sent}`);
    const expected = { answer: 'completed', 'warm-up': 'completed', incomplete: 'incomplete', failed: 'failed' }[this.#kind];
    assert.equal(end?.type, `response.${expected}`);
    const { id } = end['response'] as { id: string };
    const known = { id, said: [...(previous?.said ?? []), word] };
    if (expected === 'completed') {
      if (model.retained !== undefined && !model.stored.some((at) => at.id === model.retained?.id))
        model.lost.push(model.retained.id);
      model.retained = known;
    }
    if (expected === 'failed' && previous !== undefined && previous === model.retained) {
      if (!model.stored.some((at) => at.id === previous.id)) model.lost.push(previous.id);
      model.retained = undefined;
    }
    if (this.#store && expected !== 'failed') model.stored.push(known);
    else if (expected !== 'completed') model.lost.push(id);
  }
  toString(): string {
    return `${this.#kind} from ${this.#from}${this.#store ? ', stored' : ''}`;
  }
}

class Noise implements fc.AsyncCommand<Model, Real> {
  readonly #message: string | Buffer;
  constructor(message: string | Buffer) {
    this.#message = message;
  }
  check(model: Readonly<Model>): boolean {
    return model.open;
  }
  async run(_model: Model, { client }: Real): Promise<void> {
    client.send(this.#message);
    assert.equal(codeOf(await client.next()), 'invalid_websocket_event');
  }
  toString(): string {
    return `noise ${String(this.#message)}`;
  }
}

function codeOf(event: ServerEvent | undefined): string | undefined {
  return event?.type === 'error' ? (event['error'] as { code: string }).code : undefined;
}

test('F45: a session does what its model says', async () => {
  const turns = fc
    .tuple(
      fc.constantFrom('answer' as const, 'answer' as const, 'warm-up' as const, 'incomplete' as const, 'failed' as const),
      fc.constantFrom<From>('nothing', 'retained', 'retained', 'stored', 'lost'),
      fc.boolean(),
    )
    .map(([kind, from, store]) => new Turn(kind, from, store));
  const noise = fc.constantFrom<string | Buffer>('nope', '{"type":"x"}', Buffer.from('{}')).map((message) => new Noise(message));
  await fc.assert(
    fc.asyncProperty(fc.commands([turns, turns, turns, noise], { maxCommands: 14 }), async (commands) => {
      gateway.running.gateway.dispatcher.health.keepOnly(new Set());
      const { memory } = gateway.running.gateway;
      const before = memory.bytes;
      const client = await connect(gateway);
      const model: Model = { turns: 0, open: true, retained: undefined, stored: [], lost: [], words: 0 };
      await fc.asyncModelRun(() => ({ model, real: { client } }), commands);
      client.ws.terminate();
      await client.closed;
      await eventually(() => model.stored.length > 0 || memory.bytes <= before, 'nothing of the connection is kept');
    }),
    { numRuns: 40 },
  );
});

test('the table: every cell does what it says, and a refused event changes nothing', () => {
  for (const [state, row] of Object.entries(SESSION)) {
    for (const [event, next] of Object.entries(row)) {
      const go = () => advance('session', SESSION, state as keyof typeof SESSION, event as keyof (typeof SESSION)['idle']);
      if (next === null) assert.throws(go, LifecycleError);
      else assert.equal(go(), next);
    }
  }
});
