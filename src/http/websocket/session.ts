/**
 * One WebSocket of a responses client (spec, "GET /v1/responses"): turn after turn through the same pipeline as POST, one at a time.
 * Holds what the connection may continue from, and nothing longer than the connection. Reads on while a turn is answered. Knows no
 * upstream and no money.
 */
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { RawData, WebSocket } from 'ws';
import { GatewayError } from '../../codecs/canonical/error.ts';
import { type JsonObject, parseJson, isObject } from '../../codecs/canonical/json.ts';
import type { ClientCodec, Frame } from '../../codecs/codec.ts';
import { editJson } from '../../codecs/json-text.ts';
import type { Principal } from '../../store/keys.ts';
import { advance } from '../../streams/lifecycle.ts';
import { identify } from '../authenticate.ts';
import { clientGone, isClientGone, toGatewayError } from '../errors.ts';
import { Committed, type Reply } from '../exchange.ts';
import type { Asking, Gateway } from '../gateway.ts';
import { atClientPath } from '../history/client-path.ts';
import { ownerOf } from '../history/owner-of.ts';
import type { Place } from '../key-slots.ts';
import type { PastTurn } from '../history/past-turn.ts';
import { previousIdOf, previousResponseNotFound, recall } from '../history/recall.ts';
import type { Answered } from '../history/remembering.ts';
import { logRefusal } from '../refusal-log.ts';
import { answerText, type Asked } from '../text/serve-text.ts';
import { type ClientEvent, invalidEvent, readClientEvent } from './client-event.ts';
import { errorText, eventText, type Spelling } from './event-text.ts';
import { SESSION, type SessionEvent, type SessionState } from './lifecycle.ts';
import { Outlet } from './outlet.ts';
import { announcedVersion, type Version } from './version.ts';
import { warmUp } from './warm-up.ts';

export interface SessionOptions {
  readonly gateway: Gateway;
  readonly codec: ClientCodec;
  readonly ws: WebSocket;
  readonly socket: Socket;
  /** The upgrade: its headers say who asks, for every turn anew. */
  readonly request: IncomingMessage;
  readonly path: string;
  readonly ip: string;
  readonly clientRequestId: string | undefined;
  /** Called once. */
  readonly onClosed: () => void;
}

/** What the next turn may continue from. */
interface Retained {
  readonly id: string;
  readonly turn: PastTurn;
  /** The create without its input, for `response.append`; kept for clients that may send one. */
  readonly controls: Buffer | undefined;
}

type TurnEvent = ClientEvent & { readonly kind: 'create' | 'append' };

const ENDINGS: ReadonlySet<string> = new Set(['response.completed', 'response.incomplete', 'response.failed']);
const MAX_HISTORY_ITEMS = 4096;
const MISSED_PINGS = 2;
const CLOSE = { normal: 1000, goingAway: 1001, policy: 1008, failed: 1011 } as const;

export class Session {
  readonly #options: SessionOptions;
  readonly #outlet: Outlet;
  readonly #openedAt: number;
  #state: SessionState = 'idle';
  #version: Version;
  #turns = 0;
  #retained: Retained | undefined;
  #turn: AbortController | undefined;
  /** What the running turn holds of its key. */
  #place: Place | undefined;
  #queued: { readonly event: TurnEvent; readonly streamId: string | undefined } | undefined;
  #lastTurnAt: number;
  #missedPings = 0;

