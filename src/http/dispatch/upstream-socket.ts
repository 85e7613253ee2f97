/**
 * A WebSocket of an upstream, on a connection from the Channel's own pool: the same proxy, certificates and credential as its
 * requests have. Whole text messages in both directions; pings are answered. Knows no event.
 */
import { createHash, randomBytes } from 'node:crypto';
import type { Duplex } from 'node:stream';
import { type Dispatcher, errors } from 'undici';
import { Receiver, Sender } from 'ws';
import type { Clock, Timer } from '../../streams/clock.ts';
import { StreamError } from '../../streams/stream-error.ts';
import { headerOf, type UpstreamHead } from './upstream-call.ts';

/** RFC 6455, section 1.3. */
const ACCEPT_GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
const VERSION = '13';
const CLOSE_NORMAL = 1000;
/** How long an upstream may take to close its side of a connection that was closed from here. */
const CLOSE_MS = 5_000;

/** What the upstream answered to the handshake. */
export type Handshake =
  | { readonly kind: 'open'; readonly socket: Duplex; readonly headers: UpstreamHead['headers'] }
  | { readonly kind: 'refused'; readonly status: number };

export interface SocketListener {
  /** One whole text message. */
  onMessage(bytes: Buffer): void;
  /** Called once, unless it was closed or cut from here before. */
  onClosed(error: Error): void;
}

export class UpstreamSocket {
  /** Of the handshake; empty where the upstream named none. */
  readonly requestId: string;
  readonly #socket: Duplex;
  readonly #maxMessageBytes: number;
  readonly #clock: Clock;
  readonly #sender;
  #failure: Error | undefined;
  #listener: SocketListener | undefined;
  #bytesRead = 0;
  /** Its reader has enough for now. */
  #held = false;

  /** A message of more than `maxMessageBytes` ends the connection. */
  constructor({ socket, headers }: Handshake & { readonly kind: 'open' }, maxMessageBytes: number, clock: Clock) {
    this.requestId = headerOf(headers, 'x-request-id');
    this.#clock = clock;
    this.#socket = socket;
    this.#maxMessageBytes = maxMessageBytes;
    this.#sender = new Sender(socket);
    socket.on('error', (error) => this.#fail(error));
    socket.on('close', () => this.#fail(closed()));
  }

  /** What has been read of it, without the handshake. */
  get bytesRead(): number {
    return this.#bytesRead;
  }

  /** From here on it is read. */
  listen(listener: SocketListener): void {
    if (this.#failure !== undefined) {
      listener.onClosed(this.#failure);
      return;
    }
    this.#listener = listener;
    const socket = this.#socket;
    const receiver = new Receiver({ isServer: false, maxPayload: this.#maxMessageBytes });
    receiver.on('message', (data: Buffer, isBinary: boolean) => {
      if (isBinary) this.#fail(new StreamError('damaged_event', 'a binary message'));
      else this.#listener?.onMessage(data);
    });
    receiver.on('ping', (data: Buffer) => this.#sender.pong(data, true));
    receiver.on('conclude', () => this.#fail(closed()));
    receiver.on('error', (error: Error) => this.#fail(frameError(error, this.#maxMessageBytes)));
    receiver.on('drain', () => this.#held || socket.resume());
    socket.on('data', (bytes: Buffer) => {
      this.#bytesRead += bytes.length;
      if (!receiver.write(bytes)) socket.pause();
    });
    socket.resume();
  }

  send(text: string): void {
    this.#sender.send(text, { fin: true, mask: true, binary: false, compress: false });
  }

  pause(): void {
    this.#held = true;
    this.#socket.pause();
  }

  resume(): void {
    this.#held = false;
    this.#socket.resume();
  }

  /** In good order, where nothing is under way. An upstream that does not close its side in time is cut off. */
  close(): void {
    if (this.#listener === undefined) return;
    this.#listener = undefined;
    this.#sender.close(CLOSE_NORMAL, '', true);
    const socket = this.#socket;
    const timer = this.#clock.setTimeout(() => socket.destroy(), CLOSE_MS);
    socket.once('close', () => timer.cancel());
    socket.resume();
    socket.end();
  }

  /** At once: what the upstream is generating is of no use to anybody. */
  cut(): void {
    this.#listener = undefined;
    this.#socket.destroy();
  }

  #fail(error: Error): void {
    this.#failure ??= error;
    const listener = this.#listener;
    this.cut();
    listener?.onClosed(error);
  }
}

function closed(): StreamError {
  return new StreamError('source_closed', 'the upstream closed the connection');
}

function frameError(error: Error, maxMessageBytes: number): StreamError {
  const isTooLarge = 'code' in error && error.code === 'WS_ERR_UNSUPPORTED_MESSAGE_LENGTH';
  return isTooLarge
    ? new StreamError('event_too_large', `an event of more than ${maxMessageBytes} bytes`, { cause: error })
    : new StreamError('damaged_event', error.message, { cause: error });
}

/** The handshake as undici calls its handlers. */
export class SocketUpgrade implements Dispatcher.DispatchHandler {
  /** Rejects with undici's error, or with the reason of {@link abort}. */
  readonly answered: Promise<Handshake>;
  readonly #resolve: (handshake: Handshake) => void;
  readonly #reject: (error: Error) => void;
  readonly #key = randomBytes(16).toString('base64');
  readonly #clock: Clock;
  readonly #waitMs: number;
  #timer: Timer | undefined;
  #controller: Dispatcher.DispatchController | undefined;
  #abortedFor: Error | undefined;

  /** `waitMs`: from the connection to the answer. */
  constructor(clock: Clock, waitMs: number) {
    const { promise, resolve, reject } = Promise.withResolvers<Handshake>();
    this.answered = promise;
    this.#clock = clock;
    this.#waitMs = waitMs;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  headers(): Record<string, string> {
    return { 'sec-websocket-key': this.#key, 'sec-websocket-version': VERSION };
  }

  abort(reason: Error): void {
    if (this.#abortedFor !== undefined) return;
    this.#abortedFor = reason;
    this.#fail(reason);
    this.#controller?.abort(reason);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#abortedFor !== undefined) controller.abort(this.#abortedFor);
    else
      this.#timer = this.#clock.setTimeout(() => this.abort(new StreamError('first_data_timeout', 'no handshake')), this.#waitMs);
  }

  onRequestUpgrade(
    _controller: Dispatcher.DispatchController,
    _status: number,
    headers: UpstreamHead['headers'],
    socket: Duplex,
  ): void {
    this.#timer?.cancel();
    // The connection is no request's any more.
    this.#controller = undefined;
    const accept = createHash('sha1')
      .update(this.#key + ACCEPT_GUID)
      .digest('base64');
    if (this.#abortedFor !== undefined || headerOf(headers, 'sec-websocket-accept') !== accept) {
      socket.on('error', () => undefined);
      socket.destroy();
      this.#fail(this.#abortedFor ?? new errors.HTTPParserError('the handshake was not answered as a WebSocket', undefined));
      return;
    }
    this.#resolve({ kind: 'open', socket, headers });
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number): void {
    if (status < 200) return;
    this.#timer?.cancel();
    this.#resolve({ kind: 'refused', status });
    // What it says beside its status is not read: the same request over HTTP is answered in full.
    controller.abort(new StreamError('cancelled', 'the upstream opens no WebSocket'));
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: Error): void {
    this.#fail(error);
  }

  #fail(error: Error): void {
    this.#timer?.cancel();
    this.#reject(error);
  }
}
