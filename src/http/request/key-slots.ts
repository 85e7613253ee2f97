/**
 * Limits of one API key in this process: open exchanges (turns of a WebSocket included), and bytes of request bodies in memory. Open
 * WebSockets have a limit of their own, `websocket.per_key`.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
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

/** One exchange that a key has open. */
export interface KeySlot {
  /** The size of the received body; until then the largest that it may have is counted. */
  setBytes(bytes: number): void;
  /** Calling it again does nothing. */
  release(): void;
}

interface KeyUsage {
  exchanges: number;
  bytes: number;
}

export class KeySlots {
  readonly #held = new Map<string, KeyUsage>();

  /** Keys that hold anything now. */
  get size(): number {
    return this.#held.size;
  }

  /** Throws `rate_limited`. A single body is never refused here: bodies have a limit of their own. */
  acquire(keyId: string, bytes: number, limits: KeyLimits): KeySlot {
    const held = this.#held.get(keyId) ?? { exchanges: 0, bytes: 0 };
    if (held.exchanges >= limits.exchanges) throw tooMany('This API key has too many requests open at once.');
    if (held.bytes > 0 && held.bytes + bytes > limits.bodyBytes) throw tooMany('This API key sends too many bytes at once.');
    let mine = bytes;
    let isOpen = true;
    held.exchanges += 1;
    held.bytes += mine;
    this.#held.set(keyId, held);
    return {
      setBytes(now) {
        if (!isOpen) return;
        held.bytes += now - mine;
        mine = now;
      },
      release: () => {
        if (!isOpen) return;
        isOpen = false;
        held.exchanges -= 1;
        held.bytes -= mine;
        if (held.exchanges === 0) this.#held.delete(keyId);
      },
    };
  }

  /** {@link acquire} until the response closes; throws `client_closed_request` where it has. `maxBytes`: what a body may have at most. */
  enter({ request, response, config, gone }: Arrival, keyId: string, maxBytes: number): KeySlot {
    // `close` was emitted already and will not come again.
    if (gone.aborted) throw goneBecause(gone);
    const slot = this.acquire(keyId, mostBytes(request, maxBytes), config.limits.key);
    response.on('close', slot.release);
    return slot;
  }
}

/** A compressed body, or one without a declared length, may become as large as the limit. */
function mostBytes({ headers }: IncomingMessage, maxBytes: number): number {
  if (headers['transfer-encoding'] !== undefined || headers['content-encoding'] !== undefined) return maxBytes;
  return Math.min(Number(headers['content-length'] ?? 0), maxBytes);
}

function tooMany(message: string): GatewayError {
  return new GatewayError('rate_limited', message, { retryAfterMs: 1000 });
}
