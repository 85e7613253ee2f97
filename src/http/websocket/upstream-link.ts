/**
 * The WebSocket of an upstream that the turns of one client's connection are asked over, one at a time. It is opened by the first
 * turn whose Channel declares it, and kept for the next one. A turn on it is an attempt like any other: only its bytes come
 * another way. The upstream may begin an answer of its own accord, the successor of a response that was steered; the next turn is
 * given that one.
 */
import { errors } from 'undici';
import { LARGE_EVENT } from '../../codecs/answers/large-events.ts';
import { isObject, type JsonObject, tryJson } from '../../codecs/canonical/json.ts';
import { editJson } from '../../codecs/json/edit.ts';
import { skipSpace } from '../../codecs/json/text.ts';
import type { Steps } from '../../codecs/steps.ts';
import type { Clock } from '../../streams/clock.ts';
import { StreamError } from '../../streams/stream-error.ts';
import type { Channel } from '../config/config.ts';
import type { OpenCall, UpstreamLink } from '../dispatch/call-upstream.ts';
import type { Outgoing } from '../dispatch/outgoing.ts';
import type { SendOptions, Upstreams } from '../dispatch/upstream.ts';
import type { UpstreamSocket } from '../dispatch/upstream-socket.ts';
import { isHosted } from '../platforms/session.ts';
import type { LargeWork } from '../request/large-work.ts';
import { LinkedCall, notable, type NotableEvent, notableInSteps, refusalIn, SocketTurn } from './socket-turn.ts';

export interface SteerListener {
  /**
   * A `response.steer.accepted`, `pending` or `failed`. `isLate`: the response that it belongs to has ended on the wire. The
   * upstream's next message waits until what this returns has settled.
   */
  onSteer(event: NotableEvent, isLate: boolean): Promise<void> | undefined;
  /** The upstream has begun the successor of a steered response. False: nobody waits for one. */
  onSuccessor(): boolean;
  /** What the upstream had accepted comes to nothing: its response failed, or the connection is gone. */
  onLost(): void;
}

export interface LinkOptions {
  readonly clock: Clock;
  readonly upstreams: Upstreams;
  /** The longest message of an upstream. */
  readonly maxEventBytes: () => number;
  readonly largeWork: LargeWork;
  readonly listener: () => SteerListener;
}

/** A socket that has been idle for longer is not trusted with a turn. */
const IDLE_MS = 60_000;
const PATH = '/responses';
/** Longer ids are not remembered. */
const MAX_ID = 4096;
const LIMIT_REACHED = 'websocket_connection_limit_reached';

interface Connection {
  readonly socket: UpstreamSocket;
  readonly channel: Channel;
  /** The upstream's ids of the responses that ended on it: no more than a client has turns. */
  readonly ended: Set<string>;
}

/** The answer that is being read. */
interface Current {
  readonly turn: SocketTurn;
  /** The upstream's own id, once it has said it. */
  responseId?: string;
  /** Asks the same again on a connection of its own; undefined where this one was made for it. */
  readonly again?: () => void;
}

export class SocketLink implements UpstreamLink {
  readonly #options: LinkOptions;
  #connection: Connection | undefined;
  #current: Current | undefined;
  /** What the upstream has begun by itself, until a turn takes it: read on meanwhile, and perhaps ended. */
  #successor: Current | undefined;
  #idleSince = 0;

  constructor(options: LinkOptions) {
    this.#options = options;
  }

  /** The Channel whose answer waits to be taken. */
  get preferred(): string | undefined {
    return this.#successor === undefined ? undefined : this.#connection?.channel.id;
  }

  open(channel: Channel, outgoing: Outgoing, options: SendOptions): OpenCall | undefined {
    const { body, path } = outgoing;
    const isPlain = options.stream && path === PATH && typeof body === 'string' && !isHosted(channel);
    if (!channel.options.websocket || !isPlain) {
      this.drop();
      return undefined;
    }
    const call = new LinkedCall(options.signal);
    const connection = this.#usable(channel);
    const successor = this.#successor;
    if (connection !== undefined && successor !== undefined) {
      this.#successor = undefined;
      this.#follow(call, successor);
    } else if (connection !== undefined && this.#current === undefined) {
      this.#send(connection, call, body, () => void this.#connect(channel, outgoing, options, call, body));
    } else void this.#connect(channel, outgoing, options, call, body);
    return call;
  }

