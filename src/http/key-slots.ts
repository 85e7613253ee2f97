/**
 * What one API key may hold of this process at once: open exchanges, and bytes of request bodies that are being received or
 * served (WebSockets have `websocket.per_key`). Knows keys by id only; state of one process.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { GatewayError } from '../codecs/canonical/error.ts';

export interface KeyLimits {
  readonly exchanges: number;
  readonly bodyBytes: number;
}

interface Held {
  exchanges: number;
  bytes: number;
}

export class KeySlots {
  readonly #held = new Map<string, Held>();

  /** Keys that hold anything now. */
  get size(): number {
    return this.#held.size;
  }

  /** Takes a place for this exchange until its response closes. Throws `rate_limited`. `maxBytes`: what a body without a length may have. */
  enter(keyId: string, request: IncomingMessage, response: ServerResponse, limits: KeyLimits, maxBytes: number): void {
    const { 'content-length': length, 'transfer-encoding': coding } = request.headers;
    const bytes = coding === undefined ? Math.min(Number(length ?? 0), maxBytes) : maxBytes;
    const held = this.#of(keyId);
    if (held.exchanges >= limits.exchanges) throw tooMany('This API key has too many requests open at once.');
    // A single body is always taken: its own limit is another one.
    if (held.bytes > 0 && held.bytes + bytes > limits.bodyBytes) throw tooMany('This API key sends too many bytes at once.');
    held.exchanges += 1;
    held.bytes += bytes;
    this.#held.set(keyId, held);
    response.once('close', () => {
      held.exchanges -= 1;
      held.bytes -= bytes;
      this.#forget(keyId, held);
    });
  }

  #of(keyId: string): Held {
    return this.#held.get(keyId) ?? { exchanges: 0, bytes: 0 };
  }

  #forget(keyId: string, held: Held): void {
    if (held.exchanges === 0) this.#held.delete(keyId);
  }
}

function tooMany(message: string): GatewayError {
  return new GatewayError('rate_limited', message, { retryAfterMs: 1000 });
}
