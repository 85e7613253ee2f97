/**
 * Reads the messages of one WebSocket into events, in the order in which they came: a small one at once, a large one in several
 * turns of the event loop, once it is known that its key has money. While one is read, the connection is paused.
 */
import type { RawData } from 'ws';
import type { GatewayError } from '../../codecs/canonical/error.ts';
import { atOnce } from '../../codecs/steps.ts';
import { toGatewayError } from '../errors.ts';
import type { Gateway } from '../gateway.ts';
import type { KeySlot } from '../request/key-slots.ts';
import { valueLimit } from '../request/body.ts';
import { isLarge } from '../request/large-work.ts';
import { checkSolvent } from '../request/solvency.ts';
import { type ClientEvent, readClientEvent } from './client-event.ts';
import type { ClientSocket } from './client-socket.ts';

export interface MessageReaderOptions {
  readonly gateway: Gateway;
  readonly ws: Pick<ClientSocket, 'pause' | 'resume'>;
  readonly keyId: string;
  readonly isClosed: () => boolean;
  /** `read` gives the event, or throws what is wrong with the message; the slot holds what the message takes. */
  readonly take: (slot: KeySlot, read: () => ClientEvent) => void;
  /** The message was not read: its key has no money, or nobody knows. */
  readonly onUnpaid: (error: GatewayError) => void;
}

export class MessageReader {
  readonly #options: MessageReaderOptions;
  /** Settled when every message so far was read; undefined while none waits. */
  #reading: Promise<void> | undefined;

  constructor(options: MessageReaderOptions) {
    this.#options = options;
  }

  read(data: RawData, isBinary: boolean): void {
    const bytes = bytesOf(data);
    const { gateway, ws } = this.#options;
    const before = this.#reading;
    const entered = before === undefined ? gateway.turns.enter(ws) : undefined;
    if (before === undefined && entered === undefined && !isLarge(bytes)) {
      this.#readEvent(bytes, isBinary);
      return;
    }
    ws.pause();
    const reading = (before ?? entered ?? Promise.resolve()).then(async () => {
      if (before !== undefined) await gateway.turns.enter(ws);
      await this.#readLate(bytes, isBinary);
    });
    this.#reading = reading;
    void reading.finally(() => {
      if (this.#reading !== reading) return;
      this.#reading = undefined;
      ws.resume();
    });
  }

  async #readLate(bytes: Uint8Array, isBinary: boolean): Promise<void> {
    const { isClosed, onUnpaid } = this.#options;
    if (isClosed()) return;
    const error = await this.#unpaid(bytes.length);
    if (error === undefined) await this.#readEvent(bytes, isBinary);
    else onUnpaid(error);
  }

  async #unpaid(bytes: number): Promise<GatewayError | undefined> {
    const { gateway, keyId } = this.#options;
    try {
      await checkSolvent(gateway.solvency, keyId, bytes);
      return undefined;
    } catch (thrown) {
      return toGatewayError(thrown);
    }
  }

  /** A promise where the message is so large that it is read in several turns of the event loop. */
  #readEvent(bytes: Uint8Array, isBinary: boolean): Promise<void> | undefined {
    const { gateway, keyId, take } = this.#options;
    const { limits } = gateway.config.current();
    const slot = gateway.keySlots.hold(keyId, limits.key);
    const weigh = (values: number, characters: number): void => slot.setWeight(bytes.length, values, characters);
    const steps = readClientEvent(bytes, isBinary, valueLimit(limits, weigh));
    if (isLarge(bytes)) return this.#takeLate(slot, gateway.largeWork.run(steps));
    take(slot, () => atOnce(steps));
    return undefined;
  }

  async #takeLate(slot: KeySlot, reading: Promise<ClientEvent>): Promise<void> {
    const [read] = await Promise.allSettled([reading]);
    this.#options.take(slot, () => {
      if (read.status === 'rejected') throw read.reason;
      return read.value;
    });
  }
}

function bytesOf(data: RawData): Uint8Array {
  if (Buffer.isBuffer(data)) return data;
  return Array.isArray(data) ? Buffer.concat(data) : Buffer.from(data);
}
