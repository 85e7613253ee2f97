/**
 * One WebSocket of a responses client (spec, "GET /v1/responses"): one turn at a time, each like a POST, until the limit of turns
 * or of time. Messages are read while a turn is answered. Knows no upstream and no money.
 */
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { GatewayError } from '../../codecs/canonical/error.ts';
import type { ClientCodec } from '../../codecs/codec.ts';
import type { Timer } from '../../streams/clock.ts';
import { advance } from '../../streams/lifecycle.ts';
import { clientGone, shuttingDown, toGatewayError } from '../errors.ts';
import type { CallContext, Gateway } from '../gateway.ts';
import { routeOf } from '../server/route-table.ts';
import { refuseCall } from '../exchange/refusal.ts';
import type { JsonBody } from '../request/body.ts';
import type { KeySlot } from '../request/key-slots.ts';
import { newRequestId } from '../request/request-id.ts';
import { type ClientEvent, invalidEvent, streamIdOf } from './client-event.ts';
import type { ClientSocket } from './client-socket.ts';
import { Continuation } from './continuation.ts';
import { errorText } from './event-text.ts';
import { SESSION, type SessionEvent, type SessionState } from './lifecycle.ts';
import { Inbound, type UnfinishedBytes } from './inbound.ts';
import { MessageReader } from './message-reader.ts';
import { Outlet } from './outlet.ts';
import { answerTurn, type TurnEvent } from './turn.ts';
import { Steering } from './steering.ts';
import { SocketLink } from './upstream-link.ts';
import { announcedVersion, type Version } from './version.ts';

export interface SessionOptions {
  readonly gateway: Gateway;
  readonly codec: ClientCodec;
  readonly ws: ClientSocket;
  readonly socket: Socket;
  /** The key that opened the connection. */
  readonly keyId: string;
  readonly unfinished: UnfinishedBytes;
  /** The upgrade request: its headers authenticate every turn. */
  readonly request: IncomingMessage;
  readonly path: string;
  readonly ip: string;
  readonly clientRequestId: string | undefined;
  /** Called once. */
  readonly onClosed: () => void;
}

const RESPONSES = routeOf('responses');
const MISSED_PINGS = 2;
const CLOSE = { normal: 1000, goingAway: 1001, policy: 1008, tooLarge: 1009, failed: 1011 } as const;
/** How long a client whose message was refused may take to close, before its connection is cut. */
const REFUSED_MS = 1_000;

/** A turn that was read from a message. */
interface ReadTurn {
  readonly event: TurnEvent;
  readonly streamId: string | undefined;
  /** What the message takes, until its turn is over. */
  readonly slot: KeySlot;
  readonly turn: AbortController;
}

export class Session {
  readonly #options: SessionOptions;
  readonly #outlet: Outlet;
  readonly #continuation: Continuation;
  readonly #openedAt: number;
  #state: SessionState = 'idle';
  #version: Version;
  #turns = 0;
  #turn: AbortController | undefined;
  #queued: ReadTurn | undefined;
  #refused: Timer | undefined;
  readonly #inbound: Inbound;
  readonly #steering: Steering;
  readonly #link: SocketLink;
  /** When the last turn was over. */
  #lastTurnAt: number;
  #missedPings = 0;

