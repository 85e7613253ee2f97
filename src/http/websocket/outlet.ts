/**
 * The one writer of a session: whole messages, a batch in one system call, back-pressure by the bytes that the socket has not
 * sent. A client that stops reading is disconnected. Knows no event.
 */
import type { Socket } from 'node:net';
import type { WebSocket } from 'ws';
import type { Clock } from '../../streams/clock.ts';
import type { ResponseWriter } from '../../streams/response-writer.ts';
import { bytesUnderWay, StallWatch } from '../../streams/stall-watch.ts';
import { StreamError } from '../../streams/stream-error.ts';
import { TextLine } from '../../streams/text-line.ts';
import { LONG_CHARS } from '../../streams/text-pieces.ts';
import type { LoopTurns } from '../../streams/loop-turns.ts';

/** A turn reads no further while this much waits for the client. */
const HIGH_WATER_BYTES = 1024 * 1024;
/** The backlog of messages without back-pressure (refusals, pongs) at which a client is disconnected. */
const MAX_BACKLOG_BYTES = 4 * HIGH_WATER_BYTES;
/** What a pong that waits takes, beside its own bytes: of empty ones two million would have room in the backlog. */
const PONG_BYTES = 256;

export interface OutletOptions {
  readonly clock: Clock;
  readonly stallMs: number;
  /** Each piece of a long message waits for its turn of the event loop, as one of `party`. */
  readonly turns: LoopTurns;
  readonly party: string;
}

export class Outlet {
  readonly #ws: WebSocket;
  readonly #socket: Socket;
  readonly #clock: Clock;
  #stallMs: number;
  readonly #line: TextLine;
  /** Characters of the messages without back-pressure that stand in line. */
  #queued = 0;
  /** Pongs that the socket has not taken. */
  #pongs = 0;
  #stall: StallWatch | undefined;
  #gone: StreamError | undefined;
  /** What all who wait for the client wait for: a turn, and long messages beside it. */
  #draining: PromiseWithResolvers<void> | undefined;

  constructor(ws: WebSocket, socket: Socket, options: OutletOptions) {
    this.#ws = ws;
    this.#socket = socket;
    this.#clock = options.clock;
    this.#stallMs = options.stallMs;
    this.#line = new TextLine({
      enter: () => this.#enter(options),
      put: (piece, fin) => ws.send(piece, { fin }),
      drained: () => (ws.bufferedAmount < HIGH_WATER_BYTES ? undefined : this.#drained()),
    });
  }

  /** Messages without back-pressure: what they hold waits for the client, however much that is, and nothing more behind it. */
  send(...texts: readonly string[]): void {
    if (texts.length === 0 || this.#gone !== undefined || !this.#checkBacklog(this.#queued)) return;
    if (!this.#line.isBusy && !texts.some(isLong)) {
      for (const text of texts) this.#ws.send(text);
      return;
    }
    const length = texts.reduce((sum, text) => sum + text.length, 0);
    this.#queued += length;
    void this.#line.add(texts).then(
      () => {
        this.#queued -= length;
      },
      // The client is gone.
      () => undefined,
    );
  }

  /** A message whose sender waits until more may follow: settles then, undefined where it may at once. Never rejects. */
  relay(text: string): Promise<void> | undefined {
    if (this.#gone !== undefined) return undefined;
    // Where the client is gone nobody needs to be held up.
    return this.#write([text])?.catch(() => undefined);
  }

  /** Between the pieces of a long message, so what stands in line is no backlog of theirs. */
  pong(data: Buffer): void {
    if (this.#gone !== undefined || !this.#checkBacklog(this.#pongs * PONG_BYTES)) return;
    this.#pongs += 1;
    this.#ws.pong(data, false, this.#onPong);
  }

  readonly #onPong = (): void => {
    this.#pongs -= 1;
  };

  ping(): void {
    if (this.#gone === undefined) this.#ws.ping();
  }

  /** The connection has closed: a waiting write is rejected. */
  close(): void {
    this.#gone ??= new StreamError('client_gone', 'the client closed the connection');
    this.#stall?.stop();
    this.#draining?.reject(this.#gone);
    this.#draining = undefined;
  }

  /** The writer of one turn. Its end leaves the connection open. */
  writer(): ResponseWriter {
    return {
      gone: () => this.#gone,
      write: (messages) => this.#write(messages),
      end: (messages = []) => this.#end(messages),
      destroy: () => this.#ws.terminate(),
      waitAtMost: (stallMs) => {
        this.#stallMs = stallMs;
        this.#stall?.waitAtMost(stallMs);
      },
    };
  }

  async #end(messages: readonly string[]): Promise<void> {
    if (messages.length > 0) await this.#write(messages);
    this.#check();
  }

  #write(messages: readonly string[]): Promise<void> | undefined {
    this.#check();
    if (this.#line.isBusy || messages.some(isLong)) return this.#line.add(messages);
    this.#socket.cork();
    for (const message of messages) this.#ws.send(message);
    this.#socket.uncork();
    return this.#ws.bufferedAmount < HIGH_WATER_BYTES ? undefined : this.#drained();
  }

  /** Throws once the client is gone, also where it left meanwhile. */
  #enter({ turns, party }: OutletOptions): Promise<void> | undefined {
    const entered = turns.enter(party);
    if (entered !== undefined) return entered.then(() => this.#check());
    this.#check();
    return undefined;
  }

  #check(): void {
    if (this.#gone !== undefined) throw this.#gone;
  }

  #drained(): Promise<void> {
    this.#stall ??= new StallWatch(
      this.#clock,
      this.#stallMs,
      () => this.#ws.bufferedAmount + bytesUnderWay(this.#socket),
      () => this.#ws.terminate(),
    );
    // Also where somebody waits already: more is to be taken from now on.
    this.#stall.start();
    this.#draining ??= this.#awaitDrain();
    return this.#draining.promise;
  }

  #awaitDrain(): PromiseWithResolvers<void> {
    const draining = Promise.withResolvers<void>();
    this.#socket.once('drain', () => {
      this.#stall?.clear();
      this.#draining = undefined;
      draining.resolve();
    });
    return draining;
  }

  #checkBacklog(queued: number): boolean {
    if (this.#ws.bufferedAmount + queued <= MAX_BACKLOG_BYTES) return true;
    this.#ws.terminate();
    return false;
  }
}

function isLong({ length }: string): boolean {
  return length > LONG_CHARS;
}
