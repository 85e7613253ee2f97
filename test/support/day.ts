/**
 * A day in the life of an agent: one conversation with tools, images, errors, cut answers and blank texts, which moves from one
 * form of upstream to another every few turns, over HTTP and a WebSocket, is compacted twice and loses its connection twice. The
 * simulated vendor judges the history strictly at every turn.
 */
import assert from 'node:assert/strict';
import type { Piece } from '../../src/simulator/reply.ts';
import type { Fault } from '../../src/simulator/script.ts';
import type { Simulator } from '../../src/simulator/simulator.ts';
import { connect, type SocketClient } from '../http/websocket/socket-client.ts';
import { type TestGateway, testGateway } from './test-gateway.ts';
import { formsConfig, startVendors, type UpstreamForm } from './upstream-forms.ts';

const PIXEL =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

interface Item {
  readonly type?: string;
  readonly [member: string]: unknown;
}
interface Answer {
  readonly id?: string;
  readonly status: string;
  readonly output: readonly Item[];
  readonly error?: unknown;
}

export interface DayReport {
  readonly turns: number;
  readonly requests: number;
  readonly failures: number;
  readonly compactions: number;
  readonly reconnects: number;
  /** Requests by the form of the upstream that got them. */
  readonly byUpstream: Readonly<Record<string, number>>;
}

/**
 * Lives through `turns` turns of the user. Throws at the first request that an upstream refuses, and at the first that lost what
 * was said.
 */
export async function liveADay(turns: number, forms: readonly UpstreamForm[]): Promise<DayReport> {
  const simulator = await startVendors();
  const gateway = await testGateway(
    formsConfig(forms, simulator.url, ({ type }) => ({
      compaction: 'summary',
      ...(type === 'gemini' || type === 'messages' ? { lower_custom_tools: true } : {}),
    })),
  );
  try {
    return await new Day(simulator, gateway, turns, forms).live();
  } finally {
    await gateway[Symbol.asyncDispose]();
    await simulator.close();
  }
}

const TOOLS = [
  {
    type: 'function',
    name: 'read',
    parameters: { type: 'object', properties: { path: { type: 'string' } }, required: ['path'], additionalProperties: false },
    strict: true,
  },
  { type: 'function', name: 'list', parameters: { type: 'object', properties: {} }, strict: false },
];

class Day {
  readonly #simulator: Simulator;
  readonly #gateway: TestGateway;
  readonly #turns: number;
  readonly #forms: readonly UpstreamForm[];
  #history: Item[] = [];
  #socket: SocketClient | undefined;
  /** The answer that a socket can continue, and how much of the history it knows. */
  #continues: { readonly id: string; readonly known: number } | undefined;
  #turn = 0;
  #failures = 0;
  #compactions = 0;
  #reconnects = 0;
  /** What was said last, which the next request must hold. */
  #said = '';
  readonly #byUpstream: Record<string, number> = {};

  constructor(simulator: Simulator, gateway: TestGateway, turns: number, forms: readonly UpstreamForm[]) {
    this.#simulator = simulator;
    this.#gateway = gateway;
    this.#turns = turns;
    this.#forms = forms;
  }

  async live(): Promise<DayReport> {
    const third = Math.floor(this.#turns / 3);
    const half = Math.floor(this.#turns / 2);
    for (this.#turn = 1; this.#turn <= this.#turns; this.#turn += 1) {
      if (this.#turn === third) await this.#compact();
      if (this.#turn === 2 * third) await this.#trigger();
      if (this.#turn === half || this.#turn === half + third - 1) this.#reconnect();
      await this.#takeTurn();
    }
    this.#socket?.ws.close();
    const { requests } = this.#simulator;
    for (const { text } of requests) assert.doesNotMatch(text, /mz2\./, 'an envelope reached an upstream');
    return {
      turns: this.#turns,
      requests: requests.length,
      failures: this.#failures,
      compactions: this.#compactions,
      reconnects: this.#reconnects,
      byUpstream: this.#byUpstream,
    };
  }

  /** Another upstream every third turn, and within a turn between a call and its result. */
  get #model(): string {
    return this.#forms[Math.floor(this.#turn / 3) % this.#forms.length]?.name ?? 'messages';
  }

  get #onSocket(): boolean {
    return Math.floor(this.#turn / 10) % 2 === 1;
  }

  async #takeTurn(): Promise<void> {
    const at = this.#turn;
    this.#history.push(this.#question());
    if (at % 10 === 7) await this.#fail(at % 20 === 7 ? { type: 'status', status: 500 } : { type: 'cut', at: 3 });
    if (at % 5 === 3) await this.#callTools(at % 10 === 3 ? ['read', 'list'] : ['read']);
    const text = `Answer of turn ${at}.`;
    await this.#ask(this.#model, [...this.#thought(at), { type: 'text', text }]);
    this.#said = text;
  }

  #question(): Item {
    const at = this.#turn;
    const text = { type: 'input_text', text: `Question of turn ${at}.` };
    const content: unknown[] = [text];
    if (at % 10 === 5) content.push({ type: 'input_image', image_url: PIXEL, detail: 'auto' });
    if (at % 10 === 8) content.unshift({ type: 'input_text', text: ' \n' });
    if (at % 10 === 9) return { type: 'message', role: 'user', content: `Question of turn ${at}.` };
    return { type: 'message', role: 'user', content };
  }

  #thought(at: number): Piece[] {
    return at % 4 === 0 ? [{ type: 'reasoning', raw: `Thought ${at}.`, summary: [`Thought ${at}.`], opaque: true }] : [];
  }

  /** The model calls, and the next upstream gets the results: one of them an error, one an image every now and then. */
  async #callTools(names: readonly string[]): Promise<void> {
    const pieces = names.map((name): Piece => {
      const input = name === 'read' ? { path: `/notes/${this.#turn}` } : {};
      return { type: 'tool', name, arguments: JSON.stringify(input), signature: true };
    });
    const answer = await this.#ask(this.#model, [...this.#thought(this.#turn), ...pieces]);
    const calls = answer.output.filter(({ type }) => type === 'function_call');
    assert.equal(calls.length, names.length, `turn ${this.#turn}`);
    for (const [index, { call_id }] of calls.entries()) {
      const parts = [
        { type: 'input_text', text: 'A picture.' },
        { type: 'input_image', image_url: PIXEL, detail: 'auto' },
      ];
      const output = index === 1 ? ' ' : this.#turn % 20 === 13 ? parts : `Result ${this.#turn}.`;
      this.#history.push({ type: 'function_call_output', call_id, output });
    }
    this.#said = '';
  }

