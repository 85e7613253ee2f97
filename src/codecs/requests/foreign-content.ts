/** Refuses, at its path, what only an upstream of the client's own dialect can honour. */
import { GatewayError, notConvertible } from '../canonical/error.ts';
import type { Dialect } from '../canonical/dialect.ts';
import type { NativeItem } from '../canonical/item.ts';
import { isObject, type JsonObject, type JsonValue } from '../canonical/json.ts';
import type { CanonicalRequest } from '../canonical/request.ts';

/** Throws `unsupported_conversion` for a request that is bound to another dialect than `dialect`. */
export function refuseForeignBinding({ boundTo }: CanonicalRequest, dialect: Dialect): void {
  if (boundTo === undefined || boundTo.dialect === dialect) return;
  throw notConvertible(boundTo.at, `${boundTo.at} needs an upstream of its own protocol.`);
}

/** Matches the types of user media in every dialect (`input_video`, `video_url`, `container_upload`, …). */
const MEDIA = /audio|document|file|image|upload|video/;

/**
 * Throws `item_not_found` for a reference to an item that the gateway does not keep: only the upstream that stored the item can
 * say what it was. Throws `unsupported_conversion` for native items without which the question would be a different one
 * (semantics 3.11): media of the user, and a compaction, which replaces all that came before it. Other native items are left to
 * the loss table.
 */
export function refuseForeignItem(item: NativeItem): void {
  if (!isObject(item.body)) return;
  const { type } = item.body;
  if (item.dialect === 'responses' && (type === 'item_reference' || isBareId(item.body)))
    throw itemNotFound(item.body['id'], item.at);
  if (typeof type !== 'string') return;
  if (item.role === 'user' && MEDIA.test(type)) {
    throw notConvertible(item.at, "The selected upstream's protocol cannot take this kind of content.");
  }
  const isCompaction = COMPACTION.test(type);
  const isFull = isCompaction && typeof item.body['encrypted_content'] === 'string';
  if (isCompaction && !isFull && item.dialect === 'responses') throw emptyCompaction(item);
  if (type === 'compaction_trigger') throw notConvertible(item.at, 'The selected upstream cannot compact a conversation.');
  if (isFull) {
    throw notConvertible(item.at, 'Only an upstream of the protocol that compacted this conversation can go on with it.');
  }
}

/** Some agents call it `compaction_summary`. */
const COMPACTION = /^compaction(_summary)?$/;

/** An item with nothing but its id is a reference, too. */
function isBareId({ type, role, id }: JsonObject): boolean {
  return (type === undefined || type === null) && role === undefined && typeof id === 'string';
}

/** With nothing but an id it is a reference; with neither, nothing of the conversation that it stands for is there. */
function emptyCompaction({ body, at }: NativeItem): GatewayError {
  if (isObject(body) && typeof body['id'] === 'string') return itemNotFound(body['id'], at);
  const param = at === undefined ? {} : { param: `${at}.encrypted_content` };
  return new GatewayError('invalid_request', 'A compaction needs encrypted_content.', param);
}

const MOST_SHOWN = 100;

function itemNotFound(id: JsonValue | undefined, at: string | undefined): GatewayError {
  const text = typeof id === 'string' ? id : '';
  const shown = text.length > MOST_SHOWN ? `${text.slice(0, MOST_SHOWN)}…` : text;
  const message = `Item with id ${JSON.stringify(shown)} not found. Send the item itself.`;
  return new GatewayError('item_not_found', message, at === undefined ? {} : { param: `${at}.id` });
}
