/**
 * Limits of one API key in this process: open exchanges (turns of a WebSocket included), and what their request bodies take in
 * memory, which has a limit for all keys together, too. Open WebSockets have a limit of their own, `websocket.per_key`.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { getHeapStatistics } from 'node:v8';
import { GatewayError } from '../../codecs/canonical/error.ts';
import type { Config, KeyLimits } from '../config/config.ts';
import { goneBecause } from '../errors.ts';

/** A call whose body is about to be received. */
interface Arrival {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly config: Pick<Config, 'limits'>;
  /** Aborted when the client has left. */
  readonly gone: AbortSignal;
}

/**
 * What one exchange, or one connection, of a key has in memory. Weights only ever refuse what would come on top: what a key sends
 * alone is bounded by the limits of a body.
 */
export interface KeySlot {
  /**
   * The size of what was received, how many JSON values it holds, and how many characters (UTF-16 units) its text has. Throws as
   * {@link KeySlots.acquire} where that is more than was expected.
   */
  setWeight(bytes: number, values?: number, characters?: number): void;
  /** The same for what has arrived so far: what was expected stays taken. */
  growTo(bytes: number): void;
  /** Calling it again does nothing. */
  release(): void;
}

interface KeyUsage {
  readonly exchanges: number;
  readonly bytes: number;
}

const NOTHING: KeyUsage = { exchanges: 0, bytes: 0 };

/** What a parsed JSON value takes, whatever its text: measured 40 to 90 bytes. */
const VALUE_BYTES = 100;
/** A compressed body is expected to become this much larger: what coding agents send shrinks to a tenth. */
const INFLATION = 20;
/** The size that is assumed for a body without a length. */
const UNDECLARED_BYTES = 1024 * 1024;
/** The share of the heap that request bodies may have: the text, its parsed values and what is made of them are each as large. */
const HEAP_SHARE = 4;

export class KeySlots {
  readonly #held = new Map<string, KeyUsage>();
  readonly #heapBytes: number;
  #bytes = 0;
  #values = 0;

  /** `heapBytes`: the most that the heap of this process may have. */
  constructor(heapBytes = getHeapStatistics().heap_size_limit) {
    this.#heapBytes = heapBytes;
  }

  /** Keys that hold anything now. */
  get size(): number {
    return this.#held.size;
  }

  /** The weight of all request bodies in this process. */
  get bytes(): number {
    return this.#bytes;
  }

  /** The JSON values of all request bodies in this process. */
  get values(): number {
    return this.#values;
  }

  /** Throws `rate_limited` for what is too much of this key, and `overloaded` for what is too much for this process. */
  acquire(keyId: string, bytes: number, limits: KeyLimits): KeySlot {
    const { exchanges } = this.#usageOf(keyId);
    if (exchanges >= limits.exchanges) throw tooMany('This API key has too many requests open at once.');
    return this.#slot(keyId, bytes, limits, 1);
  }

  /** Like {@link acquire} for what is no exchange: what a connection holds beside its turns. It begins with nothing. */
  hold(keyId: string, limits: KeyLimits): KeySlot {
    return this.#slot(keyId, 0, limits, 0);
  }

  #usageOf(keyId: string): KeyUsage {
    return this.#held.get(keyId) ?? NOTHING;
  }

  #slot(keyId: string, bytes: number, limits: KeyLimits, exchanges: 0 | 1): KeySlot {
    let mine = 0;
    let myValues = 0;
    let isOpen = true;
    const addValues = (more: number): void => {
      this.#values += more;
      myValues += more;
    };
    const change = (now: number): void => {
      this.#checkRoom(keyId, mine, now, limits);
      this.#add(keyId, 0, now - mine);
      mine = now;
    };
    change(bytes);
    this.#add(keyId, exchanges, 0);
    return {
      setWeight(size, values = 0, characters = size) {
        if (!isOpen) return;
        change(textBytes(size, characters) + values * VALUE_BYTES);
        addValues(values - myValues);
      },
      growTo(size) {
        if (isOpen && size > mine) change(size);
      },
      release: () => {
        if (!isOpen) return;
        isOpen = false;
        this.#add(keyId, -exchanges, -mine);
        addValues(-myValues);
      },
    };
  }

  /** Nothing is kept of keys that hold nothing. */
  #add(keyId: string, exchanges: number, bytes: number): void {
    const held = this.#usageOf(keyId);
    const now = { exchanges: held.exchanges + exchanges, bytes: held.bytes + bytes };
    this.#bytes += bytes;
    if (now.exchanges === 0 && now.bytes === 0) this.#held.delete(keyId);
    else this.#held.set(keyId, now);
  }

  /** Less than before is always taken, and so is what nothing stands beside. */
  #checkRoom(keyId: string, before: number, now: number, limits: KeyLimits): void {
    if (now <= before) return;
    const process = Math.min(limits.allBytes, this.#heapBytes / HEAP_SHARE);
    const others = this.#usageOf(keyId).bytes - before;
    // Half is left for the other keys.
    if (others > 0 && others + now > Math.min(limits.bodyBytes, process / 2))
      throw tooMany('This API key sends too many bytes at once.');
    const rest = this.#bytes - before;
    if (rest > 0 && rest + now > process)
      throw new GatewayError('overloaded', 'Too many bytes are being received at once.', { retryAfterMs: 1000 });
  }

  /**
   * {@link acquire} until the response closes; throws `client_closed_request` where it has. `maxBytes`: what a body may have at
   * most.
   */
  enter({ request, response, config, gone }: Arrival, keyId: string, maxBytes: number): KeySlot {
    // `close` was emitted already and will not come again. The signal follows it in a turn of its own, after those of others.
    // That a response is destroyed says less: a pipelined one, whose turn has not come, may be, and is answered.
    if (gone.aborted || response.closed) throw goneBecause(gone);
    const slot = this.acquire(keyId, expectedBytes(request, maxBytes), config.limits.key);
    response.on('close', slot.release);
    return slot;
  }
}

/** What a body is taken for until it is here. One that becomes more takes the rest while it arrives. */
function expectedBytes({ headers }: IncomingMessage, maxBytes: number): number {
  const declared = headers['transfer-encoding'] === undefined ? Number(headers['content-length'] ?? 0) : UNDECLARED_BYTES;
  return Math.min(headers['content-encoding'] === undefined ? declared : declared * INFLATION, maxBytes);
}

/** A text of ASCII alone takes a byte a character, and every other two: one emoji makes all of it twice as large. */
function textBytes(bytes: number, characters: number): number {
  return characters === bytes ? bytes : Math.max(bytes, 2 * characters);
}

function tooMany(message: string): GatewayError {
  return new GatewayError('rate_limited', message, { retryAfterMs: 1000 });
}
