/**
 * What a client is sending on a connection and has not finished: bounded in bytes for each key, counted among what the key holds,
 * and in time. Knows no event.
 */
import type { Socket } from 'node:net';
import type { Clock, Timer } from '../../streams/clock.ts';
import type { Config } from '../config/config.ts';
import type { KeySlot, KeySlots } from '../request/key-slots.ts';
import { MessageMeter } from './message-meter.ts';

/** From the first to the last byte of a message. */
const MESSAGE_MS = 30_000;

/** The unfinished messages of each key in this process. */
export class UnfinishedBytes {
  readonly #byKey = new Map<string, number>();

  /** Bytes of all keys. */
  get total(): number {
    return [...this.#byKey.values()].reduce((sum, bytes) => sum + bytes, 0);
  }

  /** Returns what the key has now. */
  add(keyId: string, more: number): number {
    const sum = (this.#byKey.get(keyId) ?? 0) + more;
    if (sum === 0) this.#byKey.delete(keyId);
    else this.#byKey.set(keyId, sum);
    return sum;
  }
}

export interface InboundOptions {
  readonly socket: Socket;
  readonly clock: Clock;
  readonly keyId: string;
  readonly unfinished: UnfinishedBytes;
  readonly keySlots: KeySlots;
  readonly config: () => Pick<Config, 'limits' | 'websocket'>;
  /** Called at most once; nothing more is kept of what the client sends. */
  readonly onRefused: (why: 'too_much' | 'too_slow') => void;
}

export class Inbound {
  readonly #options: InboundOptions;
  readonly #meter = new MessageMeter();
  readonly #slot: KeySlot;
  #counted = 0;
  #finished = 0;
  #timer: Timer | undefined;
  #refused = false;

  constructor(options: InboundOptions) {
    this.#options = options;
    this.#slot = options.keySlots.hold(options.keyId, options.config().limits.key);
    // Before the library's own listener: a message that this piece completes is then no unfinished one any more.
    options.socket.prependListener('data', this.#onData);
  }

  close(): void {
    this.#options.socket.off('data', this.#onData);
    this.#timer?.cancel();
    this.#count(0);
    this.#slot.release();
  }

  readonly #onData = (chunk: Buffer): void => {
    if (this.#refused) return;
    this.#meter.push(chunk);
    const { unfinished, finished } = this.#meter;
    if (finished !== this.#finished || unfinished === 0) {
      this.#finished = finished;
      this.#timer?.cancel();
      this.#timer = undefined;
    }
    if (unfinished > 0) this.#timer ??= this.#options.clock.setTimeout(() => this.#refuse('too_slow'), MESSAGE_MS);
    if (unfinished !== this.#counted && !this.#count(unfinished)) this.#refuse('too_much');
  };

  /** False where that is too much. */
  #count(bytes: number): boolean {
    const { keyId, unfinished, config } = this.#options;
    const sum = unfinished.add(keyId, bytes - this.#counted);
    this.#counted = bytes;
    try {
      this.#slot.setWeight(bytes);
    } catch {
      // The key, or the process, holds too much: on a connection that is the same refusal as too much of unfinished messages.
      return false;
    }
    return sum <= config().websocket.unfinishedBytes;
  }

  #refuse(why: 'too_much' | 'too_slow'): void {
    this.#refused = true;
    this.#timer?.cancel();
    const { socket, onRefused } = this.#options;
    // The library, too, must not keep what still arrives.
    socket.removeAllListeners('data');
    socket.resume();
    onRefused(why);
  }
}
