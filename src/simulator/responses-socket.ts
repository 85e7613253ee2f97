/**
 * The responses interface over a WebSocket, as its vendor has it: a create is answered like a POST, each event one message. Input
 * that steers a response is accepted while that is being said, and then answered by a successor; where the response has called a
 * tool it stays queued. A fault that cuts the answer cuts the connection.
 */
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { type WebSocket, WebSocketServer } from 'ws';
import type { Action, Plan } from './faults.ts';
import type { AnswerState, ReceivedRequest } from './journal.ts';
import { isObject, type JsonObject, type JsonValue, listOf, objectOf, parseJson, stringOf } from './json.ts';
import type { Pace } from './script.ts';

export interface SocketOptions {
  readonly mint: (prefix: string) => string;
  readonly now: () => number;
  /** What a request is answered with; it is noted. */
  readonly answer: (entry: ReceivedRequest) => { readonly plan: Plan; readonly pace: Pace };
}

/** Input that waits for the end of the response that it steers. */
interface Steer {
  readonly id: string;
  readonly input: JsonValue;
}

interface Speaking {
  readonly body: JsonObject;
  readonly steers: Steer[];
  responseId: string;
}

const PATH = /\/v1\/responses$/;

/** Upgrades what may be upgraded, and answers every other upgrade with a 404. */
export function responsesSockets(options: SocketOptions) {
  const server = new WebSocketServer({ noServer: true, perMessageDeflate: false });
  return {
    upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
      socket.on('error', () => undefined);
      const { pathname } = new URL(request.url ?? '/', 'http://simulator');
      if (!PATH.test(pathname)) socket.end('HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n');
      else server.handleUpgrade(request, socket, head, (ws) => new Conversation(ws, request, pathname, options));
    },
    close(): void {
      for (const ws of server.clients) ws.terminate();
    },
  };
}

class Conversation {
  readonly #ws: WebSocket;
  readonly #request: IncomingMessage;
  readonly #path: string;
  readonly #options: SocketOptions;
  readonly #gone = new AbortController();
  #speaking: Speaking | undefined;
  /** One answer after the other. */
  #turn: Promise<void> = Promise.resolve();

  constructor(ws: WebSocket, request: IncomingMessage, path: string, options: SocketOptions) {
    this.#ws = ws;
    this.#request = request;
    this.#path = path;
    this.#options = options;
    ws.on('error', () => undefined);
    ws.on('close', () => this.#gone.abort());
    ws.on('message', (data) => this.#read(String(data)));
  }

  #read(text: string): void {
    const event = parseJson(text);
    if (!isObject(event)) this.#refuse('invalid_json', 'The message is no JSON object.');
    else if (event.type === 'response.steer') this.#steer(event);
    else if (event.type === 'response.create') {
      const { type: _, ...body } = event;
      this.#turn = this.#turn.then(() => this.#say(body));
    } else this.#refuse('invalid_value', `Unknown event type ${JSON.stringify(event.type)}.`);
  }

  #refuse(code: string, message: string): void {
    this.#send({ type: 'error', status: 400, error: { type: 'invalid_request_error', code, message, param: null } });
  }