  /** A request that fails leaves no trace in the history: the client asks again. */
  async #fail(fault: Fault): Promise<void> {
    this.#simulator.enqueue({
      strict: true,
      reply: { pieces: [{ type: 'text', text: 'This breaks off in the middle of it.' }] },
      faults: [fault],
    });
    const answer = await this.#send(this.#model, true);
    assert.notEqual(answer.status, 'completed', `turn ${this.#turn} breaks`);
    this.#continues = undefined;
    this.#failures += 1;
  }

  async #ask(model: string, pieces: readonly Piece[]): Promise<Answer> {
    this.#simulator.enqueue({ strict: true, reply: { pieces, usage: { input: 50, output: 9 } } });
    const answer = await this.#send(model, this.#turn % 2 === 0);
    assert.equal(answer.status, 'completed', `turn ${this.#turn} over ${model}: ${JSON.stringify(answer.error ?? answer)}`);
    const { text = '' } = this.#simulator.requests.at(-1) ?? {};
    assert.ok(text.includes(this.#said), `turn ${this.#turn} over ${model} lost "${this.#said}"`);
    assert.match(text, new RegExp(`Question of turn ${this.#turn}\\.`));
    this.#history.push(...answer.output);
    this.#continues = this.#onSocket && answer.id !== undefined ? { id: answer.id, known: this.#history.length } : undefined;
    this.#byUpstream[model] = (this.#byUpstream[model] ?? 0) + 1;
    return answer;
  }

  async #send(model: string, stream: boolean): Promise<Answer> {
    const common = { model, tools: TOOLS, store: false, include: ['reasoning.encrypted_content'] };
    if (!this.#onSocket) return await this.#post({ ...common, input: this.#history, stream });
    this.#socket ??= await connect(this.#gateway);
    const continued = this.#continues;
    const input = this.#history.slice(continued?.known ?? 0);
    const more = continued === undefined ? {} : { previous_response_id: continued.id };
    const events = await this.#socket.turn({ type: 'response.create', ...common, ...more, input });
    const last = events.at(-1);
    const { response = { status: 'failed', output: [], error: last } } = (last ?? {}) as { response?: Answer };
    return response;
  }

  async #post(body: { readonly stream: boolean; readonly [member: string]: unknown }): Promise<Answer> {
    const answer = await this.#gateway.post('/v1/responses', body);
    const text = await answer.text();
    if (answer.status !== 200) return { status: 'failed', output: [], error: text };
    if (!body.stream) return JSON.parse(text);
    const last = [...text.matchAll(/^data: (\{.*\})$/gm)].at(-1)?.[1] ?? '{}';
    const event: { readonly response?: Answer } = JSON.parse(last);
    return event.response ?? { status: 'failed', output: [], error: last };
  }

  /** At its endpoint: the messages of the user stay, one item stands for the rest. */
  async #compact(): Promise<void> {
    this.#simulator.enqueue({ strict: true, reply: { pieces: [{ type: 'text', text: 'The summary of the first part.' }] } });
    const answer = await this.#gateway.post('/v1/responses/compact', { model: this.#model, input: this.#history });
    const text = await answer.text();
    assert.equal(answer.status, 200, text);
    const { output }: Answer = JSON.parse(text);
    assert.equal(output.at(-1)?.type, 'compaction');
    this.#begin([...output], 'The summary of the first part.');
  }

  /** By a trigger within the conversation: the item alone goes on. */
  async #trigger(): Promise<void> {
    this.#simulator.enqueue({ strict: true, reply: { pieces: [{ type: 'text', text: 'The summary of the second part.' }] } });
    const input = [...this.#history, { type: 'compaction_trigger' }];
    const answer = await this.#post({ ...{ model: this.#model, tools: TOOLS, store: false }, input, stream: true });
    assert.deepEqual(
      answer.output.map(({ type }) => type),
      ['compaction'],
      JSON.stringify(answer),
    );
    this.#begin([...answer.output], 'The summary of the second part.');
  }

  #begin(history: Item[], said: string): void {
    this.#history = history;
    this.#said = said;
    this.#continues = undefined;
    this.#compactions += 1;
  }

  /** The client keeps the history and sends it whole over the next connection. */
  #reconnect(): void {
    this.#socket?.ws.terminate();
    this.#socket = undefined;
    this.#continues = undefined;
    this.#reconnects += 1;
  }
}
