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
import { LONG_CHARS, textPieces } from '../../streams/text-pieces.ts';
import type { Turns } from '../../streams/turns.ts';

/** A turn reads no further while this much waits for the client. */
const HIGH_WATER_BYTES = 1024 * 1024;
/** The backlog of messages without back-pressure (refusals, pongs) at which a client is disconnected. */
const MAX_BACKLOG_BYTES = 4 * HIGH_WATER_BYTES;

export interface OutletOptions {
  readonly clock: Clock;
  readonly stallMs: number;
  /** Each piece of a long message waits for its turn of the event loop, as one of `party`. */
  readonly turns: Turns;
  readonly party: string;
}

export class Outlet {
  readonly #ws: WebSocket;
  readonly #socket: Socket;
  readonly #options: OutletOptions;
  #stallMs: number;
  /** Settles when the last of the messages that stand in line is out; nothing may come between the pieces of a long one. */
  #line: Promise<void> | undefined;
  /** Characters of the messages without back-pressure that stand in line. */
  #queued = 0;
  #stall: StallWatch | undefined;
  #gone: StreamError | undefined;
  #waiter: { readonly resolve: () => void; readonly reject: (reason: StreamError) => void } | undefined;

  constructor(ws: WebSocket, socket: Socket, options: OutletOptions) {
    this.#ws = ws;
    this.#socket = socket;
    this.#options = options;
    this.#stallMs = options.stallMs;
  }

  /** One message without back-pressure. */
  send(text: string): void {
    if (this.#gone !== undefined || !this.#checkBacklog()) return;
    if (this.#line === undefined) {
      this.#ws.send(text);
      return;
    }
    this.#queued += text.length;
    void this.#inLine([text]).then(
      () => {
        this.#queued -= text.length;
      },
      // The client is gone.
      () => undefined,
    );
  }

  pong(data: Buffer): void {
    if (this.#gone === undefined && this.#checkBacklog()) this.#ws.pong(data);
  }

  ping(): void {
    if (this.#gone === undefined) this.#ws.ping();
  }

  /** The connection has closed: a waiting write is rejected. */
  close(): void {
    this.#gone ??= new StreamError('client_gone', 'the client closed the connection');
    this.#stall?.stop();
    this.#waiter?.reject(this.#gone);
    this.#waiter = undefined;
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
    if (this.#gone !== undefined) throw this.#gone;
  }

  #write(messages: readonly string[]): Promise<void> | undefined {
    if (this.#gone !== undefined) throw this.#gone;
    if (this.#line !== undefined || messages.some(isLong)) return this.#inLine(messages);
    this.#socket.cork();
    for (const message of messages) this.#ws.send(message);
    this.#socket.uncork();
    return this.#ws.bufferedAmount < HIGH_WATER_BYTES ? undefined : this.#drained();
  }

  /** After what stands in line already. Settles when more may follow. */
  #inLine(messages: readonly string[]): Promise<void> {
    const sent = (this.#line ?? Promise.resolve()).then(() => this.#writePieces(messages));
    this.#line = sent;
    const leave = (): void => {
      if (this.#line === sent) this.#line = undefined;
    };
    sent.then(leave, leave);
    return sent;
  }

  async #writePieces(messages: readonly string[]): Promise<void> {
    const { turns, party } = this.#options;
    for (const message of messages) {
      const pieces = textPieces(message);
      let rest = message.length;
      do {
        // The first piece of a text that was put together copies all of it: it is made in its own turn, too.
        const entered = turns.enter(party);
        if (entered !== undefined) await entered;
        if (this.#gone !== undefined) throw this.#gone;
        const piece = pieces.next().value ?? '';
        rest -= piece.length;
        this.#ws.send(piece, { fin: rest === 0 });
        if (this.#ws.bufferedAmount >= HIGH_WATER_BYTES) await this.#drained();
      } while (rest > 0);
    }
  }

  #drained(): Promise<void> {
    this.#stall ??= new StallWatch(
      this.#options.clock,
      this.#stallMs,
      () => this.#ws.bufferedAmount + bytesUnderWay(this.#socket),
      () => this.#ws.terminate(),
    );
    this.#stall.start();
    return new Promise((resolve, reject) => {
      this.#waiter = { resolve, reject };
      this.#socket.once('drain', () => {
        this.#stall?.clear();
        this.#waiter = undefined;
        resolve();
      });
    });
  }

  #checkBacklog(): boolean {
    if (this.#ws.bufferedAmount + this.#queued <= MAX_BACKLOG_BYTES) return true;
    this.#ws.terminate();
    return false;
  }
}

function isLong({ length }: string): boolean {
  return length > LONG_CHARS;
}
