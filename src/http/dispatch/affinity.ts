/**
 * Which Channel a conversation was last answered by, so that it meets its prompt cache again. Written after success only, dropped
 * on failure, forgotten when idle; state of one process.
 */
import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Item } from '../../codecs/canonical/item.ts';
import type { JsonValue } from '../../codecs/canonical/json.ts';
import type { CanonicalRequest } from '../../codecs/canonical/request.ts';
import type { Clock } from '../../streams/clock.ts';
import { atMost } from '../lru.ts';

export class Affinity {
  readonly #channels: LRUCache<string, string>;

  constructor(clock: Clock, options: { readonly maxEntries: number; readonly idleMs: number }) {
    this.#channels = new LRUCache({
      ...atMost(options.maxEntries),
      ttl: options.idleMs,
      updateAgeOnGet: true,
      perf: { now: () => clock.monotonic() },
    });
  }

  channelOf(conversation: string): string | undefined {
    return this.#channels.get(conversation);
  }

  succeeded(conversation: string, channelId: string): void {
    this.#channels.set(conversation, channelId);
  }

  failed(conversation: string, channelId: string): void {
    if (this.#channels.peek(conversation) === channelId) this.#channels.delete(conversation);
  }

  get size(): number {
    return this.#channels.size;
  }
}

/** The same for every turn of one conversation of one key with one model. */
export function conversationOf(keyId: string, request: CanonicalRequest): string {
  const identity = explicitIdentity(request);
  const conversation = identity === undefined ? `items:${leadingItems(request.items)}` : `id:${identity.slice(0, MAX_CHARS)}`;
  return hash('sha256', JSON.stringify([keyId, request.model]) + conversation, 'base64url');
}

function explicitIdentity(request: CanonicalRequest): string | undefined {
  const metadata = request.metadata ?? {};
  return (
    request.previousResponseId ??
    textOf(request.conversation) ??
    request.promptCacheKey ??
    request.sessionId ??
    textOf(metadata['session_id']) ??
    textOf(metadata['conversation_id']) ??
    textOf(metadata['thread_id']) ??
    textOf(metadata['user_id']) ??
    request.user
  );
}

function textOf(value: JsonValue | undefined): string | undefined {
  if (typeof value === 'string') return value === '' ? undefined : value;
  if (typeof value !== 'object' || value === null || Array.isArray(value) || !('id' in value)) return undefined;
  return typeof value.id === 'string' ? value.id : undefined;
}

/** More of a conversation does not tell it from others, and would be hashed in one go. */
const MAX_CHARS = 16 * 1024;

/** Up to the first user turn, so that a growing history keeps its identity. */
function leadingItems(items: readonly Item[]): string {
  let text = '';
  let firstUserTurn: number | undefined;
  for (const item of items) {
    const isUser = 'role' in item && item.role === 'user';
    if (firstUserTurn !== undefined && !(isUser && item.turn === firstUserTurn)) break;
    // An item without a turn is one by itself.
    if (isUser) firstUserTurn = item.turn ?? -1;
    text += `\n${item.kind}:${'role' in item ? item.role : ''}:${leadOf(item)}`;
    if (text.length > MAX_CHARS) break;
  }
  return text.slice(0, MAX_CHARS);
}

function leadOf(item: Item): string {
  if (item.kind === 'text' || item.kind === 'refusal') return item.text;
  if (item.kind === 'toolCall') return item.callId;
  if (item.kind === 'media' && item.media.source.from === 'inline') return item.media.source.data.slice(0, 256);
  return item.kind === 'media' ? JSON.stringify(item.media.source) : '';
}