  constructor(options: SessionOptions) {
    const { gateway, ws, socket, request } = options;
    this.#options = options;
    this.#outlet = new Outlet(ws, socket, gateway.clock, gateway.config.current().writeStallMs);
    this.#version = announcedVersion(request.headers);
    this.#openedAt = gateway.clock.monotonic();
    this.#lastTurnAt = this.#openedAt;
    ws.on('message', (data, isBinary) => this.#onMessage(data, isBinary));
    ws.on('ping', (data) => this.#outlet.pong(data));
    ws.on('pong', () => {
      this.#missedPings = 0;
    });
    ws.on('error', (error) => gateway.log.debug({ err: error }, 'websocket error'));
    ws.on('close', (code) => this.#onClose(code));
  }

  /** Once every `PING_INTERVAL_MS`: a dead peer is dropped, an idle one is let go. */
  beat(now: number): void {
    const { gateway, ws } = this.#options;
    if (this.#missedPings >= MISSED_PINGS) {
      ws.terminate();
    } else if (this.#state === 'idle' && now - this.#lastTurnAt >= gateway.config.current().websocket.idleMs) {
      ws.close(CLOSE.normal, 'idle');
    } else {
      this.#missedPings += 1;
      this.#outlet.ping();
    }
  }

  /** No further turn; the running one goes on to its end. */
  leave(): void {
    const isIdle = this.#state === 'idle';
    this.#move('leave');
    if (isIdle) this.#options.ws.close(CLOSE.goingAway, 'shutting down');
  }

  cut(): void {
    this.#options.ws.terminate();
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
    this.#retained = undefined;
    this.#outlet.close();
    this.#turn?.abort(clientGone());
    this.#options.onClosed();
  }

  #onMessage(data: RawData, isBinary: boolean): void {
    this.#missedPings = 0;
    let streamId: string | undefined;
    try {
      const event = readClientEvent(bytesOf(data), isBinary);
      if (event.kind === 'cancel') this.#cancel();
      if (event.kind !== 'create' && event.kind !== 'append') return;
      streamId = streamIdOf(event.envelope);
      this.#begin(event, streamId);
    } catch (thrown) {
      this.#outlet.say(errorText(toGatewayError(thrown), streamId));
    }
  }

  #begin(event: TurnEvent, streamId: string | undefined): void {
    const { gateway, ws } = this.#options;
    if (event.kind === 'append' && this.#version === 'v2') throw invalidEvent('response.append is not supported.', 'type');
    if (this.#state === 'busy' || this.#state === 'queued') {
      throw new GatewayError('websocket_busy', 'A response is being generated on this connection: wait for its end.');
    }
    if (this.#state === 'leaving' || this.#state === 'closed')
      throw new GatewayError('shutting_down', 'The gateway is shutting down.');
    const { turns, lifetimeMs } = gateway.config.current().websocket;
    const now = gateway.clock.monotonic();
    if (this.#turns >= turns || now - this.#openedAt >= lifetimeMs) {
      // Nothing was done for this turn, so that the client can repeat it on a new connection (known failure W11).
      this.#outlet.say(errorText(limitReached(), streamId));
      this.#move('leave');
      ws.close(CLOSE.normal, 'connection limit reached');
      return;
    }
    if (event.kind === 'append') this.#version = 'v1';
    this.#turns += 1;
    this.#lastTurnAt = now;
    const isIdle = this.#state === 'idle';
    this.#move('turn');
    if (isIdle) void this.#run(event, streamId);
    else this.#queued = { event, streamId };
  }

  #cancel(): void {
    this.#turn?.abort(new GatewayError('client_closed_request', 'The response was cancelled.', { shownCode: 'cancelled' }));
  }

  /** One turn from its authentication to its settled end. Never rejects. */
  async #run(event: TurnEvent, streamId: string | undefined): Promise<void> {
    const { gateway, ws } = this.#options;
    const turn = new AbortController();
    this.#turn = turn;
    const call = this.#asking(turn.signal);
    const startedAt = gateway.clock.monotonic();
    gateway.metrics.requestStarted(call.route);
    let failure: GatewayError | undefined;
    try {
      await this.#answer(call, event, { isV1: this.#version === 'v1', streamId });
    } catch (thrown) {
      failure = toGatewayError(thrown);
      if (failure.code === 'internal_error') {
        gateway.log.error({ request_id: call.requestId, err: failure.details.cause }, 'turn failed');
      }
      logRefusal(call, failure);
      const { reason } = turn.signal;
      this.#outlet.say(errorText(isClientGone(failure) && reason instanceof GatewayError ? reason : failure, streamId));
    } finally {
      const status = failure?.status ?? 200;
      const code = failure?.code ?? call.notes.failure ?? '';
      call.trace?.end({ method: call.method, route: call.path, status, code });
      gateway.metrics.requestEnded(call.route, status, code, (gateway.clock.monotonic() - startedAt) / 1000);
      this.#turn = undefined;
      this.#place?.release();
      this.#place = undefined;
      this.#lastTurnAt = gateway.clock.monotonic();
      this.#move('over');
      const next = this.#queued;
      this.#queued = undefined;
      if (next !== undefined && this.#state === 'busy') void this.#run(next.event, next.streamId);
      // A key that is not valid any more has no business with what this connection retains.
      if (failure?.code === 'unauthorized') ws.close(CLOSE.policy, 'unauthorized');
      else if (this.#state === 'leaving') ws.close(CLOSE.goingAway, 'shutting down');
    }
  }

  async #answer(call: Asking, event: TurnEvent, spelling: Spelling): Promise<void> {
    const { gateway, codec } = this.#options;
    const principal = await identify(call);
    this.#place = gateway.keySlots.take(principal.key.id, sizeOf(event), call.config.limits.key);
    const body = event.kind === 'create' ? event : this.#continued(event.input);
    const past = await this.#find(principal, body.json);
    this.#checkSize(call, past, body);
    const { text, json } = body;
    const onTurn = (turn: PastTurn, answered: Answered): void => this.#retain(turn, answered, text);
    const asked: Asked = { ...recall({ gateway, principal, text, json, past, onTurn }), stream: true };
    if (event.envelope['generate'] === false) {
      const frames = await warmUp(call, codec, asked).catch((thrown: unknown) => {
        throw atClientPath(thrown, asked.own);
      });
      await this.#outlet.writer().write(frames.map((frame) => eventText(frame, spelling)));
      return;
    }
    const reply: Reply = {
      answer: ({ body: whole }) => this.#outlet.say(typeof whole === 'string' ? whole : Buffer.from(whole).toString()),
      commit: () => new Committed(this.#outlet.writer(), (frame) => this.#spell(frame, spelling)),
    };
    await answerText(call, codec, asked, reply);
  }

  #spell(frame: Frame, spelling: Spelling): string {
    if (ENDINGS.has(frame.event ?? '')) this.#move('said');
    return eventText(frame, spelling);
  }

  /** The last create with new input, for the one client that continues so. */
  #continued(input: string): { readonly text: string; readonly json: JsonObject } {
    const { id, controls } = this.#retained ?? {};
    if (id === undefined || controls === undefined) {
      throw new GatewayError('previous_response_not_found', 'There is no response on this connection to append to.', {
        param: 'previous_response_id',
      });
    }
    const text = editJson(controls.toString(), [
      { path: ['previous_response_id'], value: JSON.stringify(id) },
      { path: ['input'], value: input },
    ]);
    const json = parseJson(text);
    if (!isObject(json)) throw new Error('a create is an object');
    return { text, json };
  }

  async #find(principal: Principal, json: JsonObject): Promise<PastTurn | undefined> {
    const id = previousIdOf(json);
    if (id === undefined) return undefined;
    if (this.#retained?.id === id) return this.#retained.turn;
    const past = await this.#options.gateway.memory.find(id, ownerOf(principal));
    if (past === undefined) throw previousResponseNotFound(id);
    return past;
  }

  #checkSize(
    call: Asking,
    past: PastTurn | undefined,
    { text, json }: { readonly text: string; readonly json: JsonObject },
  ): void {
    if (past === undefined) return;
    const { input } = json;
    const items = Array.isArray(input) ? input.length : 1;
    if (past.totalItems + items <= MAX_HISTORY_ITEMS && past.totalBytes + text.length <= call.config.history.entryBytes) return;
    throw new GatewayError(
      'websocket_history_limit_exceeded',
      'The conversation is too large to be continued on this connection.',
    );
  }