  #steer({ previous_response_id: previous = null, input = null }: JsonObject): void {
    const speaking = this.#speaking;
    if (speaking === undefined || speaking.responseId !== previous) {
      const error = { type: 'invalid_request_error', code: 'response_not_found', message: 'There is no such response.' };
      const steer = { input, previous_response_id: previous };
      this.#send({ type: 'response.steer.failed', sequence_number: 0, error, steer });
      return;
    }
    const id = this.#options.mint('steer_');
    speaking.steers.push({ id, input });
    this.#send({ type: 'response.steer.accepted', sequence_number: 0, steer: { id, previous_response_id: previous } });
  }

  /** Until the answer, and every answer that steering makes of it, is over. */
  async #say(body: JsonObject): Promise<void> {
    for (let next: JsonObject | undefined = body; next !== undefined && !this.#gone.signal.aborted; ) {
      const speaking: Speaking = { body: next, steers: [], responseId: '' };
      this.#speaking = speaking;
      const output = await this.#answer(speaking);
      this.#speaking = undefined;
      next = this.#successorOf(speaking, output);
    }
  }

  /** What the automatic successor is asked; undefined where there is none. */
  #successorOf({ body, steers, responseId }: Speaking, output: readonly JsonObject[]): JsonObject | undefined {
    if (steers.length === 0) return undefined;
    const called = output.filter(({ type }) => type === 'function_call');
    if (called.length === 0)
      return { ...body, input: [...itemsOf(body.input), ...steers.flatMap(({ input }) => itemsOf(input))] };
    const required_input = called.map(({ call_id = '', name = '' }) => ({ type: 'function_call_output', call_id, name }));
    for (const { id } of steers) {
      const steer = { id, previous_response_id: responseId };
      const why = { reason: 'waiting_for_required_input', required_input, sequence_number: 0 };
      this.#send({ type: 'response.steer.pending', steer, ...why });
    }
    return undefined;
  }

  /** The output items of the answer. */
  async #answer(speaking: Speaking): Promise<readonly JsonObject[]> {
    const { entry, settle } = this.#entryOf(speaking.body);
    const { plan, pace } = this.#options.answer(entry);
    entry.status = plan.silent ? 0 : plan.status;
    if (plan.silent) return [];
    await this.#wait(plan.beforeHeadersMs + (pace.firstMs ?? 0));
    let output: readonly JsonObject[] = [];
    for (const [index, action] of plan.actions.entries()) {
      if (index > 0) await this.#wait(pace.ms ?? 0);
      if (this.#gone.signal.aborted) break;
      // An abort of the wait is what is waited for.
      if (action.do === 'stall') await once(this.#gone.signal, 'abort').catch(() => undefined);
      else if (action.do === 'wait') await this.#wait(action.ms);
      else if (action.do === 'cut') this.#ws.terminate();
      else output = this.#write(plan, action, speaking) ?? output;
    }
    settle(this.#gone.signal.aborted ? 'left' : 'ended');
    return output;
  }

  /** The output, where it is the end of the response. */
  #write(
    { status, headers }: Plan,
    { bytes }: Action & { readonly do: 'write' },
    speaking: Speaking,
  ): readonly JsonObject[] | undefined {
    const text = bytes.toString();
    if (status !== 200) {
      this.#send({ type: 'error', status, ...objectOf(parseJson(text)), headers });
      return undefined;
    }
    const data = /^data: (.*)$/m.exec(text)?.[1] ?? text;
    this.#ws.send(data);
    const event = objectOf(parseJson(data));
    const response = objectOf(event.response);
    if (event.type === 'response.created') speaking.responseId = stringOf(response.id);
    return response.output === undefined || event.type === 'response.created' ? undefined : listOf(response.output).map(objectOf);
  }

  #entryOf(body: JsonObject): { readonly entry: ReceivedRequest; readonly settle: (state: AnswerState) => void } {
    const { promise: over, resolve } = Promise.withResolvers<AnswerState>();
    const text = JSON.stringify({ ...body, stream: true });
    const entry: ReceivedRequest = {
      at: this.#options.now(),
      method: 'POST',
      path: this.#path,
      query: {},
      headers: Object.fromEntries(Object.entries(this.#request.headers).map(([name, value]) => [name, String(value)])),
      body: { ...body, stream: true },
      text,
      bytes: Buffer.byteLength(text),
      model: typeof body.model === 'string' ? body.model : undefined,
      parts: [],
      status: 0,
      state: 'open',
      over,
    };
    const settle = (state: AnswerState): void => {
      entry.state = state;
      resolve(state);
    };
    return { entry, settle };
  }

  #send(event: JsonObject): void {
    this.#ws.send(JSON.stringify(event));
  }

  /** Shorter where the caller leaves: then the sleep is aborted, and the caller of this looks at the signal. */
  async #wait(ms: number): Promise<void> {
    await sleep(ms, undefined, { signal: this.#gone.signal }).catch(() => undefined);
  }
}

function itemsOf(input: JsonValue | undefined): readonly JsonValue[] {
  return typeof input === 'string' ? [{ type: 'message', role: 'user', content: input }] : listOf(input);
}
