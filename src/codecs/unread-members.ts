/** What a client says in members that no decoder reads: an upstream of another dialect never hears of it, which has to be said. */
import { isObject, type JsonValue } from './canonical/json.ts';
import type { CanonicalRequest, ReadsWithin } from './canonical/request.ts';
import { present } from './request-members.ts';

/** Whether the loss `unknown members` happens to this request at an upstream of another dialect. */
export function hasUnreadMembers({ json, reads, readsWithin = [] }: CanonicalRequest): boolean {
  const isUnread = (key: string) => !reads.has(key) && present(json[key]);
  return Object.keys(json).some(isUnread) || readsWithin.some((within) => saysMore(json[within.key], within));
}

function saysMore(value: JsonValue | undefined, within: ReadsWithin): boolean {
  if (Array.isArray(value)) return value.some((entry: JsonValue) => saysMore(entry, within));
  if (!isObject(value) || within.passes?.(value) === true) return false;
  return Object.keys(value).some((key) => !within.reads.has(key) && says(value[key]));
}

/** Serialised histories spell out what is absent. */
function says(value: JsonValue | undefined): boolean {
  return present(value) && value !== false && value !== '' && !(Array.isArray(value) && value.length === 0);
}
