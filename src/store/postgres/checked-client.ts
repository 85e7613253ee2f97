/**
 * The driver's client, with what it leaves out: what a database says is checked before the driver reads it, and a connection ends
 * even where its other end never answers. Unchecked, a wrong byte of a server or of a proxy is an exception that nobody catches,
 * and an error without its last byte a loop without an end.
 */
import { Client, type ClientConfig } from 'pg';
import { MessageCheck, ProtocolViolation } from './message-check.ts';

/** How long the other end may take to close a connection that was ended. */
const GOODBYE_MS = 1_000;

/** What the driver's reader uses of a stream. */
interface Listening {
  on(event: 'data' | 'end', listener: (bytes: Buffer) => void): unknown;
}

/** The part of the driver's connection that is handed what it reads from: a socket, or TLS. */
interface Attaching {
  attachListeners(stream: Listening): void;
}

export class CheckedClient extends Client {
  #patience: NodeJS.Timeout | undefined;

  constructor(config?: string | ClientConfig) {
    super(config);
    // The driver reports a connection's end twice: to the query, and as an event. While the pool hands the connection over nobody
    // else listens yet, and an event of errors that nobody hears ends the process.
    this.on('error', () => undefined);
    // Not in its typings; a version that named it otherwise would fail here at every start.
    const connection: object = this.connection;
    if (!isAttaching(connection)) throw new TypeError('this version of the driver reads its connections in another way');
    const attach = connection.attachListeners.bind(connection);
    Object.assign(connection, { attachListeners: (stream: Listening) => attach(checked(stream)) });
    this.connection.once('end', () => clearTimeout(this.#patience));
    // Who refuses a connection closes it, or it would be left open for ever.
    const refused = (): void => void this.end();
    this.connection.once('errorMessage', refused);
    this.once('connect', () => this.connection.off('errorMessage', refused));
  }

  override end(): Promise<void>;
  override end(callback: (error: Error) => void): void;
  override end(callback?: (error: Error) => void): Promise<void> | undefined {
    this.#patience ??= setTimeout(() => this.connection.stream.destroy(), GOODBYE_MS).unref();
    if (callback === undefined) return super.end();
    super.end(callback);
    return undefined;
  }
}

function isAttaching(connection: object): connection is Attaching {
  return 'attachListeners' in connection && typeof connection.attachListeners === 'function';
}

/** The stream, as far as the driver's reader uses it. What is no message ends the connection, as a reset does. */
function checked(stream: Listening & { destroy?(error: Error): void }): Listening {
  const check = new MessageCheck();
  return {
    on(event, listener) {
      if (event !== 'data') return stream.on(event, listener);
      return stream.on('data', (bytes) => {
        try {
          check.push(bytes);
          listener(bytes);
        } catch (error) {
          stream.destroy?.(violationOf(error));
        }
      });
    },
  };
}

function violationOf(error: unknown): ProtocolViolation {
  if (error instanceof ProtocolViolation) return error;
  const why = error instanceof Error ? error.message : String(error);
  return new ProtocolViolation(`what the database said could not be read: ${why}`, { cause: error });
}