  constructor(options: SessionOptions) {
    const { gateway, ws, socket, request } = options;
    this.#options = options;
    const { clock, streamTurns: turns, config } = gateway;
    this.#outlet = new Outlet(ws, socket, { clock, turns, party: options.keyId, stallMs: config.current().writeStallMs });
    this.#continuation = new Continuation(gateway);
    this.#version = announcedVersion(request.headers);
    this.#openedAt = gateway.clock.monotonic();
    this.#lastTurnAt = this.#openedAt;
    this.#inbound = this.#watchInbound(options);
    this.#link = new SocketLink({
      clock: gateway.clock,
      upstreams: gateway.upstreams,
      maxEventBytes: () => gateway.config.current().limits.eventBytes,
      largeWork: gateway.largeWork,
      listener: () => this.#steering,
    });
    this.#steering = new Steering({
      link: this.#link,
      maxInput: () => gateway.config.current().history.entryBytes,
      outlet: this.#outlet,
      begin: (create, lane) => this.#beginOwn(create, lane),
    });
    const reader = new MessageReader({
      gateway,
      ws,
      keyId: options.keyId,
      isClosed: () => this.#state === 'closed',
      take: (slot, read) => this.#take(slot, read),
      onUnpaid: (error) => this.#tell(error),
    });
    ws.on('message', (data, isBinary) => {
      this.#missedPings = 0;
      reader.read(data, isBinary);
    });
    ws.on('ping', (data) => this.#outlet.pong(data));
    ws.on('pong', () => {
      this.#missedPings = 0;
    });
    // The limit of `ws` is fixed when the connection opens; a reload does not change it.
    const tooLarge = `A message may have at most ${gateway.config.current().websocket.messageBytes} bytes.`;
    const onTooLarge = (): void => this.#tell(new GatewayError('request_too_large', tooLarge));
    ws.onTooLarge = onTooLarge;
    ws.on('error', (error) => gateway.log.debug({ err: error }, 'websocket error'));
    ws.on('close', (code) => this.#onClose(code));
  }

  #watchInbound({ gateway, ws, socket, keyId, unfinished }: SessionOptions): Inbound {
    return new Inbound({
      socket,
      clock: gateway.clock,
      keyId,
      unfinished,
      keySlots: gateway.keySlots,
      config: () => gateway.config.current(),
      onRefused: (why) => {
        const isSlow = why === 'too_slow';
        const error = isSlow
          ? new GatewayError('request_timeout', 'The message did not arrive in time.')
          : new GatewayError('request_too_large', 'This API key has too many bytes of unfinished messages.');
        this.#tell(error);
        if (this.#state !== 'closed') this.#move('drain');
        ws.close(isSlow ? CLOSE.policy : CLOSE.tooLarge, isSlow ? 'message timeout' : 'too many unfinished bytes');
        this.#refused = gateway.clock.setTimeout(() => ws.terminate(), REFUSED_MS);
      },
    });
  }

  /** Closes an idle connection. Where a ping is due, terminates a dead peer and pings the others. */
  heartbeat(now: number, isPingDue: boolean): void {
    const { gateway, ws } = this.#options;
    if (isPingDue && this.#missedPings >= MISSED_PINGS) {
      ws.terminate();
    } else if (this.#state === 'idle' && now - this.#lastTurnAt >= gateway.config.current().websocket.idleMs) {
      this.#end(CLOSE.normal, 'idle');
    } else if (isPingDue) {
      this.#missedPings += 1;
      this.#outlet.ping();
    }
  }

  /** No further turn; the running one goes on to its end. */
  drain(): void {
    if (this.#state === 'idle') this.#end(CLOSE.goingAway, 'shutting down');
    else this.#move('drain');
  }

  /** Ends the running turn with this error. */
  abortTurn(error: GatewayError): void {
    this.#turn?.abort(error);
  }

  cut(): void {
    this.#options.ws.terminate();
  }

  /** Closes the connection; turns that the client sent meanwhile are not begun. */
  #end(code: number, reason: string): void {
    this.#move('drain');
    this.#options.ws.close(code, reason);
  }

  #move(event: SessionEvent): void {
    this.#state = advance('websocket session', SESSION, this.#state, event);
  }

  #onClose(code: number): void {
    this.#move('close');
    const { gateway, clientRequestId } = this.#options;
    gateway.log.debug(
      { client_request_id: clientRequestId, version: this.#version, turns: this.#turns, code },
      'websocket closed',
    );
    this.#link.drop();
    for (const part of [this.#continuation, this.#steering, this.#inbound]) part.close();
    this.#refused?.cancel();
    this.#queued?.slot.release();
    this.#queued = undefined;
    this.#outlet.close();
    const turn = this.#turn;
    if (turn !== undefined) gateway.leavers.do(() => turn.abort(clientGone()));
    this.#options.onClosed();
  }

  /** What is refused without a turn. */
  #tell(error: GatewayError, streamId?: string): void {
    this.#options.gateway.metrics.requestRefused('responses', error);
    this.#outlet.send(errorText(error, streamId));
  }

  /** `read` gives the event of a message, or throws what is wrong with it. */
  #take(slot: KeySlot, read: () => ClientEvent): void {
    let streamId: string | undefined;
    let isTaken = false;
    try {
      const event = read();
      if (event.kind === 'notice') return;
      streamId = streamIdOf(event.envelope);
      if (event.kind === 'cancel') this.#cancel();
      else if (event.kind === 'steer')
        isTaken = this.#steering.steer({ event, slot }, this.#state === 'busy', this.#continuation.lastId);
      else isTaken = this.#begin({ event, streamId, slot, turn: new AbortController() });
    } catch (thrown) {
      this.#tell(toGatewayError(thrown), streamId);
    } finally {
      if (!isTaken) slot.release();
    }
  }

  /** False where the turn is refused and the connection closes. */
  #begin(turn: ReadTurn): boolean {
    const { event, streamId } = turn;
    if (event.kind === 'append' && this.#version === 'v2') throw invalidEvent('response.append is not supported.', 'type');
    if (this.#state === 'busy' || this.#state === 'queued')
      throw new GatewayError('websocket_busy', 'A response is being generated on this connection: wait for its end.');
    if (this.#state !== 'idle' && this.#state !== 'settling') throw shuttingDown();
    if (this.#isSpent) {
      // Nothing was done for this turn, so the client can repeat it on a new connection (known failure W11).
      this.#tell(limitReached(), streamId);
      // Not 1000: after that official clients do not reconnect.
      this.#end(CLOSE.goingAway, 'connection limit reached');
      return false;
    }
    if (event.kind === 'append') this.#version = 'v1';
    this.#start(turn);
    return true;
  }

  get #isSpent(): boolean {
    const { gateway } = this.#options;
    const { turns, lifetimeMs } = gateway.config.current().websocket;
    return this.#turns >= turns || gateway.clock.monotonic() - this.#openedAt >= lifetimeMs;
  }

  /** The successor of a steered response: the upstream has begun it, and the client did not ask. */
  #beginOwn({ text, json }: JsonBody, streamId: string | undefined): boolean {
    if (this.#state !== 'idle' || this.#isSpent) return false;
    const { gateway, keyId } = this.#options;
    const slot = gateway.keySlots.hold(keyId, gateway.config.current().limits.key);
    const event = { kind: 'create', text, json, envelope: json } as const;
    this.#start({ event, streamId, slot, turn: new AbortController() });
    return true;
  }

  #start(read: ReadTurn): void {
    this.#turns += 1;
    const isIdle = this.#state === 'idle';
    this.#move('turn');
    if (isIdle) void this.#run(read);
    else this.#queued = read;
  }

  #cancel(): void {
    const running = this.#state === 'busy' || this.#state === 'draining' ? this.#turn : undefined;
    const turn = this.#state === 'queued' ? this.#queued?.turn : running;
    if (turn === undefined)
      throw new GatewayError('response_cancel_not_active', 'No response is being generated on this connection.');
    turn.abort(new GatewayError('client_closed_request', 'The response was cancelled.', { shownCode: 'cancelled' }));
  }

  /** One turn from its authentication to its settled end. Never rejects. */
  async #run({ event, streamId, slot, turn }: ReadTurn): Promise<void> {
    const { gateway, codec, ws } = this.#options;
    this.#turn = turn;
    this.#queued = undefined;
    const call = this.#callContext(turn.signal);
    const startedAt = gateway.clock.monotonic();
    gateway.metrics.requestStarted(call.route);
    gateway.inFlight.begin();
    let failure: GatewayError | undefined;
    this.#steering.turnBegan();
    try {
      await answerTurn({
        call,
        codec,
        event,
        slot,
        version: this.#version,
        streamId,
        outlet: this.#outlet,
        continuation: this.#continuation,
        steering: this.#steering,
        link: this.#link,
        onEnding: () => this.#move('ending'),
      });
    } catch (thrown) {
      failure = toGatewayError(thrown);
      if (failure.code === 'internal_error')
        gateway.log.error({ request_id: call.requestId, err: failure.details.cause }, 'turn failed');
      refuseCall(call, failure);
    } finally {
      const isTold = this.#steering.turnEnded();
      if (failure !== undefined && !isTold) this.#outlet.send(errorText(failure, streamId, call.notes.limitHeaders));
      call.notes.limit?.release();
      const status = failure?.status ?? 200;
      const code = failure?.code ?? call.notes.failure ?? '';
      call.trace?.end({ method: call.method, route: call.path, status, code });
      gateway.metrics.requestEnded(call.route, status, code, (gateway.clock.monotonic() - startedAt) / 1000);
      gateway.inFlight.end();
      slot.release();
      this.#turn = undefined;
      this.#lastTurnAt = gateway.clock.monotonic();
      this.#move('settled');
      // On a connection that takes no more turns the next one is not begun, and goes with it.
      if (this.#queued !== undefined && this.#state === 'busy') void this.#run(this.#queued);
      else this.#steering.goOn();
      // The key is not valid any more, and what the connection retains belongs to it.
      if (failure?.code === 'unauthorized') this.#end(CLOSE.policy, 'unauthorized');
      else if (this.#state === 'leaving') ws.close(CLOSE.goingAway, 'shutting down');
    }
  }

  #callContext(gone: AbortSignal): CallContext {
    const { gateway, request, path, ip, clientRequestId } = this.#options;
    const { name, operation } = RESPONSES;
    const trace = operation === undefined ? undefined : gateway.tracer.start(request.headers, operation);
    return {
      gateway,
      config: gateway.config.current(),
      request,
      path,
      route: name,
      method: 'GET',
      requestId: newRequestId(gateway.mint),
      ...(clientRequestId === undefined ? {} : { clientRequestId }),
      startedAtMs: gateway.clock.now(),
      ip,
      gone,
      notes: {},
      ...(trace === undefined ? {} : { trace }),
    };
  }
}

function limitReached(): GatewayError {
  return new GatewayError(
    'websocket_connection_limit_reached',
    'Responses websocket connection limit reached. Create a new websocket connection to continue.',
  );
}
