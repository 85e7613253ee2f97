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

/** A turn reads no further while this much waits for the client. */
const HIGH_WATER_BYTES = 1024 * 1024;
/** The backlog of messages without back-pressure (refusals, pongs) at which a client is disconnected. */
const MAX_BACKLOG_BYTES = 4 * HIGH_WATER_BYTES;

export class Outlet {
  readonly #ws: WebSocket;
  readonly #socket: Socket;
  readonly #clock: Clock;
  #stallMs: number;
  #stall: StallWatch | undefined;
  #gone: StreamError | undefined;
  #waiter: { readonly resolve: () => void; readonly reject: (reason: StreamError) => void } | undefined;

  constructor(ws: WebSocket, socket: Socket, clock: Clock, stallMs: number) {
    this.#ws = ws;
    this.#socket = socket;
    this.#clock = clock;
    this.#stallMs = stallMs;
  }

  /** One message without back-pressure. */
  send(text: string): void {
    if (this.#gone === undefined && this.#checkBacklog()) this.#ws.send(text);
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
    this.#socket.cork();
    for (const message of messages) this.#ws.send(message);
    this.#socket.uncork();
    return this.#ws.bufferedAmount < HIGH_WATER_BYTES ? undefined : this.#drained();
  }

  #drained(): Promise<void> {
    this.#stall ??= new StallWatch(
      this.#clock,
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
    if (this.#ws.bufferedAmount <= MAX_BACKLOG_BYTES) return true;
    this.#ws.terminate();
    return false;
  }
}