  /**
   * Passes the input on: false where the response takes no more. Undefined where no answer is read over a WebSocket. Without
   * input it only tells.
   */
  steer(input: string | undefined): boolean | undefined {
    const { socket } = this.#connection ?? {};
    if (socket === undefined) return undefined;
    const id = this.#current?.responseId;
    if (id === undefined || input === undefined || this.#successor !== undefined) return false;
    socket.send(`{"type":"response.steer","previous_response_id":${JSON.stringify(id)},"input":${input}}`);
    return true;
  }

  /** Lets go of the connection, with whatever the upstream has begun on it. */
  drop(reason: Error = new StreamError('cancelled', 'the connection was given up')): void {
    const { socket } = this.#connection ?? {};
    const current = this.#current;
    this.#forget();
    if (current === undefined) socket?.close();
    else {
      socket?.cut();
      current.turn.fail(reason);
    }
  }

  #forget(): void {
    this.#connection = undefined;
    this.#current = undefined;
    this.#successor = undefined;
  }

  #usable(channel: Channel): Connection | undefined {
    const connection = this.#connection;
    if (connection === undefined || connection.channel.fingerprint !== channel.fingerprint) return undefined;
    const isStale = this.#current === undefined && this.#options.clock.monotonic() - this.#idleSince > IDLE_MS;
    return isStale ? undefined : connection;
  }

  async #connect(channel: Channel, outgoing: Outgoing, options: SendOptions, call: LinkedCall, body: string): Promise<void> {
    const { upstreams, maxEventBytes } = this.#options;
    this.drop();
    try {
      const asking = { ...options, signal: call.signal };
      const socket = await upstreams.connect(channel, outgoing.path, asking, maxEventBytes());
      if (call.signal.aborted) return socket?.cut();
      if (socket === undefined) {
        call.follow(upstreams.open(channel, outgoing, asking).head);
        return;
      }
      const connection: Connection = { socket, channel, ended: new Set() };
      this.#connection = connection;
      socket.listen({
        onMessage: (bytes) => this.#onMessage(connection, bytes),
        onClosed: (error) => this.#onClosed(connection, error),
      });
      this.#send(connection, call, body);
    } catch (thrown) {
      call.fail(thrown instanceof Error ? thrown : new Error('no connection', { cause: thrown }));
    }
  }

  /** `again`: the connection has been used before, and may have come to the end of what its upstream allows it. */
  #send(connection: Connection, call: LinkedCall, body: string, again?: () => void): void {
    const current: Current = { turn: this.#newTurn(connection), ...(again === undefined ? {} : { again }) };
    this.#current = current;
    this.#follow(call, current);
    const send = (text: string): void => {
      if (this.#current === current) connection.socket.send(text);
    };
    const text = this.#options.largeWork.of(body, createOf(body));
    if (text instanceof Promise) text.then(send).catch((error: Error) => current.turn.fail(error));
    else send(text);
  }

  #follow(call: LinkedCall, current: Current): void {
    call.follow(current.turn.head);
    call.signal.addEventListener('abort', () => this.#leave(current, call.signal.reason), { once: true });
  }

  #newTurn({ socket }: Connection): SocketTurn {
    const isCurrent = (): boolean => this.#current?.turn === turn;
    const flow = {
      pause: () => (isCurrent() ? socket.pause() : undefined),
      resume: () => (isCurrent() ? socket.resume() : undefined),
      abort: (reason: Error) => (isCurrent() ? this.#lose(reason) : undefined),
    };
    const turn = new SocketTurn(flow, this.#options.clock, socket.requestId);
    return turn;
  }

  /** Nobody reads the answer any more, and the protocol has no word to stop it. */
  #leave(current: Current, reason: Error): void {
    if (this.#current === current) this.#lose(reason);
    else current.turn.fail(reason);
  }

  #lose(reason: Error): void {
    this.drop(reason);
    this.#options.listener().onLost();
  }

  #onMessage(connection: Connection, bytes: Buffer): Promise<void> | undefined {
    if (bytes.length >= LARGE_EVENT) {
      return this.#options.largeWork.run(notableInSteps(bytes)).then((event) => this.#take(connection, bytes, event));
    }
    return this.#take(connection, bytes, notable(bytes));
  }

  #take(connection: Connection, bytes: Buffer, noted: NotableEvent | undefined): Promise<void> | undefined {
    if (this.#connection !== connection) return undefined;
    const type = noted?.json['type'];
    if (noted !== undefined && typeof type === 'string' && type.startsWith('response.steer.')) {
      const told = this.#options.listener().onSteer(noted, this.#current === undefined || this.#successor !== undefined);
      if (told !== undefined) this.#current?.turn.hold(told);
      return told;
    }
    this.#takeOfAnswer(connection, bytes, noted?.json);
    return undefined;
  }

  #takeOfAnswer(connection: Connection, bytes: Buffer, event: JsonObject | undefined): void {
    const type = event?.['type'];
    if (this.#current === undefined && type === 'response.created') this.#beginSuccessor(connection);
    const current = this.#current;
    if (current === undefined) {
      // In place of a successor, or of nothing: there is no answer that it could belong to.
      if (type === 'error') this.#lose(new StreamError('cancelled', 'the upstream reported an error between two answers'));
      return;
    }
    if (isOfEnded(connection, current, event)) return;
    if (connection.ended.size > 0 && !current.turn.begun && event === undefined && isOfItem(bytes)) return;
    const refused = event === undefined || current.turn.begun ? undefined : refusalIn(event);
    if (refused !== undefined && current.again !== undefined && codeOf(refused) === LIMIT_REACHED) {
      // Nothing was done for this turn.
      this.#current = undefined;
      current.again();
      return;
    }
    if (type === 'response.created') noteId(current, event);
    current.turn.feed(bytes, refused);
    if (typeof type !== 'string' || !ENDINGS.has(type)) return;
    const id = idIn(event) ?? current.responseId;
    if (id !== undefined && id.length <= MAX_ID) connection.ended.add(id);
    this.#ended(connection, current);
    // A response that failed has no successor.
    if (FAILED.has(type)) this.#options.listener().onLost();
  }

  #ended({ socket }: Connection, current: Current): void {
    this.#current = undefined;
    this.#idleSince = this.#options.clock.monotonic();
    current.turn.end();
    socket.resume();
  }

  #beginSuccessor(connection: Connection): void {
    this.#current = { turn: this.#newTurn(connection) };
    this.#successor = this.#current;
    if (!this.#options.listener().onSuccessor()) this.#lose(new StreamError('cancelled', 'nobody waits for this answer'));
  }

  #onClosed(connection: Connection, error: Error): void {
    if (this.#connection !== connection) return;
    const current = this.#current;
    this.#forget();
    if (current !== undefined) current.turn.fail(current.turn.begun ? error : closedBefore(error, connection, current));
    this.#options.listener().onLost();
  }
}

