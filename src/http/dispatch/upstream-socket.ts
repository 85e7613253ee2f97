/**
 * A WebSocket of an upstream, on a connection from the Channel's own pool: the same proxy, certificates and credential as its
 * requests have. Whole text messages in both directions; pings are answered. Knows no event.
 */
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import type { Duplex } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import { type Dispatcher, errors } from 'undici';
import { Receiver, Sender } from 'ws';
import type { Clock, Timer } from '../../streams/clock.ts';
import { StreamError } from '../../streams/stream-error.ts';
import { TextLine } from '../../streams/text-line.ts';
import { LONG_CHARS } from '../../streams/text-pieces.ts';
import { headerOf, type UpstreamHead } from './upstream-call.ts';

/** RFC 6455, section 1.3. */
const ACCEPT_GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
const VERSION = '13';
const CLOSE_NORMAL = 1000;
/** How long an upstream may take to close its side of a connection that was closed from here. */
const CLOSE_MS = 5_000;
/**
 * What a message may be cut into, by its frames and by the network. Each piece takes some hundred bytes beside its own, until the
 * message is whole: one of 64 MiB in pieces of a byte would fill the memory.
 */
const MAX_PIECES = 64 * 1024;

/** What the upstream answered to the handshake. */
export type Handshake =
  | { readonly kind: 'open'; readonly socket: Duplex; readonly headers: UpstreamHead['headers'] }
  | { readonly kind: 'refused'; readonly status: number };

export interface SocketListener {
  /** One whole text message. The next one waits until what this returns has settled. */
  onMessage(bytes: Buffer): Promise<void> | undefined;
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
  readonly #line: TextLine;
  #failure: Error | undefined;
  #listener: SocketListener | undefined;
  #bytesRead = 0;
  /** Its reader has enough for now. */
  #held = false;
  /** What came behind a message that is still being read; undefined while none is. */
  #unread: Buffer[] | undefined;
  /** The last ping that came while the upstream took nothing: only that one is answered then (RFC 6455, section 5.5.3). */
  #unanswered: Buffer | undefined;

  /** A message of more than `maxMessageBytes` ends the connection. */
  constructor({ socket, headers }: Handshake & { readonly kind: 'open' }, maxMessageBytes: number, clock: Clock) {
    this.requestId = headerOf(headers, 'x-request-id');
    this.#clock = clock;
    this.#socket = socket;
    this.#maxMessageBytes = maxMessageBytes;
    this.#sender = new Sender(socket);
    this.#line = new TextLine({
      // Others have a turn between two pieces.
      enter: () => setImmediate(),
      put: (piece, isLast) => this.#put(piece, isLast),
      drained: () => (socket.writableNeedDrain ? this.#drained() : undefined),
    });
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
    const receiver = new Receiver({
      isServer: false,
      maxPayload: this.#maxMessageBytes,
      maxFragments: MAX_PIECES,
      maxBufferedChunks: MAX_PIECES,
    });
    receiver.on('message', (data: Buffer, isBinary: boolean) => {
      if (isBinary) this.#fail(new StreamError('damaged_event', 'a binary message'));
      else this.#deliver(data);
    });
    receiver.on('ping', (data: Buffer) => this.#answer(data));
    receiver.on('conclude', () => this.#fail(closed()));
    receiver.on('error', (error: Error) => this.#fail(frameError(error, this.#maxMessageBytes)));
    receiver.on('drain', () => this.#goOn());
    socket.on('data', (bytes: Buffer) => {
      this.#bytesRead += bytes.length;
      if (!receiver.write(bytes)) socket.pause();
    });
    socket.resume();
  }

  /** A long text leaves in fragments, in several turns of the event loop; what is sent meanwhile follows it. */
  send(text: string): void {
    if (!this.#line.isBusy && text.length <= LONG_CHARS) this.#put(text, true);
    // The end of the connection is told to its listener.
    else void this.#line.add([text]).catch(() => undefined);
  }

  #put(piece: string, isLast: boolean): void {
    if (this.#socket.destroyed) return;
    this.#sender.send(piece, { fin: isLast, mask: true, binary: false, compress: false });
  }

  #answer(ping: Buffer): void {
    const socket = this.#socket;
    if (!socket.writableNeedDrain) {
      this.#sender.pong(ping, true);
      return;
    }
    if (this.#unanswered === undefined) socket.once('drain', () => this.#answerLast());
    this.#unanswered = ping;
  }

  #answerLast(): void {
    const ping = this.#unanswered;
    this.#unanswered = undefined;
    if (ping !== undefined && !this.#socket.destroyed) this.#sender.pong(ping, true);
  }

  async #drained(): Promise<void> {
    const left = new AbortController();
    const { signal } = left;
    try {
      await Promise.race([once(this.#socket, 'drain', { signal }), once(this.#socket, 'close', { signal })]);
    } finally {
      left.abort();
    }
  }

  #deliver(bytes: Buffer): void {
    if (this.#unread !== undefined) {
      this.#unread.push(bytes);
      return;
    }
    const reading = this.#listener?.onMessage(bytes);
    if (reading === undefined) return;
    this.#unread = [];
    this.#socket.pause();
    reading.then(
      () => this.#deliverRest(),
      (error: Error) => {
        this.#unread = undefined;
        this.#fail(error);
      },
    );
  }

  #deliverRest(): void {
    const waiting = this.#unread ?? [];
    this.#unread = undefined;
    for (const bytes of waiting) this.#deliver(bytes);
    if (this.#unread !== undefined) return;
    if (this.#failure === undefined) this.#goOn();
    else this.#tell(this.#failure);
  }

  /** Unless its reader holds it, or a message is being read. */
  #goOn(): void {
    if (!this.#held && this.#unread === undefined) this.#socket.resume();
  }

  pause(): void {
    this.#held = true;
    this.#socket.pause();
  }

  resume(): void {
    this.#held = false;
    this.#goOn();
  }

  /** In good order, where nothing is under way. An upstream that does not close its side in time is cut off. */
  close(): void {
    if (this.#listener === undefined) return;
    this.#listener = undefined;
    const socket = this.#socket;
    const timer = this.#clock.setTimeout(() => socket.destroy(), CLOSE_MS);
    socket.once('close', () => timer.cancel());
    socket.resume();
    const end = (): void => {
      if (socket.destroyed) return;
      this.#sender.close(CLOSE_NORMAL, '', true);
      socket.end();
    };
    if (this.#line.isBusy) void this.#line.add([]).then(end, end);
    else end();
  }

  /** At once: what the upstream is generating is of no use to anybody. */
  cut(): void {
    this.#listener = undefined;
    this.#socket.destroy();
  }

  /** What came before the end is read before it is told. */
  #fail(error: Error): void {
    this.#failure ??= error;
    this.#socket.destroy();
    if (this.#unread === undefined) this.#tell(this.#failure);
  }

  #tell(failure: Error): void {
    const listener = this.#listener;
    this.cut();
    listener?.onClosed(failure);
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
