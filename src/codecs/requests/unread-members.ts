/** Members of a request that no decoder reads: an upstream of another dialect never hears of them, and the log has to say so. */
import { isObject, type JsonObject, type JsonValue } from '../canonical/json.ts';
import type { CanonicalRequest, ReadMembers } from '../canonical/request.ts';
import { present } from './members.ts';

/** Whether the loss `unknown members` happens to this request at an upstream of another dialect. */
export function hasUnreadMembers({ json, reads, readsIn }: CanonicalRequest): boolean {
  if (Object.keys(json).some((key) => !reads.has(key) && present(json[key]))) return true;
  return Object.entries(readsIn ?? {}).some(([key, members]) => holdsUnread(json[key], members));
}

/** Looks through lists, and no deeper than the table goes: what lies below a member that is read is read with it. */
function holdsUnread(value: JsonValue | undefined, members: ReadMembers): boolean {
  if (Array.isArray(value)) return value.some((entry) => holdsUnread(entry, members));
  if (!isObject(value) || members.of?.(value) === false) return false;
  if (Object.keys(value).some((key) => !members.own.has(key) && saysSomething(value[key]))) return true;
  return Object.entries(members.within ?? {}).some(([key, inner]) => holdsUnread(value[key], inner));
}

/** Clients send back answers whole, and histories spell out what is absent. */
function saysSomething(value: JsonValue | undefined): boolean {
  return present(value) && value !== '' && value !== false && !(Array.isArray(value) && value.length === 0);
}

/** For the tables of {@link CanonicalRequest.readsIn}. */
export function own(...names: readonly string[]): Pick<ReadMembers, 'own'> {
  return { own: new Set(names) };
}

/** For {@link ReadMembers.of}: entries of these types, and those that name none. */
export function ofType(...types: readonly string[]): (entry: JsonObject) => boolean {
  const known = new Set(types);
  return ({ type }) => typeof type !== 'string' || known.has(type);
}