const ENDINGS: ReadonlySet<string> = new Set([
  'response.completed',
  'response.done',
  'response.incomplete',
  'response.failed',
  'response.cancelled',
  'error',
]);

/** The event that asks what a request asks. */
function* createOf(body: string): Steps<string> {
  // Of a text that was put together the first look makes a copy.
  skipSpace(body, 0);
  yield;
  return editJson(body, [
    { path: ['type'], value: '"response.create"' },
    { path: ['stream'], value: undefined },
  ]);
}

const FAILED: ReadonlySet<string> = new Set(['response.failed', 'response.cancelled', 'error']);

function noteId(current: Current, event: JsonObject | undefined): void {
  const id = idIn(event);
  if (id !== undefined) current.responseId = id;
}

function idIn(event: JsonObject | undefined): string | undefined {
  const response = event?.['response'];
  const id = isObject(response) ? response['id'] : undefined;
  return typeof id === 'string' ? id : undefined;
}

/**
 * The end of an answer before, told once more: it is nothing of this one, which it would end with words that are read and paid
 * for already. An upstream that calls all its responses the same says where the next one begins.
 */
function isOfEnded({ ended }: Connection, { responseId }: Current, event: JsonObject | undefined): boolean {
  const type = event?.['type'];
  if (ended.size === 0 || (responseId !== undefined && ended.has(responseId)) || type === 'response.created') return false;
  const id = idIn(event);
  if (id !== undefined) return ended.has(id);
  return type === 'response.done' && event?.['response'] === undefined && responseId === undefined;
}

/** Something of an item, which no answer begins with: ahead of one it belongs to an answer before. */
function isOfItem(bytes: Buffer): boolean {
  const event = bytes.length < LARGE_EVENT ? tryJson(bytes.toString()) : undefined;
  return isObject(event) && (event['output_index'] !== undefined || event['item_id'] !== undefined);
}

function codeOf({ error }: JsonObject): unknown {
  return isObject(error) ? error['code'] : undefined;
}

/**
 * As undici says it of a kept connection, so that one that had been closed meanwhile is told from one that was never answered:
 * of that, pings and the close itself were read all the same.
 */
function closedBefore(error: Error, { socket }: Connection, { again }: Current): Error {
  if (error instanceof StreamError && error.reason !== 'source_closed') return error;
  const bytesRead = again === undefined ? 0 : socket.bytesRead;
  return Object.assign(new errors.SocketError('other side closed', undefined), { socket: { bytesRead }, cause: error });
}