  /** An answer that was cut leaves what could be continued before; one too large to be continued leaves nothing. */
  #retain(turn: PastTurn, { responseId: id, status }: Answered, text: string): void {
    if (status !== 'completed' || this.#state === 'closed') return;
    const { entryBytes } = this.#options.gateway.config.current().history;
    if (turn.totalItems > MAX_HISTORY_ITEMS || turn.totalBytes > entryBytes) {
      this.#retained = undefined;
      return;
    }
    const controls = this.#version === 'v2' ? undefined : controlsOf(text);
    this.#retained = { id, turn, controls };
  }

  #asking(gone: AbortSignal): Asking {
    const { gateway, request, path, ip, clientRequestId } = this.#options;
    const trace = gateway.tracer.start(request.headers);
    return {
      gateway,
      config: gateway.config.current(),
      request,
      path,
      route: 'responses',
      method: 'GET',
      requestId: gateway.mint('req_'),
      ...(clientRequestId === undefined ? {} : { clientRequestId }),
      startedAtMs: gateway.clock.now(),
      ip,
      gone,
      notes: {},
      ...(trace === undefined ? {} : { trace }),
    };
  }
}

function sizeOf(event: TurnEvent): number {
  return event.kind === 'create' ? event.text.length : event.input.length;
}

function limitReached(): GatewayError {
  return new GatewayError(
    'websocket_connection_limit_reached',
    'Responses websocket connection limit reached. Create a new websocket connection to continue.',
  );
}

function controlsOf(text: string): Buffer {
  return Buffer.from(
    editJson(text, [
      { path: ['input'], value: undefined },
      { path: ['previous_response_id'], value: undefined },
      // A warm-up is followed by a question.
      { path: ['generate'], value: undefined },
    ]),
  );
}

function streamIdOf(envelope: JsonObject): string | undefined {
  const id = envelope['stream_id'];
  return typeof id === 'string' && id.length <= 256 ? id : undefined;
}

function bytesOf(data: RawData): Uint8Array {
  if (Buffer.isBuffer(data)) return data;
  return Array.isArray(data) ? Buffer.concat(data) : Buffer.from(data);
}
